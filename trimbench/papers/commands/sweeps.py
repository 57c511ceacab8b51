"""The points of a sweep (``-m``): every combination of the values that the command line separates by commas."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import yaml
from hydra.core.override_parser.types import Override, ValueType

from trimbench.papers.commands.composition import parsed
from trimbench.papers.commands.invocation import SHARED_KEYS, CommonSettings
from trimbench.papers.execution.canonical import Json
from trimbench.papers.reporting.file_names import settings_name
from trimbench.papers.validation import ConfigurationError

_OPTIONS = ("-m", "--multirun")


def is_sweep(arguments: Sequence[str]) -> bool:
    """Tell whether the command line asks for a sweep."""
    return any(argument in _OPTIONS for argument in arguments)


def first_point(arguments: Sequence[str]) -> list[str]:
    """Return the command line of the first point of a sweep, which Hydra composes as if it stood alone."""
    words = [argument for argument in arguments if argument not in _OPTIONS]
    return [_values(parsed([word])[0])[0] if is_setting(word) else word for word in words]


def is_setting(word: str) -> bool:
    """Tell whether a word of the command line sets something, and is no option and none of Hydra's own settings."""
    key, equals, _ = word.partition("=")
    return bool(equals) and not key.startswith(("-", "hydra.", "hydra/"))


def points_of(words: Sequence[str]) -> list[list[str]]:
    """Return the settings of each point, in the order of the command line: the last setting changes fastest."""
    return [list(point) for point in itertools.product(*map(_values, parsed(words)))]


def swept_keys(words: Sequence[str]) -> list[str]:
    """Return the keys that have several values."""
    return [one.key_or_group for one in parsed(words) if one.is_sweep_override()]


def value_of(text: str) -> Json:
    """Return a swept value: a number, or the number in a list of one, as such; anything else as it was written."""
    value = yaml.safe_load(text)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, int | float) else text.strip("'\"")


def check_sweep(settings: CommonSettings, swept: Sequence[str]) -> None:
    """Raise ConfigurationError if a sweep goes over nothing, or what is no setting, or its task is not done by points.

    A run has one profile, but its values can be swept.
    """
    if not swept:
        raise ConfigurationError(
            "a sweep (-m) must have a setting with several values; write for example alpha=30,300 "
            "or, for a setting that is a list, 'thresholds=[0.3],[0.7]'"
        )
    for key in swept:
        if key.partition(".")[0] in SHARED_KEYS and key != "seed" and not key.startswith("profile."):
            raise ConfigurationError(
                f"a sweep must go over experiments, their settings or seed, got {key}; give {key} one value"
            )
    if settings.task not in ("run", "report"):
        raise ConfigurationError(
            f"task must be run or report in a sweep, got {settings.task!r}; give each setting one value, without -m"
        )


def sweep_name(words: Sequence[str]) -> str:
    """Return the name of a sweep's folder: the experiments, and all settings that matter to its points."""
    parts = [word for word in words if _matters(word.partition("=")[0])]
    experiments = [word.partition("=")[2].replace("/", "_") for word in parts if word.startswith("experiment=")]
    rest = [word for word in parts if not word.startswith("experiment=")]
    # Values are separated by commas, like the items of a list.
    return settings_name([f"[{text}]" for text in experiments] + [_as_list(word) for word in rest])


def _matters(key: str) -> bool:
    return key == "seed" or key.startswith("profile.") or key.partition(".")[0] not in SHARED_KEYS


def _as_list(word: str) -> str:
    key, _, value = word.partition("=")
    return word if value.startswith(("[", "range(")) else f"{key}=[{value}]"


def _values(override: Override) -> list[str]:
    if not override.is_sweep_override():
        return [str(override.input_line)]
    # A pattern such as glob(*) asks Hydra for the choices of a group, which it has not read yet.
    if not override.is_discrete_sweep() or override.value_type is ValueType.GLOB_CHOICE_SWEEP:
        key = override.key_or_group
        raise ConfigurationError(
            f"a swept setting must have values separated by commas or a range, got {override.input_line}; "
            f"write {key}=1,2 or '{key}=range(1,5)'"
        )
    return [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]
