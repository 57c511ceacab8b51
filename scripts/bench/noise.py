"""Measure how often a check and an audit are right, on real experiments with few and small jobs.

``check`` runs two experiments, one simulated and one on real data, with many seeds, and checks each run against the one
before: nothing but the seed differs, so that at most 5 % of runs may have a number reported. Then it moves the numbers
of one of the experiments by one standard deviation between replications, which is to be reported. ``audit`` changes one
value of 1 % of the published jobs of an experiment in its sixth digit, and draws 300 jobs. For example

    scripts/bench/run noise check --runs 200 --replications 20
    scripts/bench/run noise audit --seeds 40
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trimbench.papers.project import PROJECT
from trimbench.reproduction.commands.arguments import Composer, setting
from trimbench.reproduction.commands.common_settings import SHARED_KEYS
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.execution.executors import execute
from trimbench.reproduction.execution.store import Record
from trimbench.reproduction.files import read_csv, write_csv
from trimbench.reproduction.project import project, use
from trimbench.reproduction.reporting.audit import Audit, compared, drawn, jobs_of_run
from trimbench.reproduction.reporting.check import Measured, NumbersOfRun, check
from trimbench.reproduction.reporting.comparison import is_cost
from trimbench.reproduction.reporting.runs import read_about
from trimbench.reproduction.reporting.verdicts import compare
from trimbench.reproduction.vocabulary.cells import Inputs
from trimbench.reproduction.vocabulary.planning import Plan, make_experiment
from trimbench.reproduction.vocabulary.reported import Literature

# Of each experiment, settings that make its jobs small; the key whose value is the number of replications.
SIMULATED, REAL = "selection_bias/selection_scatter", "trimming/figure5"
SMALL: dict[str, tuple[Mapping[str, Any], str]] = {
    SIMULATED: ({"n_features": 1000, "test_sizes": [10, 10]}, "replicates"),
    REAL: ({"datasets": ["pima"], "inferred": {}, "n_folds": 2}, "splits"),
}
AUDITED, CHANGED, DRAWN = "conformant/digits", 0.01, 300


class Runs:
    """Runs of the small experiments, in this process and stored nowhere."""

    def __init__(self, n_replications: int) -> None:
        self.catalogue = Catalogue()
        self.literature = Literature.of(self.catalogue)
        self.inputs = Inputs(self.catalogue, Cache.from_environment(offline=True))
        composer = Composer(self.catalogue)
        self._settings = {
            name: composer.compose([setting("experiment", name)]) | dict(small) | {key: n_replications}
            for name, (small, key) in SMALL.items()
        }

    def numbers(self, seed: int) -> NumbersOfRun:
        """Return the numbers of one run, as a check reads them."""
        found: dict[tuple[str, str], Measured] = {}
        for name, settings in self._settings.items():
            values = {**settings, "seed": seed}
            experiment = make_experiment(name, values, SHARED_KEYS)
            cells = experiment.cells(self.inputs)
            records: dict[str, Record] = {cell.job.key: execute(cell.job) for cell in cells}
            if bad := [one for one in records.values() if not one.ok]:
                raise RuntimeError(bad[0].error)
            reported, jobs = self.literature.reported(name), [cell.job for cell in cells]
            plan = Plan(name, values, experiment, reported, cells, {}, jobs, {}, {}, ("small",), name)
            for one in compare(reported, plan.findings(records).outcome.numbers, ""):
                number, interval = one.number, one.number.interval if one.number else None
                noise = (
                    {"n": interval.n, "deviation": interval.deviation, "draws": interval.draws}
                    if interval and interval.n > 1
                    else {}
                )
                value = number.value if number else None
                measured = Measured(value, one.verdict, one.cause or "", one.subject, **noise)  # type: ignore[arg-type]
                if value is not None:
                    found[name, one.reported.label] = measured
        return NumbersOfRun("run", found, {name: {"seed": str(seed)} for name in SMALL})


def checks(first: int, n_runs: int, n_replications: int) -> tuple[int, dict[str, int]]:
    """Return how many of the runs, each checked against the one before, have a number reported.

    Then in how many a shift of all numbers of an experiment is, for each experiment.
    """
    runs = Runs(n_replications)
    before, n, found = runs.numbers(first), 0, dict.fromkeys(SMALL, 0)
    noisy = sum(one.n > 1 for one in before.numbers.values())
    print(f"{len(before.numbers)} numbers, {noisy} of them with {n_replications} replications", flush=True)
    for seed in range(first + 1, first + n_runs + 1):
        now = runs.numbers(seed)
        n += any(one.why for one in check(before, now))
        for name in SMALL:
            moved = {
                key: dataclasses.replace(
                    one,
                    value=one.value + one.deviation,
                    draws=tuple(draw + one.deviation for draw in one.draws),
                )
                if key[0] == name and one.value is not None and one.n > 1
                else one
                for key, one in now.numbers.items()
            }
            found[name] += any(one.why for one in check(before, dataclasses.replace(now, numbers=moved)))
        before = now
    return n, found


def audits(n_seeds: int) -> tuple[int, int]:
    """Return how many audits of changed copies find a changed job, and in how many the bound holds the true share."""
    runs, published = Runs(2), project().folder / "results/published"
    about = read_about(published, AUDITED)
    values = {**Composer(runs.catalogue).compose([setting("experiment", AUDITED)]), **about["configuration"]}
    cells = make_experiment(AUDITED, values, SHARED_KEYS).cells(runs.inputs)
    records: dict[str, Record] = {}
    n_found = n_held = 0
    for seed in range(n_seeds):
        with tempfile.TemporaryDirectory() as folder:
            share = _changed_copy(published, about["page"]["jobs"]["file"], Path(folder), seed)
            jobs = jobs_of_run(AUDITED, about, Path(folder), cells, printed=False)
            order = drawn(jobs, seed)
            chosen = order[:DRAWN]
            for one in chosen:
                if one.job and one.job.key not in records:
                    records[one.job.key] = execute(one.job)
            found = {at: compared(one, records[one.job.key]) for at, one in enumerate(chosen) if one.job}
            audit = Audit(AUDITED, jobs, chosen, found, seed, {}, (), len(order))
        n_found += audit.counts["different"] > 0
        n_held += audit.bound >= share
    return n_found, n_held


def _changed_copy(published: Path, file: str, folder: Path, seed: int) -> float:
    """Write a table of jobs with changed values, and return the share of jobs that were changed."""
    rng, rows = np.random.default_rng(seed), read_csv(published / file)
    places = rng.choice(len(rows), round(CHANGED * len(rows)), replace=False)
    numbers = [name for name in map(str, rows) if "/" in name and not is_cost(name)]
    for place in places:
        value = 0.0
        while not (value and math.isfinite(value)):
            name = str(rng.choice(numbers))
            value = float(rows.loc[place, name] or "nan")
        rows.loc[place, name] = repr(value * (1 + 1e-6))
    (folder / file).parent.mkdir(parents=True)
    write_csv(rows, folder / file)
    return len(places) / len(rows)


def _lines(options: argparse.Namespace) -> Iterator[tuple[str, bool]]:
    if options.what == "check":
        n, found = checks(options.first, options.runs, options.replications)
        yield (
            f"{n} of {options.runs} runs with other seeds have a number reported (at most 5 %)",
            n <= options.runs / 20,
        )
        for name, moved in found.items():
            said = f"{name}: a shift of one standard deviation is reported in {moved} of {options.runs} (at least 90 %)"
            yield said, moved >= 0.9 * options.runs
    else:
        n_found, n_held = audits(options.seeds)
        said = f"{n_found} of {options.seeds} audits find a changed job (at least 90 %); the bound holds in {n_held}"
        yield f"{said} (at least 92.5 %)", n_found >= 0.9 * options.seeds and n_held >= 0.925 * options.seeds


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check", "audit"])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=40)
    use(PROJECT)
    right = []
    for said, holds in _lines(parser.parse_args(words)):
        print(said, flush=True)
        right.append(holds)
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
