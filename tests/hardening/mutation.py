"""Change the kernels in small ways, one at a time, and see whether the tests that run the changed line notice.

Each mutant lives in a process of its own, in memory: no file is changed. Compiled loops run as plain Python, which
spares compiling each mutant; tests that fail or take long that way are left out. Mutants that no test can notice, as
they change no result, are listed in `equivalent.txt` with the reason; they count as sampled and not as killed.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib.machinery
import io
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import numba
import pytest

PACKAGES = {
    "trimming": ("trimbench/trimming", "kernels.py"),
    "conformant": ("trimbench/conformant", "[!_]*.py"),
    "selection_bias": ("trimbench/selection_bias", "*kernels.py"),
    "estimators": ("trimbench/estimators", "[!_]*.py"),
    **{
        room: (f"trimbench/{room}", "**/[!_]*.py")
        for room in ("reproduction/reporting", "reproduction/execution", "reproduction/data", "papers/own_table")
    },
}
ENOUGH = 0.85
EQUIVALENTS = Path(__file__).with_name("equivalent.txt")
_TEST_SECONDS, _MUTANT_SECONDS = 2.0, 10.0
_COMMON = (
    *("-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--no-header", "-m", "not cluster"),
    *("--override-ini", "addopts=--strict-markers", "-W", "ignore:Module already imported"),
)
Ran = dict[str, tuple[float, set[tuple[str, int]]]]


class _Watch:
    """Notes of each test that passes its seconds and the lines of the package that it runs."""

    def __init__(self, folder: Path) -> None:
        self.found: list[tuple[str, float, list[tuple[str, int]]]] = []
        self._root, self._folder = Path.cwd(), f"{folder.absolute()}{os.sep}"  # tests change the working directory
        self._lines: set[tuple[str, int]] = set()
        self._of_fixture: dict[str, set[tuple[str, int]]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        """Note what a fixture runs: each of its tests does so where it runs alone."""
        before, self._lines = self._lines, set()
        traced = sys.gettrace()
        sys.settrace(self._follow)
        try:
            return (yield)
        finally:
            sys.settrace(traced)
            self._of_fixture[fixturedef.argname], self._lines = self._lines, before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, object, object]:
        self._lines = set()
        signal.signal(signal.SIGPROF, _late)
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, 5 * _TEST_SECONDS)
        sys.settrace(self._follow)
        threading.settrace(self._follow)
        try:
            result = yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = time.process_time() - started
        lines = self._lines.union(*(self._of_fixture.get(name, ()) for name in item.fixturenames))
        here = sorted((os.path.relpath(file, self._root), line) for file, line in lines)
        self.found.append((item.nodeid, seconds, here))
        return result

    def _follow(self, frame: Any, _: str, __: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self._folder):
            return None
        return self._line

    def _line(self, frame: Any, _: str, __: Any) -> Any:
        self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


def _late(*_: object) -> None:
    raise TimeoutError("the test takes long")


def _in_a_child(work: Callable[[], int]) -> int:
    """Return the exit code of some work in a forked process, negative for a signal."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code, said = 70, io.StringIO()
        try:
            with redirect_stdout(said), redirect_stderr(said):
                code = work()
        except BaseException:  # noqa: BLE001  (the end of a process)
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def sound(package: str, tests: Sequence[str]) -> Ran:
    """Run the tests without any change; return the seconds and lines of those that pass."""
    path = Path(tempfile.mkstemp(suffix=".json")[1])

    def work() -> int:
        watch = _Watch(Path(PACKAGES[package][0]))
        pytest.main([*_COMMON, "--maxfail=1000", *tests], plugins=[watch])
        path.write_text(json.dumps(watch.found))
        return 0

    _in_a_child(work)
    found = json.loads(path.read_text())
    path.unlink()
    return {name: (seconds, {(file, line) for file, line in lines}) for name, seconds, lines in found}


def _uncompiled(*functions: Any, **_: object) -> Any:
    """Take the place of the decorator of numba: a function stays as it is, and looks as if it were compiled."""
    if not functions:
        return _uncompiled
    (function,) = functions
    function.py_func, function.signatures = function, ("any",)
    return function


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: Path, text: str) -> None:
        super().__init__(name, str(path))
        self._text = text

    def get_code(self, fullname: str) -> CodeType | None:
        return compile(self._text, self.path, "exec")


class _Finder:
    """Finds the changed module in place of the one in its file."""

    def __init__(self, mutant: Mutant) -> None:
        # A test may import the module after it has changed the working directory.
        self._path, self._text = mutant.file.absolute(), mutant.code()
        self._name = ".".join(mutant.file.with_suffix("").parts)

    def find_spec(self, name: str, *_: object) -> Any:
        if name != self._name:
            return None
        return importlib.machinery.ModuleSpec(name, _Loader(name, self._path, self._text), origin=str(self._path))


