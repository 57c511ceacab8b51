"""The command line: one composed configuration, one task."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import hydra
import yaml
from hydra.conf import ConfigSourceInfo
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from trimbench.papers.commands.arguments import check_arguments
from trimbench.papers.commands.figure_choice import FigureChoice
from trimbench.papers.commands.invocation import SHARED_KEYS, CommonSettings, Invocation
from trimbench.papers.configuration import Catalogue, configuration_folder, plain
from trimbench.papers.validation import ConfigurationError, unknown

# What composing raises; some of Hydra's own complaints are plain ValueErrors.
_COMPLAINTS = (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError)
# File systems allow 255 bytes; this leaves room for what is added.
_LONGEST_NAME = 200


def main() -> None:
    """Run the command line. A mistake in the configuration ends it with exit code 2."""
    # With this, Hydra raises its errors instead of printing them.
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")
    try:
        if "--version" in sys.argv[1:]:
            from trimbench.papers.execution.provenance import own_version

            sys.stdout.write(f"trimbench {own_version()}\n")
            return
        with _exit_on(*_COMPLAINTS):
            check_arguments(sys.argv[1:])
            invocations = _compose()
        if len(invocations) > 1:  # a mistake in the last point of a sweep is reported before the first runs
            with _exit_on(ConfigurationError):
                for invocation in invocations:
                    invocation.check()
        codes = [_run(invocation) for invocation in invocations]
    except BrokenPipeError:  # as in `trimbench task=list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
    except OSError as error:
        sys.stderr.write(f"{error}\nStored results are intact. Fix this, then run the same command again.\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. Finished jobs are stored; run the same command again to continue.\n")
        sys.exit(130)
    if any(codes):
        sys.exit(max(codes))


@contextmanager
def _exit_on(*errors: type[Exception]) -> Iterator[None]:
    """End the program with exit code 2 and the error's message."""
    try:
        yield
    except errors as error:
        sys.stderr.write(f"{str(error).strip()}\n")
        sys.exit(2)


def _compose() -> list[Invocation]:
    """Return what the command line asks for: one invocation, or one for each point of a sweep (``-m``)."""
    invocations: list[Invocation] = []

    @hydra.main(config_path=str(configuration_folder()), config_name="config", version_base="1.3")
    def application(config: DictConfig) -> None:
        # Handled inside, because Hydra would announce an error that leaves this function.
        with _exit_on(*_COMPLAINTS):
            invocations.append(_invocation(config))

    application()
    return invocations


def _run(invocation: Invocation) -> int:
    # These load numpy and pandas, which `trimbench --help` does without.
    from trimbench.papers.commands.tasks import PERFORM
    from trimbench.papers.data.errors import DataUnavailable, DeclarationError, FactsMismatch
    from trimbench.papers.execution.executors import ExecutorError

    try:
        with _exit_on(ConfigurationError, DataUnavailable, DeclarationError, FactsMismatch):
            return PERFORM[invocation.settings.task](invocation)
    except ExecutorError as error:
        sys.stderr.write(f"executor={invocation.executor_name}: {error}\n")
        return 1


def _invocation(config: DictConfig) -> Invocation:
    state = HydraConfig.get()
    catalogue = _catalogue(state.runtime.config_sources)
    values = plain(config)
    settings = CommonSettings.of(values)
    executor = values.get("executor")
    if not isinstance(executor, dict):
        raise unknown("executor", catalogue.names("executor"), str(executor))
    results = Path(settings.results)
    if state.mode == RunMode.MULTIRUN:
        # Each point of a sweep has its own tables; the results of jobs are shared.
        results = results / "sweeps" / _folder_name(state.job.override_dirname or "default")
    words = list(state.overrides.task)
    chosen = state.runtime.choices.get("experiment")
    if chosen:
        every = {str(chosen): values}
    else:
        names = catalogue.names("experiment")
        every = {name: plain(hydra.compose("config", overrides=[*words, f"experiment={name}"])) for name in names}
    keys = [override.key_or_group for override in OverridesParser.create().parse_overrides(words)]
    # A value of the profile is a setting of the experiments; the choice of another profile is not a change.
    shared = (*SHARED_KEYS, "experiment")
    altered = tuple(key for key in keys if key.startswith("profile.") or key.partition(".")[0] not in shared)
    name = str(state.runtime.choices["executor"])
    figure = FigureChoice.of(values, str(state.runtime.choices["figure"]), catalogue)
    return Invocation(settings, executor, name, every, bool(chosen), catalogue, results, figure, altered)


def _folder_name(overrides: str) -> str:
    """Return the overrides of one point of a sweep as a name that every file system accepts."""
    name = re.sub(r"[^\w=.,+-]+", "_", overrides, flags=re.ASCII)
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}-{hashlib.sha256(overrides.encode()).hexdigest()[:8]}"


def _catalogue(sources: Sequence[ConfigSourceInfo]) -> Catalogue:
    """Return the declarations in the folders of the configuration; one given with --config-dir goes first."""
    folders = [source for source in sources if source.schema == "file"]
    folders.sort(key=lambda source: source.provider != "command-line")
    return Catalogue(tuple(Path(source.path) for source in folders))
