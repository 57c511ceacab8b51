"""Arguments of the command line: mistakes found early, composed, completed, and what they may run."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import copy
import functools
import itertools
import os
import re
import shlex
import sys
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType, Quote, QuotedString, RangeSweep, ValueType
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

from trimbench.papers.commands.invocation import OF_THE_RUN, SHARED_KEYS, TASKS, CommonSettings
from trimbench.papers.configuration import NOT_SETTINGS, Catalogue, checked_text, configuration_folder, load, plain
from trimbench.papers.validation import ConfigurationError, unknown

_KEYS = (*SHARED_KEYS, "experiment")
_EXAMPLES = "for example experiment=trimming/table4 or task=list; trimbench --help shows more"
_Names = Mapping[str, Sequence[str]]
# Groups of the configuration that a command line chooses from.
GROUPS = ("experiment", "executor", "profile", "figure")
_STUDY = "study"


@dataclass(frozen=True)
class CommandLine:
    """What Hydra's own parsers make of a command line.

    Attributes
    ----------
    options : argparse.Namespace
        Hydra's options, and ``allow_code``.
    written : tuple of Override
        The settings in their order. Of one that is repeated, the last counts.
    settings : tuple of tuples of Override
        The same, each with its values: several in a sweep, else one.
    """

    options: argparse.Namespace
    written: tuple[Override, ...]
    settings: tuple[tuple[Override, ...], ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> CommandLine:
        """Parse the words of a command line; raise ConfigurationError for what is no setting.

        Like Hydra, end the program with exit code 2 if an option does not exist or lacks its argument.
        """
        _check_dashes(words)
        parser = argparse.ArgumentParser(
            "trimbench",
            "trimbench [key=value ...]",
            parents=[get_args_parser()],
            add_help=False,
            conflict_handler="resolve",
        )
        parser.add_argument("--version", action="store_true", help="Show the version of trimbench and exit")
        parser.add_argument(_OPTION, action="append", default=[], metavar="MODULE", help="Let MODULE run code")
        options = parser.parse_intermixed_args(words)
        last = {} if options.shell_completion else {one.get_key_element(): one for one in _parsed(options.overrides)}
        if any(one.key_or_group == "task" and one.value() == _STUDY for one in last.values()):
            # No file of the configuration can have the columns that `types` names.
            last = {key: _forced(one) if key.partition(".")[0] == "types" else one for key, one in last.items()}
        written = tuple(last.values())
        return cls(options, written, tuple(_alternatives(one) if options.multirun else (one,) for one in written))

    @property
    def root(self) -> str:
        """The name of the root of the configuration: a study has keys of its own."""
        return _STUDY if any(one.key_or_group == "task" and one.value() == _STUDY for one in self.first) else "config"

    @property
    def first(self) -> list[Override]:
        """All settings, each with its first value."""
        return [values[0] for values in self.settings]

    @property
    def own(self) -> list[tuple[Override, ...]]:
        """The settings apart from those of Hydra itself, each with its values."""
        return [values for values in self.settings if not values[0].is_hydra_override()]

    @property
    def points(self) -> list[list[Override]]:
        """The settings of each point of a sweep: every combination of values, the last setting changing fastest."""
        return [list(point) for point in itertools.product(*self.own)]

    @property
    def swept(self) -> list[str]:
        """The keys that have several values."""
        return [values[0].key_or_group for values in self.own if len(values) > 1]

    @property
    def own_folder(self) -> Path | None:
        """The user's folder of declarations."""
        return Path(self.options.config_dir) if self.options.config_dir else None

    @property
    def is_for_hydra(self) -> bool:
        """Whether Hydra's own program has to run: it shows a part of itself, or takes its settings from elsewhere."""
        asked = ("hydra_help", "cfg", "info", "resolve", "package", "config_path", "config_name", "experimental_rerun")
        is_both = self.options.run and self.options.multirun  # which Hydra refuses
        return (
            is_both
            or any(getattr(self.options, name) for name in asked)
            or any(one.is_hydra_override() for one in self.first)
        )

    @property
    def words(self) -> list[str]:
        """The command line of the first point, which Hydra composes as if it stood alone."""
        other = self.options.run or self.options.cfg or self.options.info  # Hydra refuses these in a sweep
        ours = {"overrides", "version", "allow_code", *(() if other else ("multirun",))}
        given = {name.replace("_", "-"): value for name, value in vars(self.options).items() if name not in ours}
        options = [f"--{name}" if value is True else f"--{name}={value}" for name, value in given.items() if value]
        return [*options, *(str(one.input_line) for one in self.first)]


