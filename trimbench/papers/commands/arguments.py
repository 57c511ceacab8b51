"""Slips in the words of a command line, told before the configuration system reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from trimbench.papers.commands.tasks import SHARED_KEYS, TASKS
from trimbench.papers.configuration import Catalogue
from trimbench.papers.validation import ConfigurationError, unknown

# The values that an option can have: None for any, nothing for an option without a value.
OPTIONS: dict[str, tuple[str, ...] | None] = {
    **dict.fromkeys(("--help", "-h", "--hydra-help", "--version", "--resolve"), ()),
    **dict.fromkeys(("--run", "-r", "--multirun", "-m", "--shell-completion", "-sc"), ()),
    **dict.fromkeys(("--cfg", "-c"), ("job", "hydra", "all")),
    **dict.fromkeys(("--info", "-i"), ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")),
    **dict.fromkeys(("--package", "-p", "--config-path", "-cp", "--config-name", "-cn", "--config-dir", "-cd"), None),
    "--experimental-rerun": None,
}
_BARE_OPTIONS = ("--info", "-i")  # their value may be left out
_KEYS = ("experiment", *SHARED_KEYS)
_SETTING = re.compile(r"(\+\+|\+|~)?[^\s=:,+~]([^\s=]*[^\s=:])?=(?!=)|~[^\s=]+$", re.DOTALL)
_Names = Mapping[str, Sequence[str]]
_EXAMPLES = "for example experiment=trimming/table4 or task=list; trimbench --help shows all"


def check_arguments(arguments: Sequence[str], catalogue: Catalogue) -> None:
    """Raise an error that says what to write, if some words are neither settings nor options.

    Parameters
    ----------
    arguments : sequence of str
        The words after the name of the program.
    catalogue : Catalogue
        Holds the names of experiments, executors and profiles.

    Raises
    ------
    ConfigurationError
    """
    names = {key: catalogue.names(key) for key in ("experiment", "executor", "profile")} | {"task": list(TASKS)}
    waiting = list(arguments)
    before = ""
    while waiting:
        word = waiting.pop(0)
        if word.startswith("-"):
            _check_option(word, waiting, names)
        elif not _SETTING.match(word):
            raise _no_setting(word, before, waiting, names)
        before = word


def _check_option(word: str, following: list[str], names: _Names) -> None:
    """Check one option, and take its value from the words that follow."""
    name, equals, value = word.partition("=")
    key = name.lstrip("-")
    if name not in OPTIONS:
        if key in _KEYS:
            got = value if equals else next((one for one in following if not one.startswith("-")), "")
            raise ConfigurationError(f"settings are written without dashes, got {word!r}; {_advice(key, got, names)}")
        raise ConfigurationError(f"{unknown('an option', list(OPTIONS), name)}; settings are written key=value")
    allowed = OPTIONS[name]
    if allowed == ():
        return
    if not equals:
        if name in _BARE_OPTIONS and (not following or following[0] not in (allowed or ())):
            return
        value = following.pop(0) if following else ""
    if not value:
        raise ConfigurationError(f"{name} must have a value, got none; write {name} {'|'.join(allowed or ['...'])}")
    if allowed and value not in allowed:
        raise unknown(name, allowed, value)


def _no_setting(word: str, before: str, following: Sequence[str], names: _Names) -> ConfigurationError:
    """Return the error for a word that is no setting, with what was probably meant."""
    key, _, value = (part.strip() for part in re.sub(r"\s*(==|:)\s*", "=", word, count=1).partition("="))
    if key in _KEYS and not value and following and not following[0].startswith("-"):
        value = following[0].lstrip("=")  # experiment trimming/table4
    elif before.endswith("="):
        key, value = before.rstrip("="), word  # experiment= trimming/table4
    if key in _KEYS:
        advice = _advice(key, value, names)
    else:
        meant = [f"{group}={word}" for group, known in names.items() if word in known]
        meant = meant or [f"experiment={name}" for name in names["experiment"] if word and name.endswith(f"/{word}")]
        meant = meant or [
            f"{group}={name}" for group, found in names.items() for name in get_close_matches(word, found)
        ]
        advice = f"write {' or '.join(meant)}" if meant else _EXAMPLES
    return ConfigurationError(f"a setting must be key=value, without spaces, got {word!r}; {advice}")


def _advice(key: str, value: str, names: _Names) -> str:
    """Return how a setting is written; if its value does not exist, which ones do."""
    if key not in names or value in names[key]:
        return f"write {key}={value or '...'}"
    return f"write {key}=..., where {unknown(key, names[key], value)}"
