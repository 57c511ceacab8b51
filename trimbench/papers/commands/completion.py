"""What the Tab key completes in a shell: keys, and the names that a key takes."""

from __future__ import annotations

import itertools
import re
import shlex
import sys
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path

from trimbench.papers.commands.composition import GROUPS, root_of
from trimbench.papers.commands.invocation import SHARED_KEYS, TASKS, CommonSettings
from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.validation import ConfigurationError

OPTION = ("--shell-completion", "-sc")
# Bash takes "=" for the end of a word, so what stands before it is not part of a completion there; zsh does not.
_BASH = """\
_trimbench() {
    local line=${COMP_LINE:0:$COMP_POINT} word IFS=$'\\n'
    word=${line##* }
    COMPREPLY=($(@program@ --shell-completion "query=$line" 2>/dev/null))
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[*]} == *[=/] ]] && compopt -o nospace 2>/dev/null
    if [[ -z ${ZSH_VERSION-} && $word == *=* && $COMP_WORDBREAKS == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%%=*}="}")
    fi
}
"""
_COMPLETE = "_trimbench trimbench reproduce\n"
_FISH = """\
function __trimbench_complete
    @program@ --shell-completion "query="(commandline -cp | string collect) 2>/dev/null
end
complete -c trimbench -f -a "(__trimbench_complete)"
complete -c reproduce -f -a "(__trimbench_complete)"
"""
_SCRIPTS = {
    # Files, where there is nothing else, as after data=.
    "bash": f"{_BASH}complete -o default -F {_COMPLETE}",
    # Its own complete knows no compopt.
    "zsh": "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
    f"{_BASH}complete -o nospace -F {_COMPLETE}",
    "fish": _FISH,
}


def answer(words: Sequence[str]) -> str:
    """Return what the option is asked for: a shell's script (``install=bash``), or the completions of a line.

    Raises ConfigurationError if it is asked for something else.
    """
    asked = " ".join(words)
    if asked.startswith("query="):
        return "".join(f"{word}\n" for word in completions(asked.removeprefix("query=")))
    shell = asked.removeprefix("install=")
    if shell not in _SCRIPTS:
        raise ConfigurationError(
            f"{OPTION[0]} must be followed by install=bash, install=zsh or install=fish, got {asked!r}; then write "
            f'eval "$(trimbench {OPTION[0]} install=bash)"'
        )
    program = Path(sys.argv[0]).absolute()
    command = [sys.executable, "-m", "trimbench"] if program.suffix == ".py" else [str(program)]
    return _SCRIPTS[shell].replace("@program@", shlex.join(command))


def completions(line: str) -> list[str]:
    """Return the words that the last one of a command line can become."""
    *before, word = line.split(" ")
    pairs = itertools.pairwise(before)
    own = [Path(folder).absolute() for option, folder in pairs if option in ("--config-dir", "-cd")]
    catalogue = Catalogue((*own, configuration_folder()))
    key, equals, value = word.partition("=")
    given = dict(one.split("=", 1) for one in before if "=" in one)
    if not equals:
        known = _keys(before, given.get("experiment", ""), catalogue)
        return sorted(f"{one}=" for one in known if one.startswith(key))
    # In a list, or in a sweep, the last of several values is completed.
    last = re.split(r"[\[,]", value)[-1]
    earlier = value.removesuffix(last)
    return [f"{key}={earlier}{name}" for name in _names(key, given, catalogue) if name.startswith(last)]


def _keys(words: Sequence[str], experiment: str, catalogue: Catalogue) -> set[str]:
    """Return the keys that a command line may have: a study and each experiment have their own."""
    keys = {*SHARED_KEYS, "experiment"}
    if root_of(words) != "config":
        keys = {*SHARED_KEYS, *catalogue.keys("", root_of(words))}
    elif experiment in catalogue.names("experiment"):
        keys |= set(catalogue.keys("experiment", experiment))
    return keys - {"runner", "smoke_test", "defaults", "hydra"}


def _names(key: str, given: Mapping[str, str], catalogue: Catalogue) -> Sequence[str]:
    if key in GROUPS:
        return catalogue.names(key)
    if key in ("run", "runs"):
        folder = Path(given.get("results", "results"))
        return sorted(path.parent.name for path in folder.glob("*/run.json"))
    values = {
        "task": TASKS,
        "archive": ("false", "true"),
        "offline": ("false", "true"),
        "cache_mode": typing.get_args(typing.get_type_hints(CommonSettings)["cache_mode"]),
    }
    if key in values:
        return values[key]
    group = key.removesuffix("s")
    return catalogue.names(group) if group in ("dataset", "network", "protocol") else ()
