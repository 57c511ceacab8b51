"""The three solvers of naive conformant learning: objective, conformity, time and memory."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd

from trimbench.conformant.conform import Solver, conform_to_statistics
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.rows import FeatureStatistics
from trimbench.papers.conformant.programs import ProgramSolution, solve_cvxpy, solve_gpkit
from trimbench.papers.conformant.protocols import Encoding, Task, encoded_rows, fitted, make_task
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import COUNT, NOTHING, NUMBER, POSITIVE, job, list_of, timed

SolverName = Literal["newton", "gpkit", "cvxpy"]
SOLVERS: dict[SolverName, Solver] = {"newton": "newton", "gpkit": solve_gpkit, "cvxpy": solve_cvxpy}
_SYNTHETIC = "synthetic"
_REPEAT_BELOW = 0.5  # seconds
_REPETITIONS = 9
# Columns of the table, by the entries of a job's result, with their formats.
_RESULTS = {
    "n_columns": ("columns", ".0f"),
    "n_classes": ("classes", ".0f"),
    "mean_log_likelihood": ("mean log P(x)", ".8f"),
    "residual": ("residual", ".1e"),
    "conformity_error": ("conformity error", ".1e"),
    "prediction_error": ("error of P(k | x)", ".1e"),
    "iterations": ("iterations", ".0f"),
    "solver_seconds": ("seconds", ".4f"),
    "memory_mb": ("MB", ".0f"),
}
_FORMATS = {"data": "", "solver": "", **dict(_RESULTS.values())}
_FORMATS |= {"below newton": ".1e", "largest difference of log p(k)": ".1e", "times newton": ".0f"}


@vocab.settings
class Solvers:
    """The solvers compared: Newton on the reduced form, the paper's geometric program, and a cone program.

    The data sets are protocols, or ``synthetic``: random weights for `n_features` features and `n_classes` classes.
    """

    datasets: vocab.Axis[str]
    solvers: vocab.Axis[SolverName] = field(default_factory=lambda: ["newton"])
    solvers_of: dict[str, vocab.Axis[SolverName]] = field(default_factory=dict)
    n_features: vocab.Count = 20_000
    n_classes: Annotated[int, vocab.at_least(2)] = 100
    encoding: Encoding = "paper"
    seed: int = 0

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set and solver."""
        cells = []
        for name in self.datasets:
            for solver in self.solvers_of.get(name, self.solvers):
                labels = {"dataset": name, "solver": solver}
                if name == _SYNTHETIC:
                    sizes = {"n_features": self.n_features, "n_classes": self.n_classes, "seed": self.seed}
                    cells.append(vocab.Cell.of(labels, solve_synthetic, **sizes, solver=solver))
                else:
                    task = make_task(inputs, name, self.encoding, self.seed)
                    cells.append(vocab.Cell.of(labels, solve_task, task=task, solver=solver))
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return one line for each data set and solver."""
        entries = vocab.successes(rows).to_dict("records")
        newton = {entry["dataset"]: entry for entry in entries if entry["solver"] == "newton"}
        lines = []
        for entry in entries:
            line = {"data": entry["dataset"], "solver": entry["solver"]}
            line |= {title: entry[key] for key, (title, _) in _RESULTS.items()}
            if first := newton.get(entry["dataset"]):
                line["below newton"] = first["objective"] - entry["objective"]
                line["times newton"] = entry["solver_seconds"] / first["solver_seconds"]
                differences = (abs(a - b) for a, b in zip(entry["prior"], first["prior"], strict=True))
                line["largest difference of log p(k)"] = max(differences)
            lines.append(line)
        table = vocab.Table.of("Solvers of naive conformant learning", lines, _FORMATS)
        relaxed = [abs(line["below newton"]) for line in lines if line["solver"] == "gpkit" and "below newton" in line]
        numbers = [vocab.number_of("geometric programs", "gain by slack", max(relaxed), rows)] if relaxed else []
        return vocab.Outcome((table,), (), numbers)


_SOLVED = {
    **{"n_columns": COUNT, "n_classes": COUNT, "objective": NUMBER, "residual": POSITIVE},
    **{"conformity_error": POSITIVE | NOTHING, "iterations": COUNT | NOTHING, "solver_seconds": POSITIVE},
    **{"memory_mb": POSITIVE, "prior": list_of(NUMBER), "prediction_error": POSITIVE},
}


@job(_SOLVED | {"mean_log_likelihood": NUMBER})
def solve_task(task: Task, solver: SolverName) -> dict[str, vocab.Json]:
    """Learn the conformant model of a task with one solver."""
    rows, classifier = encoded_rows(task), fitted(task)
    layout = FeatureLayout.of(rows.train.shape[1])
    statistics = FeatureStatistics.of(rows.train, layout)
    given = (classifier.weights, classifier.biases, np.arange(len(rows.classes)), layout, statistics)
    result, model = _measured(SOLVERS[solver], *given, smoothing=task.protocol.smoothing)
    likelihood = float(model.log_likelihood(rows.train).mean())
    return {**result, "mean_log_likelihood": likelihood, "prediction_error": model.conformity_error(rows.test)}


@job(_SOLVED | {"mean_log_likelihood": NOTHING})
def solve_synthetic(n_features: int, n_classes: int, seed: int, solver: SolverName) -> dict[str, vocab.Json]:
    """Learn the conformant model for random weights and feature means."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.01, 0.99, n_features)
    weights, biases = rng.normal(0, 0.1, (n_features, n_classes)), rng.normal(0, 1, n_classes)
    statistics = FeatureStatistics(10_000, means, means * (1 - means))
    given = (weights, biases, np.arange(n_classes), FeatureLayout.of(n_features), statistics)
    result, model = _measured(SOLVERS[solver], *given)
    rows = (rng.random((100, n_features)) < means).astype(float)
    return {**result, "mean_log_likelihood": None, "prediction_error": model.conformity_error(rows)}


def _measured(solver: Solver, *given: Any, smoothing: float = 1.0) -> tuple[dict[str, vocab.Json], ConformantModel]:
    """Learn with a solver, and measure it; `given` and `smoothing` are arguments of `conform_to_statistics`."""
    solve = functools.partial(conform_to_statistics, solver=solver, smoothing=smoothing)
    # A problem of one feature imports the solver, and what all of them need: the first import takes seconds.
    one = FeatureStatistics(10, np.array([0.5]), np.array([0.25]))
    solve(np.array([[0.0, 1.0]]), np.zeros(2), np.arange(2), FeatureLayout.of(1), one)
    learn = functools.partial(solve, *given)
    (model, memory), seconds = timed(lambda: _with_memory(learn))
    times = [seconds] if seconds >= _REPEAT_BELOW else [timed(learn)[1] for _ in range(_REPETITIONS)]
    solution = model.components[0].solution
    result: dict[str, vocab.Json] = {
        "n_columns": model.layout.n_columns,
        "n_classes": len(model.classes),
        "objective": solution.value,
        "residual": model.residual,
        # Every point of the reduced form conforms; the geometric program's probabilities do so only approximately.
        "conformity_error": solution.conformity_error if isinstance(solution, ProgramSolution) else None,
        "iterations": solution.iterations or None,
        "solver_seconds": sorted(times)[len(times) // 2],
        "memory_mb": memory,
        "prior": [float(value) for value in model.log_prior],
    }
    return result, model


def _with_memory(learn: Callable[[], ConformantModel]) -> tuple[ConformantModel, float | None]:
    """Return a model, and by how many MB this process grew at most meanwhile; None on systems without /proc."""
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
