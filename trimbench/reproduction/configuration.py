"""Where the configuration is, and what is declared in it."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import itertools
import operator
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import GrammarParseError, OmegaConfBaseException
from omegaconf.grammar_parser import parse
from omegaconf.grammar_visitor import GrammarVisitor

from trimbench.reproduction.files import NotDataError, read_bytes, read_text
from trimbench.reproduction.messages import brief, reason
from trimbench.reproduction.project import SHARED_CONFIGURATION, per_project, project
from trimbench.reproduction.settings import ConfigurationError, unknown

# Keys of an experiment's file that are not settings: its class, notes that hold whatever it finds, and the changes with
# which it runs in seconds.
NOT_SETTINGS = ("runner", "notes", "smoke_test")


def base_folders() -> tuple[Path, ...]:
    """Return the folders of configuration that every command has: the project's, and the one that projects share."""
    return tuple(dict.fromkeys((project().configuration, SHARED_CONFIGURATION)))


@dataclass(frozen=True)
class Catalogue:
    """The declarations in the user's own folders of configuration, in that of the project, and in the shared one."""

    own: tuple[Path, ...] = ()
    base: tuple[Path, ...] = field(default_factory=base_folders)

    @property
    def folders(self) -> tuple[Path, ...]:
        """All folders, in the order in which a name is looked for."""
        return (*self.own, *self.base)

    def names(self, group: str) -> list[str]:
        """Return the names declared in a group, for example all experiments as ``family/name``."""
        found = {
            path.relative_to(folder / group).with_suffix("").as_posix()
            for folder in self.folders
            for path in files_below(folder / group)
            if _is_declaration(path)
        }
        return sorted(found)

    def choices(self, meaning: str) -> list[str]:
        """Return the choices that a comment refers to as ``conf/<group>``, or only the networks "with a class"."""
        found = [name for group in re.findall(r"\bconf/(\w+)", meaning) for name in self.names(group)]
        classes = "with a class" in meaning
        return sorted(
            {name for name in found if not classes or {"target", "positive"} <= {*self.keys("network", name)}}
        )

    def replaced(self) -> dict[str, Path]:
        """Return the user's files that replace a different one of the project, by ``group/name``."""
        found = (path for folder in self.own for path in files_below(folder) if _is_declaration(path))
        names = ((path, path.relative_to(next(f for f in self.own if path.is_relative_to(f)))) for path in found)
        return {
            name.with_suffix("").as_posix(): path
            for path, name in names
            for replaced in [folder / name for folder in self.base if (folder / name).is_file()][:1]
            if read_bytes(path, _MOST_BYTES) != replaced.read_bytes()
        }

    def circular(self) -> Path | None:
        """Return a file of the user whose ``defaults`` lead back to it; None if there is none."""
        paths = [path for folder in self.own for path in files_below(folder) if path.is_file()]
        after = {path: {*_defaults(path, self.folders)} for path in paths}
        for _ in paths:  # each round makes the longest way one step longer
            if found := next((path for path in paths if path in after[path]), None):
                return found
            after = {path: further.union(*(after.get(one, ()) for one in further)) for path, further in after.items()}
        return None

    def path(self, group: str, name: str) -> Path:
        """Return the file of a declaration; raise ConfigurationError if there is none."""
        for folder in self.folders:
            path = folder / group / f"{name}.yaml"
            if path.is_file():
                return path
        raise self.unknown(group, name)

    def unknown(self, group: str, name: str) -> ConfigurationError:
        """Return the error for an undeclared name; if a file for it has a wrong folder or ending, it says so."""
        known = self.names(group)
        error = unknown(group, known, name) if known else _nothing_declared(group, name)
        for folder in self.own:
            for path in files_below(folder, ""):
                own, _, rest = path.relative_to(folder).with_suffix("").as_posix().partition("/")
                if path.is_file() and rest == name and own.casefold().removesuffix("s") == group:
                    wanted = folder / group / f"{name}.yaml"
                    return ConfigurationError(f"{path} must be called {wanted} to be read as {group}={name}; rename it")
        return error

    def mapping(self, group: str, name: str) -> dict[str, Any]:
        """Return the content of one declaration.

        Raises
        ------
        ConfigurationError
            If there is none of that name (the message lists those that exist), or it is not a mapping.
        """
        return mapping_in(self.path(group, name))

    def keys(self, group: str, name: str) -> list[str]:
        """Return the keys of one declaration; its values are not resolved, as they may refer to other files."""
        return [str(key) for key in load(self.path(group, name))]

    def about(self, group: str, name: str) -> str:
        """Return the first paragraph of the comment at the head of a declaration, on one line."""
        lines = read_text(self.path(group, name), _MOST_BYTES).splitlines()
        comments = [line.removeprefix("#").strip() for line in itertools.takewhile(lambda x: x.startswith("#"), lines)]
        return " ".join(comment for comment in comments if not comment.startswith("@package"))

    def comments(self, group: str, name: str) -> dict[str, str]:
        """Return the comment on each key of a declaration: the one beside it, or that in the lines above it."""
        text = read_text(self.path(group, name), _MOST_BYTES)
        return {
            key: beside or " ".join(line.removeprefix("#").strip() for line in above.splitlines())
            for above, key, beside in re.findall(r"((?:^#.*\n)*)^(?:  - )?(\w+):(?:.*? # (.*))?", text, re.MULTILINE)
        }

    def declared(self, group: str, name: str) -> dict[str, Any]:
        """Return the declaration of data; a relative path in it starts at the folder of its file."""
        mapping = self.mapping(group, name)
        path = mapping.get("path")
        if isinstance(path, str):
            mapping["path"] = str((self.path(group, name).parent / Path(path).expanduser()).resolve())
        return mapping


