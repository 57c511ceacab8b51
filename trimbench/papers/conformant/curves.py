"""Figure 3 and question 3: fidelity and accuracy against the share of missing features, with the authors' curves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import pandas as pd

from trimbench.papers.conformant import mask_sweep as sweep
from trimbench.papers.conformant.protocols import Encoding, make_task
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.masks import Missingness
from trimbench.reproduction.project import project

# The encoding of the runs that the authors stored.
_STORED: Encoding = "authors"
_MEASURES = {"cross_entropy": "average cross entropy (nats)", "accuracy": "accuracy"}
# The curves that the paper prints: by cross entropy, it dismisses maximum imputation as orders of magnitude worse.
_PRINTED = {"cross_entropy": ["nacl", "mean", "median", "min"], "accuracy": ["nacl", "mean", "median", "min", "max"]}
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
        """Return the curves with the authors' behind them, and the largest distances between the two."""
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
            stored = stored_curves(name, measure)
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
            # The authors' curves run to 100 % missing; ours limit the comparison.
            reach = stored[stored["percent"] <= summary["percent"].max() + 1e-9]
            drawn = summary[summary["method"].isin(_DRAWN)]
            heading = sweep.with_mixture(title.split(" (")[0], drawn)
            figures.append(sweep.curves(stem, heading, measure, _MEASURES[measure], drawn, reach))
        main = vocab.Table.of("Largest distance to the authors' stored curves, over all fractions", distances, _COLUMNS)
        if not self.mixture:
            return vocab.Outcome((main, *tables), figures, numbers)
        beyond = (_accuracies_table(rows, self.datasets, self.encodings), _fits_table(rows, "dataset", "encoding"))
        return vocab.Outcome((main, *beyond, *tables), figures, numbers, _NOTES)


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
    drawn = summary[summary["method"].isin(_PRINTED[measure])]
    # Half the widest interval over the masks, in percent of the height that the curves take.
    half, height = (drawn["high"] - drawn["low"]).max() / 2, drawn["mean"].max() - drawn["mean"].min()
    claims["error_bar_percent"] = None if pd.isna(half) else float(100 * half / height)
    if measure == "cross_entropy":
        claims["max by worst of the rest"] = _dismissed(summary)
    return claims


def _outperformed(measure: str, summary: pd.DataFrame) -> float | None:
    """Return how many imputations NaCL outperforms wherever a feature is missing: the fewest over all shares."""
    sign = -1 if measure == "cross_entropy" else 1
    means = summary[(summary["percent"] > 0) & summary["method"].isin(_PRINTED[measure])]
    table = sign * means.pivot_table(index="percent", columns="method", values="mean")
    return None if table.empty else float(table.lt(table["nacl"], axis=0).sum(axis=1).min())


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
            "In the curves that the authors stored, too, imputations are ahead of NaCL: at some share of missing "
            f"pixels it outperforms only {value:.0f} of the {claim.value:.0f}."
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


# Question 3 of the paper: up to which share of missing features NaCL is more accurate than naive Bayes.

_BOTH = ("nacl", "naive_bayes")
_NEVER = 100.0
# The paper speaks of accuracy: nothing else is compared with it.
_ACCURACY_MEASURES = {"accuracy": "accuracy", "f1_weighted": "weighted F1"}
# The paper finds naive Bayes ahead from the start here, and NaCL ahead up to 40 % everywhere else.
_NAIVE_BAYES_LEADS = ("splice",)


@vocab.settings
class NaiveBayesCrossing(sweep.Sweep):
    """Accuracy of NaCL and of maximum-likelihood naive Bayes over the whole range of missingness (Q3).

    Weighted F1 stands beside it, without a verdict. `repetitions` counts the random masks for each fraction of missing
    features; `repetitions_of` overrides it for single data sets. The `mixture` of conformant models, if any, is one
    more line, beyond the paper.
    """

    repetitions_of: dict[str, vocab.Count] = field(default_factory=dict)
    encoding: Encoding = "paper"
    mixture: sweep.MixtureSettings | None = None

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set, fraction and repetition, and one for each mixture."""
        cells = []
        for name in self.datasets:
            repetitions = self.repetitions_of.get(name, self.repetitions)
            task = make_task(inputs, name, self.encoding, self.seed)
            cells += sweep.mixture_cells([task], self.mixture)
            cells += sweep.evaluation_cells(
                task, self.missing, repetitions, Missingness(), self.seed, {"part": "masks"}, mixture=self.mixture
            )
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the crossing points, and both curves for each data set."""
        lines, beyond, figures = [], [], []
        numbers: list[vocab.Number] = []
        for name in self.datasets:
            done = vocab.successes(rows, dataset=name, part="masks")
            for measure, title in _ACCURACY_MEASURES.items():
                summary = sweep.summarise(done, measure, (*_BOTH, sweep.MIXTURE))
                if summary.empty:
                    continue
                theirs = _both_stored(name, measure)
                line = {"data": name, "measure": title} | _crossing_line(summary, theirs)
                lines.append(line)
                if lead := _least_lead(done, measure):
                    own = {"data": name, "measure": title, "crossing (%)": crossing(_pairs(summary, sweep.MIXTURE))}
                    beyond.append(own | lead)
                stem = name if measure == "accuracy" else f"{name}_{measure}"
                if measure == "accuracy":
                    numbers += _crossing_numbers(name, line, done)
                elif theirs.empty:
                    continue
                heading = sweep.with_mixture(f"{sweep.title_of(rows, name)}: {title} of NaCL and naive Bayes", summary)
                figures.append(sweep.curves(stem, heading, measure, title, summary, theirs))
        main = vocab.Table.of("Accuracy with all features, and where naive Bayes passes NaCL", lines, _CROSSINGS)
        if not self.mixture:
            return vocab.Outcome((main,), figures, numbers)
        leads = vocab.Table.of(_LEADS_TITLE, beyond, _LEADS, name="mixture_leads")
        return vocab.Outcome((main, leads, _fits_table(rows, "dataset")), figures, numbers, _NOTES)


