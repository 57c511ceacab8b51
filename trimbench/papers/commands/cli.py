"""The command line: one composed configuration, one task."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import hydra
import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from trimbench.papers.commands.arguments import check_arguments
from trimbench.papers.commands.tasks import SHARED_KEYS, TASKS, CommonSettings, Invocation
from trimbench.papers.configuration import Catalogue, configuration_folder, plain
from trimbench.papers.validation import ConfigurationError, unknown

# What composing raises; some of Hydra's own complaints are plain ValueErrors.
_COMPLAINTS = (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError)
# Of 255 bytes, with room for what is added.
_LONGEST_NAME = 200


def main() -> None:
    """Run the command line. Errors in the configuration end it with exit code 2 and say what exists."""
    # With this, errors in the configuration come here instead of being printed without the names that exist.
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")
    try:
        if "--version" in sys.argv[1:]:
            from trimbench.papers.execution.provenance import own_version

            sys.stdout.write(f"trimbench {own_version()}\n")
            return
        try:
            check_arguments(sys.argv[1:], _own_catalogue(sys.argv[1:]))
        except ConfigurationError as error:
            _exit_with(str(error))
        invocations = _compose()
        if len(invocations) > 1:  # a mistake in the last point of a sweep is told before the first runs
            _check(invocations)
        codes = [_run(invocation) for invocation in invocations]
    except BrokenPipeError:  # as in `trimbench task=list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
    except OSError as error:
        sys.stderr.write(f"{error}\nWhat is stored is whole. Mend this and run the same command again.\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. Finished jobs are stored; the same command goes on from there.\n")
        sys.exit(130)
    if any(codes):
        sys.exit(max(codes))


def _compose() -> list[Invocation]:
    """Return what the command line asks for: one invocation, or one for each point of a sweep (``-m``)."""
    invocations: list[Invocation] = []

    @hydra.main(config_path=str(configuration_folder()), config_name="config", version_base="1.3")
    def application(config: DictConfig) -> None:
        try:
            invocations.append(_invocation(config))
        except _COMPLAINTS as error:  # caught here too, because Hydra would announce it
            _exit_with(_explain(error, sys.argv[1:]))

    try:
        application()
    except _COMPLAINTS as error:
        _exit_with(_explain(error, sys.argv[1:]))
    return invocations


def _check(invocations: Sequence[Invocation]) -> None:
    try:
        for invocation in invocations:
            invocation.check()
    except ConfigurationError as error:
        _exit_with(str(error))


def _run(invocation: Invocation) -> int:
    # Loads numpy, which `trimbench --help` need not wait for.
    from trimbench.papers.data.errors import DataUnavailable, DeclarationError, FactsMismatch
    from trimbench.papers.execution.executors import ExecutorError

    try:
        return TASKS[invocation.settings.task](invocation)
    except ExecutorError as error:
        sys.stderr.write(f"executor: {error}\n")
        return 1
    except (ConfigurationError, DataUnavailable, DeclarationError, FactsMismatch) as error:
        _exit_with(str(error))


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
        # Each job of a sweep has its own tables; single results are shared.
        results = results / "sweeps" / _folder_name(state.job.override_dirname or "default")
    names = catalogue.names("experiment")
    overrides = list(state.overrides.task)
    asked = [word.partition("=")[2] for word in overrides if word.startswith("experiment=")]
    chosen = state.runtime.choices.get("experiment")
    if isinstance(chosen, str) and chosen.removesuffix(".yaml") != chosen:
        raise unknown("experiment", names, chosen)
    if asked and not isinstance(chosen, str):
        raise ConfigurationError(f"{unknown('experiment', names, asked[-1])}; for several, write -m experiment=a,b")
    if chosen:
        every = {str(chosen): values}
    else:
        every = {name: plain(hydra.compose("config", overrides=[*overrides, f"experiment={name}"])) for name in names}
    keys = [word.lstrip("+~").partition("=")[0] for word in overrides]
    altered = tuple(key for key in keys if key.partition(".")[0] not in (*SHARED_KEYS, "experiment"))
    return Invocation(settings, executor, every, bool(chosen), catalogue, results, altered)


def _folder_name(overrides: str) -> str:
    """Return the overrides of one point of a sweep as a name that every file system takes."""
    name = re.sub(r"[^\w=.,+-]+", "_", overrides, flags=re.ASCII)
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}-{hashlib.sha256(overrides.encode()).hexdigest()[:8]}"


def _catalogue(sources: Sequence[Any]) -> Catalogue:
    """Return the declarations in the folders of the configuration; one given with --config-dir goes first."""
    folders = [source for source in sources if source.schema == "file"]
    folders.sort(key=lambda source: source.provider != "command-line")
    return Catalogue(tuple(Path(source.path) for source in folders))


def _explain(error: Exception, arguments: Sequence[str]) -> str:
    """Return a message that lists what exists in place of what was asked for."""
    text = str(error)
    absent = re.search(r"Could not find '(experiment|executor|profile)/([^']*)'", text)
    none = [
        word.partition("=")[0] for word in arguments if re.fullmatch(r"(experiment|executor|profile)=(null)?", word)
    ]
    key = re.search(r"Could not override '([^']*)'", text)
    if absent:
        return str(unknown(absent[1], _own_catalogue(arguments).names(absent[1]), absent[2]))
    if none and "Config group override" in text:
        return str(unknown(none[0], _own_catalogue(arguments).names(none[0]), "null"))
    with suppress(HydraException):
        if key:
            return _explain_key(key[1], arguments)
    if isinstance(error, OverrideParseException) and (unread := _unreadable(arguments)):
        return unread
    # What follows is where it was searched, which says nothing to a user.
    return text.partition("\nConfig search path")[0].strip()


def _explain_key(key: str, arguments: Sequence[str]) -> str:
    # Of a sweep, the first choice stands for all.
    chosen = [word.split(",")[0] for word in arguments if re.match(r"(experiment|executor|profile)=", word)]
    node: Any = _composed(chosen, _own_folder(arguments))
    above: list[str] = []
    rest = key.split(".")
    while len(rest) > 1 and isinstance(node.get(rest[0]), DictConfig):
        node = node[rest[0]]
        above.append(rest.pop(0))
    hint = (
        "" if any(word.startswith("experiment=") for word in chosen) else "; keys of an experiment need experiment=..."
    )
    allowed = [*map(str, node), *([] if above else ["experiment"])]
    return f"{unknown('.'.join([*above, 'key']), allowed, '.'.join(rest))}{hint}"


def _unreadable(arguments: Sequence[str]) -> str:
    """Return what is wrong with the first setting whose value has no valid form."""
    parser = OverridesParser.create()
    for word in arguments:
        try:
            if "=" in word and not word.startswith("-"):
                parser.parse_override(word)
        except HydraException:
            key, _, value = word.partition("=")
            return (
                f"the value of {key} must be a number, a word, a list [a,b] or a text in quotes, got {value!r}; quote "
                f"it once for the shell and once as a text: '{key}=\"...\"'"
            )
    return ""


def _own_folder(arguments: Sequence[str]) -> Path | None:
    """Return the folder that is given with --config-dir."""
    for word, following in pairwise([*arguments, ""]):
        option, equals, value = word.partition("=")
        if option in ("--config-dir", "-cd"):
            return Path(value if equals else following).absolute()
    return None


def _own_catalogue(arguments: Sequence[str]) -> Catalogue:
    own = _own_folder(arguments)
    return Catalogue((*([own] if own else []), configuration_folder()))


def _composed(overrides: Sequence[str], own: Path | None) -> DictConfig:
    search = [f"hydra.searchpath=['file://{own}']"] if own else []
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(configuration_folder()), version_base="1.3"):
        return hydra.compose("config", overrides=[*overrides, *search])


def _exit_with(message: str) -> NoReturn:
    sys.stderr.write(f"{message}\n")
    sys.exit(2)