def _nothing_declared(group: str, name: str) -> ConfigurationError:
    where = project().configuration / group
    if group == "profile":
        what = "this project has no profiles, and its experiments run with the settings in their files"
        return ConfigurationError(f"profile must be left out, got {name!r}: {what}; a file in {where} would be one")
    return ConfigurationError(
        f"{group} must be declared, got {name!r}, but this project has none; add a file to {where}"
    )


@per_project
def has_profiles() -> bool:
    """Tell whether the project has profiles: numbers of repetitions to choose from."""
    return bool(Catalogue().names("profile"))


def _defaults(path: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that the ``defaults`` of a file may name."""
    content: Any = None
    with contextlib.suppress(yaml.YAMLError, OSError, ValueError, RecursionError):
        content = yaml.safe_load(checked_text(path))
    entries = content.get("defaults") if isinstance(content, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        for key, name in entry.items() if isinstance(entry, dict) else [("", entry)]:
            words = [str(word).split("@")[0] for word in (*str(key).split()[-1:], name)]
            own = next(one for one in folders if path.is_relative_to(one))
            for folder in folders:
                above = folder if words[0].startswith("/") else folder / path.relative_to(own).parent
                yield above.joinpath(*(word.strip("/") for word in words[:-1]), f"{words[-1].strip('/')}.yaml")


# A path leads through at most this many links to folders: links among a few folders make exponentially many paths.
_MOST_LINKS = 3
_MOST_ENTRIES = 20_000


def files_below(folder: Path, ending: str = ".yaml") -> list[Path]:
    """Return the files with an ending in a folder and those below it, sorted; links to folders are followed.

    Raises ConfigurationError if there are very many, as where a link leads to ``/proc``.
    """
    found: list[Path] = []
    n_entries = itertools.count()

    def search(here: Path, above: frozenset[tuple[int, int]], n_links: int) -> None:
        try:
            status = here.stat()
            entries = list(os.scandir(here))
        except OSError:  # not there, not a folder, or not readable
            return
        key = status.st_dev, status.st_ino
        if key in above:  # a link to a folder that holds it
            return
        for entry, n_before in zip(entries, n_entries, strict=False):
            if n_before >= _MOST_ENTRIES:
                raise ConfigurationError(
                    f"{folder} must have at most {_MOST_ENTRIES:,} files and folders, those behind links included; "
                    "name a folder that has configuration alone"
                )
            path = here / entry.name
            if path.is_dir():
                n_followed = n_links + entry.is_symlink()
                if n_followed <= _MOST_LINKS:
                    search(path, above | {key}, n_followed)
            elif entry.name.endswith(ending) and path.exists():  # a pipe as well, for an error that names it
                found.append(path)

    search(folder, frozenset(), 0)
    return sorted(found)


def _is_declaration(path: Path) -> bool:
    """Tell whether a path is a file with a name of its own, not an editor's lock or copy, such as ``.#name.yaml``."""
    return path.is_file() and not path.name.startswith(".")


@functools.lru_cache(maxsize=256)
def _read(path: Path, changed: int) -> Any:
    """Return the content of a file, cached until its time of change differs: many jobs read the same declarations."""
    return _resolved(load(path))


def mapping_in(path: Path) -> dict[str, Any]:
    """Return the content of a file of keys and values; raise ConfigurationError if it is anything else."""
    try:
        content = copy.deepcopy(_read(path, path.stat().st_mtime_ns))
    except ConfigurationError:
        raise
    except (OmegaConfBaseException, yaml.YAMLError, ValueError, OSError, RecursionError) as error:
        raise ConfigurationError(f"{path} cannot be read: {reason(error)}") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path} must hold keys and values, got {type(content).__name__}")
    return {str(key): value for key, value in content.items()}