def setting(key: str, value: str) -> Override:
    """Return the setting of a key to a text, whatever is in it."""
    return OverridesParser.create().parse_override(f"{key}={quoted(value)}")


def quoted(text: str) -> str:
    """Return a text as Hydra reads it back."""
    return QuotedString(text, Quote.single).with_quotes()


def value_text(one: Override) -> str:
    """Return the value of a setting as it was written; empty for one that is deleted."""
    return str(one.input_line).partition("=")[2]


def _forced(one: Override) -> Override:
    return OverridesParser.create().parse_override(f"++{str(one.input_line).lstrip('+')}")


def _alternatives(one: Override) -> tuple[Override, ...]:
    """Return a setting with each of its values, as Hydra's own sweeper takes them."""
    if not one.is_sweep_override():
        return (one,)
    sweep, key = one.value(), one.key_or_group
    # A pattern such as glob(*) asks Hydra for the choices of a group, which it has not read yet.
    if not one.is_discrete_sweep() or one.value_type is ValueType.GLOB_CHOICE_SWEEP:
        raise ConfigurationError(
            f"a swept setting must have values separated by commas or a range, got {one.input_line}; "
            f"write {key}=1,2 or '{key}=range(1,5)'"
        )
    if isinstance(sweep, RangeSweep) and any(isinstance(end, float) for end in (sweep.start, sweep.stop, sweep.step)):
        # Hydra would add up the binary forms of decimals, and miss 0.3 in steps of 0.1.
        for name in ("start", "stop", "step"):
            setattr(sweep, name, Decimal(str(getattr(sweep, name))))
    values = [f"{one.get_key_element()}={text}" for text in one.sweep_string_iterator()]
    if not values:
        raise ConfigurationError(f"a swept setting must have a value, got {one.input_line}; write {key}=1,2")
    return tuple(OverridesParser.create().parse_overrides(values))


def _check_dashes(arguments: Sequence[str]) -> None:
    """Raise ConfigurationError if a key is written like an option."""
    for word, following in itertools.pairwise([*arguments, ""]):
        key, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and key in _KEYS and (equals or key != "run"):  # --run is an option of Hydra
            meant = f"{key}={value or following or '...'}"
            raise ConfigurationError(f"settings are written without dashes, got {word!r}; write {meant}")


def _parsed(words: Sequence[str]) -> list[Override]:
    overrides = []
    for word, following in itertools.pairwise([*words, ""]):
        if "=" not in word and not word.startswith("~"):
            raise _no_setting(word, following)
        try:
            overrides.append(OverridesParser.create().parse_override(word))
        except HydraException as error:
            key = word.partition("=")[0]
            raise ConfigurationError(
                f"a setting must be key=value, with a number, a word, a list [a,b] or a quoted text as its value, "
                f"got {word!r}; quote a text once for the shell and once for Hydra: '{key}=\"...\"'"
            ) from error
    return overrides


def _no_setting(word: str, following: str) -> ConfigurationError:
    catalogue = Catalogue((configuration_folder(),))
    names: _Names = {group: catalogue.names(group) for group in GROUPS} | {"task": TASKS}
    if word in _KEYS:
        meant = [f"{word}={following.lstrip('=') or '...'}"]
    else:
        ends = [(group, name) for group, known in names.items() for name in known if f"/{name}".endswith(f"/{word}")]
        close = [(group, name) for group, known in names.items() for name in get_close_matches(word, known)]
        meant = ["=".join(pair) for pair in ends or close]
    advice = f"write {' or '.join(meant)}" if meant else _EXAMPLES
    return ConfigurationError(f"a setting must be key=value, without spaces, got {word!r}; {advice}")


