"""Leave-one-out predictions on gene expression data."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from trimbench.papers.selection_bias.simulated_cases import CORRECTIONS, QUALITY, PriorSettings, both, quality_of
from trimbench.papers.selection_bias.simulation import LOSSES, gains
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.declarations import DatasetDeclaration
from trimbench.reproduction.execution.job import COUNT, POSITIVE, job, list_of, seed_for
from trimbench.selection_bias.factors import Ties
from trimbench.selection_bias.features import Binariser
from trimbench.selection_bias.fit import cross_validate_selection
from trimbench.selection_bias.prior import Prior

_QUANTITIES = {
    "expected_error": "expected error",
    "actual_error": "actual error",
    **{loss.key: loss.title for loss in LOSSES},
}
# What a job returns, one value for each subset, and its column in the table.
_COLUMNS = {f"{c}_{key}": f"{c} {title}" for c in CORRECTIONS for key, title in _QUANTITIES.items()}


@vocab.settings
class Colon:
    """Predictions for each tissue from the others, on random subsets of the genes.

    The data sets have two classes and numeric features; `positive`, by default the last class in alphabetical order,
    is called 1. Each of the random `splits` divides the features into `n_subsets`; k features of a subset are selected
    inside each leave-one-out fold.
    """

    datasets: vocab.Axis[str]
    prior: PriorSettings = PriorSettings()
    positive: str | None = None
    n_subsets: vocab.Count = 10
    k: vocab.Count = 5
    splits: vocab.Count = 4
    ties: Ties = "exact"
    seed: int = 0

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set and random split."""
        return [
            vocab.Cell.of(
                {"dataset": name, "split": split},
                leave_one_out_on_subsets,
                self,
                dataset=found,
                positive=positive,
                split_seed=seed_for(purpose="gene subsets", dataset=name, split=split, seed=self.seed),
            )
            for name in self.datasets
            for found in [inputs.dataset(name)]
            for positive in [self._positive_class(found, inputs)]
            for split in range(self.splits)
        ]

    def _positive_class(self, found: vocab.Input, inputs: vocab.Inputs) -> str:
        """Return the class that is called 1; raise ConfigurationError if the data set does not suit the method."""
        name, declaration = found.name, found.declaration
        facts = declaration.facts if isinstance(declaration, DatasetDeclaration) else None
        if facts is not None and facts.features is not None and facts.classes:
            n_features, classes = facts.features, facts.classes
        else:
            loaded = inputs.loaded(name)
            n_features = loaded.features.shape[1]
            classes = {str(label): int(count) for label, count in loaded.target.astype(str).value_counts().items()}
        if len(classes) != 2 or min(classes.values()) < 2:
            raise vocab.ConfigurationError(
                f"datasets must have two classes of at least 2 cases for leave-one-out, got {name} with {classes}; "
                "choose another"
            )
        if self.positive is not None and self.positive not in classes:
            raise vocab.unknown(f"positive: a class of {name}", list(classes), self.positive)
        if self.n_subsets * self.k > n_features:
            raise vocab.ConfigurationError(
                f"n_subsets times k must be at most {n_features}, the number of features of {name}, got "
                f"{self.n_subsets} times {self.k}"
            )
        return self.positive or max(classes)

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return one line for each subset, the means, and figures over all subsets of a data set."""
        every = vocab.unlisted(rows, "subset", range(1, self.n_subsets + 1), [*_COLUMNS])
        every = every.reindex(columns=["dataset", "split", "subset", *_COLUMNS]).astype(dict.fromkeys(_COLUMNS, float))
        figures: list[vocab.LineFigure] = []
        numbers: list[vocab.Number] = []
        means: list[dict[str, object]] = []
        for labels, ours in vocab.groups(every, "dataset"):
            name, done = labels["dataset"], vocab.successes(rows, **labels)
            cases, cancerous = done[["n_cases", "n_positive"]].iloc[0]
            facts = {"cases": cases, "cancerous": cancerous, "normal": cases - cancerous}
            numbers += vocab.numbers_of(name, {**facts, **gains(ours)}, done)
            for split, part in [*ours.groupby("split"), ("all", ours)]:
                means += [{"dataset": name, "split": str(split), **line} for line in _mean_lines(part)]
            figures += _figures(ours, name)
        formats = dict.fromkeys(("dataset", "split", "correction"), "") | dict.fromkeys(_QUANTITIES.values(), ".4f")
        title = "Leave-one-out predictions on each subset of features"
        tables = (
            vocab.Table.of("Means over the subsets of features", means, formats | {"lower AMLP": ""}),
            vocab.Table(title, every.rename(columns=_COLUMNS), dict.fromkeys(_COLUMNS.values(), ".3f"), name="subsets"),
        )
        notes = []
        if "colon" in self.datasets:
            notes.append(
                "The slides plot one split of the genes and print no number. This copy of the data colon is log10 and "
                "standardised within each tissue, so that it is not exactly the slides' data."
            )
        return vocab.Outcome(tables, figures, numbers, notes)


def _mean_lines(part: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield the means over some subsets, with and without correction, and on how many of them each has lower AMLP."""
    for correction, other in (CORRECTIONS, CORRECTIONS[::-1]):
        means = {title: float(part[f"{correction}_{key}"].mean()) for key, title in _QUANTITIES.items()}
        lower = part[f"{correction}_minus_log_probability"] < part[f"{other}_minus_log_probability"]
        yield {"correction": correction, **means, "lower AMLP": f"{int(lower.sum())} of {len(part)}"}


