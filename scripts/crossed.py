"""Count the files of the package whose functions run on the way of a command, and the calls from file to file.

    .venv-test/bin/python scripts/crossed.py experiment=trimming/table6 'networks=[bupa]' 'thresholds=[0.5]'
    .venv-test/bin/python scripts/crossed.py experiment=conformant/figure3

What runs while modules are imported does not count. Jobs run in this process and nothing that is stored is used, unless
the words say otherwise. The words are those of the command trimbench.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

# The scripts beside this one are no packages: numba would take coverage.py for one.
sys.path[:] = [one for one in sys.path if Path(one).resolve() != Path(__file__).resolve().parent]

import trimbench  # noqa: E402
from trimbench.__main__ import main as command  # noqa: E402

_PACKAGE = f"{Path(trimbench.__file__).parent}/"


class Crossings:
    """Counts calls: of functions by file, and those that lead from one file of the package to another."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.steps: Counter[tuple[str, str]] = Counter()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Count a call, as `sys.setprofile` reports it."""
        file = frame.f_code.co_filename
        is_function = frame.f_code.co_flags & CO_OPTIMIZED
        if event != "call" or not file.startswith(_PACKAGE) or not is_function or _is_importing(frame):
            return
        self.files[file.removeprefix(_PACKAGE)] += 1
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(_PACKAGE):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != file:
            self.steps[caller.f_code.co_filename.removeprefix(_PACKAGE), file.removeprefix(_PACKAGE)] += 1


def _is_importing(frame: FrameType | None) -> bool:
    while frame := frame.f_back if frame else None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(_PACKAGE):
            return True
    return False


def crossings_of(words: Sequence[str]) -> Crossings:
    """Return what a command crosses. Its exit code is not looked at."""
    found, before = Crossings(), sys.argv
    sys.argv = ["trimbench", *words]
    threading.setprofile(found)
    sys.setprofile(found)
    try:
        command()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        sys.argv = before
    return found


def main(words: Sequence[str]) -> None:
    """Run a command, then print its files by calls, and how many there are."""
    with tempfile.TemporaryDirectory() as folder:
        found = crossings_of(["executor=serial", f"results={folder}", *words])
    for name, calls in found.files.most_common():
        print(f"{calls:10,}  {name}")
    print(f"{len(found.files)} files; {found.steps.total():,} calls from file to file, {len(found.steps)} pairs")


if __name__ == "__main__":
    main(sys.argv[1:])
