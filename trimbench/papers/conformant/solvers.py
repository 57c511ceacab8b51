"""The three solvers of naive conformant learning: objective, conformity, time and memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.conformant.conform import SOLVERS
from trimbench.papers.configuration import Catalogue
from trimbench.papers.conformant.protocol import check_encodings, make_task
from trimbench.papers.conformant.sweep_jobs import CODE
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.functions import job_function
from trimbench.papers.execution.job import Job
from trimbench.papers.study.plan import Cell, Outcome, Table, check_axis

if TYPE_CHECKING:
    import pandas as pd

    from trimbench.conformant.model import ConformantModel

_CODE = (*CODE, "trimbench.papers.conformant.solvers")
_SYNTHETIC = "synthetic"
_REPEAT_BELOW = 0.5  # seconds
_REPETITIONS = 9


@job_function(code=_CODE)
def solve_task(task: Mapping[str, Any], solver: str) -> dict[str, Any]:
    """Learn the conformant model of a task with one solver.

    Parameters
    ----------
    task : mapping
        `Task.parameters`.
    solver : {"newton", "gpkit", "cvxpy"}
    """
    import numpy as np

    from trimbench.conformant.conform import conform_to_statistics
    from trimbench.conformant.layout import FeatureLayout
    from trimbench.conformant.statistics import FeatureStatistics
    from trimbench.papers.conformant.classifier import fitted
    from trimbench.papers.conformant.rows import prepare

    prepared, classifier = prepare(task), fitted(task)
    layout = FeatureLayout.of(prepared.train.shape[1])
    statistics = FeatureStatistics.of(prepared.train, layout)
    classes = np.arange(len(prepared.classes))

    def learn() -> ConformantModel:
        return conform_to_statistics(
            classifier.weights,
            classifier.biases,
            classes,
            layout,
            statistics,
            solver,  # type: ignore[arg-type]
            task["protocol"]["smoothing"],
        )

    result, model = _measured(learn, solver)
    result["mean_log_likelihood"] = float(model.log_likelihood(prepared.train).mean())
    result["prediction_error"] = model.conformity_error(prepared.test)
    return result


@job_function(code=_CODE)
def solve_synthetic(n_features: int, n_classes: int, seed: int, solver: str) -> dict[str, Any]:
    """Learn the conformant model of random weights and feature means.

    Parameters
    ----------
    n_features, n_classes, seed : int
    solver : {"newton", "gpkit", "cvxpy"}
    """
    import numpy as np

    from trimbench.conformant.conform import conform_to_statistics
    from trimbench.conformant.layout import FeatureLayout
    from trimbench.conformant.statistics import FeatureStatistics

    rng = np.random.default_rng(seed)
    means = rng.uniform(0.01, 0.99, n_features)
    weights, biases = rng.normal(0, 0.1, (n_features, n_classes)), rng.normal(0, 1, n_classes)
    statistics = FeatureStatistics(10_000, means, means * (1 - means))
    layout = FeatureLayout.of(n_features)
    result, model = _measured(
        lambda: conform_to_statistics(weights, biases, np.arange(n_classes), layout, statistics, solver),  # type: ignore[arg-type]
        solver,
    )
    rows = (rng.random((100, n_features)) < means).astype(float)
    return {**result, "mean_log_likelihood": None, "prediction_error": model.conformity_error(rows)}


def _measured(learn: Callable[[], ConformantModel], solver: str) -> tuple[dict[str, Any], ConformantModel]:
    """Load what is loaded late, then measure."""
    _warm_up(solver)
    start = time.perf_counter()
    model, memory = _with_memory(learn)
    seconds = time.perf_counter() - start
    times = [seconds]
    if seconds < _REPEAT_BELOW:
        times = []
        for _ in range(_REPETITIONS):
            start = time.perf_counter()
            learn()
            times.append(time.perf_counter() - start)
    result = {
        "n_columns": model.layout.n_columns,
        "n_classes": len(model.classes),
        "objective": model.solution.value,
        "residual": model.residual,
        # Every point of the reduced form conforms; the geometric program has probabilities that must be made to.
        "conformity_error": model.solution.conformity_error if solver == "gpkit" else None,
        "iterations": model.solution.iterations or None,
        "solver_seconds": sorted(times)[len(times) // 2],
        "memory_mb": memory,
        "prior": [float(value) for value in model.log_prior],
    }
    return result, model


def _warm_up(solver: str) -> None:
    """Import the solver, and what all of them need, on a problem of one feature: the first import takes seconds."""
    import numpy as np

    from trimbench.conformant.conform import conform_to_statistics
    from trimbench.conformant.layout import FeatureLayout
    from trimbench.conformant.statistics import FeatureStatistics

    statistics = FeatureStatistics(10, np.array([0.5]), np.array([0.25]))
    weights = np.array([[0.0, 1.0]])
    conform_to_statistics(weights, np.zeros(2), np.arange(2), FeatureLayout.of(1), statistics, solver)  # type: ignore[arg-type]


def _with_memory(learn: Callable[[], ConformantModel]) -> tuple[ConformantModel, float | None]:
    """Return a model, and by how many MB this process grows at most meanwhile; None where that cannot be told."""
    status = Path("/proc/self/statm")
    if not status.is_file():
        return learn(), None
    before = _resident_pages(status)
    peak, ended = before, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.005):
            peak = max(peak, _resident_pages(status))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        model = learn()
    finally:
        peak = max(peak, _resident_pages(status))
        ended.set()
        watcher.join()
    return model, (peak - before) * 4096 / 1e6


def _resident_pages(status: Path) -> int:
    return int(status.read_text().split()[1])


@dataclass(frozen=True)
class Solvers:
    """Newton on the reduced form, the paper's geometric program, and a cone program.

    Attributes
    ----------
    datasets : list of str
        Protocols, or ``synthetic``.
    solvers : list of str
    solvers_of : dict of str to list of str
        The same for single data sets.
    n_features, n_classes : int
        Of the synthetic data.
    encoding : {"paper", "authors"}
    seed : int
    """

    datasets: list[str]
    solvers: list[str] = field(default_factory=lambda: ["newton"])
    solvers_of: dict[str, list[Any]] = field(default_factory=dict)
    n_features: int = 20_000
    n_classes: int = 100
    encoding: str = "paper"
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        lists = {"solvers": self.solvers} | {f"solvers_of.{name}": names for name, names in self.solvers_of.items()}
        for key, solvers in lists.items():
            check_axis(key, solvers)
            for solver in solvers:
                if solver not in SOLVERS:
                    raise ValueError(f"{key} must be of {', '.join(SOLVERS)}, got {solver!r}")
        check_encodings(encoding=self.encoding)
        if self.n_features < 1 or self.n_classes < 2:
            raise ValueError(
                f"n_features must be 1 or more and n_classes 2 or more, got {self.n_features} and {self.n_classes}"
            )

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each data set and solver."""
        cells = []
        for name in self.datasets:
            for solver in self.solvers_of.get(name, self.solvers):
                labels = {"dataset": name, "solver": solver}
                if name == _SYNTHETIC:
                    sizes = {"n_features": self.n_features, "n_classes": self.n_classes, "seed": self.seed}
                    cells.append(Cell(labels, Job.create(solve_synthetic, {**sizes, "solver": solver})))
                    continue
                task = make_task(catalogue, cache, name, self.encoding, self.seed)
                data = {f"dataset/{task.protocol.dataset}": task.sha256}
                job = Job.create(solve_task, {"task": task.parameters, "solver": solver}, data)
                cells.append(Cell(labels, job, (task.declaration,)))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return one line for each data set and solver."""
        import pandas as pd

        done = rows[rows["status"] == "ok"]
        lines = []
        for entry in done.to_dict("records"):
            newton = done[(done["dataset"] == entry["dataset"]) & (done["solver"] == "newton")]
            line = {"data": entry["dataset"], "solver": entry["solver"]}
            line |= {title: entry[key] for key, title in _COLUMNS.items()}
            if len(newton):
                first = newton.iloc[0]
                line["below newton"] = first["objective"] - entry["objective"]
                line["times newton"] = entry["solver_seconds"] / first["solver_seconds"]
                line["largest difference of log p(k)"] = max(
                    abs(a - b) for a, b in zip(entry["prior"], first["prior"], strict=True)
                )
            lines.append(line)
        frame = pd.DataFrame(lines, columns=_ORDER)
        notes = [
            "'below newton' is by how much less the solver's objective is than that of Newton; the objective is the "
            "mean log-likelihood of the training rows, up to a constant and to the pseudo-counts.",
            "'residual' is the largest violation of the moment equations. 'conformity error' is the largest difference "
            "between the log-odds of GPkit's own probabilities and those that conformity asks for; newton and cvxpy "
            "solve the reduced form, in which every point conforms. 'error of P(k | x)' is what rounding leaves of the "
            "difference between the learned naive Bayes model, by Bayes' rule, and the classifier on complete rows.",
            "Seconds are those of the optimisation from the feature means, on one thread, without imports. MB is by "
            "how much the memory of the process grows, sampled every 5 ms.",
        ]
        return Outcome((Table("", "Solvers of naive conformant learning", frame, _FORMATS),), (), {}, notes)


_COLUMNS = {
    "n_columns": "columns",
    "n_classes": "classes",
    "mean_log_likelihood": "mean log P(x)",
    "residual": "residual",
    "conformity_error": "conformity error",
    "prediction_error": "error of P(k | x)",
    "iterations": "iterations",
    "solver_seconds": "seconds",
    "memory_mb": "MB",
}
_ORDER = [
    *("data", "solver", *_COLUMNS.values()),
    *("below newton", "largest difference of log p(k)", "times newton"),
]
_FORMATS = {
    **dict.fromkeys(["columns", "classes", "iterations", "MB"], ".0f"),
    "mean log P(x)": ".8f",
    "seconds": ".4f",
    "times newton": ".0f",
    **dict.fromkeys(
        ["residual", "conformity error", "error of P(k | x)", "below newton", "largest difference of log p(k)"], ".1e"
    ),
}
