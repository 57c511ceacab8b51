"""Schedules of faults on a simulated machine; `scripts/schedules` plays more of them, and each again from its seed."""

from __future__ import annotations

import ast
import contextlib
import errno
import random
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import trimbench.reproduction
from trimbench.reproduction.commands import publishing
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import JobStore, Record
from trimbench.reproduction.files import lock, temporary_folder, write_bytes, write_text
from trimbench.reproduction.reporting.overview import write_summary
from trimbench.reproduction.reporting.runs import make_run, write_profile
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.reported import Literature
from trimbench.reproduction.world import World, world

from .simulated.machine import Fault, Killed, Machine, Program
from .simulated.schedules import Ground, places, play, prepared, reached, room, schedule_in, silence, tree

_PARTS = 5


# In one worker, which makes once what all schedules begin with.
pytestmark = pytest.mark.xdist_group("schedules")


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="schedules-", dir=room()) as folder, prepared(Path(folder)) as found:
        yield found


@pytest.mark.parametrize("part", range(_PARTS))
def test_after_any_schedule_the_next_run_does_exactly_what_is_missing(ground: Ground, part: int) -> None:
    hit: set[tuple[str, int]] = set()
    for seed in range(part, 500, _PARTS):
        story, broken = play(ground, seed, hit)
        assert not broken, f"scripts/schedules --seed {seed}: {story}"
    assert len(reached(hit)[0]) > 20, "places that write where faults came"


def test_a_schedule_follows_from_its_seed(ground: Ground) -> None:
    hits: list[set[tuple[str, int]]] = [set(), set()]
    for hit in hits:
        stories = [play(ground, seed, hit) for seed in range(12)]
    assert len({*map(str, stories)}) > 6
    assert hits[0] == hits[1]
    assert stories == [play(ground, seed) for seed in range(12)]


# Mistakes that the schedules must find, each within 200 of them.


def _write_in_place(target: Path, folders: Mapping[str, Path], invocation: Any) -> None:
    """Publish by giving the new run its name before it is written."""
    with temporary_folder(target.parent, "publishing") as beside:
        if target.exists():
            world().rename(target, beside / "old")
        parts = [publishing._copied(name, folder, target) for name, folder in folders.items()]
        literature = Literature.of(invocation.catalogue)
        write_summary(parts, literature, target, run=target.name, profile=invocation.profile)
        write_profile(target, invocation.profile)


@contextlib.contextmanager
def _take_no_turn(store: JobStore, on_wait: object) -> Iterator[None]:
    yield


def _trust(store: JobStore, job: Job, get: Any = JobStore.get) -> Record | None:
    """Read a record without looking at its hash."""
    with contextlib.suppress(OSError, ValueError):
        text = store.path(job).read_text()
        value = re.search(r'"value":([\d.]+)', text)
        if '"status":"ok"' in text:
            return Record(job, "ok", {"value": float(value[1]) if value else 0.0}, None, 0.0, {})
    return get(store, job)


def _forget_to_flush(program: World, path: Path) -> None:
    pass


_MISTAKES = {
    "rename before write": (publishing, "_replace", _write_in_place),
    "forget the lock": (JobStore, "turn", _take_no_turn),
    "trust a torn record": (JobStore, "get", _trust),
    "forget to flush": (Program, "flush", _forget_to_flush),
    "run what is stored": (JobStore, "stamp", lambda store, job: None),
}


@pytest.mark.parametrize("mistake", _MISTAKES)
def test_a_mistake_is_found_within_200_schedules(ground: Ground, monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    monkeypatch.setattr(*_MISTAKES[mistake])
    assert any(play(ground, seed)[1] for seed in range(200))


# The machine itself.


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, random.Random(1))


def _after(machine: Machine, body: Any, *faults: Fault) -> Any:
    (end,) = machine.run((machine.program(*faults), body))
    return end


def test_a_power_cut_takes_what_was_not_flushed(machine: Machine, tmp_path: Path) -> None:
    def write() -> None:
        for at in range(20):
            write_bytes(b"whole", tmp_path / f"{at}.kept", flush=True)
            write_bytes(b"whole", tmp_path / f"{at}.lost")

    assert _after(machine, write) is None
    machine.cut_power()
    kept, lost = ({path.read_bytes() for path in tmp_path.glob(f"*.{end}")} for end in ("kept", "lost"))
    assert kept == {b"whole"}
    assert len(lost) > 2


