"""Play schedules of faults on a simulated machine; the next run must do exactly what is missing, with right numbers."""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import hashlib
import io
import json
import logging
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import trimbench.reproduction
from trimbench.reproduction.commands import tasks
from trimbench.reproduction.commands.arguments import Invocation
from trimbench.reproduction.execution.executors import attempt, failure, run_jobs
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import JobStore, Record
from trimbench.reproduction.files import remove_temporary_folders
from trimbench.reproduction.project import project, use
from trimbench.reproduction.settings import ConfigurationError

from . import paper
from .machine import KINDS, Fault, Killed, Machine, Place, Program, empty

# What of a hundred schedules is about: jobs and their store; whole runs; publishing.
_SHARES = {"jobs": 75, "run": 11, "publish": 14}
# Where these write: some faults wait for one of these places, since few steps of a program come from most of them. Jobs
# go through files and the store more often than all others.
_FILES = {
    "jobs": ("files.py", "execution/"),
    "run": ("commands/surroundings.py", "reporting/"),
    "publish": ("commands/publishing.py",),
}
# What ends no program, so that something else may go wrong while it is dealt with.
_SURVIVED = ("full", "error", "error", "clock", "torn")
_MINUTE = 61.0


class Pool:
    """Workers of a simulated machine, which end in any order; if `sick`, some hang until they are stopped, or die."""

    def __init__(self, program: Program, store: Path, broken: list[str], *, sick: bool = False) -> None:
        self.program, self.store, self.broken, self.sick = program, store, broken, sick
        self.started: list[str] = []

    def run(self, jobs: Sequence[Job], on_record: Callable[[Record], None], files: object = None) -> None:
        rng = self.program.machine.rng
        for job in rng.sample(jobs, len(jobs)):
            if is_done(self.store, job.key):
                self.broken.append(f"a job ran that is stored: {job.key[:8]}")
            self.started.append(job.key)
            self.program.step("work")
            fate = rng.choice(("timeout", "crashed", "ok", "ok", "ok")) if self.sick else "ok"
            on_record(
                attempt(job, (Exception,)) if fate == "ok" else failure(job, fate, "no answer", 9.0, "last words")
            )


def is_done(store: Path, key: str) -> bool:
    """Tell whether a job has a whole record of success, without the code that is tested."""
    try:
        content = (store / key[:2] / f"{key}.json").read_bytes()
        head, rest = content[:11], content[77:].removesuffix(b"\n")
        sealed = content[11:75].decode() == hashlib.sha256(rest).hexdigest()
        is_whole = head == b'{"sha256":"' and content.endswith(b"}\n")
        return is_whole and sealed and json.loads(content)["status"] == "ok"
    except (OSError, ValueError, KeyError):
        return False