def _crossing_line(summary: pd.DataFrame, theirs: pd.DataFrame) -> dict[str, Any]:
    """Return the number of masks, both means with all features, and where our curves and the authors' cross."""
    complete = summary[summary["percent"] < 1e-9].set_index("method")["mean"]
    return {
        "masks": int(summary["n"].max()),
        **{f"{sweep.METHODS[method]} complete": complete.get(method) for method in _BOTH},
        "crossing (%)": crossing(_pairs(summary)),
        "crossing of stored curves (%)": None if theirs.empty else crossing(_pairs(theirs)),
    }


_CROSSINGS = {
    **dict.fromkeys(["data", "measure", "masks"], ""),
    **dict.fromkeys(["NaCL complete", "naive Bayes complete"], ".4f"),
    **dict.fromkeys(["crossing (%)", "crossing of stored curves (%)"], ".1f"),
}


def _crossing_numbers(name: str, line: Mapping[str, Any], done: pd.DataFrame) -> list[vocab.Number]:
    """Return what the paper says about a data set: who leads with all features, and up to where NaCL does."""
    ours, theirs = (line[f"{sweep.METHODS[method]} complete"] for method in _BOTH)
    lead = None if ours is None or theirs is None else 100 * (ours - theirs)
    if name in _NAIVE_BAYES_LEADS:
        return [vocab.number_of(name, "complete_lag", lead, done)]
    claim = vocab.printed_numbers("conformant/naive_bayes").get((name, "crossing_percent"))
    stored, proof = line["crossing of stored curves (%)"], ""
    if claim and stored is not None and stored < claim.value:
        proof = (
            f"In the curves that the authors stored, too, naive Bayes passes NaCL before {claim.value:.0f} %, at "
            f"{stored:.1f} % missing."
        )
    return [
        vocab.number_of(name, "complete_lead", lead, done),
        vocab.number_of(name, "crossing_percent", line["crossing (%)"], done, contradiction=proof),
    ]


def _both_stored(name: str, measure: str) -> pd.DataFrame:
    """Return both of the authors' curves in a measure; none if one of them is not stored."""
    found = stored_curves(name, measure)
    both = found[found["method"].isin(_BOTH)]
    return both if both["method"].nunique() == len(_BOTH) else both[:0]


def _pairs(curve: pd.DataFrame, first: str = "nacl") -> list[tuple[float, float, float]]:
    """Return (percent, first method, naive Bayes) by increasing percent, where both are known."""
    table = curve.pivot_table(index="percent", columns="method", values="mean")
    return list(table.reindex(columns=[first, "naive_bayes"]).dropna().itertuples(name=None))


def crossing(pairs: list[tuple[float, float, float]]) -> float:
    """Return the share from which the second curve is no lower than the first; 100 if it is lower throughout.

    Each of the pairs is (percent, first, second), by increasing percent.

    >>> crossing([(0, 0.9, 0.8), (50, 0.7, 0.7), (100, 0.1, 0.1)]), crossing([(0, 0.75, 0.5), (20, 0.5, 0.75)])
    (50.0, 10.0)
    """
    before: tuple[float, float] | None = None
    for percent, first, second in pairs:
        lead = first - second
        if lead <= 0:
            if before is None:
                return float(percent)
            start, lead_before = before
            return start + (percent - start) * lead_before / (lead_before - lead)
        before = (percent, lead)
    return _NEVER


# Tables of what mixtures of conformant models gain, beyond the paper.

