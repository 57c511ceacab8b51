"""A simulated machine: programs that take turns as a seed decides, a disk that loses what was not flushed, a clock."""

from __future__ import annotations

import contextlib
import contextvars
import errno
import io
import os
import random
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import trimbench.reproduction
from trimbench.reproduction.world import World, living_in

_PACKAGE = str(Path(trimbench.reproduction.__file__).parent)
# What happens at a step of a program: it is killed, the power fails, the disk is full from then on, the step fails, the
# time of day jumps, and a file of the store loses a part of what was written without a word. An "edit", which only runs
# survive, cuts off the last bytes of the files that say which profile a run has.
KINDS = ("kill", "power", "full", "error", "clock", "torn")
_TAKES_NO_ROOM = ("unlink", "remove_folder", "rename", "lock", "flush", "work")
_START, _TICK = 1.7e9, 1e-3


class Killed(BaseException):
    """The program has ended, here and now: nothing that it does from now on has an effect."""


Place = tuple[str, int, int]


@dataclass
class Fault:
    """What goes wrong at the `at`-th step of a program, or as soon after it as it can.

    With `places`, each a file of the package with a first and a last line, it waits for a step that comes from one.
    """

    kind: str
    at: int
    step: float = 0.0
    places: Sequence[Place] = ()
    done: bool = False

    def __str__(self) -> str:
        return f"{self.kind} at {' or '.join(f'{file}:{line}' for file, line, _ in self.places) or f'step {self.at}'}"


class Machine:
    """A machine with a folder, where everything follows from a random generator.

    Reading goes to the folder, which stands for what programs see. What `dirty` files, by inode, contain is lost or
    torn in a power cut unless it was flushed; names of files survive it, in order.
    """

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.time, self.elapsed = _START, 0.0
        self.dirty: dict[int, Path] = {}
        self.programs: list[Program] = []
        self.hit: set[tuple[str, int]] = set()
        self._tokens = 0

    def program(self, *faults: Fault) -> Program:
        """Return a program that has not started yet."""
        return Program(self, faults)

    def run(self, *bodies: tuple[Program, Callable[[], Any]]) -> list[Any]:
        """Run programs at once, one step of one of them at a time, and return what each returns or raises."""
        self.programs = [program for program, _ in bodies]
        ends: list[Any] = [None] * len(bodies)

        def live(at: int, program: Program, body: Callable[[], Any]) -> None:
            with living_in(program):
                try:
                    ends[at] = body()
                except (Exception, Killed) as error:  # noqa: BLE001  (the end of a program)
                    ends[at] = error
                program.end()

        if len(bodies) == 1:
            live(0, *bodies[0])
            return ends
        threads = [_thread(live, at, *body) for at, body in enumerate(bodies)]
        for thread in threads:
            thread.start()
        self.rng.choice(self.programs).go.release()
        for thread in threads:
            thread.join()
        return ends

    def other(self, than: Program) -> Program | None:
        """Return the program that goes on; None if it is this one, or nobody is left."""
        able = [one for one in self.programs if not one.ended and not one.waiting]
        if not able:
            if any(not one.ended for one in self.programs):
                raise RuntimeError("each program waits for another")
            return None
        chosen = self.rng.choice(able)
        return None if chosen is than else chosen

    def freed(self) -> None:
        """Let programs look again whether a lock is free."""
        for one in self.programs:
            one.waiting = False

    def tick(self) -> None:
        """Let time pass."""
        self.time += _TICK
        self.elapsed += _TICK

    def token(self, n_bytes: int) -> str:
        """Return digits that are new."""
        self._tokens += 1
        return f"{self._tokens:0{2 * n_bytes}x}"

    def cut_power(self) -> None:
        """End all programs; files that were not flushed lose what they have, or a part of it."""
        for one in self.programs:
            one.alive = False
        for path in sorted(one for one in self.folder.rglob("*") if one.is_file()):
            if path.stat().st_ino in self.dirty and self.rng.random() < 0.7:
                self.tear(path)
        self.dirty.clear()

    def tear(self, path: Path) -> None:
        """Take away the end of a file, or put zeros in its place."""
        content = path.read_bytes()
        kept = content[: self.rng.choice((0, self.rng.randrange(len(content) + 1)))]
        path.write_bytes(kept + bytes(len(content) - len(kept)) * self.rng.choice((0, 1)))
        os.utime(path, (self.time,) * 2)