def check_settings(line: CommandLine, composer: Composer) -> None:
    """Raise ConfigurationError, which says what to write instead, if a key or a choice does not exist.

    Those of the project's configuration and of a folder given with ``--config-dir`` exist. With another root or search
    path, only Hydra knows. These, and other settings of Hydra, need the code ``hydra`` to be allowed.
    """
    options, first = line.options, line.first
    _check_modules(options.allow_code)
    roots = ("config_path", "config_name", "experimental_rerun")
    given = [f"--{root.replace('_', '-')}" for root in roots if getattr(options, root)]
    # With the package of a group: executor@hydra.callbacks puts the chosen file there.
    check_hydra(given, [one.get_key_element() for one in first], options.allow_code)
    if options.config_path or options.config_name or any(one.key_or_group == "hydra.searchpath" for one in first):
        return
    if several := [str(one.input_line) for one in first if one.is_sweep_override()]:
        key, _, values = several[0].partition("=")
        as_list = "" if key in GROUPS else f", or write '{key}=[{values}]' for a list"
        raise ConfigurationError(f"{key} must have one value, got {several[0]}; add -m to run with each{as_list}")
    own, catalogue = line.own_folder, composer.catalogue
    changes = [values for values in line.settings if values[0].type is OverrideType.CHANGE]
    chosen = [values for values in changes if values[0].key_or_group in GROUPS]
    for one in itertools.chain.from_iterable(chosen):
        _check_choice(one, catalogue)
    keys = [values[0].key_or_group for values in changes if not values[0].is_hydra_override()]
    keys = [key for key in keys if key not in _KEYS]
    if own:
        if not own.is_dir():
            raise ConfigurationError(
                f"--config-dir must be an existing folder, got {str(own)!r}; create it, or leave it out"
            )
        _check_files(own)
        _check_replaced(catalogue)
    # The keys that exist depend on the experiment: each point of a sweep has its own.
    for point in itertools.product(*chosen) if keys else ():
        config = composer.config(point)
        for key in keys:
            _check_key(key, config)
    if own:  # of a sweep, that is the first point
        _check_folder(own, first, composer)


def _check_replaced(catalogue: Catalogue) -> None:
    """Raise ConfigurationError if a folder has a file in the place of one that Hydra reads from the project's."""
    for name, path in catalogue.replaced().items():
        group, _, choice = name.partition("/")
        if (choice and group not in GROUPS) or (group == "experiment" and _is_merged_last(path)):
            continue
        advice = f"choose it with {group}=..." if choice else "give its settings on the command line"
        raise ConfigurationError(f"{path} must not take the place of the project's {name}.yaml; rename it and {advice}")


def _check_choice(one: Override, catalogue: Catalogue) -> None:
    """Raise ConfigurationError unless the file that a setting of a group chooses exists."""
    value, names = one.value(), catalogue.names(one.key_or_group)
    # As text, Hydra would escape the spaces of a name in quotes.
    name = value if isinstance(value, str) else one.get_value_element_as_str()
    if name not in names:
        raise unknown(one.key_or_group, names, name)


def _check_files(folder: Path) -> None:
    """Raise ConfigurationError for what Hydra misreads: ``${`` in a path, a byte order mark, too long a file."""
    if "${" in str(folder.absolute()):
        raise ConfigurationError(f"--config-dir must be a folder without '${{' in its path, got {folder}; rename it")
    for path in sorted(filter(Path.is_file, folder.rglob("*.yaml"))):
        is_group = path.relative_to(folder).parts[0] in GROUPS
        if is_group and path.read_bytes().startswith(codecs.BOM_UTF8):
            raise ConfigurationError(f"{path} must not begin with a byte order mark; save it as UTF-8 without one")
        with contextlib.suppress(yaml.YAMLError, OSError, UnicodeError, RecursionError):  # which Hydra tells
            checked_text(path)


def _check_key(key: str, config: DictConfig) -> None:
    """Raise an error unless a key with dots leads to a value, or into a list."""
    node: Any = config
    above: list[str] = []
    rest = key.split(".")
    while len(rest) > 1 and isinstance(node.get(rest[0]), DictConfig):
        node = node[rest[0]]
        above.append(rest.pop(0))
    if rest[0] in node and (len(rest) == 1 or isinstance(node[rest[0]], ListConfig)):
        return
    allowed = [str(name) for name in node if not str(name).startswith("_")]
    if above:
        raise unknown(f"{'.'.join(above)}.key", allowed, ".".join(rest))
    hint = "" if "runner" in config else "; add experiment=... for a key of an experiment"
    raise ConfigurationError(f"{unknown('key', [*allowed, 'experiment'], key)}{hint}")


