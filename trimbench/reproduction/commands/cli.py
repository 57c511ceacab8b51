"""The command line: one composed configuration, one task."""

from __future__ import annotations

import atexit
import hashlib
import itertools
import os
import re
import shlex
import string
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

import yaml
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException

from trimbench.reproduction.children import python
from trimbench.reproduction.commands.arguments import (
    GROUPS,
    CommandLine,
    Composer,
    Invocation,
    Point,
    check_settings,
    setting,
    value_text,
)
from trimbench.reproduction.commands.common_settings import SHARED_KEYS, CommonSettings, task_names
from trimbench.reproduction.configuration import NOT_SETTINGS, Catalogue, plain, without_value
from trimbench.reproduction.files import read_bytes, settings_name
from trimbench.reproduction.messages import ShortError, Shown, fitted
from trimbench.reproduction.project import DISTRIBUTION, loaded, project
from trimbench.reproduction.settings import ConfigurationError, Json, unknown, validated

_DIGITS = 8  # of the hash of a file


# The variables that a configuration may read.
def _readable() -> tuple[str, ...]:
    return tuple(filter(None, (project().cache_variable, "XDG_CACHE_HOME")))


_USAGE = """\
$TITLE

$COMMAND                                  run everything that can run here
$EXAMPLE  run one table or figure
$COMMAND task=list (or task=fetch)        what is stored (or download all data)
$COMMAND --help experiment=...            list its settings and further choices
$COMMAND -m experiment=... alpha=30,300   run it for each value of a setting
$COMMAND task=report (or task=plot)       write tables (or figures) again
$COMMAND task=compare runs=[a,b]          what differs between two runs
$COMMAND task=check against=published     what changed by more than noise
$COMMAND task=audit (or task=adopt)       check a run by sampling (or take it)
$COMMAND task=verdict reported=a values=b  judge numbers from elsewhere$FURTHER
$SETTINGS
Options: --cfg job, --config-dir, --project, --allow-code, --shell-completion.
"""
_COLUMN = 24  # of the help, where the description of a setting begins
_DEEP = ("executor", "figure")  # groups whose own settings are described with the others
# How the description of a setting refers to its choices: the keys of another setting (or, as `conf/<group>`, names).
_NAMES = re.compile(r"names in (\w+)")
# What composing raises; some of Hydra's own complaints are plain ValueErrors.
_COMPLAINTS = (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError)


def main(understood: Callable[[], object] = lambda: None) -> None:
    """Run the command line. A mistake in the configuration ends it with exit code 2.

    `understood` is called before the command does anything, once its configuration is composed.
    """
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast("tuple[TextIO, TextIO]", tuple(map(Shown, streams)))
    try:
        _main(understood)
    finally:
        sys.stdout, sys.stderr = streams


def _main(understood: Callable[[], object]) -> None:
    _settle()
    OmegaConf.register_new_resolver("oc.env", _variable, replace=True)
    try:
        with _exit_on(*_COMPLAINTS):
            line = CommandLine.of(sys.argv[1:])
            if line.options.version:
                from trimbench.reproduction.execution.provenance import own_version

                sys.stdout.write(f"{DISTRIBUTION} {own_version()}\n")
                return
            if line.options.shell_completion:
                sys.stdout.write(answer(line.options.overrides))
                return
            invocation = _compose(line)
        understood()
        code = _run(invocation) if invocation else 0
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"{error}\nStored results are intact. Fix this, then run the same command again.\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. Finished jobs are stored; run the same command again to continue.\n")
        sys.exit(130)
    if code:
        sys.exit(code)


def _settle() -> None:
    """Make sure that there is a current folder, a home, and a way to draw without a display."""
    try:
        Path.cwd()
    except OSError as error:  # it was removed, or its disk unmounted
        sys.exit(f"the current folder cannot be used: {error.strerror}; change to another, then run the command again")
    # The backend of a notebook is of no use here, and may not be installed.
    os.environ["MPLBACKEND"] = "agg"
    try:
        Path.home()
    except RuntimeError:  # no HOME, and no entry in passwd
        from trimbench.reproduction.files import make_temporary_folder, remove_temporary_folder

        home = make_temporary_folder()
        atexit.register(remove_temporary_folder, home)
        os.environ["HOME"] = str(home)
        sys.stderr.write("There is no home folder, so nothing is kept there; set HOME to keep what is downloaded.\n")


