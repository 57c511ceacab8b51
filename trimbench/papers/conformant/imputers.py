"""Imputers that use the observed features (EM, MICE, nearest neighbours), against NaCL: fidelity and cost."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from trimbench._typing import Matrix, Vector
from trimbench.papers.conformant.mask_sweep import (
    FILLS,
    QUALITY,
    Sweep,
    conformant_model,
    fill_values,
    mask_seed,
    measures,
)
from trimbench.papers.conformant.protocols import Encoding, Task, encoded_rows, fitted, make_task
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.masks import Missingness
from trimbench.reproduction.execution.job import PERCENT, POSITIVE, job

Part = Literal["train", "test"]

_NACL = "nacl"
# Section 5.1 says how EM and MICE compare with these, for one data set and one share of missing features.
_CLAIMED_ROW, _CLAIMED_DATASET, _CLAIMED_MISSING = "mnist 1 %", "mnist", 0.01
# R's package, which the paper cites, draws from the posterior where scikit-learn takes its mean by default.
_DRAWN, _SETUP = "mice_drawn", "MICE with draws from the posterior, rounded, in place of its mean"
# Timed are learning, and predicting this number of rows.
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
        every = vocab.groups(rows, "dataset", "missing", "method", "fit_on")
        lines = [{"data": labels["dataset"]} | _means(labels, ours) for labels, ours in every]
        lines.sort(key=lambda line: (line["data"], line["missing (%)"], line["cross entropy"]))
        # A hundredth of a dozen features is none of them.
        shown = [line for line in lines if line["missing (%)"]]
        nothing = list(dict.fromkeys(line["data"] for line in lines if not line["missing (%)"]))
        table = vocab.Table.of("Fidelity, accuracy and cost", shown, _COLUMNS)
        return vocab.Outcome((table,), (), _numbers(done), self._notes(nothing))

    def _notes(self, nothing: list[str]) -> list[str]:
        """Return the notes for these settings; `nothing` lists the data sets whose smallest share hides no feature."""
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
_COLUMNS = {
    **{"data": "", "missing (%)": ".1f"},
    **dict.fromkeys(("method", "fitted to", "masks"), ""),
    **dict.fromkeys(("cross entropy", "accuracy", "weighted F1"), ".4f"),
    **{"fit (s)": ".2f", "ms per row": ".3f"},
}


def _means(labels: Mapping[str, Any], ours: pd.DataFrame) -> dict[str, Any]:
    """Return the means of a method over the masks."""
    return {
        "missing (%)": ours["missing_percent"].mean(),
        "method": METHODS[labels["method"]],
        "fitted to": _PARTS[labels["fit_on"]],
        "masks": len(ours),
        "cross entropy": ours["cross_entropy"].mean(),
        "accuracy": ours["accuracy"].mean(),
        "weighted F1": ours["f1_weighted"].mean(),
        "fit (s)": ours["fit_seconds"].mean(),
        "ms per row": ours["ms_per_row"].mean(),
    }


def _numbers(done: pd.DataFrame) -> list[vocab.Number]:
    """Return what section 5.1 says about EM and MICE, fitted to the incomplete test rows as the authors did.

    These are the rank of EM from the worst cross entropy (1 is the worst), the cross entropy of MICE minus that of the
    mean, how many of EM and MICE have a higher one than NaCL, and the time of MICE as a multiple of NaCL's.
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
    # Test rows may be sorted by their content, so that the first ones are alike.
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


# Imputers, which fill missing columns in from the observed ones: the baselines of the experiments.

ImputerName = Literal["min", "max", "mean", "median", "em", "normal_draw", "mice", "mice_drawn", "knn"]
IMPUTERS: tuple[ImputerName, ...] = get_args(ImputerName)
Imputer = Callable[[ArrayLike], Matrix]
_Fill = Callable[[Matrix], Matrix]


