"""Arguments of the command line: mistakes found early, composed, completed, and what they may run."""

from __future__ import annotations

import argparse
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
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, OverrideType
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

from trimbench.papers.commands.invocation import OF_THE_RUN, SHARED_KEYS, TASKS, CommonSettings
from trimbench.papers.configuration import Catalogue, checked_text, configuration_folder, load, plain
from trimbench.papers.validation import ConfigurationError, unknown

_KEYS = (*SHARED_KEYS, "experiment")
# Hydra's options that take a value; every other word is a setting or an option without a value.
_VALUED = ("--cfg -c", "--package -p", "--config-path -cp", "--config-name -cn", "--config-dir -cd")
_EXAMPLES = "for example experiment=trimming/table4 or task=list; trimbench --help shows more"
_Names = Mapping[str, Sequence[str]]


def check_arguments(arguments: Sequence[str], allowed: Sequence[str] = ()) -> None:
    """Raise ConfigurationError, which says what to write instead, if a key or a choice does not exist.

    Those of the project's configuration and of a folder given with ``--config-dir`` exist. With another root or search
    path, only Hydra knows. These, and other settings of Hydra, need the code ``hydra`` to be `allowed`.
    """
    _check_dashes(arguments)
    # Like Hydra's, it takes abbreviations of options.
    parser = argparse.ArgumentParser("trimbench", "trimbench [key=value ...]", add_help=False)
    for option in (*_VALUED, "--experimental-rerun"):
        parser.add_argument(*option.split())
    parser.add_argument("--info", "-i", nargs="?")
    options, words = parser.parse_known_args(arguments)
    own = [Path(options.config_dir).absolute()] if options.config_dir else []
    catalogue = Catalogue((*own, configuration_folder()))
    names = {group: catalogue.names(group) for group in GROUPS}
    overrides = _parsed(words, names | {"task": list(TASKS)})
    roots = ("config_path", "config_name", "experimental_rerun")
    given = [f"--{root.replace('_', '-')}" for root in roots if getattr(options, root)]
    # With the package of a group: executor@hydra.callbacks puts the chosen file there.
    check_hydra(given, [one.get_key_element() for one in overrides], allowed)
    if options.config_path or options.config_name or any(one.key_or_group == "hydra.searchpath" for one in overrides):
        return
    changes = [override for override in overrides if override.type is OverrideType.CHANGE]
    chosen = [_choices(override, names) for override in changes if override.key_or_group in GROUPS]
    changed = [override.key_or_group for override in changes]
    keys = [key for key in changed if key not in _KEYS and not key.startswith(("hydra.", "hydra/"))]
    search = [f"hydra.searchpath=['file://{folder}']" for folder in own if folder.is_dir()]
    # The keys that exist depend on the experiment: each point of a sweep has its own.
    for point in itertools.product(*chosen) if keys else ():
        with hydra.initialize_config_dir(str(configuration_folder()), version_base="1.3"):
            config = hydra.compose(root_of(arguments), overrides=[*point, *search])
        for key in keys:
            _check_key(key, config)
    if options.config_dir:  # of a sweep, Hydra sees the first point
        rest = [one for one in overrides if one not in changes or one.package or one.key_or_group not in GROUPS]
        rest = [one for one in rest if not one.is_sweep_override()]
        words = [*(one[0] for one in chosen if one), *(str(one.input_line) for one in rest)]
        check_folder(options.config_dir, words, root_of(arguments))


def _check_dashes(arguments: Sequence[str]) -> None:
    """Raise ConfigurationError if a key is written like an option."""
    for word, following in itertools.pairwise([*arguments, ""]):
        key, _, value = word.lstrip("-").partition("=")
        if word.startswith("-") and key in _KEYS:
            meant = f"{key}={value or following or '...'}"
            raise ConfigurationError(f"settings are written without dashes, got {word!r}; write {meant}")


