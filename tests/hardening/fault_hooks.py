"""Faults of the surroundings, planted in a process: a kill, a full or failing disk, a clock that steps."""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

KINDS = ("kill", "full", "cut", "error", "clock")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass
class Fault:
    """What happens at the `at`-th change of a file below `folder`.

    "kill" ends the process, "full" refuses this and all later writes, "cut" too but after half of the bytes, "error"
    refuses this one, and "clock" moves the time by `step` seconds. Any other kind does nothing but count. The file
    `tally` gets a byte for each change, so that those of processes that are started afresh can be counted.
    """

    folder: Path
    kind: str = ""
    at: int = 0
    step: float = 0.0
    count: int = 0
    tally: Path | None = None

    def change(self, path: object, content: Any = b"") -> Any:
        """Count a change of a file, and fail if it is its turn; return what is then written of `content`."""
        if not self._is_here(path):
            return content
        self.count += 1
        if self.tally:
            with _OPEN(self.tally, "ab") as file:
                file.write(b".")
        late = self.count > self.at and self.kind in ("full", "cut")
        if self.count != self.at and not late:
            return content
        match self.kind:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "cut" if not late and len(content) > 1:
                return content[: len(content) // 2]
            case "full" | "cut":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            case "error":
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            case "clock":
                now = time.time
                time.time = lambda: now() + self.step
        return content

    def _is_here(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike) and Path(os.path.abspath(path)).is_relative_to(self.folder)  # type: ignore[type-var]  # noqa: PTH100

    def plant(self) -> None:
        """Take the place of the functions that change files, in this process until it ends."""
        io.open = builtins.open = self._open  # type: ignore[assignment]
        os.open = _when(lambda _, flags, *__: flags & _WRITING, self, os.open)
        for name in ("replace", "rename", "mkdir", "symlink"):
            setattr(os, name, _when(lambda *_: True, self, getattr(os, name)))

    def plant_in_workers(self) -> None:
        """Let each worker process that this one starts from now on plant the faults, before its first job."""
        from trimbench.reproduction.execution import processes

        processes._prepare = partial(_prepare_with, self)

    def _open(self, file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+") or not self._is_here(file):
            return _OPEN(file, mode, *arguments, **options)
        self.change(file)
        raw = _File(self, file, mode.replace("b", "").replace("t", ""))
        binary = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return binary
        names = ("buffering", "encoding", "errors", "newline")
        given = dict(zip(names, arguments, strict=False)) | options
        return io.TextIOWrapper(binary, **{name: given.get(name) for name in names[1:]})


def _prepare_with(fault: Fault, *shared: Any) -> None:
    from trimbench.reproduction.execution import processes

    processes._prepare(*shared)  # of the worker, where nothing is in its place
    fault.plant()


_OPEN = io.open


class _File(io.FileIO):
    def __init__(self, fault: Fault, path: Any, mode: str) -> None:
        super().__init__(path, mode)
        self._fault, self._path = fault, path

    def write(self, content: Any) -> int:
        return super().write(self._fault.change(self._path, bytes(content)))


def _when(is_change: Callable[..., Any], fault: Fault, function: Callable[..., Any]) -> Callable[..., Any]:
    def changed(path: Any, *arguments: Any, **options: Any) -> Any:
        if is_change(path, *arguments, 0):
            fault.change(path)
        return function(path, *arguments, **options)

    return changed
