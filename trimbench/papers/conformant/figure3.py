"""Figure 3: cross entropy and accuracy against missingness on the image data sets, before the authors' curves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any

import pandas as pd

from trimbench.papers import vocabulary as vocab
from trimbench.papers.conformant import mask_sweep as sweep
from trimbench.papers.conformant.tasks import Encoding, make_task
from trimbench.papers.data.masks import Missingness

# The encoding of the runs that the authors stored.
_STORED: Encoding = "authors"
_MEASURES = {"cross_entropy": "average cross entropy (nats)", "accuracy": "accuracy"}
# The curves that the paper prints: by cross entropy, it dismisses maximum imputation as orders of magnitude worse.
_PRINTED = {
    "cross_entropy": ["nacl", "mean", "median", "min"],
    "accuracy": ["nacl", "mean", "median", "min", "max"],
}
_DRAWN = [*_PRINTED["accuracy"], sweep.MIXTURE]
_TRAINING_ROWS, _TEST_ROWS = "training rows", "test rows"


@vocab.settings
class Figure3(sweep.Sweep):
    """Fidelity and accuracy under missing pixels (Figure 3).

    Only runs with the authors' encoding are compared with their stored curves. The `mixture` of conformant models, if
    any, is one more line, beyond the paper.
    """

    repetitions: vocab.Count = 10
    encodings: vocab.Axis[Encoding] = field(default_factory=lambda: [_STORED, "paper"])
    mixture: sweep.MixtureSettings | None = None

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set, encoding, fraction and repetition, and one for each mixture."""
        cells: list[vocab.Cell] = []
        for encoding in self.encodings:
            tasks = [make_task(inputs, name, encoding, self.seed) for name in self.datasets]
            labels: dict[str, vocab.Label] = {"encoding": encoding, "part": "masks"}
            by_dataset = [
                sweep.evaluation_cells(
                    task, self.missing, self.repetitions, Missingness(), self.seed, labels, mixture=self.mixture
                )
                for task in tasks
            ]
            cells += sweep.mixture_cells(tasks, self.mixture, {"encoding": encoding})
            # Data sets take turns, so that two workers do not wait for one logistic regression.
            cells += [cell for turn in zip(*by_dataset, strict=True) for cell in turn]
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the curves with the authors' behind them, and the largest distance between both."""
        tables: list[vocab.Table] = []
        figures: list[vocab.LineFigure] = []
        distances: list[_Distance] = []
        numbers: list[vocab.Number] = []
        for encoding, name, measure in itertools.product(self.encodings, self.datasets, _MEASURES):
            done = vocab.successes(rows, dataset=name, encoding=encoding, part="masks")
            summary = sweep.summarise(done, measure)
            if summary.empty:
                continue
            title, stem = f"{sweep.title_of(rows, name)}: {_MEASURES[measure]}", f"{name}_{measure}"
            if encoding != _STORED:
                tables.append(sweep.means_table(f"{title}, encoding of the paper", summary, f"{stem}_{encoding}"))
                continue
            tables.append(sweep.means_table(title, summary, stem))
            stored = vocab.stored_curves(name, measure)
            found = list(_distances(name, measure, done, stored))
            distances += found
            numbers += [
                replace(
                    number,
                    contradiction=stored_contradiction(name, measure, number.quantity, stored),
                    reason="one mask has no interval" if number.value is None else "",
                )
                for number in vocab.numbers_of(f"{name} {measure}", _claims(measure, summary, found), done)
            ]
            figures.append(_figure(stem, measure, sweep.title_of(rows, name), summary, stored))
        main = vocab.Table.of("Largest distance to the authors' stored curves, over all fractions", distances, _COLUMNS)
        if not self.mixture:
            return vocab.Outcome((main, *tables), figures, numbers)
        return vocab.Outcome((main, *self._beyond(rows), *tables), figures, numbers, sweep.NOTES)

    def _beyond(self, rows: pd.DataFrame) -> tuple[vocab.Table, vocab.Table]:
        """Return the accuracies of the mixtures where much is missing, and how they were learned."""
        groups = (
            (labels, vocab.successes(rows, **labels, part="masks"))
            for name, encoding in itertools.product(self.datasets, self.encodings)
            for labels in [{"dataset": name, "encoding": encoding}]
        )
        fits = sweep.fits_table(vocab.successes(rows, part="mixture"), ("dataset", "encoding"))
        return sweep.accuracies_table(groups), fits


_COLUMNS = {
    **dict.fromkeys(["data", "measure", "method", "constants of"], ""),
    "largest distance": ".4f",
    "at missing (%)": ".1f",
    **dict.fromkeys(["ours", "authors", "interval low", "interval high"], ".4f"),
}