_NOTES = (
    "The mixture of conformant models goes beyond the paper, and nothing printed is compared with it. Each component "
    "conforms with the logistic regression, so that the mixture is exactly the classifier where nothing is missing. "
    "Its number of components is set, or with auto the one beyond which rows held out do not become more likely.",
)
_SHARES = (50.0, 80.0, 90.0)
_MOST_MISSING = 90.0
# Of how a mixture was learned: the result of the job behind each column, and its format.
_FITS = {
    "components": ("components", ".0f"),
    "training rows": ("learned_from", ".0f"),
    "processor seconds": ("fit_seconds", ".1f"),
    "moment residual": ("residual", ".1e"),
    "largest difference to the classifier": ("difference", ".1e"),
}
_INTERVAL = ("interval low", "interval high")
_ACCURACIES = {
    **dict.fromkeys(["dataset", "encoding"], ""),
    "missing (%)": ".1f",
    "masks": ".0f",
    **dict.fromkeys(["NaCL", "mixture", *_INTERVAL, "naive Bayes"], ".4f"),
}
_LEADS_TITLE = "Beyond the paper: where naive Bayes passes the mixture, and its least lead up to 90 % missing"
_LEADS = {
    **dict.fromkeys(["data", "measure"], ""),
    "masks": ".0f",
    "crossing (%)": ".1f",
    **dict.fromkeys(["least lead (points)", *_INTERVAL], ".2f"),
    "at missing (%)": ".1f",
}


def _fits_table(rows: pd.DataFrame, *labels: str) -> vocab.Table:
    """Return a table of how the mixtures were learned; `labels` are the columns that tell them apart."""
    fits = [
        own | {title: ours[result].iloc[0] for title, (result, _) in _FITS.items()}
        for own, ours in vocab.groups(rows[rows["part"] == "mixture"], *labels)
    ]
    formats = dict.fromkeys(labels, "") | {title: one for title, (_, one) in _FITS.items()}
    return vocab.Table.of("Beyond the paper: mixtures of conformant models", fits, formats, name="mixtures")


def _accuracies_table(rows: pd.DataFrame, datasets: Sequence[str], encodings: Sequence[str]) -> vocab.Table:
    """Return a table of the accuracies where much is missing, with intervals of the mixture's means."""
    lines = []
    for name, encoding in itertools.product(datasets, encodings):
        done = vocab.successes(rows, dataset=name, encoding=encoding, part="masks")
        summary = sweep.summarise(done, "accuracy", ("nacl", sweep.MIXTURE, "naive_bayes"))
        for percent, group in summary.groupby("percent"):
            of = group.set_index("method")
            # Masks hide whole pixels.
            if sweep.MIXTURE in of.index and any(abs(float(str(percent)) - share) < 0.5 for share in _SHARES):
                mean, mixture = of["mean"], of.loc[sweep.MIXTURE]
                values = (percent, mixture["n"], mean["nacl"], *mixture[["mean", "low", "high"]], mean["naive_bayes"])
                lines.append((name, encoding, *values))
    return vocab.Table.of(
        "Beyond the paper: accuracy where much is missing", lines, _ACCURACIES, name="mixture_accuracy"
    )


def _least_lead(done: pd.DataFrame, measure: str) -> dict[str, object] | None:
    """Return the smallest mean lead of the mixture over naive Bayes, in points, up to 90 % missing.

    It comes with the interval of the mean over the masks, which both methods share; None if there is no mixture.
    """
    ours, theirs = (f"{method}/{measure}" for method in (sweep.MIXTURE, "naive_bayes"))
    if ours not in done.columns:
        return None
    leads = (100 * (done[ours] - done[theirs])).groupby(done["missing_percent"].round(9))
    found = [(float(lead.mean()), percent, lead) for percent, lead in leads if percent <= _MOST_MISSING + 1e-6]
    if not found:
        return None
    least, percent, lead = min(found, key=lambda one: one[0])
    low, high = vocab.mean_of(lead).ends
    columns = ("least lead (points)", *_INTERVAL, "at missing (%)")
    return {"masks": len(lead), **dict(zip(columns, (least, low, high, percent), strict=True))}


# The curves that the authors stored with their code.


def stored_curves(dataset: str, measure: str) -> pd.DataFrame:
    """Return the authors' stored results of one data set, by method and share of missing features.

    The columns are method, percent, mean, std and runs; a data set without stored results has no rows. For Adult they
    stored a micro-averaged F1, which for one label per row is the accuracy.
    """
    table = pd.read_csv(project().configuration / "reported" / "conformant_curves.csv")
    measures = {measure, "f1_micro"} if measure == "accuracy" else {measure}
    chosen = table[(table["dataset"] == dataset) & table["measure"].isin(measures)]
    return (
        chosen.rename(columns={"missing_percent": "percent"})
        .sort_values(["method", "percent"])[["method", "percent", "mean", "std", "runs"]]
        .reset_index(drop=True)
    )
