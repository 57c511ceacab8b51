"""Imputers that look at the observed features (EM, MICE, nearest neighbours) against NaCL: fidelity and cost."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench.papers import vocabulary as vocab
from trimbench.papers.conformant.imputers import Imputer, ImputerName, fit_imputer
from trimbench.papers.conformant.mask_sweep import QUALITY, check_missing, conformant_model, mask_seed, measures
from trimbench.papers.conformant.tasks import Encoding, Task, encoded_rows, fitted, make_task
from trimbench.papers.data.masks import Missingness
from trimbench.papers.execution.job import PERCENT, POSITIVE, job

Part = Literal["train", "test"]

_NACL = "nacl"
# Section 5.1 says how EM and MICE compare with these, for one data set and one share of missing features.
_CLAIMED_ROW, _CLAIMED_DATASET, _CLAIMED_MISSING = "mnist 1 %", "mnist", 0.01
# R's package, which the paper cites, draws from the posterior where scikit-learn takes its mean by default.
_DRAWN, _SETUP = "mice_drawn", "MICE with draws from the posterior, rounded, in place of its mean"
# What is timed: learning, and predicting this number of rows.
_ROWS_TIMED = 500
_COMPARED = ["mean", "median", "min", "max", "nacl", "normal_draw", "mice"]
_MEANS = {
    "cross_entropy": "cross entropy",
    "accuracy": "accuracy",
    "f1_weighted": "weighted F1",
    "fit_seconds": "fit (s)",
    "ms_per_row": "ms per row",
}
_COLUMNS = {
    "data": "",
    "missing (%)": ".1f",
    **dict.fromkeys(["method", "fitted to", "masks"], ""),
    **dict.fromkeys(["cross entropy", "accuracy", "weighted F1"], ".4f"),
    "fit (s)": ".2f",
    "ms per row": ".3f",
}
_EM_NOTE = (
    "What the authors ran under the name of EM draws each missing value from a normal distribution of its column. The "
    "EM here fits a mixture of independent binary columns."
)
_TRAIN_NOTE = (
    "Imputers that see complete training rows can be more accurate than NaCL, at far higher cost for each prediction; "
    "NaCL is deterministic and agrees exactly with the classifier on complete rows."
)


@vocab.settings
class ImputerOptions:
    """Options of the imputers, as in `trimbench.papers.conformant.imputers.fit_imputer`."""

    n_components: vocab.Count
    n_neighbours: vocab.Count
    n_nearest_features: vocab.Count | None
    max_iterations: vocab.Count


class Method(NamedTuple):
    """A method to compare: its name in tables, and how to fit its imputer to rows, with a seed; NaCL has none."""

    title: str
    fit: Callable[[NDArray[Any], int, ImputerOptions], Imputer] | None


def _of_library(title: str, name: ImputerName) -> Method:
    return Method(title, lambda rows, seed, options: fit_imputer(name, rows, seed=seed, **dataclasses.asdict(options)))


# The experiment's file selects from these.
METHODS = {
    _NACL: Method("NaCL", None),
    "mean": _of_library("mean", "mean"),
    "median": _of_library("median", "median"),
    "min": _of_library("min", "min"),
    "max": _of_library("max", "max"),
    "em": _of_library("EM, mixture", "em"),
    "normal_draw": _of_library("EM as the authors ran it", "normal_draw"),
    "mice": _of_library("MICE", "mice"),
    "mice_drawn": _of_library("MICE, drawn and rounded", "mice_drawn"),
    "knn": _of_library("nearest neighbours", "knn"),
}


@vocab.settings
class EmMice:
    """EM, MICE and nearest neighbours against NaCL and constants (section 5.1).

    Imputers are fitted to complete training rows or to the incomplete test rows themselves. The numbers of rows are
    upper limits: some of these methods take minutes for thousands of rows.
    """

    datasets: vocab.Axis[str]
    missing: list[float]
    methods: vocab.Axis[str]
    fit_on: vocab.Axis[Part]
    settings: ImputerOptions
    repetitions: vocab.Count = 1
    train_rows: vocab.Count = 2000
    test_rows: vocab.Count = 500
    encoding: Encoding = "paper"
    seed: int = 0

    def __post_init__(self) -> None:
        check_missing(self.missing, Missingness())
        for method in self.methods:
            if method not in METHODS:
                raise vocab.unknown("methods", list(METHODS), method)

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set, fraction, method, rows to fit to, and repetition."""
        tasks = [make_task(inputs, name, self.encoding, self.seed) for name in self.datasets]
        by_dataset = [self._cells(task) for task in tasks]
        # The first job of a data set fits its logistic regression, which may take long: the others go on meanwhile.
        first = [cells[0] for cells in by_dataset]
        return [*first, *(cell for cells in reversed(by_dataset) for cell in cells[1:])]

    def _cells(self, task: Task) -> list[vocab.Cell]:
        return [
            vocab.Cell.of(
                {"dataset": task.name, "missing": fraction, "method": method, "fit_on": part, "repetition": repetition},
                evaluate_imputer,
                task=task,
                missing=fraction,
                mask_seed=mask_seed(task, fraction, repetition, self.seed),
                method=method,
                fit_on=part,
                train_rows=self.train_rows,
                test_rows=self.test_rows,
                settings=self.settings,
            )
            for fraction in self.missing
            for repetition in range(self.repetitions)
            for method in self.methods
            for part in (self.fit_on if method != _NACL else self.fit_on[:1])
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the means over the masks."""
        done = vocab.successes(rows)
        labels = ["dataset", "missing", "method", "fit_on"]
        groups = [group for _, group in done.groupby(labels, sort=False)] if len(done) else []
        groups.sort(key=lambda group: (group["dataset"].iloc[0], *group[["missing_percent", "cross_entropy"]].mean()))
        # A hundredth of a dozen features is none of them.
        shown = [group for group in groups if group["missing_percent"].any()]
        nothing = dict.fromkeys(str(group["dataset"].iloc[0]) for group in groups if not group["missing_percent"].any())
        table = vocab.Table.of("Fidelity, accuracy and cost", map(_line, shown), _COLUMNS)
        return vocab.Outcome((table,), (), _numbers(done), self._notes(list(nothing)))

    def _notes(self, nothing: list[str]) -> list[str]:
        """Return the notes that hold for these settings; in `nothing` are data sets whose smallest share is empty."""
        notes = [
            f"On the first {self.test_rows} test rows, with at most {self.train_rows} training rows for imputers; "
            "'ms per row' is the time to fill and predict a row, 'fit (s)' that of fitting the imputer, or of the "
            "means and the optimisation of NaCL."
        ]
        if {"em", "normal_draw"} & set(self.methods):
            notes.append(_EM_NOTE)
        if "mice" in self.methods and (few := self.settings.n_nearest_features):
            notes.append(f"MICE are chained equations, each column predicted by at most {few} others.")
        if "train" in self.fit_on:
            notes.append(_TRAIN_NOTE)
        if nothing:
            notes.append(
                f"Of {', '.join(nothing)} the smallest share hides no feature (numbers of features are rounded down): "
                "such a share has no lines."
            )
        return notes


def _line(group: pd.DataFrame) -> dict[str, object]:
    """Return the means over the masks."""
    first = group.iloc[0]
    return {
        "data": first["dataset"],
        "missing (%)": group["missing_percent"].mean(),
        "method": METHODS[first["method"]].title,
        "fitted to": "training rows" if first["fit_on"] == "train" else "incomplete test rows",
        "masks": len(group),
        **{title: group[key].mean() for key, title in _MEANS.items()},
    }


def _numbers(done: pd.DataFrame) -> list[vocab.Number]:
    """Return what section 5.1 says of EM and MICE, fitted to the incomplete test rows as the authors did.

    The place of EM from the worst cross entropy (1 is the worst), the cross entropy of MICE less that of the mean, and
    how many of EM and MICE have a higher one than NaCL.
    """
    if done.empty:
        return []
    claimed = vocab.successes(done, dataset=_CLAIMED_DATASET, missing=_CLAIMED_MISSING)
    claimed = claimed[(claimed["missing_percent"] > 0) & ((claimed["fit_on"] == "test") | (claimed["method"] == _NACL))]
    entropies = claimed.groupby("method")["cross_entropy"].mean()
    if not set(_COMPARED) <= set(entropies.index):
        return []
    values = {
        "em_from_worst": float((entropies[_COMPARED] >= entropies["normal_draw"]).sum()),
        "mice_less_mean": float(entropies["mice"] - entropies["mean"]),
        "outperformed": float((entropies[["normal_draw", "mice"]] > entropies[_NACL]).sum()),
    }
    seconds = claimed.groupby("method")[["fit_seconds", "ms_per_row"]].mean()
    whole = seconds["fit_seconds"] + seconds["ms_per_row"] * _ROWS_TIMED / 1000
    values["mice_seconds_by_nacl"] = float(whole["mice"] / whole[_NACL])
    drawn: dict[str, float] = {}
    if _DRAWN in entropies:
        drawn["mice_less_mean"] = float(entropies[_DRAWN] - entropies["mean"])
        drawn["outperformed"] = float((entropies[["normal_draw", _DRAWN]] > entropies[_NACL]).sum())
    return [
        replace(one, explanation=vocab.Explanation(_SETUP, drawn[one.quantity]) if one.quantity in drawn else None)
        for one in vocab.numbers_of(_CLAIMED_ROW, values, claimed)
    ]


@job({**QUALITY, "missing_percent": PERCENT, "fit_seconds": POSITIVE, "ms_per_row": POSITIVE})
def evaluate_imputer(
    task: Task,
    missing: float,
    mask_seed: int,
    method: str,
    fit_on: Part,
    train_rows: int,
    test_rows: int,
    settings: ImputerOptions,
) -> dict[str, vocab.Json]:
    """Impute hidden features of some test rows, and measure the predictions of the logistic regression."""
    rows, classifier = encoded_rows(task), fitted(task)
    complete = rows.test[:test_rows]
    mask = Missingness().draw(len(complete), rows.features, missing, np.random.default_rng(mask_seed))
    gaps = rows.hide(complete, mask)
    fit = METHODS[method].fit
    start = time.perf_counter()
    if fit is None:
        model = conformant_model(task)
        middle = time.perf_counter()
        log_proba = model.predict_log_proba(gaps)
    else:
        chosen = np.random.default_rng(mask_seed).permutation(len(rows.train))[:train_rows]
        fit_to = rows.train[np.sort(chosen)] if fit_on == "train" else gaps
        impute = fit(fit_to, mask_seed, settings)
        middle = time.perf_counter()
        log_proba = np.log(classifier.probabilities(impute(gaps)) + 1e-300)
    end = time.perf_counter()
    return {
        **measures(rows, classifier.probabilities(complete), log_proba),
        "missing_percent": 100.0 * float(mask.mean()),
        "fit_seconds": middle - start,
        "ms_per_row": 1000 * (end - middle) / len(complete),
    }
