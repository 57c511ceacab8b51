"""Functions that jobs may call: how they are marked and named, and the version of the code that they can reach."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import gc
import hashlib
import importlib
import importlib.util
import itertools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from trimbench.reproduction.files import read_bytes, sealed, unsealed, user_cache, write_bytes
from trimbench.reproduction.project import DISTRIBUTION, per_project, project
from trimbench.reproduction.settings import Json

JobFunction = Callable[..., Mapping[str, Json]]
_F = TypeVar("_F", bound=JobFunction)

_MARK = "__is_job__"
_FUNCTION_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def job_function(function: _F) -> _F:
    """Mark a top-level function as one that jobs can call. Its version, and so the keys of its jobs, follow its code.

    >>> @job_function
    ... def double(x: float) -> dict[str, float]:
    ...     return {"twice": 2 * x}
    """
    setattr(function, _MARK, True)
    return function


def is_job_function(value: object) -> bool:
    """Tell whether something is marked with `job_function`."""
    return callable(value) and hasattr(value, _MARK)


@per_project
def code_version(function: str) -> str:
    """Return the version of the code that decides what a job function, ``"package.module:name"``, returns.

    It is the SHA-256 of every top-level statement that the function can reach by name, in this package and in the
    folder of its own module (of an installed one: in its package), directly or through others: functions, classes,
    constants, imports, modules named by a text. What it cannot reach, comments, docstrings and the layout of the source
    play no part. Computed once per process and project: the source on disk may change later, but the imported code does
    not. Raises what `resolve` raises, and ValueError if there is no source.
    """
    return hashlib.sha256("\n".join([function, *_lines(function)]).encode()).hexdigest()


def code_parts(function: str) -> dict[str, str]:
    """Return the hashes of the definitions that make the version of a function's code, by module and names.

    Definitions of equal names have a number behind a ``#``.
    """
    found: dict[str, str] = {}
    for line in _lines(function):
        names, _, digest = line.rpartition(" ")
        found[next(name for n in itertools.count() if (name := f"{names}#{n}" if n else names) not in found)] = digest
    return found


def _lines(function: str) -> tuple[str, ...]:
    """Return a line for each top-level statement that a function can reach: its module, its names and its hash."""
    resolve(function)
    module, _, name = function.partition(":")
    name_of_top = module.partition(".")[0]
    top = _location(name_of_top)
    folder: Path | str = name_of_top
    if top is not None and not set(_INSTALLED) & set(top.parts):
        folder = top.parent.parent if top.name == "__init__.py" else top.parent
    waiting = list(_targets(folder, module, (name,)))
    if not waiting:
        raise ValueError(f"function {function!r} must have Python source beside its module, got none")
    reached = set(waiting)
    while waiting:
        new = _after(folder, waiting.pop()) - reached
        reached |= new
        waiting += new
    return tuple(f"{one.module}: {_source(one.file, one.module)[one.at].text}" for one in sorted(reached, key=_order))


def _order(place: _Place) -> tuple[str, str, int]:
    """Sort the definitions of a module by their text; what else it does is in the order of the file."""
    found, bound = _source(place.file, place.module)[place.at], _bound(place.file, place.module)
    is_movable = not found.acts and all(len(bound[name]) == 1 for name in found.binds)
    return (place.module, found.text if is_movable else "", place.at)


def resolve(function: str) -> JobFunction:
    """Find a job function by its name, ``"package.module:name"``.

    Raises TypeError if it is not marked with `job_function`, and ValueError if the name is malformed, or the module or
    the function does not exist.
    """
    check_function_name(function)
    module_name, _, name = function.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(f"function {function!r} cannot be imported: {error}; check the module's name") from error
    target = getattr(module, name, None)
    if target is None:
        raise ValueError(f"function {function!r} does not exist: module {module_name!r} has no {name!r}")
    if not is_job_function(target):
        raise TypeError(
            f"function {function!r} must be marked as a job function, got {target!r}; decorate it with @job_function"
        )
    found: JobFunction = target
    return found


def name_of(function: JobFunction) -> str:
    """Return the name of a marked top-level function, from which `resolve` finds it."""
    name = f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', repr(function))}"
    check_function_name(name)
    if resolve(name) is not function:
        raise ValueError(f"function must be what its name says, but {name!r} is another object; pass the name")
    return name


def check_function_name(function: str) -> None:
    """Raise ValueError unless a name has the form ``"package.module:name"`` and a worker can import it."""
    if not isinstance(function, str) or not _FUNCTION_NAME.fullmatch(function):
        raise ValueError(f"function must be 'package.module:name' of a top-level function, got {function!r}")
    if function.startswith("__main__:"):
        raise ValueError(
            f"function must live in a module that workers can import, got {function!r}; move it out of the script"
        )


# The statements that a function can reach.

# Modules that are not followed: they run a job, but do not compute its result.
_FRAMEWORK = __name__.removesuffix(".execution.code_hash")
_OUTSIDE = tuple(
    f"{_FRAMEWORK}.{name}"
    for name in (
        "children",
        "configuration",
        "data.cache",  # bytes have hashes, which are in the key
        "data.downloads",
        "data.errors",
        "execution.code_hash",
        "execution.store",
        "extras",  # says which package is absent
        "files",
        "messages",
        "project",
        "project_folder",
        "settings",
    )
)
_DECLARES = ("job", "declare_result")  # the declared form of a result does not decide its values
_END = ")"  # of a node, so that what is in a loop differs from what follows it
_MODULE_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+", re.ASCII)
_INSTALLED = ("site-packages", "dist-packages")
# A name, and the attributes taken from it.
_Chain = tuple[str, ...]
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Place(NamedTuple):
    """One of the top-level statements of a module."""

    module: str
    file: Path
    at: int


@per_project
def _after(folder: Path | str, place: _Place) -> frozenset[_Place]:
    """Return the statements to which one refers directly."""
    found, bound = _source(place.file, place.module)[place.at], _bound(place.file, place.module)
    after = [_targets(folder, text, ()) for text in found.modules]
    for chain in found.reads:
        after += _imported(folder, found, chain)
        if chain[0] in bound:
            after.append(_targets(folder, place.module, chain))
    return frozenset[_Place]().union(*after)


@per_project
def _targets(folder: Path | str, module: str, chain: _Chain) -> frozenset[_Place]:
    """Return the statements of a module that bind a name, or all without one; none for a module from elsewhere."""
    file = _file(folder, module)
    if file is None:  # a folder without __init__.py, or from elsewhere
        below = f"{module}.{chain[0]}" if chain else ""
        return _targets(folder, below, chain[1:]) if below and _file(folder, below) else frozenset()
    source, bound = _source(file, module), _bound(file, module)
    if chain and chain[0] not in bound:
        if _file(folder, f"{module}.{chain[0]}"):
            return _targets(folder, f"{module}.{chain[0]}", chain[1:])
        if "__getattr__" not in bound:
            return frozenset()
        stub = file.with_suffix(".pyi")  # says where a lazy module has a name from
        if stub.is_file() and chain[0] in _bound(stub, module):
            file, source, bound = stub, _source(stub, module), _bound(stub, module)
        else:
            chain = ()
    # A statement that binds nothing may change anything.
    places = [*bound[chain[0]], *bound.get("", ())] if chain else range(len(source))
    found = frozenset(_Place(module, file, at) for at in places)
    imported = [_imported(folder, source[at], chain) for at in places if chain and source[at].provides]
    return found.union(*(targets for one in imported for targets in one))


def _imported(folder: Path | str, found: _Statement, chain: _Chain) -> list[frozenset[_Place]]:
    """Return the statements behind a name that a statement imports."""
    targets = found.imports.get(chain[0], ())
    return [_targets(folder, module, (name, *chain[1:]) if name else chain[1:]) for module, name in targets]


@per_project
def _file(folder: Path | str, module: str) -> Path | None:
    """Return the file of a module of this package, or of one in the folder or below a package."""
    top, *rest = module.split(".")
    if any(module == one or module.startswith(f"{one}.") for one in (*_OUTSIDE, *project().skipped)):
        return None
    if top in (DISTRIBUTION, folder):
        place = _location(top)
    else:
        place = None if isinstance(folder, str) else _existing(folder / top)
    return place and (_existing(place.parent.joinpath(*rest)) if rest else place)


def _location(top: str) -> Path | None:
    """Return the file of a top-level module; for a package, its ``__init__.py``."""
    spec = importlib.util.find_spec(top)
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _existing(path: Path) -> Path | None:
    files = (path / "__init__.py", path.with_name(f"{path.name}.py"))
    return next((file for file in files if file.is_file()), None)


# The statements of a file, kept in the user's cache folder because every process needs them.

_OWN = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()  # another version of this file keeps other statements
_KIND = "code"


@dataclass(frozen=True)
class _Statement:
    """A top-level statement.

    Attributes
    ----------
    text : str
        The names that it binds and the hash of its syntax.
    binds : list of str
        The names that it binds or changes.
    provides : bool
        Whether what it imports is a name of its module, not only of a function or class.
    acts : bool
        Whether its place among others may matter: it is neither a definition nor an import.
    imports : mapping from names to pairs of a module and a name in it
        None in place of the latter for the module itself.
    calls, decorators : list of str
        The names of which it calls a method while the module is imported, and those that decorate it.
    reads : list of list of str
        The names that it reads, each followed by the attributes that it takes from it.
    modules : list of str
        The texts in it that look like names of modules.
    """

    text: str
    binds: list[str]
    provides: bool
    acts: bool
    imports: dict[str, list[tuple[str, str | None]]]
    calls: list[str]
    decorators: list[str]
    reads: list[_Chain]
    modules: list[str]


@functools.cache
def _source(file: Path, module: str) -> list[_Statement]:
    content = file.read_bytes()
    package = module if file.stem == "__init__" else module.rpartition(".")[0]
    key = json.dumps([_OWN, package, hashlib.sha256(content).hexdigest()])
    kept = user_cache() / "derived" / f"{_KIND}-{hashlib.sha256(key.encode()).hexdigest()[:40]}.json"
    with contextlib.suppress(OSError, ValueError, TypeError):
        return [
            _Statement(**{**one, "reads": list(map(tuple, one["reads"]))})
            for one in json.loads(unsealed(read_bytes(kept), _KIND, key))
        ]
    is_enabled = gc.isenabled()
    gc.disable()  # collecting would go through the syntax tree again and again, for half of the time
    try:
        nodes = [part for node in ast.parse(content).body if not _is_idle(node) for part in _parts(node)]
        found = [_Walk(package, is_package=package == module).statement(node) for node in nodes]
    finally:
        if is_enabled:
            gc.enable()
    with contextlib.suppress(OSError):
        write_bytes(sealed(json.dumps([dataclasses.asdict(one) for one in found]).encode(), _KIND, key), kept)
    return found


@functools.cache
def _bound(file: Path, module: str) -> dict[str, list[int]]:
    """Return where each name is bound or changed; under the empty name, the statements that may change any name."""
    found: dict[str, list[int]] = {}
    source = _source(file, module)
    for at, one in enumerate(source):
        for name in one.binds or [""]:
            found.setdefault(name, []).append(at)
    objects = {name for one in source if one.acts for name in one.binds}
    definitions = {name for one in source if not one.provides for name in one.binds}
    for at, one in enumerate(source):
        # A method may change its object, and nobody knows what a decorator of this module changes.
        for name in objects.intersection(one.calls) - set(one.binds):
            found[name].append(at)
        if definitions.intersection(one.decorators) and one.binds:
            found.setdefault("", []).append(at)
    return found


def _parts(node: ast.stmt) -> list[ast.stmt]:
    """Return an import of several names as one statement for each, and other statements as they are."""
    if isinstance(node, ast.Import):
        return [ast.Import([alias]) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [ast.ImportFrom(node.module, [alias], node.level) for alias in node.names]
    return [node]


def _is_idle(node: ast.AST, *, inside: bool = False) -> bool:
    """Tell whether a statement does nothing for a job: a docstring, a declared result, code for types or scripts."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or (not inside and _declares(node.value))
    if not isinstance(node, ast.If) or node.orelse:
        return False
    return ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'")