# Compose the configurations of a command, its experiments and its points, without reading every file again.


class Composer:
    """Composes configurations, and remembers what they have in common.

    Parameters
    ----------
    catalogue : Catalogue
        The folders with what can be chosen.
    root : str
        The file at the root of the configuration.
    """

    def __init__(self, catalogue: Catalogue, root: str = "config") -> None:
        self.catalogue, self.root = catalogue, root
        own = ",".join(quoted(f"file://{folder.absolute()}") for folder in catalogue.folders[:-1])
        self._search = [f"hydra.searchpath=[{own}]"] if own else []
        self._composed = functools.cache(self._compose)
        self._read = functools.cache(load)

    def compose(self, overrides: Sequence[Override]) -> dict[str, Any]:
        """Return the configuration with these settings, resolved."""
        return plain(self.config(overrides))

    def config(self, overrides: Sequence[Override]) -> DictConfig:
        """Return the configuration with these settings, which the caller may change."""
        if not _are_changes(overrides):
            return copy.deepcopy(self.composed(overrides)[0])
        groups = {one.key_or_group: one for one in overrides if one.key_or_group in GROUPS}
        config = self._with_groups(groups)
        for one in overrides:
            if one.key_or_group not in GROUPS:
                OmegaConf.update(config, one.key_or_group, one.value(), merge=True)
        return config

    def composed(self, overrides: Sequence[Override]) -> tuple[DictConfig, dict[str, Any]]:
        """Return what Hydra makes of settings: the configuration, and Hydra's own settings."""
        return self._composed(*(str(one.input_line) for one in overrides))

    def choices(self, overrides: Sequence[Override]) -> dict[str, Any]:
        """Return which file of each group these settings, and the files that they choose, have chosen."""
        groups = [one for one in overrides if one.key_or_group in GROUPS]
        experiment = next((one for one in groups if one.key_or_group == "experiment"), None)
        if self._merged_last(experiment):  # without it there is nothing that other keys could change
            kept: Sequence[Override] = [one for one in groups if one is not experiment]
        else:
            kept = groups if _are_changes(overrides) else overrides
        choices: dict[str, Any] = self.composed(kept)[1]["runtime"]["choices"]
        return choices

    def _compose(self, *words: str) -> tuple[DictConfig, dict[str, Any]]:
        runs = GlobalHydra.instance().is_initialized()  # Hydra's own program, which has read the command line
        folder = str(configuration_folder())
        with contextlib.nullcontext() if runs else hydra.initialize_config_dir(folder, version_base="1.3"):
            config = hydra.compose(self.root, [*words, *self._search], return_hydra_config=True)
        own: dict[str, Any] = OmegaConf.to_container(config.hydra, resolve=False)  # type: ignore[assignment]
        with open_dict(config):
            del config["hydra"]
        return config, own

    def _with_groups(self, groups: dict[str, Override]) -> DictConfig:
        """Return a configuration with these choices, which the caller may change."""
        experiment = groups.get("experiment")
        others = [one for key, one in groups.items() if key != "experiment"]
        path = self._merged_last(experiment)
        if experiment is None or path is None:
            return copy.deepcopy(self.composed([*others, *([experiment] if experiment else [])])[0])
        config = copy.deepcopy(self.composed(others)[0])
        with open_dict(config):
            config.merge_with(self._read(path))
        return config

    def _merged_last(self, experiment: Override | None) -> Path | None:
        """Return the file of an experiment that Hydra would only merge into the rest: one that includes no others."""
        if experiment is None:
            return None
        path = self.catalogue.path("experiment", str(experiment.value()))
        return path if _is_merged_last(path) else None


def _are_changes(overrides: Sequence[Override]) -> bool:
    """Tell whether settings give values to keys that exist, and neither add nor delete any."""
    return all(one.type is OverrideType.CHANGE for one in overrides)