def _parsed(words: Sequence[str], names: _Names) -> list[Override]:
    """Parse the settings among the words; options without a value remain for Hydra."""
    overrides = []
    for word, following in itertools.pairwise([*words, ""]):
        if word.startswith("-"):
            continue
        key = word.partition("=")[0]
        if "=" not in word and not word.startswith("~"):
            raise _no_setting(word, following, names)
        try:
            overrides.append(OverridesParser.create().parse_override(word))
        except HydraException as error:
            raise ConfigurationError(
                f"a setting must be key=value, with a number, a word, a list [a,b] or a quoted text as its value, "
                f"got {word!r}; quote a text once for the shell and once for Hydra: '{key}=\"...\"'"
            ) from error
    return overrides


def _no_setting(word: str, following: str, names: _Names) -> ConfigurationError:
    if word in _KEYS:
        meant = [f"{word}={following.lstrip('=') or '...'}"]
    else:
        ends = [(group, name) for group, known in names.items() for name in known if f"/{name}".endswith(f"/{word}")]
        close = [(group, name) for group, known in names.items() for name in get_close_matches(word, known)]
        meant = ["=".join(pair) for pair in ends or close]
    advice = f"write {' or '.join(meant)}" if meant else _EXAMPLES
    return ConfigurationError(f"a setting must be key=value, without spaces, got {word!r}; {advice}")


def _choices(override: Override, names: _Names) -> list[str]:
    """Return the settings of a group, several in a sweep, after checking that each choice exists."""
    group = override.key_or_group
    if not override.is_sweep_override():
        value = override.value()
        # As text, Hydra would escape the spaces of a name in quotes.
        values = [str(value) if isinstance(value, str) else override.get_value_element_as_str()]
    else:
        values = list(override.sweep_string_iterator()) if isinstance(override.value(), ChoiceSweep) else []
    values = [value.strip("'\"") for value in values]
    for value in values:
        if value not in names[group]:
            raise unknown(group, names[group], value)
    return [f"{group}='{value}'" for value in values]


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


# Compose the configurations of many experiments, or of many points of a sweep, without reading every file again.

GROUPS = ("experiment", "executor", "profile", "figure")
_STUDY = "study"
_BY_COLUMN = ("types=", "types.")


def root_of(arguments: Sequence[str]) -> str:
    """Return the name of the root of the configuration: a study has keys of its own."""
    return _STUDY if f"task={_STUDY}" in arguments else "config"


def with_columns(arguments: Sequence[str]) -> list[str]:
    """Let `types` of a study name columns, which no file of the configuration can have."""
    if root_of(arguments) != _STUDY:
        return list(arguments)
    return [f"++{word}" if word.startswith(_BY_COLUMN) else word for word in arguments]


def parsed(words: Sequence[str]) -> list[Override]:
    """Parse settings as they stand on the command line."""
    return list(OverridesParser.create().parse_overrides(list(words)))


class Composer:
    """Composes configurations while Hydra runs, and remembers what they have in common."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._composed = functools.cache(lambda groups: hydra.compose("config", overrides=list(groups)))
        self._read = functools.cache(load)

    def compose(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the configuration with these settings, resolved."""
        overrides = parsed(words)
        if any(one.type is not OverrideType.CHANGE for one in overrides):
            return plain(hydra.compose("config", overrides=list(words)))
        groups = {one.key_or_group: one for one in overrides if one.key_or_group in GROUPS}
        config = self._with_groups(groups)
        for one in overrides:
            if one.key_or_group not in GROUPS:
                OmegaConf.update(config, one.key_or_group, one.value(), merge=True)
        return plain(config)

    def _with_groups(self, groups: dict[str, Override]) -> DictConfig:
        """Return a configuration with these choices, which the caller may change."""
        experiment = groups.get("experiment")
        others = tuple(str(one.input_line) for key, one in groups.items() if key != "experiment")
        path = self._merged_last(experiment)
        if experiment is None or path is None:
            return copy.deepcopy(self._composed((*others, *([str(experiment.input_line)] if experiment else []))))
        config = copy.deepcopy(self._composed(others))
        with open_dict(config):
            config.merge_with(self._read(path))
        return config

    def _merged_last(self, experiment: Override | None) -> Path | None:
        """Return the file of an experiment that Hydra would only merge into the rest: one that includes no others."""
        if experiment is None:
            return None
        path = self._catalogue.path("experiment", str(experiment.value()))
        text = path.read_text(encoding="utf-8")
        return path if text.startswith("# @package _global_\n") and "defaults" not in self._read(path) else None