def _variable(name: str, *default: str | None) -> str | None:
    """Return what ``${oc.env:name}`` stands for: only those of the cache, as others may hold secrets."""
    if name not in _readable():
        raise ConfigurationError(
            f"a configuration may read the environment variables {' and '.join(_readable())}, got {name!r}; write the "
            "value itself, or give it on the command line"
        )
    if name not in os.environ and not default:
        raise ConfigurationError(f"the environment variable {name!r} must be set; the configuration reads it")
    return os.environ.get(name, *default)


@contextmanager
def _exit_on(*errors: type[Exception]) -> Iterator[None]:
    try:
        yield
    except errors as found:
        error = without_value(found) if isinstance(found, InterpolationResolutionError) else found
        sys.stderr.write(f"{fitted(str(error).strip())}\n")
        sys.exit(2)


def _compose(line: CommandLine) -> Invocation | None:
    """Return what the command line asks for; None if it only shows something, as ``--help`` does."""
    own = [Path(line.options.config_dir)] if line.options.config_dir else []
    composer = Composer(Catalogue(tuple(own)), line.root)
    check_settings(line, composer)
    if line.options.help or line.task == "describe":
        sys.stdout.write(help_text(composer, line.points[0]))
        return None
    if line.options.cfg:
        config, _ = composer.chosen(line.points[0])
        sys.stdout.write(OmegaConf.to_yaml(config, resolve=line.options.resolve))
        return None
    return _invocation(line, composer)


def help_text(composer: Composer, overrides: Sequence[Override]) -> str:
    """Return the help: all commands and their choices or, for an experiment or a task of the project, its settings."""
    catalogue, given = composer.catalogue, [one for one in overrides if one.key_or_group != "task"]
    groups = [one for one in given if one.key_or_group in GROUPS]
    chosen = next((str(one.value()) for one in groups if one.key_or_group == "experiment"), "")
    if chosen or composer.root != "config":
        about = f"{chosen}: {catalogue.about('experiment', chosen)}" if chosen else catalogue.about("", composer.root)
        return f"{fitted(about)}\n\n{_described(composer, given, groups, chosen)}\n"
    families = itertools.groupby(catalogue.names("experiment"), lambda name: name.rpartition("/")[0])
    choices = [(f"experiment={one}/", [name.rpartition("/")[2] for name in names]) for one, names in families]
    executors, profiles = (catalogue.names(group) for group in ("executor", "profile"))
    # On one line, so that the help fits a screen.
    choices.append(("executor=", [", ".join(executors) + ("; profile=" + ", ".join(profiles) if profiles else "")]))
    lines = "\n".join(fitted(f"  {word:<{_COLUMN}} {', '.join(names)}", 6) for word, names in choices)
    ours = project()
    width = len(ours.command) + _COLUMN + 8  # where the descriptions begin
    further = "".join(f"\n{line}" for line in ours.usage)
    example = f"{f'{ours.command} {ours.example}':<{width}}"
    return string.Template(_USAGE).substitute(
        TITLE=ours.title, COMMAND=ours.command, EXAMPLE=example, FURTHER=further, SETTINGS=lines
    )