def tree(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tables(folder: Path) -> dict[str, bytes]:
    """Return the numbers of a run: its tables without those that have times."""
    endings = (".csv", ".tex", ".md")
    found = {name: content for name, content in tree(folder).items() if name.endswith(endings)}
    return {name: content for name, content in found.items() if not name.endswith("_gone.csv")}


@dataclasses.dataclass
class Ground:
    """What all schedules begin with: a run, an earlier published one, and what publishing gives."""

    folder: Path
    jobs: Mapping[str, tuple[Job, float]]
    whole: Path  # results after a run, with what was published before
    tables: dict[str, bytes]
    old: dict[str, bytes]
    new: dict[str, bytes]
    run: Invocation
    publish: Invocation
    single: Invocation
    steps: Mapping[str, int] = dataclasses.field(default_factory=dict)
    places: dict[str, list[Place]] = dataclasses.field(default_factory=dict)
    rare: dict[str, list[Place]] = dataclasses.field(default_factory=dict)  # of these, where no sound program comes
    # Of a publisher: the places where no sound program comes, and the steps of which an error leads there.
    leads: dict[Place, list[int]] = dataclasses.field(default_factory=dict)
    # What steps of sound programs come from, by task.
    lines: dict[str, set[tuple[str, int]]] = dataclasses.field(default_factory=lambda: defaultdict(set))

    @classmethod
    def of(cls, folder: Path) -> Ground:
        """Make it on a machine without faults."""
        results = folder / "here/results"
        words = ((), ("task=publish", "run=quick"), ("experiment=powers/halves",))
        asked = [paper.asked(results, *one) for one in words]
        run, publish, _ = asked
        jobs, whole = paper.jobs(), folder / "whole"
        with schedule_in(folder, 0) as machine:
            ground = cls(folder, jobs, whole, {}, {}, {}, *asked)
            ground.sound(machine, run)
            ground.sound(machine, publish)
            ground.old = tree(results / "published")
            machine.elapsed += 5.0
            n_run = ground.sound(machine, run, "ignore")
            shutil.copytree(results, whole)
            ground.tables = tables(results / "quick")
            # Steps of a sound program, in which faults come.
            ground.steps = {"jobs": 40, "run": n_run, "publish": ground.sound(machine, publish)}
            ground.new = tree(results / "published")
        every = sorted(places())
        rare = [place for place in every if not is_at(place, ground.lines["run"] | ground.lines["publish"])]
        for kind, files in _FILES.items():
            own = ground.lines["publish" if kind == "publish" else "run"]
            ground.rare[kind] = [place for place in rare if place[0].startswith(files)]
            ground.places[kind] = [place for place in every if place[0].startswith(files) and is_at(place, own)]
        ground.leads = ground._leads()
        assert ground.old != ground.new
        return ground

    def _leads(self) -> dict[Place, list[int]]:
        found: dict[Place, list[int]] = {}
        for step in range(1, self.steps["publish"] + 1):
            with schedule_in(self.folder, "leads") as machine:
                shutil.copytree(self.whole, self.publish.root)
                (program := machine.program(Fault("error", step))).lines = set()
                machine.run((program, lambda: tasks.publish(self.publish)))
                for place in self.rare["publish"]:
                    if is_at(place, program.lines):
                        found.setdefault(place, []).append(step)
        return found

    def sound(self, machine: Machine, invocation: Invocation, mode: str | None = None) -> int:
        """Run a command that must succeed, and return how many steps it takes."""
        broken: list[str] = []
        program = machine.program()
        program.lines = self.lines[invocation.settings.task]
        (end,) = machine.run((program, lambda: self.command(invocation, program, broken, mode=mode)))
        if end != 0 or (broken and mode is None):
            raise RuntimeError(f"a sound command ends with {end!r}, {broken}")
        return program.count

    def command(
        self,
        invocation: Invocation,
        program: Program,
        broken: list[str],
        *,
        mode: str | None = None,
        sick: bool = False,
    ) -> int:
        """Run a command as a program."""
        if invocation.settings.task == "publish":
            return tasks.publish(invocation)
        return tasks.run(invocation, mode, Pool(program, invocation.root / "jobs", broken, sick=sick))


@contextlib.contextmanager
def schedule_in(folder: Path, seed: object) -> Iterator[Machine]:
    """Yield a machine in an empty folder, with temporary files and the user's cache there."""
    with empty(folder / "here") as here:
        (here / "tmp").mkdir()
        before = tempfile.tempdir, os.environ.get("XDG_CACHE_HOME")
        tempfile.tempdir, os.environ["XDG_CACHE_HOME"] = str(here / "tmp"), str(here / "cache")
        os.environ.pop("REPRODUCTION_ONLY_ARRAYS_OF", None)
        try:
            yield Machine(here, random.Random(f"schedule {seed}"))
        finally:
            tempfile.tempdir = before[0]
            os.environ.pop("XDG_CACHE_HOME") if before[1] is None else os.environ.update(XDG_CACHE_HOME=before[1])


def power_failed(programs: Sequence[Program]) -> bool:
    """Tell whether a power cut ended programs."""
    return any(fault.kind == "power" and fault.done for one in programs for fault in one.faults)


class Schedule:
    """One schedule: what goes wrong follows from the seed."""

    def __init__(self, ground: Ground, machine: Machine) -> None:
        self.ground, self.machine, self.rng = ground, machine, machine.rng
        self.results = ground.run.root
        self.store = self.results / "jobs"
        self.kind = self.rng.choices([*_SHARES], [*_SHARES.values()])[0]
        self.broken: list[str] = []
        self.story = [self.kind]

    def play(self) -> list[str]:
        """Play it, and return what is wrong."""
        getattr(self, f"_{self.kind}")()
        if self.kind != "jobs" or self.rng.random() < 0.3:
            self._check_left_over()
        return self.broken

    def faults(self) -> list[Fault]:
        """Return what goes wrong in a program: mostly one thing, sometimes nothing, or a second thing after it."""
        n = self.rng.choice((0, 1, 1, 1, 1, 1, 1, 2, 2))
        last = self.ground.steps[self.kind]
        early = round(last ** self.rng.random())
        at = self.rng.choice((self.rng.randint(1, last), early, last + 1 - early))
        edits = ("edit",) * (self.kind == "run")
        found: list[Fault] = []
        if self.kind == "publish" and n == 2 and self.rng.random() < 0.5:
            place = self.rng.choice([*self.ground.leads])
            step = self.rng.choice(self.ground.leads[place])
            found = [Fault("error", step), Fault(self.rng.choice(KINDS), step + 1, places=[place])]
            n = 0
        for follows in range(n - 1, -1, -1):
            kind = self.rng.choice((*(_SURVIVED if follows else KINDS), *edits))
            fault = Fault(kind, at, self.rng.choice((-1, 1)) * 10 ** self.rng.uniform(0, 8))
            if self.rng.random() < 0.6:
                fault.at = 1 if not found else at
                fault.places = self._aim(is_after=bool(found))
            found.append(fault)
            at += self.rng.randint(1, 3)
        self.story += map(str, found)
        return found

    def _aim(self, *, is_after: bool) -> list[Place]:
        """Return the place that a fault waits for, often one where only faults or what they left behind lead.

        It is one of those, or the first of them that comes.
        """
        rare = self.ground.rare[self.kind]
        if self.rng.random() < (0.7 if is_after else 0.4):
            return rare if self.rng.random() < 0.5 else [self.rng.choice(rare)]
        return [self.rng.choice(self.ground.places[self.kind])]

    def programs(self) -> list[Program]:
        """Return one program, or two at once, with their faults."""
        n = self.rng.choice((1, 1, 2))
        self.story.append("two at once" if n == 2 else "")
        return [self.machine.program(*self.faults()) for _ in range(n)]

    def litter(self) -> None:
        """Leave what programs that were killed long ago have left, and a folder in the place of a record."""
        if self.rng.random() > 0.2:
            return
        self.story.append("litter")
        cache, key = self.machine.folder / "cache/powers", self.rng.choice([*self.ground.jobs])
        places = [(self.machine.folder / "tmp", "trimbench"), (cache / "derived", "writing")]
        if self.kind == "run":
            places += [(cache, ".partial"), (self.store, "writing")]
            places += [(self.results / "quick/powers", "writing")] * (self.results / "quick").exists()
        for place, stem in places:
            for at in range(3):
                folder = place / f"{stem}.{at:08x}.tmp"
                folder.mkdir(parents=True)
                for name in (("trimbench.lock", "part"), (".trimbench.lock",), ())[at]:
                    (folder / name).touch()
        record = self.store / key[:2] / f"{key}.json"
        if not record.exists():
            record.mkdir(parents=True)
        for path in (record.with_name(f"{key}.{1:016x}.tmp"), self.store / f"probe.{1:016x}.{2:016x}.tmp"):
            path.write_text("{")
            os.utime(path, (0, 0))

    def judge(self, ends: Sequence[Any], programs: Sequence[Program]) -> None:
        """Note what no program may end with: an error that is neither a mistake of the user nor of the system."""
        for end, program in zip(ends, programs, strict=True):
            is_hurt = any(fault.done for fault in program.faults)
            fine = (Killed, OSError, ConfigurationError) if is_hurt else (ConfigurationError,)
            is_dead = isinstance(end, Killed) and power_failed(programs)
            if isinstance(end, BaseException) and not isinstance(end, fine) and not is_dead:
                self.broken.append(f"a program ends with {''.join(traceback.format_exception(end))[-1500:]}")

    def settle(self) -> None:
        """Let a minute pass, after which nobody writes any more."""
        self.machine.time += _MINUTE

    # Jobs and their store.

    def _jobs(self) -> None:
        self.litter()
        keys = self.rng.sample([*self.ground.jobs], self.rng.randint(2, 5))
        if self.rng.random() < 0.4:  # an earlier run got through, or was sick
            early = self.machine.program()
            self.machine.run((early, lambda: self._run_jobs(keys[1:], early, sick=self.rng.random() < 0.5)))
        programs = self.programs()
        sick = self.rng.random() < 0.3
        mode = self.rng.choice(("default",) * 5 + ("only",))
        # Programs for other folders of results share the cache alone.
        stores = [self.store, self.rng.choice((self.store, self.machine.folder / "other/jobs"))]
        bodies = [
            (one, lambda one=one, store=store: self._run_jobs(keys, one, sick=sick, mode=mode, store=store))
            for one, store in zip(programs, stores, strict=False)
        ]
        ends = self.machine.run(*bodies)
        self.judge(ends, programs)
        for end in ends:
            self._check_records(end if isinstance(end, list) else [])
        self.settle()
        missing = sorted(key for key in keys if not is_done(self.store, key))
        started: list[str] = []
        again = self.machine.program()
        (end,) = self.machine.run((again, lambda: self._run_jobs(keys, again, started=started)))
        if sorted(started) != missing:
            self.broken.append(f"{len(missing)} jobs were missing, and the next run ran {len(started)}")
        if not isinstance(end, list) or not all(record.ok for record in end):
            self.broken.append(f"the next run ends with {end!r:.800}")
        else:
            self._check_records(end)
        self.broken += [f"not stored: {key[:8]}" for key in keys if not is_done(self.store, key)]

    def _run_jobs(
        self,
        keys: Sequence[str],
        program: Program,
        *,
        sick: bool = False,
        mode: str = "default",
        started: list[str] | None = None,
        store: Path | None = None,
    ) -> list[Record]:
        store = store or self.store
        pool = Pool(program, store, self.broken, sick=sick)
        pool.started = [] if started is None else started
        jobs = [self.ground.jobs[key][0] for key in keys]
        return run_jobs(jobs, JobStore(store), pool, cache_mode=mode, progress=False)

    def _check_records(self, records: Sequence[Record]) -> None:
        for record in records:
            wanted = self.ground.jobs[record.job.key][1]
            if record.ok and record.result != {"value": wanted}:
                self.broken.append(f"a number is wrong: {record.result} for {wanted}")

    # Whole runs.

    def _run(self) -> None:
        if self.rng.random() < 0.5:
            shutil.copytree(self.ground.whole, self.results)
            for path in sorted(self.store.glob("??/*.json")):
                path.unlink() if self.rng.random() < 0.3 else None
            about = self.results / "quick/powers/squares.json"  # of an earlier version, which wrote a file more
            about.write_text(about.read_text().replace('"files": [', '"files": ["squares_gone.csv",'))
            about.with_name("squares_gone.csv").touch()
        self.litter()
        programs, sick = self.programs(), self.rng.random() < 0.2
        command = self.ground.command
        asked = self.rng.choices([self.ground.run, self.ground.single], [2, 1], k=len(programs))
        bodies = [
            (program, lambda program=program, one=one: command(one, program, self.broken, sick=sick))
            for program, one in zip(programs, asked, strict=True)
        ]
        ends = self.machine.run(*bodies)
        self.judge(ends, programs)
        if self.ground.single not in asked and any(end == 0 for end in ends) and not power_failed(programs):
            self._check_tables()
        if self.rng.random() < 0.5:
            self._publish_torn()
        self.settle()
        missing = sum(not is_done(self.store, key) for key in self.ground.jobs)
        again = self.machine.program()
        pool = Pool(again, self.store, self.broken)
        (end,) = self.machine.run((again, lambda: tasks.run(self.ground.run, None, pool)))
        if end != 0 or len(pool.started) != missing:
            self.broken.append(
                f"{missing} jobs were missing, the next run ran {len(pool.started)} and ends with {end!r}"
            )
        self._check_tables()

    def _check_tables(self) -> None:
        found = tables(self.results / "quick")
        if wrong := [n for n in {*found, *self.ground.tables} if found.get(n) != self.ground.tables.get(n)]:
            self.broken.append(f"tables are wrong: {sorted(wrong)}")

    def _publish_torn(self) -> None:
        """Publish what a broken run has left, before any other run: refused, or whole and right."""
        self.story.append("published at once")
        program = self.machine.program()
        (end,) = self.machine.run((program, lambda: tasks.publish(self.ground.publish)))
        if end == 0:
            found = tables(self.results / "published")
            if found != self.ground.tables:
                wrong = [n for n in {*found, *self.ground.tables} if found.get(n) != self.ground.tables.get(n)]
                self.broken.append(f"published is wrong: {sorted(wrong)}")
        elif not isinstance(end, ConfigurationError):
            self.broken.append(f"publishing what was broken ends with {end!r}")

    # Publishing.

    def _publish(self) -> None:
        shutil.copytree(self.ground.whole, self.results)
        published, wanted = self.results / "published", [self.ground.old, self.ground.new]
        if self.rng.random() < 0.2:
            shutil.rmtree(published)
            wanted[0] = {}
        elif self.rng.random() < 0.2:  # a kill came between two renames
            beside = self.results / f"publishing.{0:08x}.tmp"
            beside.mkdir()
            (beside / "trimbench.lock").touch()
            published.rename(beside / "old")
        programs = self.programs()
        ends = self.machine.run(*((one, lambda: tasks.publish(self.ground.publish)) for one in programs))
        self.judge(ends, programs)
        aside = [tree(path) for path in self.results.glob("publishing.*.tmp/old")]
        found = tree(published)
        if found not in wanted and not (not found and wanted[0] in aside):
            self.broken.append("published is neither the old run nor the new one")
        if any(end == 0 for end in ends) and found != self.ground.new:
            self.broken.append("publishing ends well, and the new run is not published")
        self.settle()
        again = self.machine.program()
        (end,) = self.machine.run((again, lambda: tasks.publish(self.ground.publish)))
        if end != 0 or tree(published) != self.ground.new:
            self.broken.append(f"publishing again ends with {end!r}, or not with the new run")

    def _check_left_over(self) -> None:
        """Look for temporary files that no program needs, once a later program has begun."""

        def tidy() -> None:
            for store in (self.store, self.machine.folder / "other/jobs"):
                JobStore(store)
            remove_temporary_folders()

        self.settle()
        self.machine.run((self.machine.program(), tidy))
        if left := [path.relative_to(self.machine.folder) for path in self.machine.folder.rglob("*.tmp")]:
            self.broken.append(f"left over: {', '.join(map(str, left))}")


# Places of the package that write: calls of the world, and of the functions that write with it.

_MODULES = ("files.py", "execution/store.py", "execution/executors.py", "vocabulary/planning.py")
# Of these modules, the functions that make and publish runs.
_PARTS = {
    "reporting/runs.py": re.compile(""),
    "reporting/overview.py": re.compile(""),
    "commands/publishing.py": re.compile(r"publish|_replace|_undo_killed|_copied"),
    "commands/tasks.py": re.compile(r"run|_run_all"),
    "commands/surroundings.py": re.compile(""),
}
_OPERATIONS = {
    *("create", "write", "copy", "flush", "rename", "make_folder", "make_folders", "unlink", "remove_folder"),
    *("remove_tree", "open_lock", "lock"),
}
_WRITERS = {
    *(
        "write",
        "write_text",
        "write_bytes",
        "write_csv",
        "write_profile",
        "write_summary",
        "write_findings",
        "temporaries",
    ),
    *("temporary_folder", "make_temporary_folder", "remove_temporary_folder", "remove_temporary_folders", "make_run"),
    *("remove_abandoned", "put_aside", "lock", "described", "remember"),
}


def places() -> dict[Place, str]:
    """Return the calls that write, by file, first and last line."""
    root, found = Path(trimbench.reproduction.__file__).parent, {}
    for name in (*_MODULES, *_PARTS):
        source = (root / name).read_text(encoding="utf-8")
        for part in ast.parse(source).body:
            names = [getattr(part, "name", "")]
            if name in _PARTS and not _PARTS[name].fullmatch(names[0]) and _PARTS[name].pattern:
                continue
            for node in ast.walk(part):
                if isinstance(node, ast.Call) and (what := _written_by(node)):
                    found[name, node.lineno, node.end_lineno or node.lineno] = what
    return found


def is_at(place: Place, lines: Set[tuple[str, int]]) -> bool:
    """Tell whether one of some lines is that of a place."""
    file, first, last = place
    return any((file, line) in lines for line in range(first, last + 1))


def _written_by(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="world")), attr=name) if name in _OPERATIONS:
            return f"world().{name}"
        case ast.Name(id=name) if name in _WRITERS:
            return name
    return ""


