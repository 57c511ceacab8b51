"""Mixtures of conformant models, which go beyond the paper: learned once for each task, then remembered."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt

from trimbench.conformant.conform import conform
from trimbench.conformant.mixture import ConformantMixture
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.newton import Solution
from trimbench.papers.conformant.classifier import CODE as CLASSIFIER_CODE
from trimbench.papers.conformant.classifier import fitted
from trimbench.papers.conformant.encoded_rows import encoded_rows
from trimbench.papers.conformant.protocol import Task
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import code_version, job_function
from trimbench.papers.execution.remembered_arrays import Arrays, remember
from trimbench.papers.execution.seeds import generator_for
from trimbench.papers.study.cells import Cell, Label
from trimbench.papers.validation import settings, validated


@settings
class MixtureSettings:
    """How a mixture of conformant models is learned.

    Attributes
    ----------
    n_components : int or "auto"
        ``"auto"``: as many as make rows held out more likely.
    rows : int, optional
        It is learned from so many training rows, chosen at random; from all by default.
    """

    n_components: PositiveInt | Literal["auto"] = "auto"
    rows: PositiveInt | None = None


@dataclass(frozen=True, eq=False)
class LearnedMixture:
    """A mixture, or the one model that a mixture of one component is.

    Attributes
    ----------
    model : ConformantMixture or ConformantModel
    n_components : int
    n_rows : int
        Training rows that it was learned from.
    seconds : float
        Of processor time, on the machine that learned it.
    """

    model: ConformantMixture | ConformantModel
    n_components: int
    n_rows: int
    seconds: float


@lru_cache(maxsize=2)
def conformant_mixture(task: Task, how: MixtureSettings) -> LearnedMixture:
    """Return the mixture of a task, all components of which conform with its logistic regression.

    The columns of a categorical feature are one variable.
    """
    rows = _chosen_rows(task, how)
    key: dict[str, Json] = {
        "task": dataclasses.asdict(task),
        "how": dataclasses.asdict(how),
        "code": code_version(f"{__name__}:fit_mixture"),
    }
    arrays = remember("mixture", key, lambda: _learn(task, rows, how.n_components))
    one = _conform(task, rows, 1)
    parts = [
        replace(one, solution=Solution(parameters, residual=residual, value=math.nan, iterations=0))
        for parameters, residual in zip(arrays["parameters"], arrays["residuals"].tolist(), strict=True)
    ]
    model = parts[0] if len(parts) == 1 else ConformantMixture(arrays["log_weights"], tuple(parts))
    return LearnedMixture(model, len(parts), len(rows), float(arrays["seconds"]))


def _chosen_rows(task: Task, how: MixtureSettings) -> NDArray[np.uint8]:
    rows = encoded_rows(task).train
    if how.rows is None or how.rows >= len(rows):
        return rows
    rng = generator_for(purpose="mixture", dataset=task.name, seed=task.split_seed)
    return rows[np.sort(rng.choice(len(rows), how.rows, replace=False))]


def _learn(task: Task, rows: NDArray[np.uint8], n_components: int | Literal["auto"]) -> Arrays:
    start = time.process_time()
    model = _conform(task, rows, n_components)
    seconds = time.process_time() - start
    several = isinstance(model, ConformantMixture)
    parts = model.components if several else (model,)
    return {
        "log_weights": model.log_weights if several else np.zeros(1),
        "parameters": np.stack([part.solution.parameters for part in parts]),
        "residuals": np.array([part.residual for part in parts]),
        "seconds": np.array(seconds),
    }


def _conform(task: Task, rows: NDArray[np.uint8], n_components: Any) -> Any:
    whole, classifier = encoded_rows(task), fitted(task)
    weights = SimpleNamespace(
        coef_=classifier.weights.T, intercept_=classifier.biases, classes_=np.arange(len(whole.classes))
    )
    categorical = [columns for columns in whole.columns if len(columns) > 1]
    return conform(weights, rows, smoothing=task.protocol.smoothing, categorical=categorical, n_components=n_components)


@job_function(code=(*CLASSIFIER_CODE, "trimbench.papers.conformant.mixtures"))
def fit_mixture(task: Mapping[str, Json], mixture: Mapping[str, Json]) -> dict[str, Json]:
    """Learn the mixture of a `Task` with `MixtureSettings`, and check that it conforms with the classifier."""
    own = Task.of(task)
    learned = conformant_mixture(own, validated(MixtureSettings, mixture, "mixture"))
    rows, classifier = encoded_rows(own), fitted(own)
    differences = learned.model.predict_proba(rows.test) - classifier.probabilities(rows.test)
    return {
        "components": learned.n_components,
        "learned_from": learned.n_rows,
        "fit_seconds": learned.seconds,
        "residual": learned.model.residual,
        "difference": float(np.abs(differences).max()),
    }


def mixture_cells(
    tasks: Sequence[Task], how: MixtureSettings | None, labels: Mapping[str, Label] | None = None
) -> list[Cell]:
    """Return one job for the mixture of each task, none without a mixture."""
    own = labels or {}
    return [
        Cell.of(
            {"dataset": task.name, "title": task.title, **own, "part": "mixture"}, fit_mixture, task=task, mixture=how
        )
        for task in (tasks if how else ())
    ]
