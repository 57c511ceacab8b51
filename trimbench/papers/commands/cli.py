"""The command line: one composed configuration, one task."""

from __future__ import annotations

import atexit
import hashlib
import io
import itertools
import os
import shutil
import string
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra.conf import ConfigSourceInfo
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from trimbench.papers.commands.arguments import (
    GROUPS,
    CommandLine,
    Composer,
    answer,
    check_settings,
    limit_environment,
    setting,
    value_text,
)
from trimbench.papers.commands.invocation import SHARED_KEYS, CommonSettings, FigureChoice, Invocation, Point
from trimbench.papers.configuration import NOT_SETTINGS, Catalogue, configuration_folder
from trimbench.papers.files import settings_name
from trimbench.papers.validation import ConfigurationError, Json, unknown

# What composing raises; some of Hydra's own complaints are plain ValueErrors.
_DIGITS = 8  # of the hash of a file
_LONGEST, _COLUMN = 30, 24  # of a value in the help, and where its meaning begins
_COMPLAINTS = (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError)


def main(understood: Callable[[], object] = lambda: None) -> None:
    """Run the command line. A mistake in the configuration ends it with exit code 2.

    `understood` is called before the command does anything, once its configuration is composed.
    """
    # With this, Hydra raises its errors instead of printing them.
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")
    _settle()
    try:
        limit_environment()
        with _exit_on(*_COMPLAINTS):
            line = CommandLine.of(sys.argv[1:])
            if line.options.version:
                from trimbench.papers.execution.store import own_version

                sys.stdout.write(f"trimbench {own_version()}\n")
                return
            if line.options.shell_completion:
                sys.stdout.write(answer(line.options.overrides))
                return
            invocation = _compose(line)
        understood()
        code = _run(invocation) if invocation else 0
        sys.stdout.flush()
    except BrokenPipeError:  # as in `trimbench task=list | head`
        for descriptor in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        sys.exit(1)
    except OSError as error:
        sys.stderr.write(f"{error}\nStored results are intact. Fix this, then run the same command again.\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. Finished jobs are stored; run the same command again to continue.\n")
        sys.exit(130)
    if code:
        sys.exit(code)


def _settle() -> None:
    """Make up for what is absent or odd around the program: streams, their encoding, a folder, a home, a display."""
    # What is opened next would take the place of a closed stream, and get what is meant for that.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        Path.cwd()
    except OSError as error:  # as it was removed, or its disk unmounted
        sys.exit(f"the current folder cannot be used: {error.strerror}; change to another, then run the command again")
    # That of a notebook is of no use here, and may be absent.
    os.environ["MPLBACKEND"] = "agg"
    try:
        Path.home()
    except RuntimeError:  # no HOME, and no entry in passwd
        from trimbench.papers.files import make_temporary_folder, remove_temporary_folder

        home = make_temporary_folder()
        atexit.register(remove_temporary_folder, home)
        os.environ["HOME"] = str(home)
        sys.stderr.write("There is no home folder, so nothing is kept there; set HOME to keep what is downloaded.\n")


@contextmanager
def _exit_on(*errors: type[Exception]) -> Iterator[None]:
    """End the program with exit code 2 and the error's message."""
    try:
        yield
    except errors as error:
        sys.stderr.write(f"{str(error).strip()}\n")
        sys.exit(2)


def _compose(line: CommandLine) -> Invocation | None:
    """Return what the command line asks for; None if it asks to be shown something, as ``--help`` does."""
    own = [line.own_folder] if line.own_folder else []
    composer = Composer(Catalogue((*own, configuration_folder())), line.root)
    check_settings(line, composer)
    described = any(one.key_or_group == "task" and one.value() == "describe" for one in line.first)
    if (line.options.help or described) and not line.options.resolve:
        sys.stdout.write(help_text(composer, line.first))
        return None
    if not line.is_for_hydra:
        return _invocation(line, composer)
    invocations: list[Invocation] = []

    @hydra.main(config_path=str(configuration_folder()), config_name=line.root, version_base="1.3")
    def application(_: DictConfig) -> None:
        # Handled inside, because Hydra would announce an error that leaves this function.
        with _exit_on(*_COMPLAINTS):
            catalogue = _catalogue(HydraConfig.get().runtime.config_sources)
            composer = Composer(catalogue, line.options.config_name or line.root)
            invocations.append(_invocation(line, composer))

    before = sys.argv
    sys.argv = [sys.argv[0], *line.words]
    try:
        application()
    finally:
        sys.argv = before
    return invocations[0] if invocations else None


def help_text(composer: Composer, overrides: Sequence[Override]) -> str:
    """Return the help of a command: what it can be, and its choices; of an experiment or a study, its settings."""
    catalogue, config = composer.catalogue, composer.config(overrides)
    template = composer.composed([one for one in overrides if one.key_or_group in GROUPS])[1]["help"]["template"]
    chosen = next((str(one.value()) for one in overrides if one.key_or_group == "experiment"), "")
    families = itertools.groupby(catalogue.names("experiment"), lambda name: name.rpartition("/")[0])
    choices = [
        (f"experiment={family}/", ", ".join(name.rpartition("/")[2] for name in own)) for family, own in families
    ]
    choices += [(f"{group}=", ", ".join(catalogue.names(group))) for group in GROUPS if group != "experiment"]
    comments = catalogue.comments("", composer.root)
    if not chosen and composer.root == "config":
        return f"{string.Template(template).substitute(SETTINGS=_listed(choices, 6))}\n"
    if chosen:
        comments |= catalogue.comments("experiment", chosen)
    values: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    of_all = sorted((key for key in values if key not in (*NOT_SETTINGS, *GROUPS)), key=lambda key: key in SHARED_KEYS)
    lines = [(f"{key}={_value(values[key])}", comments.get(key, "")) for key in of_all]
    about = f"{chosen}: {catalogue.about('experiment', chosen)}" if chosen else "A study of your own table."
    return f"{about}\n\nSettings, with their values\n{_listed(lines)}\nChoices\n{_listed(choices[-3:])}\n"