def fit_imputer(
    name: ImputerName,
    rows: NDArray[Any],
    *,
    seed: int = 0,
    n_components: int = 20,
    n_neighbours: int = 10,
    n_nearest_features: int | None = None,
    max_iterations: int = 10,
) -> Imputer:
    """Fit an imputer to rows, and return a function that fills the gaps of other rows.

    Parameters
    ----------
    name : str
        ``"min"``, ``"max"``, ``"mean"``, ``"median"``: a constant for each column. ``"em"``: expectations of a mixture
        of independent binary columns, learned by expectation-maximisation. ``"normal_draw"``: a draw from a normal
        distribution with the mean and deviation of the observed values of the column, which is what the published
        experiments ran under the name EM. ``"mice"``: chained equations (scikit-learn's IterativeImputer).
        ``"mice_drawn"``: the same with draws from the posterior in place of its mean, rounded in columns of zeros and
        ones. ``"knn"``: the mean of the nearest rows (scikit-learn's KNNImputer).
    rows : array of shape (n_rows, n_columns)
        Training rows, or the very rows to fill; NaN where missing. Any finite numbers; for ``"em"`` zeros and ones.
    seed : int
    n_components : int
        Number of components of ``"em"``.
    n_neighbours : int
        Number of neighbours of ``"knn"``.
    n_nearest_features : int, optional
        For ``"mice"``: how many other columns predict each one; default: all.
    max_iterations : int
        Maximum number of iterations of ``"mice"``; ``"em"`` may take ten times as many.

    Returns
    -------
    callable
        Takes rows with NaN and returns complete rows. Columns that are missing in every training row are filled with 0
        (1/2 by ``"em"``); in columns of zeros and ones ``"mice"`` fills in values between 0 and 1.
    """
    table = np.asarray(rows)
    if name in FILLS:
        impute = _constant(table, name)
    elif name == "normal_draw":
        impute = _normal_draw(table.astype(np.float64), seed)
    elif name == "em":
        impute = fit_mixture(table, n_components, seed=seed, max_iterations=10 * max_iterations).fill
    else:
        impute = _from_scikit_learn(
            name, table.astype(np.float64), seed, n_neighbours, n_nearest_features, max_iterations
        )
    return lambda gaps: impute(np.asarray(gaps, dtype=np.float64))


def _constant(rows: NDArray[Any], name: Any) -> _Fill:
    if np.isnan(rows).any():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column without any value
            values = np.nan_to_num(np.asarray(getattr(np, f"nan{name}")(rows, axis=0)))
    else:
        values = fill_values(rows, name)
    return lambda gaps: np.where(np.isnan(gaps), values, gaps)


def _normal_draw(table: Matrix, seed: int) -> _Fill:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        mean, deviation = np.nan_to_num(np.nanmean(table, axis=0)), np.nan_to_num(np.nanstd(table, axis=0))

    def fill(gaps: Matrix) -> Matrix:
        drawn = np.random.default_rng(seed).normal(mean, deviation, gaps.shape)
        return np.where(np.isnan(gaps), drawn, gaps)

    return fill


