"""Quality, calibration and time of predictions on simulated cases, with k features selected, corrected or not."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from trimbench._typing import Vector
from trimbench.papers.measures import calibration
from trimbench.papers.selection_bias import simulated_cases as sim
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import COUNT, NUMBER, POSITIVE, SHARE, job, list_of, timed
from trimbench.selection_bias.factors import Ties
from trimbench.selection_bias.fit import fit_selection_corrected
from trimbench.selection_bias.prior import Prior


@vocab.settings
class Simulation(sim.Replicated):
    """Predictions with and without correction on cases drawn from the model."""

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each size, replicate and number of features."""
        return [
            self.cell(select_and_predict, sizes, {"k": k, "replicate": replicate})
            for sizes in self.class_sizes
            for replicate in range(self.replicates)
            for k in self.ks
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return tables and figures of the means over the replicates."""
        numbers: list[vocab.Number] = []
        for labels, ours in vocab.groups(rows, "n0", "n1", "k"):
            # The slides show one run; its claims are judged once, at the size that they state.
            if labels["k"] < self.n_features and (labels["n0"], labels["n1"]) == sim.STATED_SIZES:
                numbers += vocab.numbers_of(f"k = {labels['k']}", gains(ours), ours)
        errors, losses = comparison_tables(("n0", "n1"), rows, self.n_features)
        figures: list[vocab.LineFigure] = []
        for n0, n1 in () if errors.frame.empty else self.class_sizes:
            # Both tables have the same lines.
            here = (errors.frame["n0"] == n0) & (errors.frame["n1"] == n1)
            shown = sim.show_sizes((n0, n1))
            figures += comparison_figures(shown, errors.frame[here], losses.frame[here], self.n_features)
        notes = self.notes()
        if self.n_features in self.ks:
            notes.append("With all features there is no selection and nothing to correct.")
        return vocab.Outcome((errors, losses), figures, numbers, notes)


_BINS = {"counts": list_of(COUNT), "predicted_sums": list_of(POSITIVE), "positives": list_of(COUNT)}


@job({"gamma": SHARE, "n_tied": COUNT, **sim.both(sim.QUALITY | _BINS)})
def select_and_predict(
    data: sim.ModelSettings, data_seed: int, prior: Prior, ties: Ties, k: int
) -> dict[str, vocab.Json]:
    """Draw cases from the model, select k features, and predict test cases with and without correction."""
    cases = sim.simulate(data, np.random.default_rng(data_seed))
    model = fit_selection_corrected(cases.X, cases.y, k, ties=ties, prior=prior, calibrate=False)
    result: dict[str, vocab.Json] = {"gamma": model.gamma, "n_tied": model.selection.n_tied}
    for name, fitted in sim.both_models(model).items():
        probabilities = fitted.predict_proba(cases.X_test)
        bins = vars(calibration(cases.y_test, probabilities))
        result |= sim.quality_of(name, cases.y_test, probabilities)
        result |= {f"{name}_{key}": values.tolist() for key, values in bins.items()}
    return result


# Tables and figures that compare predictions with and without correction over the number of features.


class Loss(NamedTuple):
    """A loss of predictive probabilities: its key in a job's result, its column in tables, its name in figures."""

    key: str
    title: str
    name: str


LOSSES = (
    Loss("minus_log_probability", "AMLP", "average minus log probability"),
    Loss("squared_error", "squared error", "average squared error"),
)
# A standard error from fewer replicates is itself too uncertain to judge by.
_LEAST_REPLICATES = 5


def comparison_tables(sizes: Sequence[str], rows: pd.DataFrame, n_features: int) -> tuple[vocab.Table, vocab.Table]:
    """Return the tables of errors and of losses: a line for the replicates of each of the `sizes`, k and correction.

    `n_features` is p: with all features there is no cut-off.
    """
    methods = sim.by_correction(rows)
    if len(methods):
        methods["gap"] = methods["actual_error"] - methods["expected_error"]
    groups = list(vocab.groups(methods, *sizes, "k", "correction"))
    errors = [
        {**labels, "replicates": len(ours), "cut-off": ours["gamma"].mean() if labels["k"] < n_features else None}
        | _with_errors(ours, _ERRORS)
        | {"within 2 se": _within(ours)}
        for labels, ours in groups
    ]
    losses = [{**labels, "replicates": len(ours), **_with_errors(ours, _LOSSES)} for labels, ours in groups]
    of_line = dict.fromkeys((*sizes, "k", "replicates", "correction"), "")
    error_formats = {**of_line, "cut-off": ".3f", **_formats(_ERRORS), "within 2 se": ""}
    return (
        vocab.Table.of("Expected and actual error rates, means over replicates", errors, error_formats),
        vocab.Table.of(_LOSSES_TITLE, losses, of_line | _formats(_LOSSES), name="losses"),
    )


def _with_errors(ours: pd.DataFrame, results: Mapping[str, tuple[str, str]]) -> dict[str, float]:
    """Return means over replicates and their standard errors; `results` maps each result to the titles of both."""
    return {
        title: value
        for result, titles in results.items()
        for title, value in zip(titles, (ours[result].mean(), vocab.standard_error(ours[result])), strict=True)
    }


def _formats(results: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    return dict.fromkeys((title for titles in results.values() for title in titles), ".4f")


def _within(ours: pd.DataFrame) -> str:
    if len(ours) < _LEAST_REPLICATES:
        return "– (too few replicates)"
    return "yes" if abs(ours["gap"].mean()) <= 2 * vocab.standard_error(ours["gap"]) else "no"


_LOSSES_TITLE = "Average minus log probability (AMLP) and average squared error, means over replicates"
_ERRORS = {
    "expected_error": ("expected error", "expected error se"),
    "actual_error": ("actual error", "actual error se"),
    "gap": ("actual - expected", "se of difference"),
}
_LOSSES = {loss.key: (loss.title, f"{loss.title} se") for loss in LOSSES}


def gains(rows: pd.DataFrame) -> dict[str, float]:
    """Return by how much the correction is better on average, in the quantities that the slides' claims are about.

    ``less bias`` is how much closer the mean expected error is to the mean actual one; ``lower AMLP`` and ``lower
    squared error`` are uncorrected minus corrected.
    """
    bias = {c: abs(float((rows[f"{c}_actual_error"] - rows[f"{c}_expected_error"]).mean())) for c in sim.CORRECTIONS}
    found = {"less bias": bias["uncorrected"] - bias["corrected"]}
    for loss in LOSSES:
        found[f"lower {loss.title}"] = float((rows[f"uncorrected_{loss.key}"] - rows[f"corrected_{loss.key}"]).mean())
    return found


def comparison_figures(
    shown: str, errors: pd.DataFrame, losses: pd.DataFrame, n_features: int, model: str = ""
) -> list[vocab.LineFigure]:
    """Return the figures of errors, AMLP and squared error against k for one number of training cases.

    Titles name these cases as `shown`, and the `model` if it is not naive Bayes; `errors` and `losses` are the lines of
    these cases in the tables of `comparison_tables`.
    """
    shown_with_model = f"{model}, {shown}" if model else shown

    def figure(name: str, title: str, y_label: str, lines: list[tuple[str, str, str]], **how: Any) -> vocab.LineFigure:
        table = errors if name == "errors" else losses
        points = [
            (series, line["k"], line[column], line[column] - half, line[column] + half)
            for series, correction, column in lines
            for line in table[table["correction"] == correction].to_dict("records")
            for half in [2 * line[f"{column} se"]]
        ]
        return vocab.LineFigure.of(
            f"{title} ({shown_with_model})",
            (f"features selected out of {n_features:,}", y_label),
            points,
            name=f"{name}_{sim.file_stem(shown)}",
            x_scale="log",
            interval="2 standard errors to either side",
            methods={series: correction for series, correction, _ in lines if series != correction},
            **how,
        )

    both_errors = [
        line
        for correction in reversed(sim.CORRECTIONS)
        for line in (
            (f"expected error, {correction}", correction, "expected error"),
            (f"{correction} (actual error)", correction, "actual error"),
        )
    ]
    marks = {f"{correction} (actual error)": "reference" for correction in sim.CORRECTIONS}
    figures = [figure("errors", "Expected and actual error", "error rate", both_errors, marks=marks)]
    for loss in LOSSES:
        lines = [(correction, correction, loss.title) for correction in reversed(sim.CORRECTIONS)]
        figures.append(figure(loss.key, loss.name.capitalize(), loss.name, lines))
    return figures


# The overall test of a printed table: whether the slides' one data set is like single data sets drawn here.

_COLUMNS = {
    **dict.fromkeys(("n0", "n1", "replicates", "numbers", "outside"), ""),
    **{"usual": ".1f", "most": "", "probability": ".3f"},
    **dict.fromkeys(("smallest, one number", "least, one number"), ".3f"),
    **dict.fromkeys(("smallest, all numbers", "least, all numbers"), ".3f"),
}


def overall_tables(tests: Mapping[tuple[int, int], vocab.Held[Any]]) -> list[vocab.Table]:
    """Return the table of the tests by class sizes, in a list that is empty without any."""
    lines = []
    for (n0, n1), test in tests.items():
        line: dict[str, object] = {"n0": n0, "n1": n1, "replicates": test.n_replications, **test.columns}
        for which, found in (("one number", test.alone), ("all numbers", test.together)):
            smallest = min(found.values(), key=lambda one: one.value)
            line |= {f"smallest, {which}": smallest.value, f"least, {which}": smallest.least}
        lines.append(line)
    title = "Overall test: the printed numbers among those of single data sets"
    return [vocab.Table.of(title, lines, _COLUMNS, name="overall")] if lines else []


# Predicted against actual frequencies, in ten classes of predictions.

_CATEGORIES = [f"{i / 10:.1f} - {(i + 1) / 10:.1f}" for i in range(10)]
_CALIBRATION = {"category": ""} | {
    f"{correction} {quantity}": ".1f" if quantity == "cases" else ".3f"
    for correction in sim.CORRECTIONS
    for quantity in ("cases", "predicted", "actual")
}
# Category and quantity, as in the printed table.
_Place = tuple[str, str]


@vocab.settings
class Calibration(sim.SimulatedCases):
    """How often y = 1 among test cases whose predicted probability is in each of ten classes, with k features selected.

    The stated class sizes (or the first, without them) are compared with the printed table number by number, and
    explained by the inferred ones; each pair of sizes is compared with the table as a whole. The jobs are shared with
    `Simulation`.
    """

    k: int = 1000
    replicates: vocab.Count = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        sim.check_ks([self.k], self.n_features, "k must be a number")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each size and replicate."""
        places = vocab.grid(k=[self.k], replicate=range(self.replicates))
        return [self.cell(select_and_predict, sizes, place) for sizes in self.class_sizes for place in places]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return a table and a figure for each size, and the overall test of the printed table."""
        tables, figures = [], []
        found: dict[tuple[int, int], list[vocab.Number]] = {}
        tests: dict[tuple[int, int], vocab.Held[_Place]] = {}
        printed = vocab.printed_numbers("selection_bias/calibration")
        for n0, n1 in self.class_sizes:
            ours, shown = vocab.successes(rows, **sim.size_labels((n0, n1))), sim.show_sizes((n0, n1))
            found[n0, n1], replicated = _quantities(ours)
            if test := vocab.held_against(printed, replicated):
                tests[n0, n1] = test
            name = "" if [n0, n1] == self.class_sizes[0] else sim.file_stem(shown)
            title = f"Calibration: {self.k:,} of {self.n_features:,} features, {shown}"
            lines = [{"category": c} | {n.quantity: n.value for n in found[n0, n1] if n.row == c} for c in _CATEGORIES]
            tables.append(vocab.Table.of(f"{title}, {len(ours)} replicates", lines, _CALIBRATION, name=name))
            figures.append(_figure(title, name, found[n0, n1]))
        numbers = found.get(sim.STATED_SIZES, next(iter(found.values())))
        if sim.STATED_SIZES in found and (inferred := tests.get(sim.INFERRED_SIZES)):
            others = {(n.row, n.quantity): n for n in found[sim.INFERRED_SIZES]}
            numbers = [_explained(n, others, inferred) for n in numbers]
        return vocab.Outcome([*tables, *overall_tables(tests)], figures, numbers, self.notes())


def _quantities(ours: pd.DataFrame) -> tuple[list[vocab.Number], dict[_Place, Sequence[float]]]:
    """Return for each correction and category the number of cases, the mean prediction and the frequency of y = 1.

    They are those of all replicates taken together, and of each replicate, NaN where a category has no cases.
    """
    numbers: list[vocab.Number] = []
    replicated: dict[_Place, Sequence[float]] = {}
    for correction in sim.CORRECTIONS if len(ours) else ():
        # One row for each replicate, one column for each category.
        counts, predicted, positives = (
            np.array(ours[f"{correction}_{key}"].tolist(), dtype=float)
            for key in ("counts", "predicted_sums", "positives")
        )
        for place, category in enumerate(_CATEGORIES):
            n = counts[:, place]
            values = {"cases": (float(n.mean()), n)}
            for quantity, sums in (("predicted", predicted[:, place]), ("actual", positives[:, place])):
                each = np.divide(sums, n, out=np.full(len(n), np.nan), where=n > 0)
                values[quantity] = (float(sums.sum() / n.sum()) if n.any() else np.nan, each)
            for quantity, (value, each) in values.items():
                row, name = category, f"{correction} {quantity}"
                replicated[row, name] = each.tolist()
                interval = vocab.mean_of(each[~np.isnan(each)], "prediction").interval
                numbers.append(
                    vocab.Number(row, name, value, tuple(ours["job"]), interval)
                    if n.any() or quantity == "cases"
                    else vocab.Number(row, name, None, tuple(ours["job"]), reason="no prediction is in this category")
                )
    return numbers, replicated


def _explained(number: vocab.Number, others: Mapping[_Place, vocab.Number], test: vocab.Held[_Place]) -> vocab.Number:
    """Return a number of the stated sizes with that of the inferred sizes, and how far out the printed one is there."""
    place, setup = (number.row, number.quantity), sim.INFERRED_SETUP
    probability, other = test.together.get(place), others[place]
    probability = probability and replace(probability, setup=setup)
    explanation = None if other.value is None else vocab.Explanation(setup, other.value, other.interval, other.jobs)
    return replace(number, explanation=explanation, probability=probability)


def _figure(title: str, name: str, numbers: Sequence[vocab.Number]) -> vocab.LineFigure:
    found = {(number.row, number.quantity): number for number in numbers}
    points = []
    for correction in reversed(sim.CORRECTIONS):
        for category in _CATEGORIES:
            predicted, actual = (found.get((category, f"{correction} {q}")) for q in ("predicted", "actual"))
            # Where a category is empty in every replicate there is nothing to draw.
            if predicted is None or actual is None or actual.value is None:
                continue
            bar = actual.interval
            low, high = np.clip((bar.low, bar.high), 0, 1) if bar is not None else (np.nan, np.nan)
            points.append((correction, predicted.value, actual.value, low, high))
    return vocab.LineFigure.against_diagonal(
        title,
        ("mean predicted probability of y = 1", "frequency of y = 1"),
        points,
        (0.0, 1.0),
        mark="",
        diagonal="predicted = actual",
        name=name,
        interval="95 % prediction interval for one more data set",
    )


# Seconds for all predictions against the number of selected features.

_TIMES = {"k": ""} | {
    f"{correction} {quantity}": spec
    for correction in reversed(sim.CORRECTIONS)
    for quantity, spec in (("printed", ".2f"), ("ours", ".3f"), ("ratio", ".0f"))
}


@vocab.settings
class Runtime(sim.SimulatedCases):
    """Time from the training cases to the predictions of all test cases, on one core, for one pair of class sizes.

    Each time is the median of `repeats` measurements.
    """

    ks: vocab.Axis[int]
    repeats: vocab.Count = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.sizes  # refuses several pairs
        sim.check_ks(self.ks, self.n_features)

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return the single job."""
        return [self.cell(prediction_seconds, self.sizes, {})]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return seconds, printed seconds and their ratio."""
        done, printed = vocab.successes(rows), vocab.printed_numbers("selection_bias/runtime")
        results = {f"{correction}_seconds": f"{correction} ours" for correction in sim.CORRECTIONS}
        table = vocab.unlisted(rows, "k", self.ks, [*results]).rename(columns=results).reindex(columns=[*_TIMES])
        points: list[tuple[str, int, float]] = []
        numbers: list[vocab.Number] = []
        for correction in reversed(sim.CORRECTIONS):
            names = [(f"k = {k}", f"{correction} seconds") for k in table["k"]]
            theirs = np.array([printed[name].value if name in printed else math.nan for name in names])
            ours = table[f"{correction} ours"]
            table[f"{correction} printed"], table[f"{correction} ratio"] = theirs, theirs / ours
            for series, found in ((correction, ours), (f"{correction} (printed)", theirs)):
                points += [(series, *one) for one in zip(table["k"], found, strict=True) if not math.isnan(one[1])]
            pairs = zip(names, ours, strict=True)
            numbers += [vocab.number_of(*name, seconds, done) for name, seconds in pairs if name in printed]
        title = f"Seconds for {sum(self.test_sizes):,} test cases, {sum(self.sizes)} training cases"
        figure = vocab.LineFigure.of(
            title,
            (f"features selected out of {self.n_features:,}", "seconds"),
            points,
            marks={f"{correction} (printed)": "reference" for correction in sim.CORRECTIONS},
            x_scale="log",
            y_scale="log",
            methods={f"{correction} (printed)": correction for correction in sim.CORRECTIONS},
        )
        note = (
            f"Ours run from the selection to the predictions of {sum(self.test_sizes)} test cases with "
            f"{sum(self.sizes)} training cases, the median of {self.repeats} on one core, one after another."
        )
        # What the correction costs on one machine: the authors', and this one.
        selected = table[table["k"] < self.n_features]
        with_it, without = (selected[f"{correction} ours"] for correction in sim.CORRECTIONS)
        ratios = selected[["k"]].assign(
            **{"printed ratio": selected["corrected printed"] / selected["uncorrected printed"]},
            **{"our ratio": with_it / without, "our milliseconds more": 1000 * (with_it - without)},
        )
        if len(selected) and self.n_features in self.ks:
            most = int(selected["k"].to_numpy().argmax())
            of_all = table["uncorrected ours"][table["k"] == self.n_features].iloc[0]
            claims = {
                "seconds by those of all features": float(with_it.iloc[most] / of_all),
                "seconds by uncorrected ones": float(with_it.iloc[most] / without.iloc[most]),
            }
            numbers += vocab.numbers_of("corrected", claims, done)
        tables = (
            vocab.Table.of(title, table.to_dict("records"), _TIMES),
            vocab.Table.of(_RATIOS_TITLE, ratios.to_dict("records"), _RATIOS, name="ratios"),
        )
        return vocab.Outcome(tables, (figure,), numbers, [note, _WHY])


_RATIOS_TITLE = "Seconds with the correction by those without"
_RATIOS = {"k": "", **dict.fromkeys(["printed ratio", "our ratio"], ".3f"), "our milliseconds more": ".1f"}
_WHY = (
    "Ratios of two times on one machine have a table of their own. The correction adds a few milliseconds here, which "
    "show where the predictions themselves take tens of them: the slides' take seconds to half an hour."
)


@job(sim.both({"seconds": list_of(POSITIVE)}))
def prediction_seconds(
    data: sim.ModelSettings, data_seed: int, prior: Prior, ties: Ties, ks: list[int], repeats: int
) -> dict[str, vocab.Json]:
    """Measure the time from the data to all predictions, on one core: the median of `repeats` after a warm-up.

    All numbers of features are one job, so that none is measured while another runs. The other parameters are those of
    `select_and_predict`.
    """
    from threadpoolctl import threadpool_limits

    cases = sim.simulate(data, np.random.default_rng(data_seed))

    def predict(k: int, correct: bool) -> object:
        model = fit_selection_corrected(cases.X, cases.y, k, correct=correct, ties=ties, prior=prior, calibrate=False)
        return model.predict_proba(cases.X_test)

    medians: dict[str, list[float]] = {}
    with threadpool_limits(1):
        for k in ks:
            for name, correct in (("corrected", True), ("uncorrected", False)):
                times = [timed(functools.partial(predict, k, correct))[1] for _ in range(repeats + 1)]
                medians.setdefault(f"{name}_seconds", []).append(statistics.median(times[1:]))
    return dict(medians)


# Posterior distribution of log(alpha) with and without correction.

# Of the curve of a density: its number of points, and how far it extends beyond what is visible.
_N_POINTS, _MARGIN = 600, 0.5
_COVERED = "truth in central 95 %"


@vocab.settings
class AlphaPosterior(sim.Replicated):
    """Whether the posterior of log(alpha) covers the true value, with which cases were drawn; one pair of class sizes.

    The figures show the first replicate.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.sizes  # refuses several pairs

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each replicate and number of features."""
        return [
            self.cell(posterior_of_alpha, self.sizes, {"k": k, "replicate": replicate})
            for replicate in range(self.replicates)
            for k in self.ks
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return posterior means and coverage, and a figure for each k."""
        truth = math.log(self.alpha)
        methods = sim.by_correction(rows)
        lines = [
            {**labels, "replicates": len(ours), "true log(alpha)": truth}
            | {"posterior mean": ours["mean_log_alpha"].mean(), "se": vocab.standard_error(ours["mean_log_alpha"])}
            | {_COVERED: float(np.mean([_covers(*_density(*one), truth) for one in _curves(ours)]))}
            for labels, ours in vocab.groups(methods, "k", "correction")
        ]
        formats = dict.fromkeys(("k", "correction", "replicates"), "")
        formats |= {**dict.fromkeys(("true log(alpha)", "posterior mean", "se"), ".3f"), _COVERED: ".2f"}
        title = "Posterior of log(alpha): means over replicates, and how often its central 95 % hold the truth"
        table = vocab.Table.of(title, lines, formats)
        shown = methods[methods["replicate"] == 0] if len(methods) else methods
        figures = [
            _figure_alpha_posterior(ours, labels["k"], self.n_features, truth)
            for labels, ours in vocab.groups(shown, "k")
        ]
        numbers = []
        for labels, ours in vocab.groups(rows, "k"):
            # How much closer to the truth the correction brings the mean of the posterior.
            corrected, uncorrected = (abs(float(ours[f"{c}_mean_log_alpha"].mean()) - truth) for c in sim.CORRECTIONS)
            numbers.append(vocab.number_of(f"k = {labels['k']}", "closer mean", uncorrected - corrected, ours))
        notes = []
        if self.prior.n_alpha > Prior().n_alpha:
            notes.append(
                f"The grid has {self.prior.n_alpha} values of alpha, more than the {Prior().n_alpha} of predictions, "
                "to draw narrow posteriors."
            )
        return vocab.Outcome((table,), figures, numbers, notes)


def _density(log_alpha: Sequence[float], log_density: Sequence[float]) -> tuple[Vector, Vector]:
    """Return log(alpha) and its posterior density, which integrates to 1 over the grid."""
    x, y = np.array(log_alpha), np.exp(np.array(log_density))
    # A grid of one value has no width to integrate over.
    return x, y / np.trapezoid(y, x) if len(x) > 1 else y


def _curves(ours: pd.DataFrame) -> list[tuple[Sequence[float], Sequence[float]]]:
    return list(zip(ours["log_alpha"], ours["log_density"], strict=True))


def _covers(x: Vector, y: Vector, truth: float) -> bool:
    if len(x) < 2:
        return False
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (y[1:] + y[:-1]) * np.diff(x))])
    return bool(0.025 <= np.interp(truth, x, cumulative) <= 0.975)


def _between_grid_values(x: Vector, log_alpha: Sequence[float], log_density: Sequence[float]) -> Vector:
    """Return the posterior density at any values of log(alpha) inside the grid: its logarithm is a cubic spline."""
    from scipy.interpolate import CubicSpline

    grid, density = _density(log_alpha, log_density)
    logarithm = np.array(log_density)
    scale = density[logarithm.argmax()] / np.exp(logarithm.max())
    return np.asarray(scale * np.exp(CubicSpline(grid, logarithm)(x)))


def _figure_alpha_posterior(ours: pd.DataFrame, k: int, n_features: int, truth: float) -> vocab.LineFigure:
    curves = dict(zip(ours["correction"], _curves(ours), strict=True))
    densities = {correction: _density(*curves[correction]) for correction in reversed(sim.CORRECTIONS)}
    grid = next(iter(densities.values()))[0]
    if len(grid) > 1:
        # Values at which both curves are far below their peaks would only stretch the axis.
        least = 1e-3 * max(y.max() for _, y in densities.values())
        seen = grid[np.any([y > least for _, y in densities.values()], axis=0)]
        low, high = min(seen[0], truth) - _MARGIN, max(seen[-1], truth) + _MARGIN
        x = np.linspace(max(low, grid[0]), min(high, grid[-1]), _N_POINTS)
        densities = {correction: (x, _between_grid_values(x, *curves[correction])) for correction in densities}
    return vocab.LineFigure.of(
        f"Posterior of log(alpha), {k:,} feature{'s' if k > 1 else ''} selected out of {n_features:,}",
        ("log(alpha)", "density"),
        [(correction, *point) for correction, curve in densities.items() for point in zip(*curve, strict=True)],
        name=f"k{k}",
        marks=dict.fromkeys(sim.CORRECTIONS, "density"),
        verticals={f"truth ({truth:.2f})": truth},
    )


@job({"log_alpha": list_of(NUMBER), **sim.both({"log_density": list_of(NUMBER), "mean_log_alpha": NUMBER})})
def posterior_of_alpha(
    data: sim.ModelSettings, data_seed: int, prior: Prior, ties: Ties, k: int
) -> dict[str, vocab.Json]:
    """Draw cases from the model, select k features, and compute the posterior of log(alpha).

    The parameters are those of `trimbench.papers.selection_bias.simulation.select_and_predict`.
    """
    cases = sim.simulate(data, np.random.default_rng(data_seed))
    model = fit_selection_corrected(cases.X, cases.y, k, ties=ties, prior=prior, calibrate=False)
    log_alpha = np.log(model.alpha_grid)
    result: dict[str, vocab.Json] = {"log_alpha": log_alpha.tolist()}
    for name, fitted in sim.both_models(model).items():
        density = fitted.log_alpha_density
        result[f"{name}_log_density"] = (density - density.max()).tolist()
        result[f"{name}_mean_log_alpha"] = float(fitted.alpha_posterior @ log_alpha)
    return result
