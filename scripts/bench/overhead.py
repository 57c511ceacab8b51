"""Time what running a job costs beside the job: 5,000 small ones under each executor, stored and read again.

Takes about two minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_selector as selector
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from trimbench.estimators import NaiveConformantClassifier, SelectionCorrectedNB, TrimmedClassifier
from trimbench.networks.discretize import CutRule, Discretizer
from trimbench.papers.own_table.table_reading import read_table
from trimbench.papers.trimming.examples import best_threshold
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.execution.executors import Executor, SerialExecutor, run_jobs
from trimbench.reproduction.execution.job import Job, JobLimits
from trimbench.reproduction.execution.processes import ProcessExecutor, Workers
from trimbench.reproduction.execution.ray_executor import RayExecutor
from trimbench.reproduction.execution.store import JobStore, Record
from trimbench.reproduction.vocabulary.cells import Inputs

from .measure import Call, Row, growth, ratio_of, version_of, versus

N_JOBS = 5000
# How many times as long short jobs may take on two nodes as in two worker processes.
LIMIT = 1.3
NAP = "tests.reproduction.execution.sample_jobs:sleep"


def small_jobs(n_jobs: int) -> list[Job]:
    """Return jobs that each search the threshold of a table of two instances."""
    masses = [(n + 1) / (2 * n_jobs + 2) for n in range(n_jobs)]
    return [Job.create(best_threshold, {"instances": [[0.7, 0.4, mass], [0.2, 0.1, 0.4]]}) for mass in masses]


def nothing(_: Record) -> None:
    """Take a record and forget it."""


def jobs_against_files(n_jobs: int = 500) -> Iterator[Row]:
    """Compare running and storing small jobs with writing and renaming as many files of the same content."""
    jobs = small_jobs(n_jobs)
    with tempfile.TemporaryDirectory() as folder:
        kept = JobStore(Path(folder) / "kept")
        run_jobs(jobs, kept, SerialExecutor(), progress=False)
        content = json.loads(next((Path(folder) / "kept").glob("*/*.json")).read_text(encoding="utf-8"))

        def anew() -> None:
            with tempfile.TemporaryDirectory(dir=folder) as other:
                run_jobs(jobs, JobStore(Path(other)), SerialExecutor(), progress=False)

        def files() -> None:
            with tempfile.TemporaryDirectory(dir=folder) as other:
                for number in range(len(jobs)):
                    path = Path(other) / f"{number}.json"
                    path.with_suffix(".part").write_text(json.dumps(content), encoding="utf-8")
                    path.with_suffix(".part").rename(path)

        again = partial(run_jobs, jobs, kept, SerialExecutor(), progress=False)
        yield versus(f"{n_jobs} small jobs, run and stored", f"{n_jobs} files of JSON", anew, files)
        yield versus(f"{n_jobs} small jobs, taken from the store", f"{n_jobs} files of JSON", again, files)


def two_nodes(n_jobs: int = 200, repetitions: int = 9) -> Iterator[Row]:
    """Compare the wall time of short jobs on two nodes of Ray, and in two worker processes, once both have started."""
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    import ray
    from ray.cluster_utils import Cluster

    jobs = [Job.create(NAP, {"seconds": 0.05, "token": n}) for n in range(n_jobs)]
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    try:
        with closing(Workers(2, JobLimits())) as workers:
            calls = [partial(RayExecutor(address=made.address).run, jobs, nothing), partial(workers.run, jobs, nothing)]
            turns = [[wall_seconds(call) for call in calls] for _ in range(1 + repetitions)]
    finally:
        ray.shutdown()
        made.shutdown()  # type: ignore[no-untyped-call]
    what = f"{n_jobs} jobs of 50 ms on two nodes of Ray (limit {LIMIT:g})"
    yield ratio_of(what, "two worker processes", np.array(turns[1:]), "s, wall", version_of("ray") or "")


def wall_seconds(call: Call) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def start_of_the_command() -> Iterator[Row]:
    """Compare the start of the command, and of the library, with those of Python and NumPy."""

    def python(*arguments: str, env: dict[str, str] | None = None) -> Call:
        return partial(subprocess.run, [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=env)

    yield versus("trimbench --help", "python -c pass", python("-m", "trimbench", "--help"), python("-c", "pass"), 9)
    numpy = python("-c", "import numpy")
    for name in ("import trimbench", "import trimbench; trimbench.trim", "import trimbench; trimbench.conform"):
        yield versus(name, "import numpy", python("-c", name), numpy, 9)
    with tempfile.TemporaryDirectory() as empty:
        first = python("-c", TRIM, env=os.environ | {"NUMBA_CACHE_DIR": empty})
        yield versus("first trim of 24 features, nothing compiled before", "import numpy", first, numpy, 9)
    later = python("-c", TRIM)
    yield versus("first trim of 24 features in a later process", "import numpy", later, numpy, 9)


TRIM = """
import numpy as np, trimbench as tb
ones = np.random.default_rng(0).beta(1, 1, size=(24, 2))
model = tb.NaiveBayes([0.4, 0.6], np.stack([1 - ones, ones], axis=-1))
tb.trim(tb.BayesianClassifier(model, positive=model.class_names[1]), 8)
"""


def one_row() -> Iterator[Row]:
    """Compare predictions of one row with those of a logistic regression, of an array and of a data frame."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = (X - X.mean()) / X.std()
    peer = version_of("sklearn") or ""
    for estimator in (
        TrimmedClassifier(budget=4),
        NaiveConformantClassifier(n_components=1, covariance="diagonal"),
        SelectionCorrectedNB(k=10),
    ):
        for what, table in (("an array", X.to_numpy()), ("a data frame", X)):
            ours, theirs = clone(estimator).fit(table, y), LogisticRegression().fit(table, y)
            here, there = partial(ours.predict_proba, table[:1]), partial(theirs.predict_proba, table[:1])
            name = f"{type(estimator).__name__}: one row of {what}"
            yield versus(name, "LogisticRegression", here, there, 15, note=peer)
    rng = np.random.default_rng(0)
    wide, labels = rng.normal(size=(400, 60)), rng.integers(0, 2, 400)
    conformant, regression = (
        NaiveConformantClassifier(n_components=1, covariance="diagonal").fit(wide, labels),
        LogisticRegression().fit(wide, labels),
    )
    here, there = partial(conformant.predict_proba, wide[:1]), partial(regression.predict_proba, wide[:1])
    what = "NaiveConformantClassifier: one row of an array of 60 columns"
    yield versus(what, "LogisticRegression", here, there, 15, note=peer)


