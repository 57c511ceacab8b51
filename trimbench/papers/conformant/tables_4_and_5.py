"""Tables 4 and 5: cross entropy and weighted F1 under missing features on CovType, Adult and Splice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

from pydantic import NonNegativeInt, PositiveInt

from trimbench.papers.conformant.evaluation import check_missing, evaluation_cells
from trimbench.papers.conformant.inferred import AS_RUN_ROUNDING, FIT_COLUMNS, Setup, how_well, means_of
from trimbench.papers.conformant.mask_means import summarise
from trimbench.papers.conformant.printed_tables import (
    FILLS,
    METHODS,
    contradiction,
    extrapolated,
    is_same_share,
    label_contradiction,
    outperformed,
    printed,
    row_of,
)
from trimbench.papers.conformant.protocol import Encoding, make_task
from trimbench.papers.conformant.stored_curves import interpolated, stored_curves
from trimbench.papers.conformant.tables_4_and_5_texts import (
    BEGIN_COLUMNS,
    BESIDES,
    COLUMNS,
    INFERRED_COLUMNS,
    LABEL_COLUMNS,
    NOTES,
    NOTES_4,
    NOTES_5,
    ORDER_COLUMNS,
    STORED_COLUMNS,
)
from trimbench.papers.data.missingness import Missingness, Rounding
from trimbench.papers.study.cells import Cell, check_axis
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.numbers import Explanation, Number, numbers_of
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

# The authors took constants from the complete test rows.
_AS_RUN_METHODS = {**{f"{fill}@test": title for fill, title in FILLS.items()}, "nacl": "NaCL"}
_WORDS = "the paper's, with the authors' encoding"
# Runs with all features, under the paper's set-up and under the inferred one.
_COMPLETE, _COMPLETE_INFERRED = "complete", "complete, inferred"


@settings
class Tables4And5:
    """Table 4 (cross entropy) or Table 5 (weighted F1): every method at four shares of missing features.

    Shares are the paper's labels; the roundings are ``fifths``, as the authors count, and ``nearest``, which comes
    closer to the label. Encodings that are the same for a data set are computed once.

    `inferred` has set-ups by data set: the first is the one that was inferred from the printed numbers, the others are
    its neighbours, which show how sure that is. Neighbours are run on at most `neighbour_repetitions` masks.
    """

    measure: Literal["cross_entropy", "f1_weighted"]
    datasets: list[str]
    missing: list[float]
    repetitions: PositiveInt = 3
    repetitions_of: dict[str, PositiveInt] = field(default_factory=dict)
    encodings: list[Encoding] = field(default_factory=lambda: ["paper", "authors"])
    roundings: list[Rounding] = field(default_factory=lambda: [AS_RUN_ROUNDING, "nearest"])
    inferred: dict[str, list[Setup]] = field(default_factory=dict)
    neighbour_repetitions: NonNegativeInt = 3
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        check_axis("encodings", self.encodings)
        check_axis("roundings", self.roundings)
        for name, setups in self.inferred.items():
            check_axis(f"titles of inferred.{name}", [setup.title for setup in setups])
            for setup in setups:
                if setup.title in ("", _COMPLETE, _COMPLETE_INFERRED):
                    raise ValueError(f"inferred.{name}: title must say what the set-up is, got {setup.title!r}")
        for rounding in (*self.roundings, *([AS_RUN_ROUNDING] if self.inferred else [])):
            check_missing(self.missing, Missingness(rounding=rounding))

    @property
    def _number(self) -> int:
        return 4 if self.measure == "cross_entropy" else 5

    @property
    def _experiment(self) -> str:
        return f"conformant/table{self._number}"

    @property
    def _sign(self) -> int:
        """1 where a low value is good, as a cross entropy, else -1."""
        return 1 if self.measure == "cross_entropy" else -1

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each data set, set-up, share and repetition."""
        cells = []
        for name in self.datasets:
            cells += self._cells_in_words(inputs, name)
            repetitions = self.repetitions_of.get(name, self.repetitions)
            for place, setup in enumerate(self.inferred.get(name, [])):
                masks = min(repetitions, self.neighbour_repetitions) if place else repetitions
                cells += setup.cells(inputs, name, self.missing, masks, self.seed)
            if self.measure == "cross_entropy":
                cells += self._complete_cells(inputs, name)
        return cells

    def _cells_in_words(self, inputs: Inputs, name: str) -> list[Cell]:
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

    def _complete_cells(self, inputs: Inputs, name: str) -> list[Cell]:
        """Return the jobs that show the entropy with all features, where the curves of all methods begin."""
        cells = Setup(title=_COMPLETE).cells(inputs, name, [0.0], 1, self.seed)
        for first in self.inferred.get(name, [])[:1]:
            cells += replace(first, title=_COMPLETE_INFERRED).cells(inputs, name, [0.0], 1, self.seed)
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the table as the authors ran it, the other ways to run it, and how inferred set-ups fit."""
        import pandas as pd

        as_run: list[dict[str, object]] = []
        otherwise: list[dict[str, object]] = []
        orders: list[dict[str, object]] = []
        numbers: list[Number] = []
        for name in self.datasets:
            own = rows[(rows["dataset"] == name) & (rows["setup"] == "")]
            for encoding in own["encoding"].unique():
                for rounding in self.roundings:
                    done = successes(own, encoding=encoding, rounding=rounding)
                    otherwise += self._lines(name, encoding, done, FILLS)
                done = successes(own, encoding=encoding, as_run=True)
                as_run += self._lines(name, encoding, done, _AS_RUN_METHODS)
                for share, means in means_of(done, self.measure, _AS_RUN_METHODS):
                    row = row_of(name, share)
                    values = means | {"outperformed": float(outperformed(means, self._sign))}
                    ours = successes(done, missing=share)
                    numbers += self._accounted(numbers_of(row, values, ours), rows, name, share)
                    numbers += self._label_of(row, share, ours, own)
                    orders.append({"data": name, "label (%)": round(100 * share), **self._order(row, means)})
        # Where the ways of rounding agree, their lines do.
        train = pd.DataFrame(otherwise).drop_duplicates().to_dict("records")
        unit = "cross entropy, 100 nats" if self.measure == "cross_entropy" else "weighted F1, %"
        title = f"Table {self._number} as the authors ran it ({unit}): means over random masks"
        tables = [
            Table.of(title, as_run, COLUMNS),
            Table.of(f"Constants of the training rows, both encodings ({unit})", train, COLUMNS, name="train"),
            Table.of(f"The authors' stored results ({unit})", self._stored(rows), STORED_COLUMNS, name="stored"),
            Table.of("Order of the methods, best first", orders, ORDER_COLUMNS, name="order"),
            Table.of("What the labels of shares stand for", self._labels(rows), LABEL_COLUMNS, name="labels"),
            Table.of(
                f"Set-ups inferred from the printed numbers ({unit})",
                self._inferred_lines(rows),
                INFERRED_COLUMNS,
                name="inferred",
            ),
            Table.of("How well other set-ups fit the printed numbers", self._fits(rows), FIT_COLUMNS, name="fits"),
        ]
        if self.measure == "cross_entropy":
            begins = "Entropy with all features, and where the printed columns begin (100 nats)"
            tables.append(Table.of(begins, self._beginnings(rows), BEGIN_COLUMNS, name="begin"))
        return Outcome(tables, (), numbers, (*NOTES, *(NOTES_4 if self._number == 4 else NOTES_5)))

    def _accounted(self, found: list[Number], rows: pd.DataFrame, name: str, share: float) -> list[Number]:
        """Add what accounts for differences from the printed numbers of a row."""
        proof = contradiction(self._number, row_of(name, share), self._sign)
        found = [replace(one, contradiction=proof if one.quantity == "outperformed" else "") for one in found]
        setups = self.inferred.get(name, [])
        means = setups[0].means(rows, name, self.measure).get(share) if setups else None
        if means is None:
            return found
        values = means | {"outperformed": float(outperformed(means, self._sign))}
        title = setups[0].title
        return [replace(one, explanation=Explanation(title, values[one.quantity])) for one in found]

    def _label_of(self, row: str, share: float, ours: pd.DataFrame, own: pd.DataFrame) -> list[Number]:
        """Return the true share behind a label, with the proof if it cannot be what the label states.

        Both tables have the same labels, so those of Table 4 stand for both.
        """
        if self._number != 4:
            return []
        label, counted = 100 * share, float(ours["missing_percent"].mean())
        all_ways = successes(own, missing=share).groupby("rounding")["missing_percent"].mean()
        closest = min((float(value) for value in all_ways), key=lambda value: abs(value - label))
        proof = label_contradiction(label, counted, closest)
        return [replace(one, contradiction=proof) for one in numbers_of(row, {"missing_percent": counted}, ours)]

    def _labels(self, rows: pd.DataFrame) -> list[dict[str, object]]:
        """Return the true share of missing features behind each label, and the possible one that is nearest to it."""
        own = rows[(rows["setup"] == "") & (rows["status"] == "ok")]
        lines = []
        for (name, share), group in own.groupby(["dataset", "missing"], sort=False):
            percent = group.groupby("rounding")["missing_percent"].mean()
            label = 100 * float(str(share))
            closest = min((float(value) for value in percent), key=lambda value: abs(value - label))
            counted = float(percent[AS_RUN_ROUNDING]) if AS_RUN_ROUNDING in percent else None
            possible = "yes" if is_same_share(closest, label) else "no"
            lines.append(dict(zip(LABEL_COLUMNS, (name, label, counted, closest, possible), strict=True)))
        return lines

    def _inferred_lines(self, rows: pd.DataFrame) -> list[dict[str, object]]:
        return [
            {"data": name, "set-up": setups[0].title, "label (%)": 100 * share, **means}
            for name, setups in self._setups()
            if setups
            for share, means in setups[0].means(rows, name, self.measure).items()
        ]

    def _fits(self, rows: pd.DataFrame) -> list[dict[str, object]]:
        """Return a line for the paper's own set-up, the inferred one and each of its neighbours."""
        lines = []
        for name, setups in self._setups():
            done = successes(rows, dataset=name, as_run=True)
            in_words = dict(means_of(done, self.measure, _AS_RUN_METHODS))
            every = [(_WORDS, "", done, in_words)]
            for place, setup in enumerate(setups):
                own = successes(rows, dataset=name, setup=setup.title)
                means = setup.means(rows, name, self.measure)
                every.append((setup.title, "" if place else "yes", own, means))
            for title, mark, own, means in every:
                if fit := how_well(self._experiment, name, means):
                    masks = int(own["repetition"].nunique())
                    lines.append({"data": name, "set-up": title, "inferred": mark, "masks": masks, **fit})
        return lines

    def _beginnings(self, rows: pd.DataFrame) -> list[dict[str, object]]:
        lines = []
        for name in self.datasets:
            begin = extrapolated(self._number, name)
            titles = [_WORDS, *(setup.title for setup in self.inferred.get(name, [])[:1])]
            for key, title in zip((_COMPLETE, _COMPLETE_INFERRED), titles, strict=False):
                done = successes(rows, dataset=name, setup=key)
                if begin and len(done):
                    entropy = 100 * float(done["nacl/cross_entropy"].iloc[0])
                    lines.append({"data": name, "set-up": title, "entropy": entropy, **begin})
        return lines

    def _setups(self) -> list[tuple[str, list[Setup]]]:
        return [(name, self.inferred.get(name, [])) for name in self.datasets]

    def _lines(self, name: str, encoding: str, done: pd.DataFrame, methods: dict[str, str]) -> list[dict[str, object]]:
        """Return the means of each share; `methods` are the titles of methods by their keys in the results."""
        titles = {**methods, "nacl": "NaCL", **BESIDES}
        lines = []
        for fraction, group in summarise(done, self.measure, titles).groupby("missing"):
            own = group[group["method"] == "nacl"].iloc[0]
            line = {
                "data": name,
                "encoding": encoding,
                "label (%)": 100 * float(str(fraction)),
                "missing (%)": own["percent"],
                "masks": own["n"],
                "NaCL ±": 50 * (own["high"] - own["low"]),
            }
            lines.append(line | {titles[m]: 100 * v for m, v in zip(group["method"], group["mean"], strict=True)})
        return lines

    def _stored(self, rows: pd.DataFrame) -> list[dict[str, object]]:
        lines = []
        for name in self.datasets:
            curves = stored_curves(name, self.measure)
            for fraction, group in successes(rows, dataset=name, setup="", rounding=AS_RUN_ROUNDING).groupby("missing"):
                percent = float(group["missing_percent"].mean())
                line: dict[str, object] = {
                    "data": name,
                    "label (%)": 100 * float(str(fraction)),
                    "missing (%)": percent,
                }
                for method, title in METHODS.items():
                    value = interpolated(curves[curves["method"] == method], percent)
                    line[title] = 100 * value if value is not None else None
                lines.append(line)
        return lines

    def _order(self, row: str, means: Mapping[str, float]) -> dict[str, object]:
        """Return the order of the methods in a row, and how many pairs of them are in the printed order."""
        reported = printed(self._experiment).get(row, {})
        theirs, ours = ({method: self._sign * value for method, value in of.items()} for of in (reported, means))
        pairs = [(a, b) for a in theirs for b in theirs if theirs[a] < theirs[b]]
        kept = sum(ours[a] < ours[b] for a, b in pairs)
        return {
            "printed": ", ".join(sorted(theirs, key=theirs.__getitem__)),
            "ours": ", ".join(sorted(ours, key=ours.__getitem__)),
            "pairs in the printed order": f"{kept} of {len(pairs)}",
        }