@contextlib.contextmanager
def prepared(folder: Path) -> Iterator[Ground]:
    """Yield what schedules begin with, in a process that logs nothing, whose project is the simulated paper."""
    before, level = project(), logging.root.manager.disable
    use(paper.make_project(folder / "project"))
    logging.disable(logging.CRITICAL)
    try:
        with silence():
            ground = Ground.of(folder)
        yield ground
    finally:
        logging.disable(level)
        use(before)


def room() -> str | None:
    """Return the folder for a simulated machine: one in memory, where there is one, takes less than half the time."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Print nothing."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def play(ground: Ground, seed: int, hit: set[tuple[str, int]] | None = None) -> tuple[str, list[str]]:
    """Play the schedule of a seed; return its story, and what is wrong."""
    with silence(), schedule_in(ground.folder, seed) as machine:
        schedule = Schedule(ground, machine)
        try:
            schedule.play()
        except Exception:  # noqa: BLE001  (an error here is a finding, too)
            schedule.broken.append(traceback.format_exc()[-1500:])
        if hit is not None:
            hit |= machine.hit
    return ", ".join(filter(None, schedule.story)), schedule.broken


def reached(hit: set[tuple[str, int]]) -> tuple[list[str], list[str]]:
    """Return the places that write where a fault came, and those where none did."""
    sorted_places: tuple[list[str], list[str]] = ([], [])
    for place, what in sorted(places().items()):
        sorted_places[not is_at(place, hit)].append(f"{place[0]}:{place[1]} {what}")
    return sorted_places


def main(arguments: list[str] | None = None) -> int:
    """Play schedules; the exit code is 1 if there is a finding, or faults came in too few places."""
    parser = argparse.ArgumentParser(prog="scripts/schedules", description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000, help="how many (default: 10,000)")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first one (default: 0)")
    parser.add_argument("--seed", type=int, help="only the schedule of this seed")
    chosen = parser.parse_args(arguments)
    hit: set[tuple[str, int]] = set()
    kinds: Counter[str] = Counter()
    started, n_findings = time.process_time(), 0
    out = sys.stdout
    with tempfile.TemporaryDirectory(prefix="schedules-", dir=room()) as name, prepared(Path(name)) as ground:
        seeds = range(chosen.first, chosen.first + chosen.schedules)
        for seed in seeds if chosen.seed is None else [chosen.seed]:
            story, broken = play(ground, seed, hit)
            kinds[story.partition(",")[0]] += 1
            if chosen.seed is not None:
                out.write(f"{story}\n")
            for one in broken:
                n_findings += 1
                out.write(f"FINDING seed {seed} ({story}): {one}\n")
                out.flush()
    seconds = time.process_time() - started
    at, missed = reached(hit)
    share = len(at) / len(at + missed)
    counts = ", ".join(f"{n:,} of {kind}" for kind, n in kinds.most_common())
    out.write(f"{kinds.total():,} schedules ({counts}), {n_findings} findings, {seconds:.0f} s of processor time\n")
    out.write(f"Faults came in {len(at)} of {len(at + missed)} places that write ({share:.0%}); not in:\n")
    out.write("".join(f"  {one}\n" for one in missed))
    return int(n_findings > 0 or (share < 0.95 and chosen.seed is None))


if __name__ == "__main__":
    sys.exit(main())