def fits() -> Iterator[Row]:
    """Compare fits with what scikit-learn has for the same, and see how they grow."""
    peer = version_of("sklearn") or ""
    data = Inputs(Catalogue(), Cache.from_environment()).loaded("adult")
    ours = NaiveConformantClassifier(n_components=1, covariance="diagonal")
    columns = ours.fit(data.features, data.target)._encoding.encode(data.features)
    theirs = make_pipeline(SimpleImputer(), LogisticRegression(max_iter=1000))
    what = f"NaiveConformantClassifier, adult, {int(data.features.isna().any(axis=1).sum())} incomplete rows: one fit"
    here, there = partial(ours.fit, data.features, data.target), partial(theirs.fit, columns, data.target)
    yield versus(what, "SimpleImputer, LogisticRegression", here, there, 5, note=peer)
    raw = data.features.astype({name: object for name, kind in data.features.dtypes.items() if kind == "category"})
    of_text = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    of_numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encoder = make_column_transformer((of_text, selector(dtype_include=object)), remainder=of_numbers)
    theirs = make_pipeline(encoder, LogisticRegression(max_iter=1000))
    here, there = partial(ours.fit, raw, data.target), partial(theirs.fit, raw, data.target)
    yield versus(f"{what}, from text", "imputers, encoders, LogisticRegression", here, there, 5, note=peer)

    rng = np.random.default_rng(0)
    table, classes = pd.DataFrame(rng.normal(size=(20_000, 30))), rng.integers(0, 2, 20_000)
    bins = KBinsDiscretizer(5, encode="ordinal", strategy="quantile").fit(table)
    for cut in get_args(CutRule):
        fit: Call = partial(Discretizer.fit, table, classes, cut)
        yield versus(f"Discretizer, cuts at {cut}: one fit", "KBinsDiscretizer", fit, partial(bins.fit, table), 9)
    transform = Discretizer.fit(table, classes, "median").transform
    yield versus(
        "Discretizer: one transform", "KBinsDiscretizer", partial(transform, table), partial(bins.transform, table)
    )

    labels = rng.integers(0, 2, 1000)
    strong = pd.DataFrame(rng.normal(size=(1000, 300)) + labels[:, None] * rng.uniform(0.2, 1.0, 300) > 0.5)

    def trimmed(n_features: int) -> Call:
        return partial(TrimmedClassifier(5).fit, strong.iloc[:, :n_features], labels)

    yield growth("TrimmedClassifier, budget 5: growth of a fit in features", (30, 60, 100, 300), trimmed, 3)


def reading() -> Iterator[Row]:
    """Compare the reading of a table of text with pandas'."""
    rng = np.random.default_rng(0)
    words = rng.choice(["red", "green", "blue"], (5000, 20))
    table = pd.concat([pd.DataFrame(rng.normal(size=(5000, 20)).round(4)), pd.DataFrame(words)], axis=1)
    table.columns = [f"c{place}" for place in range(40)]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table.csv"
        table.assign(y=rng.integers(0, 2, 5000)).to_csv(path, index=False)
        what = "table of 5,000 rows and 41 columns: read, with all that looks wrong"
        yield versus(what, "pandas.read_csv", partial(read_table, path, "y"), partial(pd.read_csv, path))


COMPARISONS = (jobs_against_files, two_nodes, start_of_the_command, one_row, fits, reading)


def main() -> None:
    for row in two_nodes():
        print(f"{row.quantity:<60} {row.ratio:8.2f} of {row.against}, spread {row.spread:.2f}")
        if row.ratio is None or row.ratio > LIMIT:
            raise SystemExit(f"{row.quantity}: took {row.ratio:.2f} times as long")
    start = time.perf_counter()
    jobs = small_jobs(N_JOBS)
    print(f"{'naming a job (hash of everything that decides it)':<60} {1e3 * _each(start):8.2f} ms")
    executors: list[tuple[str, Executor]] = [
        ("serial", SerialExecutor()),
        ("processes", ProcessExecutor()),
        ("ray", RayExecutor()),
    ]
    for name, executor in executors:
        start = time.perf_counter()
        executor.run(jobs[:1], nothing)
        started = time.perf_counter() - start
        with tempfile.TemporaryDirectory() as folder:
            store = JobStore(Path(folder))
            start = time.perf_counter()
            records = run_jobs(jobs, store, executor, progress=False)
            print(
                f"{f'{name}: a job, stored ({os.cpu_count()} processors)':<60} {1e3 * _each(start):8.2f} ms"
                f"   (the first takes {started:.1f} s)"
            )
            if not all(record.ok for record in records):
                raise SystemExit(f"{name}: some jobs failed")
            start = time.perf_counter()
            run_jobs(jobs, store, executor, progress=False)
            print(f"{f'{name}: the same again, from the store':<60} {1e3 * _each(start):8.2f} ms")


def _each(start: float) -> float:
    return (time.perf_counter() - start) / N_JOBS


if __name__ == "__main__":
    main()