def _described(composer: Composer, given: Sequence[Override], groups: Sequence[Override], chosen: str) -> str:
    """Describe the settings of an experiment or a task, and of every command: value, meaning, choices, default."""
    catalogue, values = composer.catalogue, _flat(composer, given)
    defaults = _flat(composer, groups) | {key: value for key, value in _flat(composer, []).items() if key in GROUPS}
    comments = catalogue.comments("", "config") | catalogue.comments("", composer.root)
    comments |= catalogue.comments("experiment", chosen) if chosen else {}
    for group in _DEEP:
        comments |= {f"{group}.{key}": text for key, text in catalogue.comments(group, str(values.get(group))).items()}
    lines: tuple[list[str], list[str]] = ([], [])
    for key, value in values.items():
        meaning = comments.get(key, "")
        known = [values[other] for other in _NAMES.findall(meaning)]
        names = sorted({*itertools.chain(*known, catalogue.choices(meaning))})
        said = [meaning, f"choices: {_value(names)[1:-1]}" if names else ""]
        said += [f"default: {_value(defaults[key])}" if value != defaults.get(key, value) else ""]
        word = fitted(f"  {key}={_value(value)}", 6)
        start = f"{word:<{_COLUMN + 2}}" if len(word) <= _COLUMN + 2 else f"{word}\n{'':{_COLUMN + 2}}"
        line = fitted(f"{start} {'; '.join(filter(None, said))}", _COLUMN + 3)
        lines[key.partition(".")[0] in SHARED_KEYS].append(line)
    parts = ["Settings (written key=value; a list as 'key=[a,b]')", *lines[0]], ["Settings of every command", *lines[1]]
    return "\n\n".join("\n".join(part) for part in parts)


def _flat(composer: Composer, overrides: Sequence[Override]) -> dict[str, Any]:
    """Return the settings by key: for a group, its choice, and for those in `_DEEP`, also what is in it."""
    config, choices = composer.chosen(overrides)
    found: dict[str, Any] = {}
    for key, value in plain(config).items():
        if key not in (*NOT_SETTINGS, "experiment"):
            found[key] = choices[key] if key in GROUPS else value
        if key in _DEEP:
            found |= {f"{key}.{part}": one for part, one in value.items() if part != "_target_"}
    return found


def _value(value: Json) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n...\n").strip()


def _run(invocation: Invocation) -> int:
    # These load numpy and pandas, which `--help` does without.
    from trimbench.reproduction.commands.tasks import PERFORM
    from trimbench.reproduction.execution.executors import ExecutorError

    task = invocation.settings.task
    perform = PERFORM.get(task) or loaded(project().tasks[task])
    try:
        with _exit_on(ShortError):
            return int(perform(invocation))
    except ExecutorError as error:
        sys.stderr.write(f"executor={invocation.executor_name}: {error}\n")
        return 1


def _invocation(line: CommandLine, composer: Composer) -> Invocation:
    # This loads NumPy, which `--help` does without.
    from trimbench.reproduction.reporting.figures.settings import FigureSettings

    catalogue, first, is_sweep = composer.catalogue, line.points[0], bool(line.options.multirun)
    config, choices = composer.chosen(first)
    values = plain(config)
    settings = CommonSettings.of(values)
    for group in ("executor", "figure"):
        if not isinstance(values.get(group), dict):
            raise unknown(group, catalogue.names(group), str(values.get(group)))
    if is_sweep:
        check_sweep(settings, line.swept)
    has_own_keys = settings.task in project().tasks  # no experiment is part of it
    # With these, an experiment is not the one that the project declares.
    replaced = [
        f"{name.replace('/', '.')}={hashlib.sha256(read_bytes(path)).hexdigest()[:_DIGITS]}"
        for name, path in catalogue.replaced().items()
    ]
    keys = {one.key_or_group: value_text(one) for one in first}
    drawn = [f"{key.removeprefix('figure.')}={text}" for key, text in keys.items() if key.startswith("figure.")]
    points = [_point(point, line.swept, composer, replaced) for point in ([] if has_own_keys else line.points)]
    return Invocation(
        settings=settings,
        executor=values["executor"],
        executor_name=str(choices["executor"]),
        figure=validated(FigureSettings, values["figure"], "figure"),
        figure_name=settings_name([str(choices["figure"]), *drawn]),
        points=points or [Point({})],
        chosen="experiment" in keys,
        catalogue=catalogue,
        profile=settings.task if has_own_keys else str(choices["profile"]),
        sweep=sweep_name(line.written) if is_sweep else "",
        code=tuple(line.options.allow_code),
        values=values if has_own_keys else {},
    )


