"""The command line: one composed configuration, one task."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import hydra
import yaml
from hydra.conf import ConfigSourceInfo
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from trimbench.papers.commands import completion
from trimbench.papers.commands.arguments import check_arguments
from trimbench.papers.commands.composition import Composer, parsed, root_of, with_columns
from trimbench.papers.commands.figure_choice import FigureChoice
from trimbench.papers.commands.invocation import SHARED_KEYS, CommonSettings, Invocation, Point
from trimbench.papers.commands.sweeps import (
    check_sweep,
    first_point,
    is_setting,
    is_sweep,
    points_of,
    sweep_name,
    swept_keys,
    value_of,
)
from trimbench.papers.commands.trust import limit_environment, split_allowed_code
from trimbench.papers.configuration import Catalogue, configuration_folder, plain
from trimbench.papers.reporting.file_names import settings_name
from trimbench.papers.validation import ConfigurationError, unknown

if TYPE_CHECKING:
    from trimbench.papers.execution.canonical import Json

# What composing raises; some of Hydra's own complaints are plain ValueErrors.
_DIGITS = 8  # of the hash of a file
_COMPLAINTS = (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError)


def main(understood: Callable[[], object] = lambda: None) -> None:
    """Run the command line. A mistake in the configuration ends it with exit code 2.

    `understood` is called before the command does anything, once its configuration is composed.
    """
    # With this, Hydra raises its errors instead of printing them.
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")
    try:
        if "--version" in sys.argv[1:]:
            from trimbench.papers.execution.provenance import own_version

            sys.stdout.write(f"trimbench {own_version()}\n")
            return
        limit_environment()
        with _exit_on(*_COMPLAINTS):
            if sys.argv[1:2] and sys.argv[1] in completion.OPTION:
                sys.stdout.write(completion.answer(sys.argv[2:]))
                return
            arguments, allowed = split_allowed_code(with_columns(sys.argv[1:]))
            check_arguments(arguments, allowed)
            invocation = _compose(arguments, allowed)
        understood()
        code = _run(invocation) if invocation else 0
    except BrokenPipeError:  # as in `trimbench task=list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
    except OSError as error:
        sys.stderr.write(f"{error}\nStored results are intact. Fix this, then run the same command again.\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. Finished jobs are stored; run the same command again to continue.\n")
        sys.exit(130)
    if code:
        sys.exit(code)


@contextmanager
def _exit_on(*errors: type[Exception]) -> Iterator[None]:
    """End the program with exit code 2 and the error's message."""
    try:
        yield
    except errors as error:
        sys.stderr.write(f"{str(error).strip()}\n")
        sys.exit(2)


def _compose(arguments: Sequence[str], code: tuple[str, ...]) -> Invocation | None:
    """Return what the command line asks for; None if Hydra has answered it, for example ``--help``."""
    invocations: list[Invocation] = []
    sweep = is_sweep(arguments)

    @hydra.main(config_path=str(configuration_folder()), config_name=root_of(arguments), version_base="1.3")
    def application(config: DictConfig) -> None:
        # Handled inside, because Hydra would announce an error that leaves this function.
        with _exit_on(*_COMPLAINTS):
            found = _invocation(config, list(filter(is_setting, arguments)) if sweep else [])
            invocations.append(replace(found, code=code))

    before = sys.argv
    # Hydra takes its options before the settings or after them, but not among them.
    sys.argv = [sys.argv[0], *sorted(first_point(arguments) if sweep else arguments, key=_is_option)]
    try:
        application()
    finally:
        sys.argv = before
    return invocations[0] if invocations else None


def _is_option(word: str) -> bool:
    """Tell whether a word of the command line is an option, or the value of one."""
    return word.startswith("-") or not ("=" in word or word.startswith("~"))


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


def _invocation(config: DictConfig, sweep: Sequence[str]) -> Invocation:
    """Return what a composed configuration asks for; `sweep` has the settings of a sweep as they were written."""
    state = HydraConfig.get()
    catalogue = _catalogue(state.runtime.config_sources)
    values = plain(config)
    settings = CommonSettings.of(values)
    if not isinstance(values.get("executor"), dict):
        raise unknown("executor", catalogue.names("executor"), str(values.get("executor")))
    swept = swept_keys(sweep)
    if sweep:
        check_sweep(settings, swept)
    if settings.task == "study":
        return _study(values, settings, catalogue)
    composer = Composer(catalogue)
    written = points_of(sweep) if swept else [list(state.overrides.task)]
    # Whatever is found with these is not what the project declares.
    replaced = [
        f"{name.replace('/', '.')}={hashlib.sha256(path.read_bytes()).hexdigest()[:_DIGITS]}"
        for name, path in catalogue.replaced().items()
    ]
    return Invocation(
        settings=settings,
        executor=values["executor"],
        executor_name=str(state.runtime.choices["executor"]),
        figure=FigureChoice.of(values, str(state.runtime.choices["figure"]), catalogue),
        points=[_point(words, swept, composer, catalogue, replaced) for words in written],
        chosen=state.runtime.choices.get("experiment") is not None,
        catalogue=catalogue,
        profile=str(state.runtime.choices["profile"]),
        sweep=sweep_name(sweep) if swept else "",
    )


def _study(values: Mapping[str, Json], settings: CommonSettings, catalogue: Catalogue) -> Invocation:
    """Return what a study asks for: no experiment is part of it."""
    choices = HydraConfig.get().runtime.choices
    return Invocation(
        settings=settings,
        executor=cast("Mapping[str, Json]", values["executor"]),
        executor_name=str(choices["executor"]),
        figure=FigureChoice.of(values, str(choices["figure"]), catalogue),
        points=[Point({})],
        chosen=False,
        catalogue=catalogue,
        profile="study",
        study=values,
    )


def _point(
    words: Sequence[str], swept: Sequence[str], composer: Composer, catalogue: Catalogue, replaced: Sequence[str]
) -> Point:
    """Return the experiments with the settings `words`, and which of these change what they find.

    So do declarations of the project that the user has `replaced`.
    """
    text = {one.key_or_group: str(one.input_line).partition("=")[2] for one in parsed(words)}
    chosen = text.get("experiment", "null").strip("'\"")
    names = catalogue.names("experiment") if chosen == "null" else [chosen]
    rest = [word for word in words if not word.startswith("experiment=")]
    # A value of the profile is a setting of the experiments; the choice of another profile is not a change.
    shared = (*SHARED_KEYS, "experiment")
    altered = [key for key in text if key.startswith("profile.") or key.partition(".")[0] not in shared]
    return Point(
        experiments={name: composer.compose([*rest, f"experiment='{name}'"]) for name in names},
        altered=(*(f"{key}={text[key]}" for key in altered), *replaced),
        named=(*(f"{key}={text[key]}" for key in text if key in (*altered, "seed")), *replaced),
        swept={key: value_of(text[key]) for key in swept},
        folder=settings_name([f"{key}={text[key]}" for key in swept]) if swept else "",
    )


def _catalogue(sources: Sequence[ConfigSourceInfo]) -> Catalogue:
    """Return the declarations in the folders of the configuration; one given with --config-dir goes first."""
    folders = [source for source in sources if source.schema == "file"]
    folders.sort(key=lambda source: source.provider != "command-line")
    return Catalogue(tuple(Path(source.path) for source in folders))
