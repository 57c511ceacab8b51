"""The command line: one composed configuration, one task."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from trimbench.configuration import Catalogue, ConfigurationError, configuration_folder, plain, unknown
from trimbench.data.errors import DataUnavailable, DeclarationError, FactsMismatch
from trimbench.tasks import TASKS, Invocation


def main() -> None:
    """Run the command line. Errors in the configuration end it with exit code 2 and say what exists."""
    # With this, errors in the configuration come here instead of being printed without the names that exist.
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")
    try:
        _application()
    except (HydraException, OmegaConfBaseException) as error:
        _exit_with(_explain(error, sys.argv[1:]))
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. Finished jobs are stored; the same command goes on from there.\n")
        sys.exit(130)


@hydra.main(config_path=str(configuration_folder()), config_name="config", version_base="1.3")
def _application(config: DictConfig) -> None:
    try:
        invocation = _invocation(config)
        task = str(invocation.values["task"])
        if task not in TASKS:
            raise unknown("task", list(TASKS), task)
        code = TASKS[task](invocation)
    except (ConfigurationError, DataUnavailable, DeclarationError, FactsMismatch) as error:
        _exit_with(str(error))
    if code:
        sys.exit(code)


def _invocation(config: DictConfig) -> Invocation:
    state = HydraConfig.get()
    catalogue = _catalogue(state.runtime.config_sources)
    values = plain(config)
    results = Path(str(values["results"]))
    if state.mode == RunMode.MULTIRUN:
        # Each job of a sweep has its own tables; single results are shared.
        results = results / "sweeps" / re.sub(r"[^\w=.,+-]+", "_", state.job.override_dirname or "default")
    choices = OmegaConf.to_container(state.runtime.choices)
    chosen = choices.get("experiment") if isinstance(choices, dict) else None
    if chosen:
        return Invocation(values, {str(chosen): values}, chosen=True, catalogue=catalogue, results=results)
    overrides = list(state.overrides.task)
    every = {
        name: plain(hydra.compose("config", overrides=[*overrides, f"experiment={name}"]))
        for name in catalogue.names("experiment")
    }
    return Invocation(values, every, chosen=False, catalogue=catalogue, results=results)


def _catalogue(sources: Sequence[Any]) -> Catalogue:
    """Return the declarations in the folders of the configuration; one given with --config-dir goes first."""
    folders = [source for source in sources if source.schema == "file"]
    folders.sort(key=lambda source: source.provider != "command-line")
    return Catalogue(tuple(Path(source.path) for source in folders))


def _explain(error: Exception, arguments: Sequence[str]) -> str:
    """Return a message that lists what exists in place of what was asked for."""
    text = str(error)
    absent = re.search(r"Could not find 'experiment/([^']*)'", text)
    if absent:
        return str(unknown("experiment", _own_catalogue(arguments).names("experiment"), absent[1]))
    key = re.search(r"Could not override '([^']*)'", text)
    if key:
        chosen = [word for word in arguments if re.match(r"(experiment|executor|profile)=", word)]
        *above, last = key[1].split(".")
        hint = (
            ""
            if any(word.startswith("experiment=") for word in chosen)
            else "; keys of an experiment need experiment=..."
        )
        return f"{unknown('.'.join([*above, 'key']), _keys(chosen, '.'.join(above)), last)}{hint}"
    # What follows is where it was searched, which says nothing to a user.
    return text.partition("\nConfig search path")[0].strip()


def _own_catalogue(arguments: Sequence[str]) -> Catalogue:
    own = [Path(b) for a, b in pairwise(arguments) if a in ("--config-dir", "-cd")]
    return Catalogue((*own, configuration_folder()))


def _keys(overrides: Sequence[str], node: str) -> list[str]:
    """Return the keys at a node of the configuration, the root if it is empty."""
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(configuration_folder()), version_base="1.3"):
        config = hydra.compose("config", overrides=list(overrides))
    found = OmegaConf.select(config, node) if node else config
    return [str(key) for key in found] if isinstance(found, DictConfig) else []


def _exit_with(message: str) -> NoReturn:
    sys.stderr.write(f"{message}\n")
    sys.exit(2)