def _value(value: object) -> str:
    """Return a value as a command line would have it, or its beginning."""
    text = (
        yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True).removesuffix("\n...\n").strip()
    )
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _listed(pairs: Sequence[tuple[str, str]], indent: int = _COLUMN + 3) -> str:
    """Return words with what is said of them, in lines that fit the terminal."""
    width = max(shutil.get_terminal_size().columns, 40) - 1
    lines = []
    for word, meaning in pairs:
        first = f"  {word:<{_COLUMN}} "
        lines += textwrap.wrap(first + meaning, width, subsequent_indent=" " * indent, break_on_hyphens=False)
    return "".join(f"{line}\n" for line in lines)


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


def _invocation(line: CommandLine, composer: Composer) -> Invocation:
    """Return what a command line asks for."""
    catalogue, first = composer.catalogue, line.points[0]
    values, choices = composer.compose(first), composer.choices(first)
    settings = CommonSettings.of(values)
    if not isinstance(values.get("executor"), dict):
        raise unknown("executor", catalogue.names("executor"), str(values.get("executor")))
    is_sweep = bool(line.options.multirun)
    if is_sweep:
        check_sweep(settings, line.swept)
    is_study = settings.task == "study"  # no experiment is part of it
    # Whatever is found with these is not what the project declares.
    replaced = [
        f"{name.replace('/', '.')}={hashlib.sha256(path.read_bytes()).hexdigest()[:_DIGITS]}"
        for name, path in catalogue.replaced().items()
    ]
    points = [_point(point, line.swept, composer, replaced) for point in ([] if is_study else line.points)]
    return Invocation(
        settings=settings,
        executor=values["executor"],
        executor_name=str(choices["executor"]),
        figure=FigureChoice.of(values, str(choices["figure"]), catalogue),
        points=points or [Point({})],
        chosen=any(one.key_or_group == "experiment" for one in first),
        catalogue=catalogue,
        profile="study" if is_study else str(choices["profile"]),
        sweep=sweep_name(line.written) if is_sweep else "",
        code=tuple(line.options.allow_code),
        study=values if is_study else {},
    )


def _point(
    overrides: Sequence[Override],
    swept: Sequence[str],
    composer: Composer,
    replaced: Sequence[str],
) -> Point:
    """Return the experiments with these settings, and which of the settings change what they find.

    So do declarations of the project that the user has `replaced`, and a profile of the user.
    """
    by_key, catalogue = {one.key_or_group: one for one in overrides}, composer.catalogue
    text = {key: value_text(one) for key, one in by_key.items()}
    chosen = by_key["experiment"].value() if "experiment" in by_key else None
    names = catalogue.names("experiment") if chosen is None else [str(chosen)]
    rest = [one for one in overrides if one.key_or_group != "experiment"]
    # A value of the profile is a setting of the experiments; the choice of another of the project's is not a change.
    shared = (*SHARED_KEYS, "experiment")
    altered = [key for key in text if key.startswith("profile.") or key.partition(".")[0] not in shared]
    if "profile" in by_key and by_key["profile"].value() not in Catalogue(catalogue.folders[-1:]).names("profile"):
        altered.append("profile")
    return Point(
        experiments={name: composer.compose([*rest, setting("experiment", name)]) for name in names},
        altered=(*(f"{key}={text[key]}" for key in altered), *replaced),
        named=(*(f"{key}={text[key]}" for key in text if key in (*altered, "seed") and key != "profile"), *replaced),
        swept={key: value_of(by_key[key]) for key in swept},
        folder=settings_name([f"{key}={text[key]}" for key in swept]) if swept else "",
    )


def _catalogue(sources: Sequence[ConfigSourceInfo]) -> Catalogue:
    """Return the declarations in the folders of the configuration; that of the root goes last."""
    folders = [source for source in sources if source.schema == "file"]
    folders.sort(key=lambda source: source.provider == "main")
    return Catalogue(tuple(Path(source.path) for source in folders))


# The points of a sweep (``-m``): every combination of the values that the command line separates by commas.


def value_of(one: Override) -> Json:
    """Return a swept value as Hydra reads it; of a list of one its item, any other list as it was written."""
    value: Any = one.value()
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str | int | float) else value_text(one)


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


def sweep_name(settings: Sequence[Override]) -> str:
    """Return the name of a sweep's folder: the experiments, and all settings that matter to its points."""
    # Values are separated by commas, like the items of a list.
    texts = {one.key_or_group: value_text(one) for one in settings if not one.is_hydra_override()}
    experiments = [f"[{text.replace('/', '_')}]" for key, text in texts.items() if key == "experiment"]
    rest = [f"{key}={_as_list(text)}" for key, text in texts.items() if key != "experiment" and _matters(key)]
    return settings_name([*experiments, *rest])


def _matters(key: str) -> bool:
    return key == "seed" or key.startswith("profile.") or key.partition(".")[0] not in SHARED_KEYS


def _as_list(text: str) -> str:
    return text if text.startswith(("[", "range(")) else f"[{text}]"
