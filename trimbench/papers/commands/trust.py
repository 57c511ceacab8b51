"""What a folder of configuration from somewhere else may not do."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
from omegaconf import OmegaConf

from trimbench.papers.configuration import configuration_folder
from trimbench.papers.validation import ConfigurationError

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


def check_folder(folder: str, words: Sequence[str]) -> None:
    """Raise ConfigurationError if what the settings `words` find in a folder changes settings of Hydra itself.

    With these, Hydra would call any function and set environment variables; on the command line they are allowed.
    """
    own = [word for word in words if word.startswith("hydra")]
    path = Path(folder).absolute()
    search = [f"hydra.searchpath=['file://{path}']"] if path.is_dir() else []
    expected, found = _hydra_settings(own), _hydra_settings([*words, *search])
    for key in sorted(expected.keys() | found.keys()):
        if expected.get(key) != found.get(key):
            raise ConfigurationError(
                f"files in {folder} must not set hydra.{key}: Hydra would run what they name; remove it there, or "
                "set it on the command line"
            )


def _hydra_settings(words: Sequence[str]) -> dict[str, Any]:
    with hydra.initialize_config_dir(str(configuration_folder()), version_base="1.3"):
        config = hydra.compose("config", overrides=list(words), return_hydra_config=True)
    found: dict[str, Any] = OmegaConf.to_container(config.hydra, resolve=False)  # type: ignore[assignment]
    job = {key: value for key, value in found.pop("job").items() if key not in _OF_THE_JOB}
    settings = {key: value for key, value in found.items() if key not in _OF_THE_COMMAND}
    return settings | {f"job.{key}": value for key, value in job.items()}