# What a folder of configuration from somewhere else may not do.

_OPTION = "--allow-code"
# The variables that a configuration may read.
READABLE = ("TRIMBENCH_CACHE", "XDG_CACHE_HOME")
# Parts of Hydra's own settings that follow from the command line.
_OF_THE_COMMAND = ("runtime", "overrides", "searchpath")
# Settings of Hydra that name no code.
_HARMLESS = ("hydra.job.name", "hydra.verbose")
_OF_THE_JOB = ("name", "override_dirname", "id", "num", "config_name")


def split_allowed_code(arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Take ``--allow-code=module`` out of the arguments; return the others and the modules.

    Raises ConfigurationError if no module is named.
    """
    rest = [word for word in arguments if word.partition("=")[0] != _OPTION]
    named = [word.partition("=")[2] for word in arguments if word.partition("=")[0] == _OPTION]
    for name in named:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ConfigurationError(f"{_OPTION} must name a module or package, got {name!r}; write {_OPTION}=mine")
    return rest, tuple(named)


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


def check_folder(folder: str, words: Sequence[str], root: str) -> None:
    """Raise ConfigurationError if what the settings `words` find in a folder changes settings of Hydra, or of the run.

    With the former, Hydra would call any function and set environment variables; the latter say what is done, where and
    on whose machines. On the command line they are allowed, as is an executor of the folder that it names.
    """
    path = Path(folder).absolute()
    for one in sorted(filter(Path.is_file, path.rglob("*.yaml"))):  # before Hydra reads them
        with contextlib.suppress(yaml.YAMLError, OSError, UnicodeError, RecursionError):  # which it tells where it must
            checked_text(one)
    search = [f"hydra.searchpath=['file://{path}']"] if path.is_dir() else []
    taken = [name for name in Catalogue((path, configuration_folder())).replaced() if name.startswith("executor/")]
    if taken:
        raise ConfigurationError(f"files in {folder} must not replace {taken[0]} of the project; give it another name")
    first = {word: re.split("[=.@]", word.lstrip("+~"))[0] for word in words}
    own = [word for word in words if first[word] in ("hydra", *OF_THE_RUN) and first[word] != "executor"]
    chosen = [word for word in words if first[word] == "executor"]
    expected, found = _settings(root, own), _settings(root, [*words, *search])
    expected["executor"] = _settings(root, [*chosen, *search])["executor"] if chosen else expected["executor"]
    for key in sorted(expected.keys() | found.keys()):
        if expected.get(key) != found.get(key):
            does = (
                "Hydra would run what they name" if key.startswith("hydra.") else "they say what is computed, not how"
            )
            raise ConfigurationError(
                f"files in {folder} must not set {key}: {does}; remove it there, or set it on the command line"
            )


def _settings(root: str, words: Sequence[str]) -> dict[str, Any]:
    """Return the settings of Hydra and of the run."""
    with hydra.initialize_config_dir(str(configuration_folder()), version_base="1.3"):
        config = hydra.compose(root, overrides=list(words), return_hydra_config=True)
    found: dict[str, Any] = OmegaConf.to_container(config.hydra, resolve=False)  # type: ignore[assignment]
    job = {key: value for key, value in found.pop("job").items() if key not in _OF_THE_JOB}
    settings = {f"hydra.{key}": value for key, value in found.items() if key not in _OF_THE_COMMAND}
    settings |= {f"hydra.job.{key}": value for key, value in job.items()}
    whole: dict[str, Any] = OmegaConf.to_container(config, resolve=False)  # type: ignore[assignment]
    return settings | {key: whole.get(key) for key in OF_THE_RUN}


# What the Tab key completes in a shell: keys, and the names that a key takes.

OPTION = ("--shell-completion", "-sc")
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
            f"{OPTION[0]} must be followed by install=bash, install=zsh or install=fish, got {asked!r}; then write "
            f'eval "$(trimbench {OPTION[0]} install=bash)"'
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
    if root_of(words) != "config":
        keys = {*SHARED_KEYS, *catalogue.keys("", root_of(words))}
    elif experiment in catalogue.names("experiment"):
        keys |= set(catalogue.keys("experiment", experiment))
    return keys - {"runner", "smoke_test", "defaults", "hydra"}


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