def test_a_killed_program_does_nothing_more_and_frees_its_locks(machine: Machine, tmp_path: Path) -> None:
    def write() -> None:
        assert lock(tmp_path / "lock") is not None
        try:
            world().write(tmp_path / "file", b"0123456789")
        finally:
            with contextlib.suppress(OSError):
                world().unlink(tmp_path / "file")

    assert isinstance(_after(machine, write, Fault("kill", 3)), Killed)
    assert (tmp_path / "file").read_bytes() in [b"0123456789"[:n] for n in range(11)]
    assert _after(machine, lambda: lock(tmp_path / "lock")) is not None


@pytest.mark.parametrize(("kind", "number"), [("full", errno.ENOSPC), ("error", errno.EIO)])
def test_a_disk_is_full_for_good_and_fails_once(machine: Machine, tmp_path: Path, kind: str, number: int) -> None:
    def write() -> list[int]:
        numbers = []
        for at in range(3):
            try:
                world().write(tmp_path / str(at), b"0123456789")
                numbers.append(0)
            except OSError as error:
                numbers.append(error.errno)
        return numbers

    assert _after(machine, write, Fault(kind, 2)) == [0, number, number if kind == "full" else 0]


def test_programs_that_wait_for_each_other_are_noticed(machine: Machine, tmp_path: Path) -> None:
    def both(first: str, second: str) -> list[int | None]:
        return [lock(tmp_path / first, wait=True), lock(tmp_path / second, wait=True)]

    ends: list[Any] = []
    while not any(isinstance(end, RuntimeError) for end in ends):  # the random generator decides who goes on
        bodies = [(machine.program(), lambda names=names: both(*names)) for names in ("ab", "ba")]
        ends = machine.run(*bodies)


# That nothing of these modules goes past the world.

_DIRECT = {
    *("write_text", "write_bytes", "unlink", "mkdir", "rmdir", "rmtree", "makedirs", "replace", "rename", "symlink"),
    *("touch", "fsync", "flock", "copyfile", "truncate", "token_hex", "perf_counter"),
}
# What workers print goes to files that the pool reads: the simulated pool has none.
_OF_WORKERS = ("written_to", "take", "shorten_file", "BoundedText")


def test_whatever_is_written_is_written_by_the_world() -> None:
    root, found = Path(trimbench.reproduction.__file__).parent, set()
    for name in sorted({file for file, *_ in places()}):
        for part in ast.parse((root / name).read_text(encoding="utf-8")).body:
            if getattr(part, "name", "") in _OF_WORKERS:
                continue
            for node in ast.walk(part):
                if isinstance(node, ast.Call) and isinstance(call := node.func, ast.Attribute) and call.attr in _DIRECT:
                    base = ast.unparse(call.value)
                    is_text = call.attr == "replace" and len(node.args) >= 2
                    if base != "world()" and not is_text and base not in ("dataclasses",):
                        found.add(f"{name}:{node.lineno} {base}.{call.attr}")
    assert not found
    assert len(places()) > 60


# What schedules have found.


def _published(ground: Ground, seed: int, *faults: Fault, n: int = 1) -> tuple[list[Any], dict[str, bytes]]:
    """Publish by several programs at once, the first with faults; return how they end, and what is published."""
    with silence(), schedule_in(ground.folder, seed) as machine:
        results = ground.publish.root
        shutil.copytree(ground.whole, results)
        programs = [machine.program(*(faults if at == 0 else ())) for at in range(n)]
        ends = machine.run(*((one, lambda: publishing.publish(ground.publish)) for one in programs))
        return ends, tree(results / "published")


def test_two_publishers_take_turns(ground: Ground) -> None:
    for seed in range(20):
        assert _published(ground, seed, n=2) == ([0, 0], ground.new)


