"""The command line: one composed configuration, one task."""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import hydra
import yaml
from hydra.conf import ConfigSourceInfo
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override, ValueType
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from trimbench.papers.commands import arguments as commands_arguments
from trimbench.papers.commands.arguments import (
    Composer,
    check_arguments,
    limit_environment,
    parsed,
    root_of,
    split_allowed_code,
    with_columns,
)
from trimbench.papers.commands.invocation import SHARED_KEYS, CommonSettings, FigureChoice, Invocation, Point
from trimbench.papers.configuration import Catalogue, configuration_folder, plain
from trimbench.papers.files import settings_name
from trimbench.papers.validation import ConfigurationError, Json, unknown

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
            from trimbench.papers.execution.store import own_version

            sys.stdout.write(f"trimbench {own_version()}\n")
            return
        limit_environment()
        with _exit_on(*_COMPLAINTS):
            if sys.argv[1:2] and sys.argv[1] in commands_arguments.OPTION:
                sys.stdout.write(commands_arguments.answer(sys.argv[2:]))
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
    from trimbench.papers.execution.workers import ExecutorError
    from trimbench.papers.validation import DataUnavailable, DeclarationError, FactsMismatch

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


# The points of a sweep (``-m``): every combination of the values that the command line separates by commas.

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