def _from_scikit_learn(
    name: str, table: Matrix, seed: int, n_neighbours: int, n_nearest_features: int | None, max_iterations: int
) -> _Fill:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    if name == "knn" and not np.isnan(table).any():
        return _nearest(table, min(n_neighbours, len(table)))
    binary = (np.isnan(table) | (table == 0) | (table == 1)).all(axis=0)  # also a column without any value
    if name == "knn":
        imputer = KNNImputer(n_neighbors=min(n_neighbours, len(table)), keep_empty_features=True)
    else:
        imputer = IterativeImputer(
            max_iter=max_iterations,
            n_nearest_features=n_nearest_features,
            min_value=np.where(binary, 0.0, -np.inf),
            max_value=np.where(binary, 1.0, np.inf),
            random_state=seed % 2**32,
            sample_posterior=name == "mice_drawn",
            keep_empty_features=True,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the chained equations have not converged is part of the comparison
        imputer.fit(table)

    def fill(gaps: Matrix) -> Matrix:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filled = imputer.transform(gaps)
        if name == "mice_drawn":
            filled = np.where(binary, filled.round(), filled)
        # KNNImputer sets a column without training values to 0 even where it is observed.
        return np.where(np.isnan(gaps), filled, gaps)

    return fill


def _nearest(table: Matrix, n_neighbours: int) -> _Fill:
    """Return what KNNImputer does, for complete rows: each row has the same nearest rows for all its columns.

    KNNImputer looks for them column by column, which takes most of the time in a table with thousands of columns.
    """
    from sklearn.metrics.pairwise import nan_euclidean_distances

    means = table.mean(axis=0)

    def fill(gaps: Matrix) -> Matrix:
        filled = gaps.copy()
        rows = np.flatnonzero(np.isnan(gaps).any(axis=1))
        if not len(rows):
            return filled
        distances = nan_euclidean_distances(gaps[rows], table)
        nearest = np.argpartition(distances, n_neighbours - 1, axis=1)[:, :n_neighbours]
        for row, near, far in zip(rows.tolist(), nearest, np.isnan(distances).all(axis=1).tolist(), strict=True):
            missing = np.isnan(gaps[row])
            filled[row, missing] = means[missing] if far else table[np.ix_(near, missing)].mean(axis=0)
        return filled

    return fill


# A mixture of independent binary columns, learned by expectation-maximisation from rows with missing values.

_PSEUDO_COUNT = 0.5


@dataclass(frozen=True, eq=False)
class BernoulliMixture:
    """Mixture weights and the probability of 1 of each column in each component.

    Attributes
    ----------
    log_weights : ndarray of shape (n_components,)
    theta : ndarray of shape (n_columns, n_components)
    log_likelihoods : tuple of float
        Mean log-likelihood of the observed values before each step: it never falls (up to the pseudo-counts).
    """

    log_weights: Vector
    theta: Matrix
    log_likelihoods: tuple[float, ...]

    def responsibilities(self, gaps: Matrix) -> tuple[Matrix, Vector]:
        """Return P(component | observed values) of each row, and log P(observed values)."""
        known = ~np.isnan(gaps)
        ones = np.where(known, gaps, 0.0)
        log_odds, log_zero = np.log(self.theta) - np.log1p(-self.theta), np.log1p(-self.theta)
        joint = self.log_weights + ones @ log_odds + known.astype(np.float64) @ log_zero
        top = joint.max(axis=1, keepdims=True)
        shares = np.exp(joint - top)
        total = shares.sum(axis=1, keepdims=True)
        return shares / total, (top + np.log(total))[:, 0]

    def fill(self, gaps: Matrix) -> Matrix:
        """Return the rows with missing values replaced by their expectations."""
        shares, _ = self.responsibilities(gaps)
        return np.where(np.isnan(gaps), shares @ self.theta.T, gaps)


def fit_mixture(
    rows: NDArray[Any], n_components: int, *, seed: int = 0, max_iterations: int = 100, tolerance: float = 1e-6
) -> BernoulliMixture:
    """Learn a mixture by expectation-maximisation, until the mean log-likelihood gains less than `tolerance`.

    The rows are zeros and ones, NaN where missing. There are no more components than rows.
    """
    table = np.asarray(rows, dtype=np.float64)
    rng = np.random.default_rng(seed)
    known = (~np.isnan(table)).astype(np.float64)
    ones = np.where(known > 0, table, 0.0)
    n_components = min(n_components, len(table))
    shares = rng.dirichlet(np.full(n_components, 0.2), size=len(table))
    history: list[float] = []
    while True:
        weights = (shares.sum(axis=0) + _PSEUDO_COUNT) / (len(table) + _PSEUDO_COUNT * n_components)
        theta = (ones.T @ shares + _PSEUDO_COUNT) / (known.T @ shares + 2 * _PSEUDO_COUNT)
        mixture = BernoulliMixture(np.log(weights), theta, tuple(history))
        shares, likelihoods = mixture.responsibilities(table)
        history.append(float(likelihoods.mean()))
        if len(history) > max_iterations or (len(history) > 1 and history[-1] - history[-2] < tolerance):
            return mixture