def test_a_power_cut_leaves_one_published_run_or_the_other(ground: Ground) -> None:
    found = []
    for before_end in range(12, 48, 2):
        ends, published = _published(ground, 1, Fault("power", ground.steps["publish"] - before_end))
        assert isinstance(ends[0], Killed)
        found.append(published)
    assert ground.old in found
    assert ground.new in found
    assert all(one in (ground.old, ground.new, {}) for one in found), "or the old one, set aside"


def test_publishing_leaves_out_what_a_failing_disk_kept(ground: Ground) -> None:
    with schedule_in(ground.folder, 1) as machine, silence():
        shutil.copytree(ground.whole, ground.publish.root)
        names: list[str] = []
        (program := machine.program()).names = names
        machine.run((program, lambda: publishing.publish(ground.publish)))
    steps = [at for at, name in enumerate(names, 1) if name == "remove_folder"]
    assert len(steps) > 5
    for at in steps:
        _, published = _published(ground, 1, Fault("error", at))
        assert not [name for name in published if ".tmp" in name]


def test_a_file_of_a_run_that_is_not_as_it_was_written_is_not_published(ground: Ground) -> None:
    with silence(), schedule_in(ground.folder, 1) as machine:
        results = ground.publish.root
        shutil.copytree(ground.whole, results)
        file = results / "quick/powers/squares.csv"
        file.write_bytes(file.read_bytes()[:-5])
        end = _after(machine, lambda: publishing.publish(ground.publish))
        assert isinstance(end, ConfigurationError)
        wanted = "run must have the files of powers/squares as it wrote them, got another .*squares.csv"
        assert re.search(wanted, str(end))
        assert tree(results / "published") == ground.old


def test_a_killed_first_run_leaves_nothing_in_the_folder_of_jobs(machine: Machine, tmp_path: Path) -> None:
    run = tmp_path / "results/quick"
    for at in range(1, 40):
        _after(machine, lambda: make_run(run, "quick"), Fault("kill", at))
        assert _after(machine, lambda: make_run(run, "quick")) is None
        assert sorted(tree(tmp_path / "results")) == ["jobs/.gitignore", "quick/.gitignore", "quick/run.json"]
        assert not list(tmp_path.rglob("*.tmp"))
        for path in sorted((tmp_path / "results").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


def test_a_power_cut_leaves_a_run_that_the_next_one_knows(machine: Machine, tmp_path: Path) -> None:
    for at in range(20):
        run = tmp_path / str(at) / "quick"
        assert _after(machine, lambda run=run: make_run(run, "quick")) is None
        write_text("more", run / "table.csv")
        machine.cut_power()
        assert _after(machine, lambda run=run: make_run(run, "quick")) is None


def test_a_fault_while_the_old_run_is_put_back_keeps_it_aside(ground: Ground) -> None:
    """The rename of the new run fails, and so does what then puts back the old one."""
    renames = [place for place, what in places().items() if place[0] == "commands/publishing.py" and "rename" in what]
    aside, instead, back, _ = sorted(renames)
    assert aside not in ground.rare["publish"]
    assert back in ground.rare["publish"]
    assert back in ground.leads
    assert {*ground.leads} <= {*ground.rare["publish"]}
    for kind in ("kill", "error"):
        with silence(), schedule_in(ground.folder, 1) as machine:
            shutil.copytree(ground.whole, ground.publish.root)
            faults = Fault("error", 1, places=[instead]), Fault(kind, 1, places=ground.rare["publish"])
            assert isinstance(_after(machine, lambda: publishing.publish(ground.publish), *faults), Killed | OSError)
            assert ("commands/publishing.py", back[1]) in machine.hit
            published = ground.publish.root / "published"
            assert not published.exists()
            assert [tree(path) for path in ground.publish.root.glob("publishing.*.tmp/old")] == [ground.old]
            assert _after(machine, lambda: publishing.publish(ground.publish)) == 0
            assert tree(published) == ground.new


def test_what_a_failing_disk_keeps_twice_is_not_published(ground: Ground) -> None:
    (place,) = (place for place in ground.leads if "remove" in places()[place])
    for step in ground.leads[place]:
        faults = Fault("error", step), Fault("error", step + 1, places=[place])
        (end,), published = _published(ground, 1, *faults)
        assert end == 0 or "cannot be removed, so nothing is published" in str(end)
        assert published == (ground.new if end == 0 else ground.old)