def _declares(node: ast.AST) -> bool:
    """Tell whether an expression only declares what a function returns."""
    return isinstance(node, ast.Call) and (_chain(node.func) or ("",))[-1] in _DECLARES


def _makes_job(node: ast.AST) -> bool:
    """Tell whether a decorator makes a function one of jobs."""
    return _declares(node) or _chain(node)[-1:] == ("job_function",)


class _Walk:
    """Records the syntax of a statement without docstrings, positions and comments, and the names in it."""

    def __init__(self, package: str, *, is_package: bool) -> None:
        self._package, self._is_package = package.split("."), is_package
        self._out: list[str] = []
        self._reads: set[_Chain] = set()
        self._modules: set[str] = set()
        self._imports: dict[str, list[tuple[str, str | None]]] = {}
        self._builds: list[ast.arg] = []

    def statement(self, node: ast.stmt) -> _Statement:
        """Return the record of a top-level statement."""
        if isinstance(node, ast.FunctionDef) and any(map(_makes_job, node.decorator_list)):
            self._builds = [*node.args.args, *node.args.kwonlyargs]  # made from JSON as objects of their annotations
        self._into(node, frozenset(), inside=False)
        binds = sorted(_bindings([node]))
        # Not ast.dump, which differs between versions of Python.
        digest = hashlib.sha256("\0".join(self._out).encode("utf-8", "surrogatepass")).hexdigest()
        provides, acts = not isinstance(node, _SCOPES), not isinstance(node, (*_SCOPES, ast.Import, ast.ImportFrom))
        decorators = [one.func if isinstance(one, ast.Call) else one for one in getattr(node, "decorator_list", ())]
        called = sorted(_calls(node)), [chain[0] for one in decorators if (chain := _chain(one))]
        names = *called, sorted(self._reads), sorted(self._modules)
        return _Statement(f"{','.join(binds)} {digest}", binds, provides, acts, self._imports, *names)

    def _into(self, node: ast.AST, hidden: frozenset[str], *, inside: bool) -> None:
        """Record a node, `inside` a function or not; `hidden` names are local to a function."""
        self._out.append(type(node).__name__)
        if chain := _chain(node):
            self._out += (*chain, _END)
            if chain[0] not in hidden:
                self._reads.add(chain)
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _MODULE_NAME.fullmatch(node.value):
            self._modules.add(node.value)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node)
        own = hidden
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            own = hidden | _names_inside(node)
        elif isinstance(node, _COMPREHENSIONS):
            own = hidden | _bindings([part.target for part in node.generators])
            self._into(node.generators[0].iter, hidden, inside=inside)  # its own names do not hide those of the first
        for name in node._fields:
            value = getattr(node, name, None)
            if value is None or value == [] or name in ("ctx", "type_comment", "kind"):
                continue
            self._out.append(name)
            # Annotations of functions and inside of them are not evaluated; those of classes are their fields.
            idle = name == "annotation" and (inside or isinstance(node, ast.arg)) and node not in self._builds
            if name == "returns" or idle:
                self._out.append(ast.unparse(value))
                continue
            is_own = own is not hidden and (name == "body" or isinstance(node, _COMPREHENSIONS))
            for item in value if isinstance(value, list) else (value,):
                if not isinstance(item, ast.AST):
                    self._out.append(repr(item))
                elif not (isinstance(item, ast.stmt) and _is_idle(item, inside=True)) and not (
                    name == "decorator_list" and _declares(item)
                ):
                    self._into(item, own if is_own else hidden, inside=inside or is_own)
        self._out.append(_END)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                target = alias.name if alias.asname else alias.name.partition(".")[0]
                self._imports.setdefault(alias.asname or target, []).append((target, None))
                continue
            base = self._package[: len(self._package) - node.level + 1] if node.level else []
            target = ".".join([*base, *filter(None, [node.module])])
            if target == ".".join(self._package) and self._is_package:  # one of its own modules
                self._imports.setdefault(alias.asname or alias.name, []).append((f"{target}.{alias.name}", None))
                continue
            self._imports.setdefault(alias.asname or alias.name, []).append((target, alias.name))


