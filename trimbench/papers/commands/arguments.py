"""Mistakes on the command line, found before Hydra composes the configuration."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import hydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, OverrideType
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig

from trimbench.papers.commands.composition import GROUPS, root_of
from trimbench.papers.commands.invocation import SHARED_KEYS, TASKS
from trimbench.papers.commands.trust import check_folder, check_hydra
from trimbench.papers.configuration import Catalogue, configuration_folder
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
        check_folder(options.config_dir, [*(one[0] for one in chosen if one), *(str(one.input_line) for one in rest)])


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