class Program(World):
    """One program on a simulated machine."""

    def __init__(self, machine: Machine, faults: Sequence[Fault] = ()) -> None:
        self.machine, self.faults = machine, faults
        # The names of the steps, and the lines of the package that they come from, where somebody wants them.
        self.names: list[str] | None = None
        self.lines: set[tuple[str, int]] | None = None
        self.count, self.alive, self.ended, self.waiting = 0, True, False, False
        self.go = threading.Semaphore(0)
        self._open: set[int] = set()

    def end(self) -> None:
        """End: the system closes files, and another program goes on."""
        self.alive, self.ended = False, True
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()
        self.machine.freed()
        if other := self.machine.other(self):
            other.go.release()

    def step(
        self, name: str, path: Path | None = None, write: Callable[[int], object] | None = None, size: int = 0
    ) -> None:
        """Take a step unless something goes wrong; `write` writes the first bytes of what is written in it."""
        self._turn()
        self.machine.tick()
        self.count += 1
        if self.names is not None:
            self.names.append(name)
        if self.lines is not None:
            self.lines.update(_lines())
        due = [one for one in self.faults if self.count >= one.at and self._is_due(one)]
        if due:
            self._go_wrong(due[-1], name, path, write, size)
        elif write:
            write(size)

    def _turn(self) -> None:
        """Let another program go first, perhaps."""
        if len(self.machine.programs) > 1 and self.alive and (other := self.machine.other(self)):
            other.go.release()
            self.go.acquire()
        if not self.alive:
            raise Killed

    def _go_wrong(
        self, fault: Fault, name: str, path: Path | None, write: Callable[[int], object] | None, size: int
    ) -> None:
        part = self.machine.rng.randrange(size + 1) if write else 0
        is_sealed = path is not None and {"jobs", "derived"} & {*path.parts} and path.name != ".gitignore"
        if (
            (fault.kind == "full" and name in _TAKES_NO_ROOM)
            or (fault.kind == "error" and name in ("lock", "work"))
            or (fault.kind == "torn" and not (write and is_sealed))
        ):
            if write:
                write(size)
            return
        fault.done = True
        self._note()
        if fault.kind == "clock":
            self.machine.time += fault.step
        if fault.kind == "edit":
            for file in self.machine.folder.glob("*/*/run.json"):
                file.write_bytes(file.read_bytes()[:-3])
        if write:
            write(size if fault.kind in ("clock", "edit") else part)
        match fault.kind:
            case "kill":
                self.alive = False
                raise Killed
            case "power":
                self.machine.cut_power()
                raise Killed
            case "full":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            case "error":
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _is_due(self, fault: Fault) -> bool:
        if fault.done:
            return fault.kind == "full"
        if not fault.places:
            return True
        lines = {*_lines()}
        return any((name, line) in lines for name, first, last in fault.places for line in range(first, last + 1))

    def _note(self) -> None:
        """Note the lines of the package that this step comes from."""
        self.machine.hit.update(_lines())

    def _written(self, path: Path) -> None:
        self.machine.dirty[path.stat().st_ino] = path
        os.utime(path, (self.machine.time,) * 2)

    # What programs ask for.

    def now(self) -> float:
        return self.machine.time

    def seconds(self) -> float:
        return self.machine.elapsed

    def token(self, n_bytes: int) -> str:
        return self.machine.token(n_bytes)

    def create(self, path: Path) -> BinaryIO:
        self.step("create")
        return io.BufferedWriter(_File(self, path))  # type: ignore[return-value]

    def write(self, path: Path, content: bytes) -> None:
        def write(size: int) -> None:
            path.write_bytes(content[:size])
            self._written(path)

        self.step("write", path, write, len(content))

    def copy(self, source: Path, target: Path) -> None:
        self.write(target, source.read_bytes())

    def flush(self, path: Path) -> None:
        self.step("flush", path)
        self.machine.dirty.pop(path.stat().st_ino, None)

    def rename(self, path: Path, target: Path) -> None:
        self.step("rename", path)
        super().rename(path, target)

    def make_folder(self, path: Path, mode: int = 0o777) -> None:
        self.step("make_folder", path)
        super().make_folder(path, mode)

    def make_folders(self, path: Path) -> None:
        self.step("make_folders", path)
        super().make_folders(path)

    def unlink(self, path: Path) -> None:
        self.step("unlink", path)
        super().unlink(path)

    def remove_folder(self, path: Path) -> None:
        self.step("remove_folder", path)
        super().remove_folder(path)

    def remove_tree(self, path: Path) -> None:
        for one in sorted(path.iterdir()):
            self.remove_tree(one) if one.is_dir() and not one.is_symlink() else self.unlink(one)
        self.remove_folder(path)

    def open_lock(self, path: Path, *, create: bool = False) -> int:
        self.step("open_lock", path)
        descriptor = super().open_lock(path, create=create)
        self._open.add(descriptor)
        return descriptor

    def lock(self, descriptor: int, *, wait: bool) -> None:
        self.step("lock")
        while True:
            try:
                return super().lock(descriptor, wait=False)
            except BlockingIOError:
                if not wait:
                    raise
                if len(self.machine.programs) == 1:
                    raise RuntimeError("waits for ever") from None
                self.waiting = True
                self._turn()

    def close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.remove(descriptor)
            os.close(descriptor)
            self.machine.freed()


def _lines() -> Iterator[tuple[str, int]]:
    """Yield file and line of each call of the package that is under way."""
    frame = sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        if (file := frame.f_code.co_filename).startswith(_PACKAGE):
            yield file[len(_PACKAGE) + 1 :], frame.f_lineno


class _File(io.FileIO):
    """A file that is written in steps."""

    def __init__(self, program: Program, path: Path) -> None:
        super().__init__(path, "w")
        self._program, self._path = program, path
        program._written(path)

    def write(self, content: Any) -> int:
        whole = bytes(content)

        def write(size: int) -> None:
            super(_File, self).write(whole[:size])
            self._program._written(self._path)

        if self._program.alive:  # a program that was killed writes nothing when Python closes its files
            self._program.step("write", self._path, write, len(whole))
        return len(whole)


def _thread(live: Callable[..., None], at: int, program: Program, body: Callable[[], Any]) -> threading.Thread:
    def start() -> None:
        program.go.acquire()
        live(at, program, body)

    return threading.Thread(target=contextvars.Context().run, args=(start,), daemon=True)


@contextlib.contextmanager
def empty(folder: Path) -> Iterator[Path]:
    """Yield a new folder, and remove it at the end."""
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