def _figures(ours: pd.DataFrame, dataset: str) -> Iterator[vocab.LineFigure]:
    """Yield the expected against the actual errors, and each loss without the correction against that with it."""
    both = [(c, f"{c}_expected_error", f"{c}_actual_error") for c in reversed(CORRECTIONS)]
    kinds = [("errors", "errors", ("expected error", "actual error"), both)]
    for key, _, name in LOSSES:
        pair = [("subset of features", f"uncorrected_{key}", f"corrected_{key}")]
        kinds.append((key, name, (f"{name}, uncorrected", f"{name}, corrected"), pair))
    for stem, what, labels, columns in kinds:
        points = [(series, *point) for series, *pair in columns for point in ours[pair].itertuples(index=False)]
        values = [value for _, *point in points for value in point]
        yield vocab.LineFigure.against_diagonal(
            f"{vocab.shown_name(dataset)}: {what} on subsets of the features",
            labels,
            points,
            (min(values), max(values)),
            name=stem if dataset == "colon" else f"{stem}_{dataset}",
        )


@job(
    {"n_cases": COUNT, "n_positive": COUNT, "method_seconds": POSITIVE}
    | both({name: list_of(kind) for name, kind in QUALITY.items()})
)
def leave_one_out_on_subsets(
    dataset: vocab.Input, positive: str, n_subsets: int, k: int, prior: Prior, ties: Ties, split_seed: int
) -> dict[str, vocab.Json]:
    """Split the features at random, and on each part predict each case from the others, with k features.

    Features are cut at their medians over all cases, as in the slides.
    """
    loaded = vocab.dataset_of(dataset)
    values = loaded.features.to_numpy(dtype=float)
    X = Binariser.fit(values).transform(values)
    y = (loaded.target.astype(str) == positive).to_numpy().astype(int)
    order = np.random.default_rng(split_seed).permutation(X.shape[1])
    found: dict[str, list[float]] = {}
    start = time.perf_counter()
    for part in np.array_split(order, n_subsets):
        predicted = cross_validate_selection(X[:, np.sort(part)], y, k, ties=ties, prior=prior)
        for correction in CORRECTIONS:
            for key, value in quality_of(correction, y, getattr(predicted, correction)).items():
                found.setdefault(key, []).append(value)
    seconds = time.perf_counter() - start
    return {"n_cases": len(y), "n_positive": int(y.sum()), **found, "method_seconds": seconds}
