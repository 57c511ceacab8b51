"""Tables 4 and 5, what follows from the printed tables without any run, and inferred set-ups."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from trimbench.papers.conformant.curves import stored_curves
from trimbench.papers.conformant.mask_sweep import Sweep, check_missing, evaluation_cells, summarise
from trimbench.papers.conformant.protocols import Encoding, make_task
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.masks import Missingness, Rounding, Unit

FILLS = {"min": "Min", "max": "Max", "mean": "Mean", "median": "Median"}
METHODS = {**FILLS, "nacl": "NaCL"}
# 1 where low values are good, as in Table 4, else -1.
_SIGNS = {4: 1, 5: -1}
_SAME_PERCENT = 0.01
# Columns that rise steadily, so that a cubic through four shares tells where they begin.
_STEADY = ("Min", "Mean", "Median", "NaCL")


def row_of(name: str, fraction: float) -> str:
    """Return the row of the printed table for a data set and a share."""
    return f"{name} {round(100 * fraction)} %"


@functools.cache
def printed(number: int) -> dict[str, dict[str, float]]:
    """Return the printed numbers of Table 4 or 5, by row and method."""
    found: dict[str, dict[str, float]] = {}
    for (row, quantity), one in vocab.printed_numbers(f"conformant/table{number}").items():
        if quantity in METHODS.values():
            found.setdefault(row, {})[quantity] = one.value
    return found


def outperformed(number: int, values: Mapping[str, float]) -> int:
    """Return how many imputations NaCL outperforms by the measure of Table 4 or 5."""
    sign = _SIGNS[number]
    return sum(sign * value > sign * values["NaCL"] for method, value in values.items() if method != "NaCL")


def contradiction(number: int, row: str) -> str:
    """Return the proof that the printed table contradicts the text on a row; empty where it does not.

    The text says that NaCL outperforms all four imputations, except on Adult at 80 % by F1.
    """
    values, sign = printed(number).get(row, {}), _SIGNS[number]
    if not values or (number, row) == (5, "adult 80 %") or outperformed(number, values) == len(FILLS):
        return ""
    better = [
        f"{method} {value}"
        for method, value in values.items()
        if method != "NaCL" and sign * value <= sign * values["NaCL"]
    ]
    return (
        f"The text says that NaCL outperforms all four imputations; Table {number} itself prints {values['NaCL']} for "
        f"NaCL and {', '.join(better)} ({row})."
    )


def is_same_share(one: float, other: float) -> bool:
    """Tell whether two percentages of missing features are equal, up to rounding."""
    return abs(one - other) < _SAME_PERCENT


def label_contradiction(label: float, counted: float, closest: float) -> str:
    """Return the proof that no number of features is the share that a label states; empty if one is.

    All are percentages: that of the label, that of the features that the authors hide, and the possible one nearest to
    the label.
    """
    if is_same_share(closest, label):
        return ""
    return (
        f"The label states {label:.0f} %, but no whole number of features is that share of them: it is {counted:.1f} % "
        f"as the authors count, and {closest:.1f} % at the nearest."
    )


def extrapolated(number: int, name: str, shares: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)) -> dict[str, float]:
    """Return where the printed columns of a data set begin: cubics through the four shares, at no missing feature."""
    rows = [printed(number).get(row_of(name, share), {}) for share in shares]
    if not all(rows):
        return {}
    return {
        method: float(np.polynomial.Polynomial.fit(shares, [row[method] for row in rows], 3)(0.0)) for method in _STEADY
    }


# Set-ups that are not in the paper, but were inferred from the numbers that it prints.

# How the authors count: in steps of a fifth of the features, rounded down.
AS_RUN_ROUNDING: Rounding = "fifths"
# The authors also took constants from the complete test rows.
_AS_RUN_METHODS = {**{f"{fill}@test": title for fill, title in FILLS.items()}, "nacl": "NaCL"}
_CLOSE_PERCENT = 2.0


@vocab.settings
class Setup:
    """A set-up that may explain the printed numbers of a data set.

    Attributes
    ----------
    title : str
        Short phrase, shown beside the numbers that the set-up explains.
    encoding : {"authors", "paper"}
    unit : {"feature", "column"}
        What goes missing: features with all their columns, or single columns.
    displaced : dict from feature to column
        The first of the columns that go missing in place of the feature's own.
    median_of : {"test", "train"}
        The rows whose median is imputed; all other constants are those of the complete test rows.
    changes : dict
        Entries that replace the protocol's, such as ``inverse_penalty``.
    """

    title: str
    encoding: Encoding = "authors"
    unit: Unit = "feature"
    displaced: dict[str, int] = field(default_factory=dict)
    median_of: Literal["test", "train"] = "test"
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def methods(self) -> dict[str, str]:
        """Titles of the printed methods by their keys in the results."""
        if self.median_of == "test":
            return _AS_RUN_METHODS
        return {"median" if key == "median@test" else key: title for key, title in _AS_RUN_METHODS.items()}

    def cells(
        self, inputs: vocab.Inputs, name: str, missing: Sequence[float], repetitions: int, seed: int
    ) -> list[vocab.Cell]:
        """Return the jobs of a data set under this set-up."""
        task = make_task(inputs, name, self.encoding, seed, **self.changes)
        labels = {"encoding": self.encoding, "rounding": AS_RUN_ROUNDING, "as_run": False, "setup": self.title}
        missingness = Missingness(rounding=AS_RUN_ROUNDING, unit=self.unit, displaced=self.displaced)
        return evaluation_cells(task, missing, repetitions, missingness, seed, labels)

    def means(self, rows: pd.DataFrame, name: str, measure: str) -> dict[float, dict[str, float]]:
        """Return 100 times the means over masks, by share and method."""
        return dict(means_of(vocab.successes(rows, dataset=name, setup=self.title), measure, self.methods))


def means_of(done: pd.DataFrame, measure: str, methods: Mapping[str, str]) -> Iterator[tuple[float, dict[str, float]]]:
    """Yield each share at which a feature is missing, with 100 times the means of the methods there."""
    for fraction, group in summarise(done, measure, methods).groupby("missing"):
        if float(str(fraction)) > 0:
            titles = group["method"].map(methods)
            yield float(str(fraction)), dict(zip(titles, 100 * group["mean"], strict=True))


def how_well(number: int, name: str, means: Mapping[float, Mapping[str, float]]) -> dict[str, object]:
    """Return how far means are from the printed numbers of a data set; empty where none is printed."""
    pairs = [
        (values[method], row[method])
        for share, values in means.items()
        if (row := printed(number).get(row_of(name, share)))
        for method in METHODS.values()
        if method in values
    ]
    if not pairs:
        return {}
    ours, theirs = np.array(pairs).T
    errors = abs(ours - theirs)
    percent = 100 * errors / theirs
    return {
        "mean error": float(errors.mean()),
        "mean error (%)": float(percent.mean()),
        "within 2 %": f"{int((percent <= _CLOSE_PERCENT).sum())} of {len(pairs)}",
        "largest error (%)": float(percent.max()),
    }


# Tables 4 and 5: cross entropy and weighted F1 under missing features on CovType, Adult and Splice.

_WORDS = "the paper's, with the authors' encoding"
# Runs with all features, under the paper's set-up and under the inferred one.
_COMPLETE, _COMPLETE_INFERRED = "complete", "complete, inferred"


@vocab.settings
class Tables4And5(Sweep):
    """Table 4 (cross entropy) or Table 5 (weighted F1): every method at four shares of missing features.

    Shares are the paper's labels; the roundings are ``fifths``, as the authors count, and ``nearest``, which comes
    closer to the label. Encodings that are the same for a data set are computed once.

    `inferred` has set-ups by data set: the first is the one that was inferred from the printed numbers, the others are
    its neighbours, which show how certain that is. Neighbours are run on at most `neighbour_repetitions` masks, and so
    are `constraints`: set-ups that come near for no known reason, and so explain nothing.
    """

    measure: Literal["cross_entropy", "f1_weighted"]
    repetitions_of: dict[str, vocab.Count] = field(default_factory=dict)
    encodings: vocab.Axis[Encoding] = field(default_factory=lambda: ["paper", "authors"])
    roundings: vocab.Axis[Rounding] = field(default_factory=lambda: [AS_RUN_ROUNDING, "nearest"])
    inferred: dict[str, list[Setup]] = field(default_factory=dict)
    constraints: dict[str, list[Setup]] = field(default_factory=dict)
    neighbour_repetitions: vocab.Natural = 3

    def __post_init__(self) -> None:
        for name, setups in {name: self._beside(name) for name in {**self.inferred, **self.constraints}}.items():
            vocab.check_axis(f"titles of inferred.{name}", [setup.title for setup in setups])
            for setup in setups:
                if setup.title in ("", _COMPLETE, _COMPLETE_INFERRED):
                    raise ValueError(f"inferred.{name}: title must say what the set-up is, got {setup.title!r}")
        for rounding in (*self.roundings, *([AS_RUN_ROUNDING] if self.inferred else [])):
            check_missing(self.missing, Missingness(rounding=rounding))

    @property
    def _number(self) -> int:
        return 4 if self.measure == "cross_entropy" else 5

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set, set-up, share and repetition."""
        cells = []
        for name in self.datasets:
            cells += self._cells_in_words(inputs, name)
            repetitions = self.repetitions_of.get(name, self.repetitions)
            for setup in self._beside(name):
                masks = repetitions if setup in self._inferred(name) else min(repetitions, self.neighbour_repetitions)
                cells += setup.cells(inputs, name, self.missing, masks, self.seed)
            # With all features, the curves of all methods begin at the entropy.
            complete = [Setup(title=_COMPLETE)]
            complete += [replace(first, title=_COMPLETE_INFERRED) for first in self._inferred(name)]
            for setup in complete if self._number == 4 else ():
                cells += setup.cells(inputs, name, [0.0], 1, self.seed)
        return cells

    def _cells_in_words(self, inputs: vocab.Inputs, name: str) -> list[vocab.Cell]:
        """Return the jobs of the paper's own set-up, with each encoding and way of rounding."""
        repetitions = self.repetitions_of.get(name, self.repetitions)
        cells, seen = [], []
        for encoding in self.encodings:
            task = make_task(inputs, name, encoding, self.seed)
            own = task.protocol.encoding(encoding)
            if own in seen:
                continue
            seen.append(own)
            is_theirs = own == task.protocol.encoding("authors")
            for rounding in self.roundings:
                as_run = is_theirs and rounding == AS_RUN_ROUNDING
                labels = {"encoding": encoding, "rounding": rounding, "as_run": as_run, "setup": ""}
                missingness = Missingness(rounding=rounding)
                cells += evaluation_cells(task, self.missing, repetitions, missingness, self.seed, labels)
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the table as the authors ran it, the other ways to run it, and how inferred set-ups fit."""
        as_run: list[dict[str, object]] = []
        otherwise: list[dict[str, object]] = []
        orders: list[tuple[object, ...]] = []
        numbers: list[vocab.Number] = []
        labels = self._labels(rows)
        for name in self.datasets:
            own = rows[(rows["dataset"] == name) & (rows["setup"] == "")]
            for encoding in own["encoding"].unique():
                for rounding in self.roundings:
                    done = vocab.successes(own, encoding=encoding, rounding=rounding)
                    otherwise += self._lines(name, encoding, done, FILLS)
                done = vocab.successes(own, encoding=encoding, as_run=True)
                as_run += self._lines(name, encoding, done, _AS_RUN_METHODS)
                for share, means in means_of(done, self.measure, _AS_RUN_METHODS):
                    row = row_of(name, share)
                    ours = vocab.successes(done, missing=share)
                    numbers += self._accounted(row, means, ours, rows, name, share)
                    if self._number == 4:  # both tables have the same labels
                        counted, closest = float(ours["missing_percent"].mean()), labels[name, share][1]
                        proof = label_contradiction(100 * share, counted, closest)
                        numbers.append(vocab.number_of(row, "missing_percent", counted, ours, contradiction=proof))
                    orders.append((name, round(100 * share), *self._order(row, means)))
        # Where the ways of rounding agree, their lines are duplicates.
        train = pd.DataFrame(otherwise).drop_duplicates().to_dict("records")
        stand_for = [
            (name, 100 * share, counted, closest, "yes" if is_same_share(closest, 100 * share) else "no")
            for (name, share), (counted, closest) in labels.items()
        ]
        unit = "cross entropy, hundredths of a nat" if self.measure == "cross_entropy" else "weighted F1, %"
        title = f"Table {self._number} as the authors ran it ({unit}): means over random masks"
        inferred, fits = (
            f"Set-ups inferred from the printed numbers ({unit})",
            "How well other set-ups fit the printed numbers",
        )
        tables = [
            vocab.Table.of(title, as_run, _COLUMNS),
            vocab.Table.of(f"Constants of the training rows, both encodings ({unit})", train, _COLUMNS, name="train"),
            vocab.Table.of(f"The authors' stored results ({unit})", self._stored(rows), _STORED, name="stored"),
            vocab.Table.of("Order of the methods, best first", orders, _ORDER, name="order"),
            vocab.Table.of("What the labels of shares stand for", stand_for, _LABELS, name="labels"),
            vocab.Table.of(inferred, self._inferred_lines(rows), _INFERRED, name="inferred"),
            vocab.Table.of(fits, self._fits(rows), _FITS, name="fits"),
        ]
        if self.measure == "cross_entropy":
            begins = "Entropy with all features, and where the printed columns begin (hundredths of a nat)"
            tables.append(vocab.Table.of(begins, self._beginnings(rows), _BEGIN, name="begin"))
        return vocab.Outcome(tables, (), numbers)

    def _accounted(
        self, row: str, means: Mapping[str, float], ours: pd.DataFrame, rows: pd.DataFrame, name: str, share: float
    ) -> Iterator[vocab.Number]:
        """Yield the numbers of a row, with what accounts for differences from the printed ones."""

        def counted(values: Mapping[str, float]) -> dict[str, float]:
            return {**values, "outperformed": float(outperformed(self._number, values))}

        proof, explained = contradiction(self._number, row), {}
        for setup in self._inferred(name):
            if values := setup.means(rows, name, self.measure).get(share):
                jobs = tuple(vocab.successes(rows, dataset=name, setup=setup.title, missing=share)["job"])
                found = counted(values).items()
                explained = {key: vocab.Explanation(setup.title, value, jobs=jobs) for key, value in found}
        for quantity, value in counted(means).items():
            own = proof if quantity == "outperformed" else ""
            yield vocab.number_of(row, quantity, value, ours, explanation=explained.get(quantity), contradiction=own)

    def _labels(self, rows: pd.DataFrame) -> dict[tuple[str, float], tuple[float | None, float]]:
        """Return the true share behind each label, as the authors count it, and the possible one nearest to it."""
        found: dict[tuple[str, float], tuple[float | None, float]] = {}
        for labels, group in vocab.groups(rows[rows["setup"] == ""], "dataset", "missing"):
            percent = group.groupby("rounding")["missing_percent"].mean()
            closest = min(percent.tolist(), key=lambda value: abs(value - 100 * labels["missing"]))
            found[labels["dataset"], labels["missing"]] = percent.get(AS_RUN_ROUNDING), closest
        return found

    def _inferred_lines(self, rows: pd.DataFrame) -> list[dict[str, object]]:
        return [
            {"data": name, "set-up": setup.title, "label (%)": 100 * share, **means}
            for name in self.datasets
            for setup in [*self._inferred(name), *self.constraints.get(name, [])]
            for share, means in setup.means(rows, name, self.measure).items()
        ]

    def _fits(self, rows: pd.DataFrame) -> list[dict[str, object]]:
        """Return a line for the paper's own set-up, the inferred one and each of its neighbours."""
        lines = []
        for name in self.datasets:
            done = vocab.successes(rows, dataset=name, as_run=True)
            in_words = dict(means_of(done, self.measure, _AS_RUN_METHODS))
            every = [(_WORDS, "", done, in_words)]
            for setup in self._beside(name):
                own = vocab.successes(rows, dataset=name, setup=setup.title)
                means = setup.means(rows, name, self.measure)
                mark = "constraint" if setup in self.constraints.get(name, []) else ""
                every.append((setup.title, "yes" if setup in self._inferred(name) else mark, own, means))
            for title, mark, own, means in every:
                if fit := how_well(self._number, name, means):
                    masks = int(own["repetition"].nunique())
                    lines.append({"data": name, "set-up": title, "inferred": mark, "masks": masks, **fit})
        return lines

    def _beginnings(self, rows: pd.DataFrame) -> list[dict[str, object]]:
        lines = []
        for name in self.datasets:
            begin = extrapolated(self._number, name)
            titles = [_WORDS, *(setup.title for setup in self._inferred(name))]
            for key, title in zip((_COMPLETE, _COMPLETE_INFERRED), titles, strict=False):
                done = vocab.successes(rows, dataset=name, setup=key)
                if begin and len(done):
                    entropy = 100 * float(done["nacl/cross_entropy"].iloc[0])
                    lines.append({"data": name, "set-up": title, "entropy": entropy, **begin})
        return lines

    def _inferred(self, name: str) -> list[Setup]:
        """Return the one inferred set-up of a data set, if there is one."""
        return self.inferred.get(name, [])[:1]

    def _beside(self, name: str) -> list[Setup]:
        """Return all set-ups of a data set besides the paper's: the inferred one, its neighbours, the constraints."""
        return [*self.inferred.get(name, []), *self.constraints.get(name, [])]

    def _lines(self, name: str, encoding: str, done: pd.DataFrame, methods: dict[str, str]) -> list[dict[str, object]]:
        """Return the means of each share; `methods` are the titles of methods by their keys in the results."""
        titles = {**methods, "nacl": "NaCL", **_BESIDES}
        lines = []
        for fraction, group in summarise(done, self.measure, titles).groupby("missing"):
            own = group[group["method"] == "nacl"].iloc[0]
            place = (name, encoding, 100 * float(str(fraction)), own["percent"], own["n"])
            line = dict(zip(_COLUMNS, place, strict=False)) | {"NaCL ±": 50 * (own["high"] - own["low"])}
            lines.append(line | {titles[m]: 100 * v for m, v in zip(group["method"], group["mean"], strict=True)})
        return lines

    def _stored(self, rows: pd.DataFrame) -> list[tuple[object, ...]]:
        lines = []
        for labels, group in vocab.groups(rows[(rows["setup"] == "")], "dataset", "missing", "rounding"):
            if labels["rounding"] == AS_RUN_ROUNDING:
                curves = stored_curves(labels["dataset"], self.measure)
                percent = float(group["missing_percent"].mean())
                values = (vocab.interpolated(curves[curves["method"] == method], percent) for method in METHODS)
                means = (None if value is None else 100 * value for value in values)
                lines.append((labels["dataset"], 100 * labels["missing"], percent, *means))
        return lines

    def _order(self, row: str, means: Mapping[str, float]) -> tuple[str, str, str]:
        """Return the order of the methods in a row, and how many pairs of them are in the printed order."""
        reported = printed(self._number).get(row, {})
        theirs, ours = (
            {method: _SIGNS[self._number] * value for method, value in of.items()} for of in (reported, means)
        )
        pairs = [(a, b) for a in theirs for b in theirs if theirs[a] < theirs[b]]
        kept = sum(ours[a] < ours[b] for a, b in pairs)
        first, second = (", ".join(sorted(one, key=one.__getitem__)) for one in (theirs, ours))
        return first, second, f"{kept} of {len(pairs)}"