def fate(mutant: Mutant, ran: Ran) -> str:
    """Return whether a mutant is killed, survives, or is on a line that no test of these runs."""
    here = str(mutant.file)
    covering = sorted((seconds, name) for name, (seconds, lines) in ran.items() if (here, mutant.line) in lines)
    # What runs when the module is loaded decides in any test of the file.
    covering = covering or sorted(
        (seconds, name)
        for name, (seconds, lines) in ran.items()
        if mutant.at_import and any(file == here for file, _ in lines)
    )
    chosen, total = [], 0.0
    for seconds, name in covering:
        total += seconds
        if total > _MUTANT_SECONDS:
            break
        chosen.append(name)
    if not chosen:
        return "not run"

    def work() -> int:
        sys.meta_path.insert(0, _Finder(mutant))  # type: ignore[arg-type]
        signal.setitimer(signal.ITIMER_PROF, 3 * _MUTANT_SECONDS)  # a loop that never ends is noticed, too
        signal.alarm(300)  # and so is waiting for ever
        return int(pytest.main([*_COMMON, *chosen]))

    return "survives" if _in_a_child(work) == 0 else "killed"


def _told(mutant: Mutant, ran: Ran) -> str:
    """Return the fate of a mutant, and print it unless it is killed; one that is listed should not be."""
    found, difference = fate(mutant, ran), mutant.difference()
    listed = difference in read_equivalents(EQUIVALENTS)
    if found == "killed":
        if listed:
            print(f"  killed, though {EQUIVALENTS.name} has it: {mutant}", flush=True)
        return found
    if listed:
        return "equivalent"
    print(f"  {found}: {mutant}\n    - {difference.before}\n    + {difference.after}", flush=True)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Try a sample of mutants for each package; the exit code is 1 if too few are killed."""
    parser = argparse.ArgumentParser(prog="scripts/mutation", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--package", choices=PACKAGES, action="append", help="only these; may be repeated")
    parser.add_argument("--sample", type=int, default=200, help="mutants of each package (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="decides the sample (default: 0)")
    parser.add_argument("--tests", nargs="+", help="test files (default: all of the package)")
    chosen = parser.parse_args(arguments)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp()
    # What every test needs is loaded once, before processes fork; the project itself is loaded in each.
    for name in ("numpy", "scipy.stats", "scipy.optimize", "pandas", "sklearn.linear_model"):
        importlib.import_module(name)
    numba.njit = _uncompiled
    poor = False
    for package in chosen.package or PACKAGES:
        folder, pattern = PACKAGES[package]
        ran = sound(package, chosen.tests or [f"tests/{package}"])
        print(f"{package}: {len(ran)} tests run as plain Python, {sum(t for t, _ in ran.values()):.0f} s", flush=True)
        everything = [one for file in sorted(Path(folder).glob(pattern)) for one in mutants(file)]
        sample = random.Random(chosen.seed).sample(everything, min(chosen.sample, len(everything)))
        fates = [_told(mutant, ran) for mutant in sample]
        share = fates.count("killed") / max(1, len(fates))
        poor |= share < ENOUGH
        print(
            f"{package}: {fates.count('killed')} of {len(fates)} mutants killed, {share:.0%}, of {len(everything)}; "
            f"of the others, {fates.count('equivalent')} are equivalent, {fates.count('survives')} survive, and "
            f"{fates.count('not run')} are on lines that no test runs",
            flush=True,
        )
    return int(poor)


# Small changes of a program, each of which its tests should notice.

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
# What is no computation: messages, types, imports, and what decorates a function.
_SKIPPED = (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Assert)


@dataclass(frozen=True)
class Difference:
    """A line of a function before and after a change, as `ast.unparse` writes it."""

    file: str
    function: str  # with the classes and functions around it; empty outside
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file} {self.function}\n- {self.before}\n+ {self.after}"


def read_equivalents(path: Path) -> dict[Difference, str]:
    """Return the reason why each mutant of a list changes no result.

    An entry is what `Difference` prints, followed by the reason; empty lines part entries.
    """
    found = {}
    for entry in path.read_text(encoding="utf-8").split("\n\n"):
        place, before, after, *reason = entry.strip().splitlines()
        file, _, function = place.partition(" ")
        if not before.startswith("- ") or not after.startswith("+ ") or not reason:
            raise ValueError(f"an entry needs a place, a line before, a line after and a reason, got {entry!r}")
        found[Difference(file, function, before[2:], after[2:])] = " ".join(reason)
    return found


@dataclass(frozen=True)
class Mutant:
    """One change: which node of the tree of a file, in the order of `ast.walk`, and what it becomes."""

    file: Path
    line: int
    place: int
    change: str
    at_import: bool  # it is outside functions

    def code(self) -> str:
        """Return the text of the changed file."""
        tree = ast.parse(self.file.read_text(encoding="utf-8"))
        for place, node in enumerate(ast.walk(tree)):
            if place == self.place:
                _change(tree, node, self.change)
        return ast.unparse(ast.fix_missing_locations(tree))

    def difference(self) -> Difference:
        """Return what it changes, without the number of the line, which other changes of the file move."""
        nodes = _nodes(self.file.read_text(encoding="utf-8"))
        around = [
            node
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.lineno <= self.line <= (node.end_lineno or 0)
        ]
        # The innermost function is enough, and much less to write than the file.
        before = ast.Module([around[-1]], []) if around else nodes[0]
        place = next(n for n, node in enumerate(ast.walk(before)) if node is nodes[self.place])
        after = _copied(before)
        _change(after, list(ast.walk(after))[place], self.change)
        pairs = zip(ast.unparse(before).splitlines(), ast.unparse(after).splitlines(), strict=True)
        changed = ((one.strip(), other.strip()) for one, other in pairs if one != other)
        one, other = next(changed, ("", ""))  # none where 1 is added to a number without room for it
        return Difference(self.file.as_posix(), ".".join(node.name for node in around), one, other)

    def __str__(self) -> str:
        text = self.file.read_text(encoding="utf-8").splitlines()[self.line - 1].strip()
        return f"{self.file}:{self.line}: {self.change}: {text}"


def _copied(part: Any) -> Any:
    """Copy a part of a program, but not what a measurement of coverage hangs on its nodes."""
    if isinstance(part, list):
        return [_copied(one) for one in part]
    if isinstance(part, ast.AST):
        own = type(part)(**{name: _copied(one) for name, one in ast.iter_fields(part)})
        return ast.copy_location(own, part)
    return part


@functools.lru_cache(maxsize=4)
def _nodes(text: str) -> list[ast.AST]:
    """Return the nodes of a program; nobody changes them."""
    return list(ast.walk(ast.parse(text)))


def mutants(file: Path) -> Iterator[Mutant]:
    """Yield all changes of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    skipped = {id(node) for root in _roots(tree) for node in ast.walk(root)}
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    inside = {id(node) for function in functions for part in function.body for node in ast.walk(part)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) not in skipped and hasattr(node, "lineno"):
            for change in _changes(node):
                yield Mutant(file, node.lineno, place, change, id(node) not in inside)


