"""Break runs of the program in random ways, run them again, and compare the tables with those of a sound run."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from tests.papers.command_line import tables, write
from trimbench.papers.project import PROJECT
from trimbench.reproduction.commands import cli
from trimbench.reproduction.commands.arguments import CommandLine
from trimbench.reproduction.execution.store import JobStore
from trimbench.reproduction.project import use
from trimbench.reproduction.reporting.figures import drawing as figures
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.vocabulary.figures import Figure

from .fault_hooks import KINDS, Fault

_SIMULATION = (
    *("experiment=selection_bias/simulation", "n_features=40", "ks=[2,40]", "class_sizes=[[8,8]]", "replicates=3"),
    *("test_sizes=[10,10]", "prior.n_alpha=4"),
)
_CLINIC = (
    *("experiment=trimming/breast_cancer", "datasets=[clinic]", "budgets=[1,2]", "splits=2", "evaluation_limit=10"),
    "--config-dir=../mine",
)
_STUDY = (
    *(
        "task=study",
        "data=../mine/dataset/clinic.csv",
        "target=state",
        "budgets=[1]",
        "mechanisms=[mcar]",
        "shares=[0.4]",
    ),
    *("splits=1", "methods=[mean]", "selected=[2]", "explained=1"),
)
_EXECUTORS = {"serial": ("executor=serial",), "processes": ("executor=processes", "executor.workers=2")}
_SECONDS = 120.0


def _write_names(figure: Figure, paths: Sequence[Path], settings: FigureSettings) -> None:
    """Take the place of drawing: a picture says that it is one."""
    for name in paths:
        Path(name).write_text("picture")


_COMPOSE = cli._compose
use(PROJECT)


@dataclass
class Run:
    """A process with all commands, and what it writes to standard output."""

    folder: Path
    fault: Fault
    executor: str
    in_workers: bool = False  # where the faults are planted
    pid: int = 0
    out: Path = field(init=False)

    def start(self) -> Run:
        """Fork the process; the faults are planted there, or in the workers that it starts."""
        self.folder.mkdir(exist_ok=True)
        self.out = Path(tempfile.mkstemp(prefix="out-", dir=self.folder.parent)[1])
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _become(self)
        return self

    def end(self) -> int:
        """Wait for the process and return its exit code, negative for a signal; -14 if it says nothing for long."""
        heard, said = time.monotonic(), 0
        while time.monotonic() < heard + _SECONDS:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if (size := self.out.stat().st_size) > said:
                heard, said = time.monotonic(), size
            time.sleep(0.01)
        self.kill()
        os.waitpid(self.pid, 0)
        return -signal.SIGALRM

    def kill(self) -> None:
        """Kill the process alone, not its workers."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def workers(self) -> list[int]:
        """Return the processes that this one has started."""
        try:
            return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]
        except OSError:
            return []


def _become(run: Run) -> None:
    """Be the program: all commands, one after the other; never return."""
    code = 70
    try:
        descriptor = os.open(run.out, os.O_WRONLY)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.chdir(run.folder)
        temporary = run.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        os.environ |= {"TMPDIR": str(temporary), "XDG_CACHE_HOME": str(run.folder / "cache"), "HYDRA_FULL_ERROR": "1"}
        os.environ.pop("TRIMBENCH_CACHE", None)
        tempfile.tempdir = None
        run.fault.plant_in_workers() if run.in_workers else run.fault.plant()
        code = max(map(_command, commands(run.executor)))
        Path(f"{run.out}.count").write_text(str(run.fault.count))
    except BaseException:  # noqa: BLE001  (the end of a process)
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def commands(executor: str) -> list[list[str]]:
    """Return the words of all commands."""
    common = ("trimbench", *_EXECUTORS[executor], "offline=true", "figure.formats=[svg]")
    return [[*common, *words] for words in (_SIMULATION, _CLINIC, _STUDY)]


def _command(words: Sequence[str]) -> int:
    sys.argv = list(words)
    try:
        cli.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def warm_up(folder: Path, *, draw: bool) -> None:
    """Run all commands in this process: what they load and compose is there when it forks.

    Composing writes nothing and takes a third of the time. Drawing takes another; without `draw`, pictures are a word.
    """
    compose = functools.cache(lambda words: _COMPOSE(CommandLine.of(words)))
    cli._compose = lambda line: compose(tuple(sys.argv[1:]))
    if not draw:
        figures.draw = _write_names
    folder.mkdir()
    with contextlib.chdir(folder), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for words in commands("serial"):
            _command(words)