_BESIDES = {"nacl_groups": "NaCL, categorical", "naive_bayes": "naive Bayes"}
_COLUMNS = {
    **{"data": "", "encoding": "", "label (%)": ".0f", "missing (%)": ".1f", "masks": ""},
    **dict.fromkeys(METHODS.values(), ".1f"),
    "NaCL ±": ".2f",
    **dict.fromkeys(_BESIDES.values(), ".1f"),
}
_STORED = {name: _COLUMNS[name] for name in ("data", "label (%)", "missing (%)", *METHODS.values())}
_INFERRED = {"data": "", "set-up": "", "label (%)": ".0f", **dict.fromkeys(METHODS.values(), ".1f")}
_BEGIN = {"data": "", "set-up": "", **dict.fromkeys(["entropy", *_STEADY], ".1f")}
_LABELS = {"data": "", "label (%)": ".0f", "as the authors count (%)": ".1f", "nearest that we hide (%)": ".1f"}
_LABELS |= {"label is possible": ""}
_ORDER = ("data", "label (%)", "printed", "ours", "pairs in the printed order")
_FITS = {
    **dict.fromkeys(["data", "set-up", "inferred", "masks"], ""),
    **{"mean error": ".2f", "mean error (%)": ".2f", "within 2 %": "", "largest error (%)": ".1f"},
}