def _roots(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what is left alone."""
    for node in ast.walk(tree):
        if isinstance(node, _SKIPPED) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from node.decorator_list
        elif isinstance(node, ast.AnnAssign | ast.arg) and node.annotation:
            yield node.annotation
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield node
        if isinstance(node, ast.FunctionDef) and node.returns:
            yield node.returns


def _changes(node: ast.AST) -> list[str]:
    match node:
        case (
            ast.Compare(ops=[operator]) | ast.BinOp(op=operator) | ast.BoolOp(op=operator) | ast.AugAssign(op=operator)
        ):
            new = _OPERATORS.get(type(operator))
            return [f"{type(operator).__name__} to {new.__name__}"] if new else []
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            return ["sign left out"]
        case ast.Constant(value=bool()):
            return ["other value"]
        case ast.Constant(value=int() | float()):
            return ["one more"]
        case ast.If() | ast.While() | ast.IfExp():
            return ["condition turned round"]
        case ast.Expr() | ast.AugAssign():
            return ["left out"]
        case ast.Assign(targets=[ast.Subscript()]):
            return ["left out"]
        case ast.Break() | ast.Continue():
            return ["left out"]
        case _:
            return []


def _change(tree: ast.AST, node: ast.AST, change: str) -> None:
    if change == "left out":
        _replace(tree, node, ast.Pass())
    elif change == "sign left out":
        _replace(tree, node, node.operand)  # type: ignore[attr-defined]
    elif change == "condition turned round":
        node.test = ast.UnaryOp(ast.Not(), _copied(node.test))  # type: ignore[attr-defined]
    elif change == "other value":
        node.value = not node.value  # type: ignore[attr-defined]
    elif change == "one more":
        node.value += 1  # type: ignore[attr-defined]
    elif isinstance(node, ast.Compare):
        node.ops = [_OPERATORS[type(node.ops[0])]()]  # type: ignore[list-item]
    else:
        node.op = _OPERATORS[type(node.op)]()  # type: ignore[attr-defined]


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(one is old for one in value):
                setattr(parent, name, [new if one is old else one for one in value])


if __name__ == "__main__":
    sys.exit(main())