def write_own_data(folder: Path) -> None:
    """Write a small data set and its declaration; jobs know it by its folder, which all runs share."""
    rng = random.Random(5)
    rows = [f"{rng.randint(0, 4)},{rng.gauss(0, 1):.2f},{rng.choice('xyz')},{rng.choice('ab')}" for _ in range(60)]
    write(folder / "dataset", {"clinic.csv": "\n".join(["age,dose,ward,state", *rows]) + "\n"})
    write(folder / "dataset", {"clinic.yaml": "kind: csv\npath: clinic.csv\ntarget: state\n"})


def records(folder: Path) -> dict[Path, bytes]:
    """Return the records of jobs that succeeded."""
    found = {path: path.read_bytes() for path in folder.glob("results/jobs/??/*.json") if path.is_file()}
    return {path: content for path, content in found.items() if b'"status":"ok"' in content[:200]}


def outcome(folder: Path) -> dict[str, str | bytes]:
    """Return what must not depend on faults: the tables without times, and the pictures of figures."""
    pictures = {path.name: path.read_bytes() for path in folder.glob("results/**/*.svg")}
    return {**tables(folder / "results"), **pictures}


def left_over(folder: Path) -> list[str]:
    """Return temporary files that no process needs and that a program which starts a minute later does not remove."""
    for path in folder.glob("results/jobs/**/*.tmp"):
        os.utime(path, (time.time() - 61,) * 2)
    JobStore(folder / "results/jobs")
    found = [*folder.glob("results/**/*.tmp"), *folder.glob("cache/**/*.tmp"), *folder.glob("tmp/trimbench.*")]
    return sorted(str(path.relative_to(folder)) for path in found)


