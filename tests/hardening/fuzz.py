"""Give every reader files that were changed at random, and keep those that show it something new."""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from .fuzz_targets import TARGETS, Target, Wrong

_TURN, _TURN_SECONDS = 200, 20.0  # inputs and seconds of one target, until the next has its turn
_TRIES = 200  # to make a finding smaller


@dataclass
class Search:
    """What was found about one reader: inputs that run new lines, and findings by what tells them apart."""

    name: str
    seed: int
    inputs: int = 0
    corpus: list[bytes] = field(default_factory=list)
    edges: set[tuple[str, int, int]] = field(default_factory=set)
    findings: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(f"{self.seed}/{self.name}")

    def turn(self, child: Child, folder: Path, end: float) -> None:
        """Try some inputs; the first turn begins with the corpus."""
        if not self.corpus:
            for content in TARGETS[self.name].seeds():
                self._try(child, content, folder, keep=True)
        until = min(end, time.monotonic() + _TURN_SECONDS)
        for _ in range(_TURN):
            if time.monotonic() > until:
                return
            # New inputs come last, and are more likely to lead further.
            place = max(self._random.randrange(len(self.corpus)), self._random.randrange(len(self.corpus)))
            self._try(child, mutated(self._random, self.corpus[place], self.corpus), folder)

    def _try(self, child: Child, content: bytes, folder: Path, *, keep: bool = False) -> None:
        self.inputs += 1
        outcome = examine(child, self.name, content)
        if keep or not outcome.edges <= self.edges:
            self.corpus.append(content)
            self.edges |= outcome.edges
        if outcome.fault and signature(outcome) not in self.findings:
            self.findings[signature(outcome)] = self._save(child, content, outcome, folder)

    def _save(self, child: Child, content: bytes, outcome: Outcome, folder: Path) -> Path:
        def is_same(shorter: bytes) -> bool:
            return signature(examine(child, self.name, shorter)) == signature(outcome)

        # Those that cost much take seconds for each attempt.
        small = smaller(content, is_same, _TRIES if outcome.seconds < 1 else 10)
        path = folder / self.name / hashlib.sha256(small).hexdigest()[:12]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(small)
        about = {"seed": self.seed, "input": self.inputs, "fault": outcome.fault, "place": outcome.place}
        path.with_suffix(".about").write_text(json.dumps(about | {"seconds": outcome.seconds}) + "\n")
        print(f"{time.strftime('%H:%M:%S')} FINDING {path}: {outcome.fault} {outcome.place}", flush=True)
        return path


def signature(outcome: Outcome) -> str:
    """Return what tells findings apart: the kind of fault, and where it shows."""
    kind = re.sub(r"\d+", "#", outcome.fault.partition(":")[0])
    return f"{kind} {outcome.place}" if kind else ""


def main(arguments: list[str] | None = None) -> int:
    """Search until the time is over, in turns; the exit code is 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="how long (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="decides all inputs (default: 0)")
    parser.add_argument("--target", choices=sorted(TARGETS), action="append", help="only these; may be repeated")
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"), help="folder (default: build/fuzz)")
    chosen = parser.parse_args(arguments)
    searches = [Search(name, chosen.seed) for name in chosen.target or TARGETS]
    end = time.monotonic() + 60 * chosen.minutes
    rounds = 0
    with Child() as child:
        while time.monotonic() < end:
            for search in searches:
                if time.monotonic() < end:
                    search.turn(child, chosen.findings, end)
            rounds += 1
            inputs, findings = sum(one.inputs for one in searches), sum(len(one.findings) for one in searches)
            print(f"{time.strftime('%H:%M:%S')} round {rounds}: {inputs} inputs, {findings} findings", flush=True)
    for search in searches:
        print(
            f"{search.name:18} {search.inputs:8} inputs, {len(search.corpus):5} kept, "
            f"{len(search.edges):6} pairs of lines, {len(search.findings)} findings"
        )
    return int(any(search.findings for search in searches))


# The process in which one reader after another gets inputs: measured, limited, and replaced when it dies.

SECONDS, BYTES, CHARACTERS = 2.0, 256 * 2**20, 500
# Following every line slows a reader down; time is judged without that. The clock only tells a process that sleeps.
_SECONDS_FOLLOWED, _SECONDS_OF_CLOCK = 20.0, 900.0
# The system refuses more than this, so that no input stops the machine.
_ROOM_BYTES = 2**31
_FOLLOWED = ("/trimbench/", "/rdata/", "/arff.py")


@dataclass(frozen=True)
class Outcome:
    """What a reader did with an input; `fault` is empty unless it broke a promise, `place` says where."""

    fault: str
    place: str
    edges: frozenset[tuple[str, int, int]]
    seconds: float
    bytes: int


class Child:
    """A process with one reader at a time; `run` starts it again when it has died."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._process: Any = None
        self._pipe: Any = None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, target: str, content: bytes, *, follow: bool) -> Outcome:
        """Give an input to a reader; with `follow`, say which lines ran, and allow more time for that."""
        if self._process is None:
            self._pipe, other = self._context.Pipe()
            self._process = self._context.Process(target=_serve, args=(other,), daemon=True)
            self._process.start()
            other.close()
        self._pipe.send((target, content, follow))
        try:
            if not self._pipe.poll(_SECONDS_OF_CLOCK):
                return self._dead("hangs", follow)
            outcome: Outcome = self._pipe.recv()
        except (EOFError, ConnectionError):
            return self._dead("", follow)
        return outcome

    def _dead(self, why: str, follow: bool) -> Outcome:
        if why:
            self._process.kill()
        self._process.join()
        code = self._process.exitcode
        self._end()
        late = code == -signal.SIGPROF
        fault = why or (f"more than {SECONDS:g} s" if late else f"the process died ({code})")
        seconds = _SECONDS_FOLLOWED if follow else SECONDS
        return Outcome(fault, "", frozenset(), seconds if late else 0.0, 0)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = None


