"""Time ``task=list`` with 2,000 and with 20,000 stored records, of three kilobytes each. Takes about two minutes.

The records are made up, the jobs are those of all experiments with so many random masks that there are enough of them.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hydra

from trimbench.reproduction.commands.common_settings import SHARED_KEYS
from trimbench.reproduction.configuration import Catalogue, plain
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.provenance import provenance
from trimbench.reproduction.execution.store import JobStore, Record
from trimbench.reproduction.project import project
from trimbench.reproduction.settings import Json
from trimbench.reproduction.vocabulary.cells import Inputs
from trimbench.reproduction.vocabulary.planning import make_experiment

# Number of records: profile, and random masks of the small data sets.
SETTINGS = {2_000: ("quick", 22), 20_000: ("paper", 220)}
LIMITS = {2_000: 2.0, 20_000: 10.0}
REPETITIONS = 5


def planned(words: list[str]) -> list[Job]:
    """Return the jobs of all experiments, each once."""
    catalogue = Catalogue()
    inputs = Inputs(catalogue, Cache.from_environment())
    jobs: dict[str, Job] = {}
    with hydra.initialize_config_dir(str(project().configuration), version_base="1.3"):
        for name in catalogue.names("experiment"):
            values = plain(hydra.compose("config", overrides=[*words, f"experiment={name}"]))
            cells = make_experiment(name, values, SHARED_KEYS).cells(inputs)
            jobs |= {cell.job.key: cell.job for cell in cells}
    return list(jobs.values())


def seconds_of(command: list[str]) -> tuple[float, float]:
    """Return wall and processor time; where other programs run, the latter says more."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, used


def main() -> None:
    result: dict[str, Json] = {f"method_{n}/measure": n / 7 for n in range(50)}
    for n_records, (profile, masks) in SETTINGS.items():
        words = [f"profile={profile}", f"profile.mask_repetitions_small={masks}"]
        jobs = planned(words)[:n_records]
        with tempfile.TemporaryDirectory() as folder:
            store = JobStore(Path(folder) / "jobs")
            for job in jobs:
                store.put(Record(job, "ok", result, None, 0.1, provenance()))
            command = [sys.executable, "-m", "trimbench", "task=list", f"results={folder}", *words]
            times = [seconds_of(command) for _ in range(REPETITIONS)]
        wall, used = (statistics.median(column) for column in zip(*times, strict=True))
        what = f"trimbench task=list, {len(jobs):,} records (limit {LIMITS[n_records]:g} s)"
        print(f"{what:<60} {wall:8.2f} s, {used:.2f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