def plain(config: DictConfig) -> dict[str, Any]:
    """Return a composed configuration as a resolved dictionary."""
    try:
        content = _resolved(config)
    except OmegaConfBaseException as error:
        raise without_value(error) from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"the configuration must hold keys and values, got {content!r}")
    return {str(key): value for key, value in content.items()}


def without_value(error: OmegaConfBaseException) -> ConfigurationError:
    """Return the error for a setting that refers to itself, or to another without a value."""
    what, *_ = str(error).splitlines()
    if own := what.partition("raised while resolving interpolation: ")[2]:
        return ConfigurationError(f"{error.full_key}: {own}")
    return ConfigurationError(
        f"{error.full_key} must have a value, got: {what}; ${{name}} stands for the setting of that name, so name "
        "another, or write the value itself"
    )


# How long a file may become: with aliases and interpolations, a few hundred bytes can expand to gigabytes.

DEEPEST = 60
"""How many lists and mappings may lie within each other; OmegaConf takes several calls for each level."""
_LONGEST = 2**17  # characters
_MOST_BYTES = 4 * _LONGEST
_REFERENCE = re.compile(r"\$\{([^${}]*)\}")
_Place = tuple[str | int, ...]


def load(path: Path) -> DictConfig | ListConfig:
    """Return the content of a file; raise ConfigurationError if it is too long, as written or expanded."""
    return OmegaConf.load(io.StringIO(checked_text(path)))


def checked_text(path: Path) -> str:
    """Return the text of a file; raise ConfigurationError if it is too long, as written or expanded."""
    try:
        text = read_text(path, _MOST_BYTES)
    except NotDataError as error:
        raise ConfigurationError(str(error)) from error
    if len(text) > _LONGEST:
        raise ConfigurationError(f"{path} must have at most {_LONGEST:,} characters, got {len(text):,}; split it")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    sizes: dict[int, int] = {}

    def size(node: yaml.Node | None, depth: int = 0) -> int:
        """Count the values that a node expands to; a cycle, which is refused later, counts once."""
        if depth > DEEPEST:
            raise ConfigurationError(f"{path} must nest its values at most {DEEPEST} deep; flatten it")
        if id(node) not in sizes:
            sizes[id(node)] = 1
            inside = node.value if isinstance(node, yaml.CollectionNode) else ()
            parts = itertools.chain.from_iterable(one if isinstance(one, tuple) else (one,) for one in inside)
            sizes[id(node)] += sum(size(one, depth + 1) for one in parts)
        return sizes[id(node)]

    # Loading merges keys (<<), so what they expand to is counted first.
    _check_most(lambda: size(yaml.compose(text, Loader=loader)), str(path))
    _check_length(yaml.load(text, Loader=loader), str(path))
    return text