class Round:
    """One round: what is broken follows from the seed."""

    def __init__(self, seed: str, folder: Path, n_changes: int) -> None:
        self._random = random.Random(seed)
        self._folder, self._n = folder, n_changes
        self.story: list[str] = []
        self._damaged: set[Path] = set()

    def play(self, sound: dict[str, str | bytes]) -> Iterator[str]:
        """Break a run, run again, and yield each difference from a sound run."""
        self._forget_some()
        self._damage() if self._random.random() < 0.4 else None
        yield from self._broken(sound)
        self._damage() if self._random.random() < 0.3 else None
        before = {path: content for path, content in records(self._folder).items() if path not in self._damaged}
        again = Run(self._folder, Fault(self._folder), "serial").start()
        if code := again.end():
            yield f"the run that repairs ends with {code}: {again.out.read_text()[-600:]}"
        after = records(self._folder)
        if repeated := [path.name for path, content in before.items() if after.get(path) != content]:
            yield f"jobs that were stored ran again: {repeated}"
        found = outcome(self._folder)
        if wrong := sorted(name for name in sound.keys() | found.keys() if sound.get(name) != found.get(name)):
            yield f"tables differ: {wrong}"
        if left := left_over(self._folder):
            yield f"left over: {left}"

    def _forget_some(self) -> None:
        """Take away finished jobs, or everything, so that there is something to run."""
        if self._random.random() < 0.4:
            shutil.rmtree(self._folder / "results", ignore_errors=True)
        for path in sorted(records(self._folder)):
            if self._random.random() < 0.5:
                path.unlink()

    def _damage(self) -> None:
        """Change stored files as a bad disk or a careless user does."""
        files = sorted(
            path for place in ("results", "cache") for path in (self._folder / place).rglob("*") if path.is_file()
        )
        for path in self._random.sample(files, min(len(files), self._random.randint(1, 4))):
            content = path.read_bytes()
            place = self._random.randrange(len(content) or 1)
            kind = self._random.choice(("byte", "cut", "empty", "gone", "folder"))
            if path.name == "lock" or path.suffix == ".lock":
                kind = "gone"
            self.story.append(f"{kind} {path.relative_to(self._folder)}")
            self._damaged.add(path)
            match kind:
                case "byte":
                    path.write_bytes(
                        content[:place] + bytes([content[place] ^ 1] if content else []) + content[place + 1 :]
                    )
                case "cut" | "empty":
                    path.write_bytes(content[:place] if kind == "cut" else b"")
                case _:
                    path.unlink()
                    path.mkdir() if kind == "folder" and path.suffix == ".json" and "jobs" in path.parts else None

    def _broken(self, sound: dict[str, str | bytes]) -> Iterator[str]:
        kind = self._random.choice(KINDS)
        step = self._random.choice((-1, 1)) * 10 ** self._random.uniform(0, 8)
        fault = Fault(self._folder, kind, self._random.randint(1, self._n), step)
        draw = self._random.random()
        if draw < 0.1:
            self.story.append("a kill while workers run")
            self._kill_by_time()
            return
        if draw > 0.8:
            yield from self._broken_in_workers(fault, sound)
            return
        runs = [Run(self._folder, fault, "serial").start()]
        self.story.append(f"{kind} at change {fault.at}")
        if draw < 0.3:
            self.story.append("beside another program")
            runs.append(Run(self._folder, Fault(self._folder), "serial").start())
        for run in runs:
            yield from self._judged(run, sound, alone=len(runs) == 1)

    def _broken_in_workers(self, fault: Fault, sound: dict[str, str | bytes]) -> Iterator[str]:
        fault.at = int(10 ** self._random.uniform(0, 1.5))  # mostly an early one: a worker may have few jobs
        self.story.append(f"{fault.kind} at change {fault.at} of each worker")
        yield from self._judged(Run(self._folder, fault, "processes", in_workers=True).start(), sound, alone=True)

    def _judged(self, run: Run, sound: dict[str, str | bytes], *, alone: bool) -> Iterator[str]:
        """Wait for a run with a fault, and yield what is wrong with its end."""
        code, out = run.end(), run.out.read_text(errors="replace")
        killed = run.fault.kind == "kill" and not run.in_workers and code == -signal.SIGKILL
        if not killed and (code not in (0, 1, 2) or "Traceback" in out):
            yield f"a run with the fault {run.fault.kind!r} ends with {code}: {out[-1500:]}"
        if code == 0 and alone and outcome(self._folder) != sound:
            yield f"a run with the fault {run.fault.kind!r} ends well, with other tables: {out[-600:]}"

    def _kill_by_time(self) -> None:
        run = Run(self._folder, Fault(self._folder), "processes").start()
        time.sleep(self._random.uniform(0.1, 4))
        workers = run.workers()
        victim = self._random.choice([run.pid, *workers])
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        run.end()
        until = time.monotonic() + 20
        while time.monotonic() < until and any(Path(f"/proc/{pid}").exists() for pid in workers):
            time.sleep(0.05)  # workers end with their parent


def main(arguments: list[str] | None = None) -> int:
    """Play the rounds; the exit code is 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="how many (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="decides all faults (default: 0)")
    parser.add_argument("--round", type=int, help="only this one")
    parser.add_argument("--draw", action="store_true", help="draw figures, which takes three times as long")
    chosen = parser.parse_args(arguments)
    started, n_findings = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="trimbench-faults-") as name:
        write_own_data(Path(name, "mine"))
        warm_up(Path(name, "warm"), draw=chosen.draw)
        whole = Run(Path(name, "whole"), Fault(Path(name, "whole")), "serial").start()
        if code := whole.end():
            sys.exit(f"the sound run ends with {code}: {whole.out.read_text()}")
        n_changes = int(Path(f"{whole.out}.count").read_text())
        sound = outcome(whole.folder)
        rounds = range(chosen.rounds) if chosen.round is None else range(chosen.round, chosen.round + 1)
        for n in rounds:
            folder = Path(name, f"round{n}")
            if n % 2 == 0:  # every other round begins with what is finished
                shutil.copytree(whole.folder, folder, dirs_exist_ok=True)
            one = Round(f"{chosen.seed}/{n}", folder, n_changes)
            for finding in one.play(sound):
                n_findings += 1
                print(f"FINDING seed {chosen.seed} round {n} ({'; '.join(one.story)}): {finding}", flush=True)
            shutil.rmtree(folder)
    seconds = time.monotonic() - started
    print(
        f"{chosen.rounds} rounds, {n_changes} changes of files in a sound run, {n_findings} findings, {seconds:.0f} s"
    )
    return int(n_findings > 0)


if __name__ == "__main__":
    sys.exit(main())