def _calls(node: ast.AST) -> set[str]:
    """Return the names of which a statement calls a method while it runs, so not inside of functions."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return set()
    chain = _chain(node.func) if isinstance(node, ast.Call) else ()
    return set(chain[:1] if len(chain) > 1 else ()).union(*map(_calls, ast.iter_child_nodes(node)))


def _names_inside(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Return the local names of a function: its arguments and what it binds, but not what it imports."""
    arguments = node.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {one.arg for one in listed if one} | _bindings([node.body], inside=True)


def _bindings(nodes: list[Any], *, inside: bool = False) -> set[str]:
    """Return the names that statements bind; at the top also those that they change or import."""
    found: set[str] = set()
    free: set[str] = set()
    waiting: list[Any] = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, ast.Name | ast.Subscript | ast.Attribute):
            chain = _chain(node.value if isinstance(node, ast.Subscript) else node)
            if not isinstance(node.ctx, ast.Load) and chain and (isinstance(node, ast.Name) or not inside):
                found.add(chain[0])  # _TABLE["a"] = 1 changes _TABLE
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in node.names} if not inside else set()
        elif isinstance(node, ast.Global | ast.Nonlocal):
            free |= set(node.names)
        elif isinstance(node, _SCOPES):
            found |= set() if isinstance(node, ast.Lambda) else {node.name}
        elif isinstance(node, ast.AST) and not isinstance(node, _COMPREHENSIONS):
            found |= {name} if isinstance(name := getattr(node, "name", None), str) else set()  # except, match
            waiting += [value for part in node._fields if (value := getattr(node, part, None)) is not None]
    return found - free


def _chain(node: ast.AST) -> _Chain:
    """Return the name and the attributes of ``a.b.c``; an empty tuple for any other expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, *reversed(attributes)) if isinstance(node, ast.Name) else ()
