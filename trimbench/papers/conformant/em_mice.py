"""Imputers that look at the observed features (EM, MICE, nearest neighbours) against NaCL: fidelity and cost."""

from __future__ import annotations

import dataclasses
import time
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd

from trimbench.papers import vocabulary as vocab
from trimbench.papers.conformant.imputers import FILLS, fit_imputer
from trimbench.papers.conformant.mask_sweep import QUALITY, Sweep, conformant_model, mask_seed, measures
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


# The title of each method; the experiment's file selects from these. All but NaCL are imputers of `fit_imputer`.
METHODS: dict[str, str] = {
    _NACL: "NaCL",
    **{fill: fill for fill in FILLS},
    "em": "EM, mixture",
    "normal_draw": "EM as the authors ran it",
    "mice": "MICE",
    "mice_drawn": "MICE, drawn and rounded",
    "knn": "nearest neighbours",
}


@vocab.settings
class EmMice(Sweep):
    """EM, MICE and nearest neighbours against NaCL and constants (section 5.1).

    Imputers are fitted to complete training rows or to the incomplete test rows themselves. The numbers of rows are
    upper limits: some of these methods take minutes for thousands of rows.
    """

    methods: vocab.Axis[Annotated[str, vocab.one_of(METHODS)]]
    fit_on: vocab.Axis[Part]
    settings: ImputerOptions
    repetitions: vocab.Count = 1
    train_rows: vocab.Count = 2000
    test_rows: vocab.Count = 500
    encoding: Encoding = "paper"

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
                self,
                task=task,
                mask_seed=mask_seed(task, fraction, repetition, self.seed),
            )
            for fraction in self.missing
            for repetition in range(self.repetitions)
            for method in self.methods
            for part in (self.fit_on if method != _NACL else self.fit_on[:1])
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the means over the masks."""
        done = vocab.successes(rows)
        groups = [
            ({"data": labels["data"]}, ours)
            for labels, ours in vocab.groups(rows, "missing", "method", "fit_on", data="dataset")
        ]
        groups.sort(key=lambda group: (group[0]["data"], *group[1][["missing_percent", "cross_entropy"]].mean()))
        # A hundredth of a dozen features is none of them.
        shown = [(labels, ours) for labels, ours in groups if ours["missing_percent"].any()]
        nothing = list(dict.fromkeys(labels["data"] for labels, ours in groups if not ours["missing_percent"].any()))
        table = vocab.Table.of_groups("Fidelity, accuracy and cost", shown, _COLUMNS)
        return vocab.Outcome((table,), (), _numbers(done), self._notes(nothing))

    def _notes(self, nothing: list[str]) -> list[str]:
        """Return the notes that hold for these settings; in `nothing` are data sets whose smallest share is empty."""
        notes = [
            f"On at most {self.test_rows} test rows, drawn once, with at most {self.train_rows} training rows for "
            "imputers; 'ms per row' is the time to fill and predict a row, 'fit (s)' that of fitting the imputer, or "
            "of the means and the optimisation of NaCL."
        ]
        if {"em", "normal_draw"} & set(self.methods):
            notes.append(_EM_NOTE)
        if "mice" in self.methods and (few := self.settings.n_nearest_features):
            notes.append(f"MICE are chained equations, each column predicted by at most {few} others.")
        if "train" in self.fit_on:
            notes.append(_TRAIN_NOTE)
        if nothing:
            notes.append(
                f"On {', '.join(nothing)} the smallest share hides no feature (numbers of features are rounded down), "
                "so it has no lines."
            )
        return notes


_PARTS = {"train": "training rows", "test": "incomplete test rows"}
_COLUMNS = [
    *vocab.means({"missing (%)": "missing_percent"}, ".1f"),
    vocab.Column("method", "", lambda ours: METHODS[ours["method"].iloc[0]]),
    vocab.Column("fitted to", "", lambda ours: _PARTS[ours["fit_on"].iloc[0]]),
    vocab.Column("masks", "", len),
    *vocab.means({"cross entropy": "cross_entropy", "accuracy": "accuracy", "weighted F1": "f1_weighted"}, ".4f"),
    *vocab.means({"fit (s)": "fit_seconds"}, ".2f"),
    *vocab.means({"ms per row": "ms_per_row"}, ".3f"),
]


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

    def against(mice: str) -> dict[str, float]:
        ahead = entropies[["normal_draw", mice]] > entropies[_NACL]
        return {"mice_less_mean": float(entropies[mice] - entropies["mean"]), "outperformed": float(ahead.sum())}

    drawn = against(_DRAWN) if _DRAWN in entropies else {}
    seconds = claimed.groupby("method")[["fit_seconds", "ms_per_row"]].mean()
    whole = seconds["fit_seconds"] + seconds["ms_per_row"] * _ROWS_TIMED / 1000
    values = {
        "em_from_worst": float((entropies[_COMPARED] >= entropies["normal_draw"]).sum()),
        **against("mice"),
        "mice_seconds_by_nacl": float(whole["mice"] / whole[_NACL]),
    }
    explained = {quantity: vocab.Explanation(_SETUP, value) for quantity, value in drawn.items()}
    return [
        vocab.number_of(_CLAIMED_ROW, quantity, value, claimed, explanation=explained.get(quantity))
        for quantity, value in values.items()
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
    # Test rows may be in the order of what they hold, in which the first are alike.
    drawn = np.sort(np.random.default_rng(task.split_seed).permutation(len(rows.test))[:test_rows])
    rows = dataclasses.replace(rows, test=rows.test[drawn], test_labels=rows.test_labels[drawn])
    complete = rows.test
    mask = Missingness().draw(len(complete), rows.features, missing, np.random.default_rng(mask_seed))
    gaps = rows.hide(complete, mask)
    start = time.perf_counter()
    if method == _NACL:
        model = conformant_model(task)
        middle = time.perf_counter()
        log_proba = model.predict_log_proba(gaps)
    else:
        chosen = np.random.default_rng(mask_seed).permutation(len(rows.train))[:train_rows]
        fit_to = rows.train[np.sort(chosen)] if fit_on == "train" else gaps
        name: Any = method
        impute = fit_imputer(name, fit_to, seed=mask_seed, **dataclasses.asdict(settings))
        middle = time.perf_counter()
        log_proba = np.log(classifier.probabilities(impute(gaps)) + 1e-300)
    end = time.perf_counter()
    return {
        **measures(rows, classifier.probabilities(complete), log_proba),
        "missing_percent": 100.0 * float(mask.mean()),
        "fit_seconds": middle - start,
        "ms_per_row": 1000 * (end - middle) / len(complete),
    }