def examine(child: Child, target: str, content: bytes) -> Outcome:
    """Return the outcome of an input; time is judged in a run that nothing slows down."""
    follow = len(content) <= 2**16
    outcome = child.run(target, content, follow=follow)
    if follow and (outcome.seconds > SECONDS or not outcome.edges):
        plain = child.run(target, content, follow=False)
        return Outcome(plain.fault, plain.place, outcome.edges, plain.seconds, plain.bytes)
    return outcome


def _serve(pipe: Connection) -> None:
    logging.disable()
    warnings.simplefilter("ignore")
    # The library of linear algebra would reserve memory for each of its threads.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory(prefix="trimbench-fuzz-") as folder:
        os.environ |= {"XDG_CACHE_HOME": f"{folder}/cache", "TMPDIR": folder, "MPLCONFIGDIR": folder}
        tempfile.tempdir = folder
        readers: dict[str, Callable[[bytes], object]] = {}
        while True:
            try:
                name, content, follow = pipe.recv()
                if name not in readers:
                    readers[name] = ready(TARGETS[name], Path(folder, name))
                pipe.send(judged(TARGETS[name], readers[name], content, follow=follow))
            except (EOFError, BrokenPipeError):  # the search is over
                return


def ready(target: Target, folder: Path) -> Callable[[bytes], object]:
    """Return a reader that has loaded whatever it needs."""
    folder.mkdir()
    reader = target.prepare(folder)
    for content in target.seeds():
        try:
            reader(content)
        except target.allowed:
            continue
    return reader


def judged(target: Target, reader: Callable[[bytes], object], content: bytes, *, follow: bool) -> Outcome:
    """Run a reader in this process and compare what it does with what is promised."""
    lines = _Lines()
    resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") + _ROOM_BYTES, resource.RLIM_INFINITY))
    before = _peak(forget=True)
    signal.setitimer(signal.ITIMER_PROF, _SECONDS_FOLLOWED if follow else SECONDS)
    started = time.process_time()
    fault = place = ""
    if follow:
        sys.settrace(lines)
    try:
        reader(content)
    except MemoryError as error:
        fault, place = "MemoryError", _place(error.__traceback__)
    except target.allowed as error:
        if len(str(error)) > CHARACTERS:
            fault, place = f"a message of {len(str(error))} characters: {str(error)[:300]}", type(error).__name__
    except Wrong as error:
        fault, place = f"wrong: {error}", _place(error.__traceback__)
    except BaseException as error:  # noqa: BLE001  (whatever a reader raises is judged)
        fault, place = f"{type(error).__name__}: {str(error)[:300]}", _place(error.__traceback__)
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    seconds, used = time.process_time() - started, _peak() - before
    if not fault and used > BYTES:
        fault, place = f"{used / 2**20:.0f} MiB", "memory"
    return Outcome(fault, place, frozenset(lines.edges), seconds, used)


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0


def _peak(*, forget: bool = False) -> int:
    """Return the most memory that this process has had, since the last call that made it forget."""
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmHWM")


def _place(trace: TracebackType | None) -> str:
    """Return the innermost line of the project, by which findings are told apart."""
    own = [frame for frame in traceback.extract_tb(trace) if "/trimbench/" in frame.filename]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