def _point(overrides: Sequence[Override], swept: Sequence[str], composer: Composer, replaced: Sequence[str]) -> Point:
    """Return the experiments with these settings, and which of the settings change what they find.

    The declarations that the user has `replaced`, and a profile of the user's own, are among the latter.
    """
    by_key, catalogue = {one.key_or_group: one for one in overrides}, composer.catalogue
    chosen = by_key["experiment"].value() if "experiment" in by_key else None
    names = catalogue.names("experiment") if chosen is None else [str(chosen)]
    rest = [one for one in overrides if one.key_or_group != "experiment"]
    text = {one.key_or_group: f"{one.key_or_group}={value_text(one)}" for one in overrides}
    experiments = {name: composer.compose([*rest, setting("experiment", name)]) for name in names}
    named = [key for key in text if _matters(key) and key != "experiment"]
    if not swept:  # the points of a sweep are told apart by what was written
        named = [key for key in named if _changes(key, rest, experiments, composer)]
    altered = [key for key in named if key != "seed"]
    # A value in the profile is a setting of the experiments; choosing another of the project's profiles changes none.
    if "profile" in by_key and by_key["profile"].value() not in Catalogue().names("profile"):
        altered.append("profile")
    for one in experiments.values():
        CommonSettings.of(one)  # refuses a seed of any point of a sweep before the first one runs
    return Point(
        experiments=experiments,
        altered=(*(text[key] for key in altered), *replaced),
        named=(*(text[key] for key in named), *replaced),
        swept={key: value_of(by_key[key]) for key in swept},
    )


def _changes(
    key: str, overrides: Sequence[Override], found: Mapping[str, Mapping[str, Json]], composer: Composer
) -> bool:
    """Tell whether an experiment's configuration would differ without a setting, which may say what the files say."""
    others = [one for one in overrides if one.key_or_group != key]
    if any(one.type is not OverrideType.CHANGE for one in overrides):  # one may add the key that another changes
        return True
    return any(composer.compose([*others, setting("experiment", name)]) != values for name, values in found.items())


# The points of a sweep (``-m``): every combination of the values that the command line separates by commas.


def value_of(one: Override) -> Json:
    """Return a swept value as Hydra reads it: the item of a list of one, and any other list as it was written."""
    value: Any = one.value()
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str | int | float) else value_text(one)


def check_sweep(settings: CommonSettings, swept: Sequence[str]) -> None:
    """Raise ConfigurationError unless a sweep has several values of settings that it may vary, and runs or reports.

    A run has one profile, but its values can be swept.
    """
    if settings.task not in ("run", "report"):
        raise ConfigurationError(
            f"task must be run or report in a sweep, got {settings.task!r}; give each setting one value, without -m"
        )
    if not swept:
        raise ConfigurationError(
            "a sweep (-m) must have a setting with several values; write for example alpha=30,300 "
            "or, for a setting that is a list, 'thresholds=[0.3],[0.7]'"
        )
    for key in swept:
        if not _matters(key):
            raise ConfigurationError(
                f"a sweep must go over experiments, their settings or seed, got {key}; give {key} one value"
            )


def sweep_name(settings: Sequence[Override]) -> str:
    """Return the name of a sweep's folder: the experiments, what is swept, and the other settings if there is room."""
    names: list[str] = []
    for one in sorted(settings, key=lambda one: not one.is_sweep_override()):
        key, text = one.key_or_group, value_text(one)
        if key == "experiment":
            names.insert(0, f"[{text.replace('/', '_')}]")
        elif _matters(key):
            # Values are separated by commas, like the items of a list.
            names.append(f"{key}={text}" if text.startswith(("[", "range(")) else f"{key}=[{text}]")
    return settings_name(names)


def _matters(key: str) -> bool:
    """Tell whether the value of a key, such as the choice of the experiment, can change what is found."""
    return key == "seed" or key.startswith("profile.") or key.partition(".")[0] not in SHARED_KEYS


# What the Tab key completes in a shell: keys, and the names that a key takes.