def _resolved(config: DictConfig | ListConfig) -> Any:
    _check_length(OmegaConf.to_container(config, resolve=False), "the configuration")
    return OmegaConf.to_container(config, resolve=True)


def _check_length(values: Any, what: str) -> None:
    """Raise ConfigurationError if values are too long once aliases and interpolations are expanded."""
    lengths: dict[_Place | int, int] = {}

    def length(place: _Place) -> int:
        value = functools.reduce(operator.getitem, place, values)
        own = id(value) if isinstance(value, dict | list) else place
        if own not in lengths:
            lengths[own] = 0  # for a cycle, which is refused when it is resolved
            inside = [(*place, key) for key, _ in _items(value)]
            written = sum(len(str(key)) for *_, key in inside) if inside else len(str(value))
            lengths[own] = 1 + written + sum(map(length, [*inside, *_named(values, place, value)]))
        return lengths[own]

    _check_most(lambda: length(()), what)


def _check_most(count: Callable[[], int], what: str) -> None:
    try:
        found = count()
    except RecursionError as error:
        raise ConfigurationError(f"{what} must not have hundreds of levels; write values where they belong") from error
    if found > _LONGEST:
        raise ConfigurationError(
            f"{what} must have at most {_LONGEST:,} characters with aliases (*name) and interpolations (${{name}}) "
            f"written out, got {found:.3g}; write the values themselves, and fewer of them"
        )


def _named(values: Any, place: _Place, text: object) -> Iterator[_Place]:
    """Yield the places that the interpolations in a text refer to, or an interpolation on the way there."""
    if not isinstance(text, str) or "${" not in text:
        return
    if "${" in _REFERENCE.sub("", text):
        name = ".".join(map(str, place))
        raise ConfigurationError(f"{name} must not have one interpolation inside of another, got {brief(text)}")
    plain = [re.sub(r"[ \t]", "", name) for name in _REFERENCE.findall(text)]
    for name in _asked(text) if ":" in text else plain:
        up = len(name) - len(name.lstrip("."))
        found: _Place = place[:-up] if up else ()
        rest = name[up:] if name[up:].startswith("[") else f".{name[up:]}"
        for part in map("".join, re.findall(r"\.([^.\[]*)|\[(.*?)\]", rest)):
            found += _step(functools.reduce(operator.getitem, found, values), part)
        if found != place[: len(found)]:
            yield found


@functools.lru_cache(maxsize=256)
def _asked(text: str) -> list[str]:
    """Return the names in the interpolations of a text, and the arguments of resolvers, which may be names, too."""
    asked: list[str] = []

    def give(name: str, args: tuple[Any, ...], args_str: tuple[str, ...]) -> None:
        if name == "oc.create" and "*" in "".join(args_str):
            raise ConfigurationError(f"oc.create must not be given aliases (*name), got {brief(text)}; write values")
        asked.extend(map(str, (*args, *args_str)))

    with contextlib.suppress(GrammarParseError):  # reported when the text is resolved
        GrammarVisitor(lambda key, _: asked.append(key), give, memo=None).visit(parse(text))
    return asked


def _step(value: Any, part: str) -> _Place:
    """Return the key or position in a value that a part of a name refers to; empty if there is none."""
    if isinstance(value, dict):
        return next(((key,) for key in (part, *value) if key in value and str(key) == part), ())
    with contextlib.suppress(ValueError, IndexError):
        return (range(len(value))[int(part)],) if isinstance(value, list) else ()
    return ()


def _items(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
