"""Arguments of the command line: parsed and composed by Hydra, checked, and what they ask for."""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import itertools
import json
import math
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType, Quote, QuotedString, RangeSweep, ValueType
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

from trimbench.reproduction.commands.common_settings import ALL_KEYS, OF_THE_RUN, SWITCHES, CommonSettings, task_names
from trimbench.reproduction.configuration import (
    DEEPEST,
    NOT_SETTINGS,
    Catalogue,
    checked_text,
    files_below,
    load,
    plain,
)
from trimbench.reproduction.files import read_text
from trimbench.reproduction.project import project, use
from trimbench.reproduction.project_folder import project_of
from trimbench.reproduction.settings import ConfigurationError, Json, unknown

if TYPE_CHECKING:
    from trimbench.reproduction.reporting.figures.settings import FigureSettings

# Groups of the configuration that a command line chooses from.
GROUPS = ("experiment", "executor", "profile", "figure")
_MOST_POINTS = 10_000  # each takes some milliseconds before the first job runs


@dataclass(frozen=True)
class CommandLine:
    """A command line: options, and settings as Hydra's parser of overrides reads them.

    Attributes
    ----------
    options : argparse.Namespace
        Those of `_parser`.
    written : tuple of Override
        The settings in order. If one is repeated, the last counts.
    settings : tuple of tuples of Override
        The same, each with its values: one, or several in a sweep, where equal values count once.
    """

    options: argparse.Namespace
    written: tuple[Override, ...]
    settings: tuple[tuple[Override, ...], ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> CommandLine:
        """Parse the words of a command line; raise ConfigurationError for what is neither a setting nor an option."""
        _check_dashes(words)
        parser = _parser()
        try:
            options, rest = parser.parse_known_intermixed_args(words)
        except argparse.ArgumentError as error:
            raise ConfigurationError(f"{error}; {project().command} --help says more") from error
        if rest:
            known = [one for one in parser._option_string_actions if one.startswith("--")]
            raise unknown("an option", known, rest[0])
        if options.project:
            use(project_of(Path(options.project)))
            sys.stderr.write(f"The code in {project().folder} runs: --project names it.\n")
        parsed = [] if options.shell_completion else _parsed(options.overrides)
        if open_keys := project().open_keys.get(str(_task(parsed)), ()):
            # No file of the configuration can list what such a mapping names, such as the columns of a table.
            is_open = re.compile(rf"\+*({'|'.join(open_keys)})[.=]").match
            words = [str(one.input_line) for one in parsed]
            parsed = _parsed([f"++{word.lstrip('+')}" if is_open(word) else word for word in words])
        # In a sweep, seed=1,2 ++seed=3,4 are one setting; as two, each of the last values would run twice.
        added = "+" if options.multirun else ""
        written = tuple({one.get_key_element().lstrip(added): one for one in parsed}.values())
        if not (n_points := math.prod(map(_n_values, written))) <= _MOST_POINTS:
            got = "endlessly many" if math.isnan(n_points) else f"{int(n_points):,}"
            what = f"a sweep must have at most {_MOST_POINTS:,} points, got {got}"
            raise ConfigurationError(f"{what}; sweep over fewer values, or over a part of them at a time")
        return cls(options, written, tuple(_alternatives(one) if options.multirun else (one,) for one in written))

    @property
    def task(self) -> object:
        """The task that the settings name; None if they name none."""
        return _task(self.first)

    @property
    def root(self) -> str:
        """The name of the root of the configuration: a task of the project has keys of its own."""
        return str(self.task) if self.task in project().tasks else "config"

    @property
    def first(self) -> list[Override]:
        """All settings, each with its first value."""
        return [values[0] for values in self.settings]

    @property
    def points(self) -> list[list[Override]]:
        """The settings of each point of a sweep: every combination of values, the last setting changing fastest."""
        return [list(point) for point in itertools.product(*self.settings)]

    @property
    def swept(self) -> list[str]:
        """The keys that were given several values."""
        return [one.key_or_group for one in self.written if one.is_sweep_override()]


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the options; settings are what it leaves."""
    parser = argparse.ArgumentParser(project().command, add_help=False, exit_on_error=False)
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    for names, what in (
        (("--help", "-h"), "show commands or, with experiment=..., its settings"),
        (("--version",), "show the version"),
        (("--multirun", "-m"), "run each combination of the values that settings list"),
        (("--resolve",), "with --cfg, put values in the place of ${...}"),
        (("--shell-completion", "-sc"), "complete settings with the Tab key: install=bash, zsh or fish"),
    ):
        parser.add_argument(*names, action="store_true", help=what)
    parser.add_argument("--cfg", "-c", choices=["job"], help="show the composed configuration, and do nothing else")
    parser.add_argument("--config-dir", "-cd", metavar="FOLDER", help="a folder with further configuration")
    parser.add_argument("--project", metavar="FOLDER", help="rerun the paper in FOLDER, whose code then runs")
    parser.add_argument(_OPTION, action="append", default=[], metavar="MODULE", help="let experiments come from MODULE")
    return parser


@functools.cache
def setting(key: str, value: str) -> Override:
    """Return the setting of a key to a text, whatever is in it."""
    return OverridesParser.create().parse_override(f"{key}={hydra_text(value)}")


def hydra_text(text: str) -> str:
    """Return a text in quotes, from which Hydra reads it back."""
    return QuotedString(text, Quote.single).with_quotes()


def value_text(one: Override) -> str:
    """Return the value of a setting as it was written; empty for one that is deleted."""
    return str(one.input_line).partition("=")[2]


def _task(settings: Sequence[Override]) -> object:
    return next((one.value() for one in reversed(settings) if one.key_or_group == "task"), None)


def _n_values(one: Override) -> float:
    """Return how many values a setting has, without making them; NaN if its range has no end."""
    sweep: Any = one.value() if one.is_sweep_override() else None
    if isinstance(sweep, RangeSweep):
        start, stop, step = sweep.start or 0, sweep.stop or 0, sweep.step or 1
        return min(max(-((start - stop) // step), 0), 10**18)
    return len(getattr(sweep, "list", [sweep]))


def _alternatives(one: Override) -> tuple[Override, ...]:
    """Return one setting for each value, as Hydra's own sweeper would, but equal values once."""
    if not one.is_sweep_override():
        return (one,)
    sweep, key = one.value(), one.key_or_group
    # A pattern such as glob(*) asks Hydra for the choices of a group, which it has not read yet.
    # A range that is sorted loses its end: 10, 7, 4, 1 becomes 3, 6, 9, 12.
    is_sorted_range = isinstance(sweep, RangeSweep) and "sort(" in value_text(one)
    if not one.is_discrete_sweep() or one.value_type is ValueType.GLOB_CHOICE_SWEEP or is_sorted_range:
        way = f"{key}=1,2 or '{key}=range(1,5)'" if key != "experiment" else f"{key}=first,second"
        raise ConfigurationError(
            f"a swept setting must have values separated by commas or a range, got {one.input_line}; write {way}"
        )
    if isinstance(sweep, RangeSweep) and any(isinstance(end, float) for end in (sweep.start, sweep.stop, sweep.step)):
        # Hydra would add up the binary forms of decimals, and miss 0.3 in steps of 0.1.
        for name in ("start", "stop", "step"):
            setattr(sweep, name, Decimal(str(getattr(sweep, name))))
    try:
        values = [f"{one.get_key_element()}={text}" for text in one.sweep_string_iterator()]
    except (ValueError, HydraException):  # a step of 0
        values = []
    if not values:
        raise ConfigurationError(f"a swept setting must have a value, got {one.input_line}; write {key}=1,2")
    found: dict[object, Override] = {}
    for each in OverridesParser.create().parse_overrides(values):
        found.setdefault(_compared(each.value()), each)
    if len(found) < len(values):
        sys.stderr.write(f"{one.input_line}: equal values run once, {len(found)} of {len(values)} are different.\n")
    return tuple(found.values())


def _compared(value: object) -> object:
    """Return a value as it is compared with others: 0.3 and 3e-1 are equal; true, 1 and the text '1' are not."""
    if isinstance(value, list):
        return tuple(map(_compared, value))
    return value if isinstance(value, int | float) and not isinstance(value, bool) else repr(value)


def _check_dashes(arguments: Sequence[str]) -> None:
    """Raise ConfigurationError if a key is written like an option."""
    for word, following in itertools.pairwise([*arguments, ""]):
        key, equals, value = word.lstrip("-").partition("=")
        if (
            word.startswith("-") and key in ALL_KEYS and key != "project" and (equals or key != "run")
        ):  # --run is an option of Hydra
            meant = f"{key}={value}" if value else _meant(key, following)
            raise ConfigurationError(f"settings are written without dashes, got {word!r}; write {meant}")


def _meant(key: str, following: str) -> str:
    """Complete a setting that was written without its value: the next word is it, unless it is a setting itself."""
    value = following.lstrip("=")
    if key in SWITCHES:
        return f"{key}={'false' if value == 'false' else 'true'}"
    return f"{key}={'...' if '=' in value else value or '...'}"


def _parsed(words: Sequence[str]) -> list[Override]:
    overrides = []
    for word, following in itertools.pairwise([*words, ""]):
        if "=" not in word and not word.startswith("~"):
            raise _no_setting(word, following)
        levels = itertools.accumulate((mark in "[{(") - (mark in "]})") for mark in word)
        if (deepest := max(levels)) > DEEPEST:
            what = f"{word.partition('=')[0]} must nest its values at most {DEEPEST} deep, got {deepest} levels"
            raise ConfigurationError(f"{what}; flatten it")
        try:
            overrides.append(OverridesParser.create().parse_override(word))
        except HydraException as error:
            key, _, value = map(str.strip, word.partition("="))
            form = '["..."]' if value.startswith("[") else '"..."'
            quote = f"put texts in double quotes, and all in single ones: '{key}={form}'"
            way = quote if word == f"{key}={value}" else f"write {key}={value}"
            raise ConfigurationError(
                f"a setting must be key=value, with a number, a word, a list [a,b] or a quoted text as its value, "
                f"got {word!r}; {way}"
            ) from error
    return overrides


def _no_setting(word: str, following: str) -> ConfigurationError:
    catalogue = Catalogue()
    names: dict[str, Sequence[str]] = {group: catalogue.names(group) for group in GROUPS} | {"task": task_names()}
    if word in ALL_KEYS:
        meant = [_meant(word, following)]
    else:
        ends = [(group, name) for group, known in names.items() for name in known if f"/{name}".endswith(f"/{word}")]
        close = [(group, name) for group, known in names.items() for name in get_close_matches(word, known)]
        meant = ["=".join(pair) for pair in ends or close]
    advice = f"write {' or '.join(meant)}" if meant else _examples()
    return ConfigurationError(f"a setting must be key=value, without spaces, got {word!r}; {advice}")


def _examples() -> str:
    return f"for example {project().example} or task=list; {project().command} --help shows more"


def check_settings(line: CommandLine, composer: Composer) -> None:
    """Raise ConfigurationError, which says what to write instead, if a key or a choice does not exist.

    They are looked up in the project's configuration and in a folder given with ``--config-dir``.
    """
    options, first, catalogue = line.options, line.first, composer.catalogue
    _check_code(options, [one.get_key_element() for one in first])
    if isinstance(line.task, str) and line.task not in task_names() and "$" not in line.task:
        # Before its settings: they may be those of the task that is meant.
        raise unknown("task", task_names(), line.task)
    for folder in catalogue.own:
        _check_files(folder, catalogue)
    several = sorted((one for one in first if one.is_sweep_override()), key=lambda one: one.key_or_group not in GROUPS)
    if not several or several[0].key_or_group not in GROUPS:
        config, _ = composer.chosen([one for one in line.points[0] if one.key_or_group in GROUPS])
        for one in line.written:
            if one.type is OverrideType.CHANGE and one.key_or_group not in GROUPS:
                _check_key(one, config, bool(options.multirun))
    if several:
        each = "run the command once with each" if line.root != "config" else "add -m to run with each"
        raise ConfigurationError(f"{several[0].key_or_group} must have one value, got {several[0].input_line}; {each}")
    # In a sweep, the keys of the other points are checked when they are composed, before anything runs.
    composer.chosen(line.points[0])
    for folder in catalogue.own:
        _check_folder(folder, first, composer)


def _check_files(folder: Path, catalogue: Catalogue) -> None:
    """Raise ConfigurationError for files that Hydra would misread, or wrongly take in place of the project's."""
    if not folder.is_dir():
        raise ConfigurationError(f"--config-dir must be an existing folder, got {str(folder)!r}; create it first")
    if "${" in str(folder.absolute()):
        raise ConfigurationError(f"--config-dir must be a folder without '${{' in its path, got {folder}; rename it")
    for path in files_below(folder):
        is_group = path.relative_to(folder).parts[0] in GROUPS
        with contextlib.suppress(yaml.YAMLError, OSError, UnicodeError, RecursionError):  # Hydra reports these
            if checked_text(path).startswith("\ufeff") and is_group:
                raise ConfigurationError(f"{path} must not begin with a byte order mark; save it as UTF-8 without one")
    for name, path in catalogue.replaced().items():
        group, _, choice = name.partition("/")
        if (choice and group not in GROUPS) or (group == "experiment" and _is_merged_last(path)):
            continue
        advice = f"choose it with {group}=..." if choice else "give its settings on the command line"
        raise ConfigurationError(f"{path} must not take the place of the project's {name}.yaml; rename it and {advice}")


def _check_key(one: Override, config: DictConfig, is_sweep: bool = False) -> None:
    """Raise an error unless a key leads to a value, or into a list, and has a list where that is needed."""
    node: Any = config
    above: list[str] = []
    rest = one.key_or_group.split(".")
    while len(rest) > 1 and isinstance(node.get(rest[0]), DictConfig):
        node = node[rest[0]]
        above.append(rest.pop(0))

    def written(name: str) -> str:
        return _written(".".join([*above, name]), one, node.get(name), is_sweep)

    if rest[0] in node and (len(rest) == 1 or isinstance(node[rest[0]], ListConfig)):
        text, is_list = value_text(one), isinstance(node[rest[0]], ListConfig)
        is_number = type(node[rest[0]]) in (int, float)
        is_plain = text not in ("", "null") and not re.search(r"[$(]", text)
        # The class of an experiment says itself that it needs a list.
        is_told = is_list and not above and "runner" in config and not (is_sweep or one.is_sweep_override())
        if len(rest) == 1 and is_plain and not is_told and (is_list, is_number)[text.startswith("[")]:
            what = f"{one.key_or_group} must {'be a list' if is_list else 'have one value'}, got {text}"
            raise ConfigurationError(f"{what}; write {written(rest[0])}")
        return
    allowed = [str(name) for name in node if not str(name).startswith("_") and name not in NOT_SETTINGS]
    if above:
        raise unknown(f"a setting of {'.'.join(above)}", allowed, ".".join(rest), written)
    has_own_keys = config.get("task") in project().tasks
    error = str(unknown("setting", [*allowed, *([] if has_own_keys else ["experiment"])], one.key_or_group, written))
    hint = f"{' Or' if error.endswith('?') else ';'} add experiment=... for a setting of an experiment"
    raise ConfigurationError(error if has_own_keys or "runner" in config else f"{error}{hint}", whole=True)


def _written(key: str, one: Override, wanted: object, is_sweep: bool) -> str:
    """Return what to write in a shell for a setting of this key: a list or single values, like the one `wanted`."""
    texts = list(one.sweep_string_iterator()) if one.is_choice_sweep() else [value_text(one)]
    if isinstance(wanted, ListConfig):
        # A list of values has each once; one such as [100,100] is a pair.
        pair = wanted[0] if wanted and isinstance(wanted[0], ListConfig) else wanted
        n = len(pair) if len({*map(str, pair)}) < len(pair) else 1
        lists = [text if text.startswith("[") else f"[{','.join([text] * n)}]" for text in texts]
        texts = lists if is_sweep or len(texts) == 1 else [f"[{','.join(texts)}]"]
    elif type(wanted) in (int, float):
        texts = [text.strip("[]") for text in texts]
    value = ",".join(texts)
    are_several = "," in value and not value.startswith("[")
    return ("-m " if are_several and not is_sweep else "") + shlex.quote(f"{key}={value}")


# Compose the configurations of a command, its experiments and its points, without reading every file again.


class Composer:
    """Composes configurations from the file `root` and choices in a catalogue, and caches what they share."""

    def __init__(self, catalogue: Catalogue, root: str = "config") -> None:
        self.catalogue, self.root = catalogue, root
        # Hydra looks for the root in one folder only, and first for everything else.
        self._main, *others = sorted(catalogue.base, key=lambda folder: not (folder / f"{root}.yaml").is_file())
        searched = ",".join(hydra_text(f"file://{folder.absolute()}") for folder in (*others, *catalogue.own))
        self._search = [f"hydra.searchpath=[{searched}]"] if searched else []
        self._composed = functools.cache(self._compose)
        self._names, self._read = functools.cache(catalogue.names), functools.cache(load)
        self._resolved: dict[tuple[str, ...], dict[str, Any]] = {}

    def compose(self, overrides: Sequence[Override]) -> dict[str, Any]:
        """Return the configuration with these settings, resolved.

        If these differ from earlier ones only in plain values to which nothing refers, those are filled in.
        """
        free = {one.key_or_group: one.value() for one in overrides if _is_plain(one)}
        # A list and a single value differ in kind: each is checked against what the configuration has.
        kind = tuple(
            f"{one.key_or_group} {isinstance(one.value(), list)}" if _is_plain(one) else str(one.input_line)
            for one in overrides
        )
        if kind in self._resolved:
            return {**self._resolved[kind], **free}
        config, _ = self.chosen(overrides)
        resolved = plain(config)
        names = "|".join(map(re.escape, free))
        written = json.dumps(OmegaConf.to_container(config, resolve=False), default=str) if free else ""
        if free and not re.search(rf"\$\{{(\.|[^}}]*\b({names})\b)", written):
            self._resolved[kind] = resolved
        return resolved

    def chosen(self, overrides: Sequence[Override]) -> tuple[DictConfig, dict[str, str | None]]:
        """Return the configuration with these settings, and which file of each group was chosen.

        Raises ConfigurationError if a choice, or the key of a value, does not exist.
        """
        changes = [one for one in overrides if one.type is OverrideType.CHANGE]
        values = [one for one in changes if one.key_or_group not in GROUPS]
        groups = [one for one in changes if one.key_or_group in GROUPS]
        merged: list[Path] = []
        for one in tuple(groups):
            # As text, Hydra would escape the spaces of a name in quotes.
            name = value if isinstance(value := one.value(), str) else one.get_value_element_as_str()
            if name not in self._names(one.key_or_group):
                raise self.catalogue.unknown(one.key_or_group, name)
            if one.key_or_group == "experiment" and _is_merged_last(path := self.catalogue.path("experiment", name)):
                groups.remove(one)
                merged = [path]
        config, own = self.composed(groups)
        with open_dict(config):
            config.merge_with(*map(self._read, merged))
        for one in values:
            _check_key(one, config)
        if len(changes) < len(overrides):  # what adds and deletes keys is left to Hydra
            config, own = self.composed(overrides)
        else:
            for one in values:
                OmegaConf.update(config, one.key_or_group, one.value(), merge=isinstance(one.value(), dict))
        return config, own["runtime"]["choices"]

    def composed(self, overrides: Sequence[Override]) -> tuple[DictConfig, dict[str, Any]]:
        """Return what Hydra makes of settings: the configuration, which the caller may change, and Hydra's own."""
        config, own = self._composed(*(str(one.input_line) for one in overrides))
        return copy.deepcopy(config), own

    def _compose(self, *words: str) -> tuple[DictConfig, dict[str, Any]]:
        with hydra.initialize_config_dir(str(self._main), version_base="1.3"):
            try:
                config = hydra.compose(self.root, [*words, *self._search], return_hydra_config=True)
            except RecursionError as error:
                raise circular(self.catalogue.circular()) from error
        own: dict[str, Any] = OmegaConf.to_container(config.hydra, resolve=False)  # type: ignore[assignment]
        with open_dict(config):
            del config["hydra"]
        return config, own


def circular(path: Path | None) -> ConfigurationError:
    """Return the error for defaults without an end, and the file in which they are, if it is known."""
    where = path or "the configuration"
    return ConfigurationError(f"defaults of {where} must not lead back to it; take out the entry that does")


def _is_plain(one: Override) -> bool:
    """Tell whether a setting gives a key at the top a number, a word or a list of these, to be taken as written."""
    value: Any = one.value()
    values = value if isinstance(value, list) else [value]
    is_value = all(isinstance(part, int | float | str) and "$" not in str(part) and part != "???" for part in values)
    return (
        is_value and one.type is OverrideType.CHANGE and one.key_or_group not in GROUPS and "." not in one.key_or_group
    )


def _is_merged_last(path: Path) -> bool:
    text = read_text(path)
    return text.startswith("# @package _global_\n") and "\ndefaults" not in text


# What a folder of configuration from somewhere else may not do.

_OPTION = "--allow-code"
# Parts of Hydra's own settings that follow from the command line, and such a key in its part `job`.
_OF_THE_COMMAND, _OVERRIDES = ("runtime", "overrides", "searchpath"), "override_dirname"


def _check_code(options: argparse.Namespace, settings: Sequence[str]) -> None:
    """Raise ConfigurationError for a setting of Hydra itself, which no program here obeys."""
    for name in options.allow_code:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ConfigurationError(f"{_OPTION} must name a module or package, got {name!r}; write {_OPTION}=mine")
    # Also as the package of a group, as in executor@hydra.callbacks.c.
    keys = [key.lstrip("+~") for key in settings if "hydra" in re.split("[@:./]", key.lstrip("+~"))]
    if keys:
        raise ConfigurationError(
            f"{keys[0]} must be left out: it is a setting of Hydra itself, which only composes the settings here"
        )


def _check_folder(folder: Path, overrides: Sequence[Override], composer: Composer) -> None:
    """Raise ConfigurationError if files in a folder, chosen by these settings, change settings of Hydra or of the run.

    The former are not obeyed; the latter say what is done, where and on whose machines. The command line may set them,
    and may choose an executor from the folder.
    """
    top = [(one, one.key_or_group.partition(".")[0]) for one in overrides]
    own = [one for one, key in top if key in OF_THE_RUN and key != "executor"]
    chosen = [one for one, key in top if key == "executor"]
    expected = _settings(Composer(Catalogue(), composer.root), own)
    found = _settings(composer, overrides)
    expected["executor"] = _settings(composer, chosen)["executor"] if chosen else expected["executor"]
    for key in sorted(expected.keys() | found.keys()):
        if expected.get(key) != found.get(key):
            is_hydras = key.startswith("hydra.")
            does = "Hydra only composes the settings here" if is_hydras else "they say what is computed, not how"
            way = "remove it there" if is_hydras else "remove it there, or set it on the command line"
            raise ConfigurationError(f"files in {folder} must not set {key}: {does}; {way}")


def _settings(composer: Composer, overrides: Sequence[Override]) -> dict[str, Any]:
    # The key `reported` names a file; Hydra would take it for a choice from the group of this name.
    config, found = composer.composed([one for one in overrides if one.key_or_group != "reported"])
    found["job"] = {key: value for key, value in found["job"].items() if key != _OVERRIDES}
    whole: dict[str, Any] = OmegaConf.to_container(config, resolve=False)  # type: ignore[assignment]
    of_hydra = {f"hydra.{key}": value for key, value in found.items() if key not in _OF_THE_COMMAND}
    return of_hydra | {key: whole.get(key) for key in OF_THE_RUN}


# What a command line asks for, once it is composed.


@dataclass(frozen=True)
class Point:
    """The experiments of a command, or of one point of a sweep.

    Attributes
    ----------
    experiments : mapping from names to composed configurations
        Of the chosen experiment, or of all if none was chosen.
    altered : tuple of str
        The experiments' settings that the command line changes, as ``key=value``.
    named : tuple of str
        The settings in the names of files: those that change what the experiments find.
    swept : mapping from keys to values
        What distinguishes this point from the others of its sweep.
    """

    experiments: Mapping[str, Mapping[str, Json]]
    altered: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    swept: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Invocation:
    """What a command line asks for.

    `points` are those of a sweep, whose folder is named `sweep`, or a single one. `chosen` tells whether an experiment
    was chosen. `figure` says how figures are drawn, and `figure_name` joins the chosen file and the values that the
    command line changes. `code` names the modules and packages besides this one from which experiments may come.
    `values` has the keys of a task of the project, for that task alone.
    """

    settings: CommonSettings
    executor: Mapping[str, Json]
    executor_name: str
    figure: FigureSettings
    figure_name: str
    points: Sequence[Point]
    chosen: bool
    catalogue: Catalogue
    profile: str
    sweep: str = ""
    code: tuple[str, ...] = ()
    values: Mapping[str, Json] = field(default_factory=dict)

    @property
    def experiments(self) -> Mapping[str, Mapping[str, Json]]:
        """The experiments of the first point."""
        return self.points[0].experiments

    @property
    def seeded(self) -> bool:
        """Whether the command line gives a seed."""
        return any(text.startswith("seed=") for text in self.points[0].named)

    @property
    def root(self) -> Path:
        """The folder of all runs and of the store of jobs."""
        return Path(self.settings.results)

    @property
    def run(self) -> str:
        """The name of the run."""
        return self.settings.run or self.profile