class _Lines:
    """Follows which line ran after which, in the files that read."""

    def __init__(self) -> None:
        self.edges: set[tuple[str, int, int]] = set()
        self._followed: dict[str, bool] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self._followed:
            self._followed[name] = any(part in name for part in _FOLLOWED)
        if not self._followed[name]:
            return None
        last = 0
        edges = self.edges

        def line(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "line":
                edges.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line


# Bytes changed at random: what a damaged disk, a careless editor or somebody hostile makes of a file.

LARGEST = 2**20
# Most inputs stay about as long as those they come from: long ones are slow, and rarely find more.
_USUAL = 2**12
_SHARE_OF_LONG = 0.01
_WORD = re.compile(rb"[A-Za-z0-9_.+-]+")
_TELLING = [
    *(b"0", b"1", b"-1", b"2", b"0.5", b"1e308", b"-1e308", b"1e-320", b"1e999", b"nan", b"inf", b"-inf", b"NaN"),
    *(b"64", b"65", b"2147483648", b"18446744073709551616", b"1" * 5000, b"0x10", b"1_000", b"\xd9\xa3", b"true"),
    *(b"", b" ", b"\n", b"\r", b"\t", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xc2\xa0", b"\xe2\x80\xa8", b"\\ud800"),
    *(b'"', b"'", b"/*", b"*/", b"//", b"{", b"}", b"[", b"]", b"(", b")", b"<", b">", b"&", b",", b";", b":", b"|"),
    *(b"null", b"~", b"? ", b"- ", b"&a ", b"*a", b"!!python/none", b"${oc.env:HOME}", b"${a}", b"???", b"%", b"?"),
    *(b"a, b", b"'a,b'", b"${a,b}", b"${oc.select:'a,b'}", b"${oc.select:[a.b]}", b"${.-1}"),
    *(b"=1+1", b"$", b"#", b"@", b"../..", b"~nobody", b"a" * 700, b"\xf0\x9f\x90\x8d", b"[" * 3000, b'{"a":' * 3000),
]


def mutated(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """Return `content` after one to six changes, some of which take bytes from `others`; at most 1 MiB."""
    limit = LARGEST if rng.random() < _SHARE_OF_LONG else max(_USUAL, 2 * len(content))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        content = rng.choice(_CHANGES)(rng, content, others, limit)
    return content[: min(limit, LARGEST)]


def _span(rng: random.Random, content: bytes) -> tuple[int, int]:
    start = rng.randint(0, len(content))
    return start, min(len(content), start + int(2 ** rng.uniform(0, 8)))


def _flipped(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    place = rng.randrange(len(content) or 1)
    old = content[place : place + 1] or b"\0"
    return content[:place] + bytes([old[0] ^ (1 << rng.randrange(8))]) + content[place + 1 :]


def _set(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    place = rng.randrange(len(content) or 1)
    return content[:place] + bytes([rng.choice((0, 1, 32, 127, 128, 255, rng.randrange(256)))]) + content[place + 1 :]


def _telling_word(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    """One word becomes another that readers may stumble over, or that stands elsewhere in the file."""
    words = list(_WORD.finditer(content))
    if not words:
        return _inserted(rng, content, (), 0)
    word = rng.choice(words)
    new = rng.choice(_TELLING) if rng.random() < 0.5 else rng.choice(words)[0]
    return content[: word.start()] + new + content[word.end() :]


def _inserted(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    place = rng.randint(0, len(content))
    return content[:place] + rng.choice(_TELLING) + content[place:]


def _deleted(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    start, stop = _span(rng, content)
    return content[:start] + content[stop:]


def _repeated(rng: random.Random, content: bytes, _: Sequence[bytes], limit: int) -> bytes:
    start, stop = _span(rng, content)
    room = max(0, limit - len(content)) // max(1, stop - start)
    return content[:stop] + content[start:stop] * int(room ** rng.random()) + content[stop:]


def _moved(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    start, stop = _span(rng, content)
    rest = content[:start] + content[stop:]
    place = rng.randint(0, len(rest))
    return rest[:place] + content[start:stop] + rest[place:]


def _cut(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    place = rng.randint(0, len(content))
    return content[:place] if rng.random() < 0.7 else content[place:]


def _spliced(rng: random.Random, content: bytes, others: Sequence[bytes], __: int) -> bytes:
    other = rng.choice(others) if others else content
    return content[: rng.randint(0, len(content))] + other[rng.randint(0, len(other)) :]


def _lines(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    """Lines are left out, said twice, or change places."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(3):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case _:
            lines[at], lines[to] = lines[to], lines[at]
    return b"".join(lines)


_CHANGES: tuple[Callable[[random.Random, bytes, Sequence[bytes], int], bytes], ...] = (
    *(_flipped, _set, _telling_word, _telling_word, _telling_word, _inserted, _deleted, _repeated, _moved, _cut),
    *(_spliced, _lines, _lines),
)


def smaller(content: bytes, is_same: Callable[[bytes], bool], tries: int) -> bytes:
    """Return a part of `content` that `is_same` accepts, found by leaving out shorter and shorter pieces."""
    piece = len(content) // 2
    while piece and tries > 0:
        start = 0
        while start < len(content) and tries > 0:
            shorter = content[:start] + content[start + piece :]
            tries -= 1
            if is_same(shorter):
                content = shorter
            else:
                start += piece
        piece //= 2
    return content


if __name__ == "__main__":
    sys.exit(main())
