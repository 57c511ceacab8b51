"""The three solvers of naive conformant learning: objective, conformity, time and memory."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field, PositiveInt

from trimbench.conformant.conform import SolverName, conform_to_statistics
from trimbench.conformant.layout import FeatureLayout, FeatureStatistics
from trimbench.conformant.model import ConformantModel
from trimbench.papers.conformant.tasks import Encoding, Task, encoded_rows, fitted, make_task
from trimbench.papers.execution.code_hash import job_function
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import Cell, Outcome, check_axis, successes
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.tables import Table

if TYPE_CHECKING:
    import pandas as pd

_SYNTHETIC = "synthetic"
_REPEAT_BELOW = 0.5  # seconds
_REPETITIONS = 9
_RESULTS = {
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
_FORMATS = {
    **dict.fromkeys(["data", "solver"], ""),
    **dict.fromkeys(["columns", "classes"], ".0f"),
    "mean log P(x)": ".8f",
    **dict.fromkeys(["residual", "conformity error", "error of P(k | x)"], ".1e"),
    "iterations": ".0f",
    "seconds": ".4f",
    "MB": ".0f",
    **dict.fromkeys(["below newton", "largest difference of log p(k)"], ".1e"),
    "times newton": ".0f",
}
_NOTES = (
    "'below newton' is by how much less the solver's objective is than that of Newton; the objective is the "
    "mean log-likelihood of the training rows, up to a constant and to the pseudo-counts.",
    "'residual' is the largest violation of the moment equations. 'conformity error' is the largest difference "
    "between the log-odds of GPkit's own probabilities and those that conformity asks for; newton and cvxpy "
    "solve the reduced form, in which every point conforms. 'error of P(k | x)' is what rounding leaves of the "
    "difference between the learned naive Bayes model, by Bayes' rule, and the classifier on complete rows.",
    "Seconds are those of the optimisation from the feature means, on one thread, without imports. MB is by "
    "how much the memory of the process grows, sampled every 5 ms.",
)


@settings
class Solvers:
    """Newton on the reduced form, the paper's geometric program, and a cone program.

    The data sets are protocols, or ``synthetic``: random weights of `n_features` and `n_classes`.
    """

    datasets: list[str]
    solvers: list[SolverName] = field(default_factory=lambda: ["newton"])
    solvers_of: dict[str, list[SolverName]] = field(default_factory=dict)
    n_features: PositiveInt = 20_000
    n_classes: Annotated[int, Field(ge=2)] = 100
    encoding: Encoding = "paper"
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        check_axis("solvers", self.solvers)
        for name, solvers in self.solvers_of.items():
            check_axis(f"solvers_of.{name}", solvers)

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each data set and solver."""
        cells = []
        for name in self.datasets:
            for solver in self.solvers_of.get(name, self.solvers):
                labels = {"dataset": name, "solver": solver}
                if name == _SYNTHETIC:
                    sizes = {"n_features": self.n_features, "n_classes": self.n_classes, "seed": self.seed}
                    cells.append(Cell.of(labels, solve_synthetic, **sizes, solver=solver))
                else:
                    task = make_task(inputs, name, self.encoding, self.seed)
                    cells.append(Cell.of(labels, solve_task, task=task, solver=solver))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return one line for each data set and solver."""
        entries = successes(rows).to_dict("records")
        newton = {entry["dataset"]: entry for entry in entries if entry["solver"] == "newton"}
        lines = []
        for entry in entries:
            line = {"data": entry["dataset"], "solver": entry["solver"]}
            line |= {title: entry[key] for key, title in _RESULTS.items()}
            if first := newton.get(entry["dataset"]):
                line["below newton"] = first["objective"] - entry["objective"]
                line["times newton"] = entry["solver_seconds"] / first["solver_seconds"]
                differences = (abs(a - b) for a, b in zip(entry["prior"], first["prior"], strict=True))
                line["largest difference of log p(k)"] = max(differences)
            lines.append(line)
        return Outcome((Table.of("Solvers of naive conformant learning", lines, _FORMATS),), (), (), _NOTES)


@job_function
def solve_task(task: Mapping[str, Json], solver: SolverName) -> dict[str, Json]:
    """Learn the conformant model of a task with one solver."""
    own = Task.of(task)
    rows, classifier = encoded_rows(own), fitted(own)
    layout = FeatureLayout.of(rows.train.shape[1])
    statistics = FeatureStatistics.of(rows.train, layout)
    classes, smoothing = np.arange(len(rows.classes)), own.protocol.smoothing
    learn = functools.partial(
        conform_to_statistics, classifier.weights, classifier.biases, classes, layout, statistics, solver, smoothing
    )
    result, model = _measured(learn, solver)
    likelihood = float(model.log_likelihood(rows.train).mean())
    return {**result, "mean_log_likelihood": likelihood, "prediction_error": model.conformity_error(rows.test)}


@job_function
def solve_synthetic(n_features: int, n_classes: int, seed: int, solver: SolverName) -> dict[str, Json]:
    """Learn the conformant model of random weights and feature means."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.01, 0.99, n_features)
    weights, biases = rng.normal(0, 0.1, (n_features, n_classes)), rng.normal(0, 1, n_classes)
    statistics = FeatureStatistics(10_000, means, means * (1 - means))
    layout, classes = FeatureLayout.of(n_features), np.arange(n_classes)
    learn = functools.partial(conform_to_statistics, weights, biases, classes, layout, statistics, solver)
    result, model = _measured(learn, solver)
    rows = (rng.random((100, n_features)) < means).astype(float)
    return {**result, "mean_log_likelihood": None, "prediction_error": model.conformity_error(rows)}


def _measured(learn: Callable[[], ConformantModel], solver: SolverName) -> tuple[dict[str, Json], ConformantModel]:
    """Load what is loaded late, then measure."""
    _warm_up(solver)
    start = time.perf_counter()
    model, memory = _with_memory(learn)
    seconds = time.perf_counter() - start
    times = [seconds] if seconds >= _REPEAT_BELOW else [_seconds(learn) for _ in range(_REPETITIONS)]
    solution = model.components[0].solution
    result: dict[str, Json] = {
        "n_columns": model.layout.n_columns,
        "n_classes": len(model.classes),
        "objective": solution.value,
        "residual": model.residual,
        # Every point of the reduced form conforms; the geometric program has probabilities that must be made to.
        "conformity_error": solution.conformity_error if solver == "gpkit" else None,
        "iterations": solution.iterations or None,
        "solver_seconds": sorted(times)[len(times) // 2],
        "memory_mb": memory,
        "prior": [float(value) for value in model.log_prior],
    }
    return result, model


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _warm_up(solver: SolverName) -> None:
    """Import the solver, and what all of them need, on a problem of one feature: the first import takes seconds."""
    statistics = FeatureStatistics(10, np.array([0.5]), np.array([0.25]))
    weights = np.array([[0.0, 1.0]])
    conform_to_statistics(weights, np.zeros(2), np.arange(2), FeatureLayout.of(1), statistics, solver)


def _with_memory(learn: Callable[[], ConformantModel]) -> tuple[ConformantModel, float | None]:
    """Return a model, and by how many MB this process grows meanwhile; None on systems without /proc."""
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