_COMPLETION = "--shell-completion"
# Bash ends a word at "=", so a completion must not repeat what comes before it; in zsh it must.
_BASH = """\
_@name@() {
    local line=${COMP_LINE:0:$COMP_POINT} word IFS=$'\\n'
    word=${line##* }
    COMPREPLY=($(@program@ --shell-completion "query=$line" 2>/dev/null))
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[*]} == *[=/] ]] && compopt -o nospace 2>/dev/null
    if [[ -z ${ZSH_VERSION-} && $word == *=* && $COMP_WORDBREAKS == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%%=*}="}")
    fi
}
"""
_COMPLETE = "_@name@ @name@ reproduce\n"
_FISH = """\
function __@name@_complete
    @program@ --shell-completion "query="(commandline -cp | string collect) 2>/dev/null
end
complete -c @name@ -f -a "(__@name@_complete)"
complete -c reproduce -f -a "(__@name@_complete)"
"""
_SCRIPTS = {
    # Files, where there is nothing else, as after data=.
    "bash": f"{_BASH}complete -o default -F {_COMPLETE}",
    # Its emulation of Bash has no compopt.
    "zsh": "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
    f"{_BASH}complete -o nospace -F {_COMPLETE}",
    "fish": _FISH,
}


def answer(words: Sequence[str]) -> str:
    """Return what ``--shell-completion`` prints: the script for a shell (``install=bash``) or completions of a line.

    Raises ConfigurationError for anything else.
    """
    asked = " ".join(words)
    if asked.startswith("query="):
        return "".join(f"{word}\n" for word in completions(asked.removeprefix("query=")))
    shell = asked.removeprefix("install=")
    if shell not in _SCRIPTS:
        raise ConfigurationError(
            f"{_COMPLETION} must be followed by install=bash, install=zsh or install=fish, got {asked!r}; then write "
            f'eval "$({project().command} {_COMPLETION} install=bash)"'
        )
    program = Path(sys.argv[0]).absolute()
    command = python("-m", DISTRIBUTION) if program.suffix == ".py" else [str(program)]
    return _SCRIPTS[shell].replace("@program@", shlex.join(command)).replace("@name@", DISTRIBUTION)


def completions(line: str) -> list[str]:
    """Return the words to which the last word of a command line can be completed."""
    *before, word = line.split(" ")
    pairs = itertools.pairwise(before)
    own = [Path(folder).absolute() for option, folder in pairs if option in ("--config-dir", "-cd")]
    catalogue = Catalogue(tuple(own))
    key, equals, value = word.partition("=")
    given = dict(one.split("=", 1) for one in before if "=" in one)
    if equals:  # in a list, or in a sweep, the last of several values is completed
        last = re.split(r"[\[,]", value)[-1]
        earlier = value.removesuffix(last)
        return [f"{key}={earlier}{name}" for name in _values(key, given, catalogue) if name.startswith(last)]
    # Each experiment, and a task of the project, has keys of its own.
    known, experiment = {*SHARED_KEYS, "experiment"}, given.get("experiment", "")
    if (task := given.get("task", "")) in project().tasks:
        known = {*SHARED_KEYS, *catalogue.keys("", task)}
    elif experiment in catalogue.names("experiment"):
        known |= {*catalogue.keys("experiment", experiment)}
    return sorted(f"{one}=" for one in known - {*NOT_SETTINGS, "defaults", "hydra"} if one.startswith(key))


def _values(key: str, given: Mapping[str, str], catalogue: Catalogue) -> Sequence[str]:
    if key in ("run", "runs"):
        return sorted(path.parent.name for path in Path(given.get("results", "results")).glob("*/run.json"))
    if key in GROUPS:
        return catalogue.names(key)
    if key == "task":
        return task_names()
    kind = typing.get_type_hints(CommonSettings).get(key)
    if bool in (kind, *typing.get_args(kind)):
        return ("false", "true")
    while typing.get_origin(kind) in (list, types.UnionType):
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) is typing.Literal:
        return typing.get_args(kind)
    experiment = given.get("experiment", "")
    known = catalogue.comments("experiment", experiment) if experiment in catalogue.names("experiment") else {}
    return catalogue.choices(known.get(key, ""))