def _is_merged_last(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return text.startswith("# @package _global_\n") and "\ndefaults" not in text


# What a folder of configuration from somewhere else may not do.

_OPTION = "--allow-code"
# The variables that a configuration may read.
READABLE = ("TRIMBENCH_CACHE", "XDG_CACHE_HOME")
# Parts of Hydra's own settings that follow from the command line.
_OF_THE_COMMAND = ("runtime", "overrides", "searchpath")
# Settings of Hydra that name no code.
_HARMLESS = ("hydra.job.name", "hydra.verbose")
_OF_THE_JOB = ("name", "override_dirname", "id", "num", "config_name")


def _check_modules(names: Sequence[str]) -> None:
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ConfigurationError(f"{_OPTION} must name a module or package, got {name!r}; write {_OPTION}=mine")


def check_hydra(options: Sequence[str], settings: Sequence[str], allowed: Sequence[str]) -> None:
    """Raise ConfigurationError if the command line lets Hydra take its own settings from elsewhere.

    With these, Hydra calls functions that files or the command line itself name, so that a command from somebody else
    would run any code. ``--allow-code=hydra`` allows it.
    """
    keys = [key.lstrip("+~") for key in settings]
    # Also as the package of a group, as in executor@hydra.callbacks.c.
    named = [key for key in keys if "hydra" in re.split("[@:./]", key) and key not in _HARMLESS]
    if (found := [*options, *named]) and "hydra" not in allowed:
        raise ConfigurationError(
            f"{found[0]} may make Hydra run code that files or settings name; add {_OPTION}=hydra if you trust them, "
            "or use --config-dir"
        )


def limit_environment() -> None:
    """Let ``${oc.env:...}`` read only the variables that are `READABLE`: others may hold secrets."""
    OmegaConf.register_new_resolver("oc.env", _variable, replace=True)


def _variable(name: str, *default: str | None) -> str | None:
    if name not in READABLE:
        raise ConfigurationError(
            f"a configuration may read the environment variables {' and '.join(READABLE)}, got {name!r}; write the "
            "value itself, or give it on the command line"
        )
    if name not in os.environ and not default:
        raise ConfigurationError(f"the environment variable {name!r} must be set; the configuration reads it")
    return os.environ.get(name, *default)


def _check_folder(folder: Path, overrides: Sequence[Override], composer: Composer) -> None:
    """Raise ConfigurationError if what these settings find in a folder changes settings of Hydra, or of the run.

    With the former, Hydra would call any function and set environment variables; the latter say what is done, where and
    on whose machines. On the command line they are allowed, as is an executor of the folder that it names.
    """
    top = [(one, "hydra" if one.is_hydra_override() else one.key_or_group.partition(".")[0]) for one in overrides]
    own = [one for one, key in top if key in ("hydra", *OF_THE_RUN) and key != "executor"]
    chosen = [one for one, key in top if key == "executor"]
    expected = _settings(Composer(Catalogue((configuration_folder(),)), composer.root), own)
    found = _settings(composer, overrides)
    expected["executor"] = _settings(composer, chosen)["executor"] if chosen else expected["executor"]
    for key in sorted(expected.keys() | found.keys()):
        if expected.get(key) != found.get(key):
            does = (
                "Hydra would run what they name" if key.startswith("hydra.") else "they say what is computed, not how"
            )
            raise ConfigurationError(
                f"files in {folder} must not set {key}: {does}; remove it there, or set it on the command line"
            )


def _settings(composer: Composer, overrides: Sequence[Override]) -> dict[str, Any]:
    """Return the settings of Hydra and of the run."""
    config, found = composer.composed(overrides)
    job = {key: value for key, value in found["job"].items() if key not in _OF_THE_JOB}
    settings = {f"hydra.{key}": value for key, value in found.items() if key not in (*_OF_THE_COMMAND, "job")}
    settings |= {f"hydra.job.{key}": value for key, value in job.items()}
    whole: dict[str, Any] = OmegaConf.to_container(config, resolve=False)  # type: ignore[assignment]
    return settings | {key: whole.get(key) for key in OF_THE_RUN}


# What the Tab key completes in a shell: keys, and the names that a key takes.

_COMPLETION = "--shell-completion"
# Bash takes "=" for the end of a word, so what stands before it is not part of a completion there; zsh does not.
_BASH = """\
_trimbench() {
    local line=${COMP_LINE:0:$COMP_POINT} word IFS=$'\\n'
    word=${line##* }
    COMPREPLY=($(@program@ --shell-completion "query=$line" 2>/dev/null))
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[*]} == *[=/] ]] && compopt -o nospace 2>/dev/null
    if [[ -z ${ZSH_VERSION-} && $word == *=* && $COMP_WORDBREAKS == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%%=*}="}")
    fi
}
"""
_COMPLETE = "_trimbench trimbench reproduce\n"
_FISH = """\
function __trimbench_complete
    @program@ --shell-completion "query="(commandline -cp | string collect) 2>/dev/null
end
complete -c trimbench -f -a "(__trimbench_complete)"
complete -c reproduce -f -a "(__trimbench_complete)"
"""
_SCRIPTS = {
    # Files, where there is nothing else, as after data=.
    "bash": f"{_BASH}complete -o default -F {_COMPLETE}",
    # Its own complete knows no compopt.
    "zsh": "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
    f"{_BASH}complete -o nospace -F {_COMPLETE}",
    "fish": _FISH,
}


def answer(words: Sequence[str]) -> str:
    """Return what the option is asked for: a shell's script (``install=bash``), or the completions of a line.

    Raises ConfigurationError if it is asked for something else.
    """
    asked = " ".join(words)
    if asked.startswith("query="):
        return "".join(f"{word}\n" for word in completions(asked.removeprefix("query=")))
    shell = asked.removeprefix("install=")
    if shell not in _SCRIPTS:
        raise ConfigurationError(
            f"{_COMPLETION} must be followed by install=bash, install=zsh or install=fish, got {asked!r}; then write "
            f'eval "$(trimbench {_COMPLETION} install=bash)"'
        )
    program = Path(sys.argv[0]).absolute()
    command = [sys.executable, "-m", "trimbench"] if program.suffix == ".py" else [str(program)]
    return _SCRIPTS[shell].replace("@program@", shlex.join(command))


def completions(line: str) -> list[str]:
    """Return the words that the last one of a command line can become."""
    *before, word = line.split(" ")
    pairs = itertools.pairwise(before)
    own = [Path(folder).absolute() for option, folder in pairs if option in ("--config-dir", "-cd")]
    catalogue = Catalogue((*own, configuration_folder()))
    key, equals, value = word.partition("=")
    given = dict(one.split("=", 1) for one in before if "=" in one)
    if not equals:
        known = _keys(before, given.get("experiment", ""), catalogue)
        return sorted(f"{one}=" for one in known if one.startswith(key))
    # In a list, or in a sweep, the last of several values is completed.
    last = re.split(r"[\[,]", value)[-1]
    earlier = value.removesuffix(last)
    return [f"{key}={earlier}{name}" for name in _names(key, given, catalogue) if name.startswith(last)]


def _keys(words: Sequence[str], experiment: str, catalogue: Catalogue) -> set[str]:
    """Return the keys that a command line may have: a study and each experiment have their own."""
    keys = {*SHARED_KEYS, "experiment"}
    if f"task={_STUDY}" in words:
        keys = {*SHARED_KEYS, *catalogue.keys("", _STUDY)}
    elif experiment in catalogue.names("experiment"):
        keys |= set(catalogue.keys("experiment", experiment))
    return keys - {*NOT_SETTINGS, "defaults", "hydra"}


def _names(key: str, given: Mapping[str, str], catalogue: Catalogue) -> Sequence[str]:
    if key in GROUPS:
        return catalogue.names(key)
    if key in ("run", "runs"):
        folder = Path(given.get("results", "results"))
        return sorted(path.parent.name for path in folder.glob("*/run.json"))
    values = {
        "task": TASKS,
        "archive": ("false", "true"),
        "offline": ("false", "true"),
        "verify": ("false", "true"),
        "cache_mode": typing.get_args(typing.get_type_hints(CommonSettings)["cache_mode"]),
    }
    if key in values:
        return values[key]
    group = key.removesuffix("s")
    return catalogue.names(group) if group in ("dataset", "network", "protocol") else ()