# The largest distance of a method to its stored curve, and the means there: a line of the main table.
_Distance = tuple[Any, ...]


def _claims(measure: str, summary: pd.DataFrame, distances: list[_Distance]) -> dict[str, float | None]:
    """Return the numbers of one panel; the authors took constants from the complete test rows."""
    claims = {method: largest for _, _, method, constants, largest, *_ in distances if constants != _TRAINING_ROWS}
    claims["outperformed"] = _outperformed(measure, summary)
    claims["error_bar_percent"] = _widest_error_bar(summary[summary["method"].isin(_PRINTED[measure])])
    if measure == "cross_entropy":
        claims["max by worst of the rest"] = _dismissed(summary)
    return claims


def _outperformed(measure: str, summary: pd.DataFrame) -> float | None:
    """Return how many imputations NaCL outperforms wherever a feature is missing: the fewest over all shares."""
    sign = -1 if measure == "cross_entropy" else 1
    means = summary[(summary["percent"] > 0) & summary["method"].isin(_PRINTED[measure])]
    table = sign * means.pivot_table(index="percent", columns="method", values="mean")
    return None if table.empty else float(table.lt(table["nacl"], axis=0).sum(axis=1).min())


def _widest_error_bar(drawn: pd.DataFrame) -> float | None:
    """Return half the widest interval over the masks, in percent of the height that the curves take."""
    half = (drawn["high"] - drawn["low"]).max() / 2
    return None if pd.isna(half) else float(100 * half / (drawn["mean"].max() - drawn["mean"].min()))


def _dismissed(summary: pd.DataFrame) -> float | None:
    """Return the largest ratio, over the shares, of the cross entropy of max imputation to that of the worst other."""
    table = summary[summary["percent"] > 0].pivot_table(index="percent", columns="method", values="mean")
    if table.empty or "max" not in table:
        return None
    return float((table["max"] / table[_PRINTED["cross_entropy"]].max(axis=1)).max())


def stored_contradiction(name: str, measure: str, quantity: str, stored: pd.DataFrame) -> str:
    """Return the proof that the authors' own stored curves contradict a claim; empty where they do not."""
    found = {
        "outperformed": lambda: _outperformed(measure, stored),
        "max by worst of the rest": lambda: _dismissed(stored),
    }
    claim = vocab.printed_numbers("conformant/figure3").get((f"{name} {measure}", quantity))
    value = found[quantity]() if quantity in found and claim is not None and len(stored) else None
    if value is None or claim is None or value >= claim.value:
        return ""
    if quantity == "outperformed":
        return (
            f"In the curves that the authors stored, too, NaCL outperforms only {value:.0f} of the {claim.value:.0f} "
            "imputations at one share of missing pixels or more."
        )
    return (
        "In the curves that the authors stored, too, the cross entropy of max imputation is at most "
        f"{value:.1f} times that of the worst of the rest, not orders of magnitude."
    )


def _distances(name: str, measure: str, done: pd.DataFrame, stored: pd.DataFrame) -> Iterator[_Distance]:
    """Yield the largest distance of each method to its stored curve, with constants of training and of test rows."""
    fills = _PRINTED[measure][1:]
    keys = ["nacl", *fills, *(f"{fill}@test" for fill in fills)]
    summary = sweep.summarise(done, measure, keys)
    for key in keys:
        method, _, part = key.partition("@")
        curve = stored[stored["method"] == method]
        points = [
            (abs(point["mean"] - theirs), theirs, point)
            for point in summary[summary["method"] == key].to_dict("records")
            if (theirs := vocab.interpolated(curve, point["percent"])) is not None
        ]
        if points:
            distance, theirs, point = max(points, key=lambda found: found[0])
            constants = "" if method == "nacl" else _TEST_ROWS if part else _TRAINING_ROWS
            means = (point["mean"], theirs, point["low"], point["high"])
            yield name, measure, sweep.METHODS[method], constants, distance, point["percent"], *means


def _figure(stem: str, measure: str, title: str, summary: pd.DataFrame, stored: pd.DataFrame) -> vocab.LineFigure:
    y_label = _MEASURES[measure]
    # The authors' curves run to all pixels; ours say how far the comparison goes.
    reach = stored[stored["percent"] <= summary["percent"].max() + 1e-9]
    drawn = summary[summary["method"].isin(_DRAWN)]
    heading = sweep.with_mixture(f"{title}: {y_label.split(' (')[0]}", drawn)
    return sweep.curves(stem, heading, measure, y_label, drawn, reach)
