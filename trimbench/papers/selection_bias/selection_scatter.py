"""True against sample correlation of every feature, the cut-offs, and features that are unrelated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, gammaln

from trimbench.papers.execution.code_hash import job_function
from trimbench.papers.selection_bias.simulated_cases import (
    INFERRED_SIZES,
    STATED_SIZES,
    ModelSettings,
    Replicated,
    class_counts,
    correlation,
    file_stem,
    show_sizes,
    simulate,
    size_labels,
)
from trimbench.papers.selection_bias.simulation import NOTE, OverallTest, overall_table, overall_test
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import Cell, Outcome, successes
from trimbench.papers.vocabulary.figures import LineFigure
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.numbers import Explanation, Interval, Number, prediction_interval
from trimbench.papers.vocabulary.reported import Reported, printed_numbers
from trimbench.papers.vocabulary.tables import Table
from trimbench.selection_bias.selection import select

if TYPE_CHECKING:
    import pandas as pd


_COLUMNS = ("n0", "n1", "k", "replicates", "cut-off", "low", "high", "mean sample", "mean true")
_UNRELATED_COLUMNS = {
    **dict.fromkeys(("n0", "n1", "k"), ""),
    "printed": ".2f",
    "below": ".3f",
    "features beyond": ",.1f",
    "probability": ".1e",
}
_SETUP = f"{sum(INFERRED_SIZES)} training cases instead of the stated {sum(STATED_SIZES)}"
# A statement that has at most this probability is refuted.
_PROVEN = 1e-6
_ON_UNRELATED_FEATURES = (
    "A printed cut-off for k features was rounded from one of at most 'below', so fewer than k features are beyond "
    "that. The last table has how many would be on average, and the probability of fewer than k, if no feature were "
    "related to the response; with relations more would be. It is exact for the model, whatever alpha is."
)


@settings
class SelectionScatter(Replicated):
    """How much stronger selected features look than they are, and the cut-off of each number of them.

    The figure shows the first replicate.
    """

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each size and replicate."""
        function = true_and_sample_correlations
        return [
            self.cell(function, sizes, {"replicate": replicate}, ks=self.ks, with_points=replicate == 0)
            for sizes in self.class_sizes
            for replicate in range(self.replicates)
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the cut-offs, what the printed ones tell of the sizes, and a scatter plot for each size."""
        found = {(n0, n1): successes(rows, **size_labels((n0, n1))) for n0, n1 in self.class_sizes}
        done = {sizes: ours for sizes, ours in found.items() if len(ours)}
        printed = _printed_cut_offs()
        tests: list[OverallTest] = []
        numbers: list[Number] = []
        for sizes, ours in done.items():
            test = overall_test(sizes, printed, self._each(ours, "gammas"))
            tests += [test] if test is not None else []
            for k, number in self._numbers(sizes, ours).items():
                probability = test.probabilities.get(k) if test is not None else None
                numbers.append(replace(number, probability=probability))
        unrelated = []
        if STATED_SIZES in done:
            numbers = self._accounted_for(numbers, printed, done)
            unrelated = self._unrelated([sizes for sizes in done if sizes in (STATED_SIZES, INFERRED_SIZES)], printed)
        title = "Cut-offs, and mean absolute correlation of the selected features in the sample and in truth"
        lines = [line for sizes, ours in done.items() for line in self._lines(sizes, ours)]
        table = Table.of(title, lines, dict.fromkeys(_COLUMNS[:4], "") | dict.fromkeys(_COLUMNS[4:], ".3f"))
        figures = [
            self._scatter(show_sizes(sizes), first["true"], first["sample"], first["gammas"])
            for sizes, ours in done.items()
            for first in ours[ours["replicate"] == 0].to_dict("records")
        ]
        notes = [
            *self.notes(),
            "Low and high are the ends of a 95 % prediction interval for one more data set (Student's, from the spread "
            "over replicates). The mean true correlation is taken in the direction that the sample shows.",
            NOTE,
            "The probability of a printed cut-off is that of any cut-off of the same size being as far out.",
            *([_ON_UNRELATED_FEATURES] if unrelated else []),
        ]
        return Outcome([table, *overall_table(tests), *unrelated], figures, numbers, notes)

    def _each(self, ours: pd.DataFrame, column: str) -> dict[int, list[float]]:
        """Return the values of all replicates for each k."""
        return {k: [float(values[place]) for values in ours[column]] for place, k in enumerate(self.ks)}

    def _lines(self, sizes: tuple[int, int], ours: pd.DataFrame) -> list[dict[str, object]]:
        """Return the lines of the main table."""
        cut_offs, sample, true = (self._each(ours, name) for name in ("gammas", "mean_sample", "mean_true"))
        lines = []
        for k in self.ks:
            interval = prediction_interval(cut_offs[k])
            line: dict[str, object] = {**size_labels(sizes), "k": k, "replicates": len(ours)}
            line |= {"cut-off": float(np.mean(cut_offs[k]))}
            line |= {"low": interval.low, "high": interval.high} if interval is not None else {}
            lines.append(line | {"mean sample": float(np.mean(sample[k])), "mean true": float(np.mean(true[k]))})
        return lines

    def _numbers(self, sizes: tuple[int, int], ours: pd.DataFrame) -> dict[int, Number]:
        """Return the mean cut-off for each k."""
        jobs = tuple(ours["job"])
        return {
            k: Number(_row(sizes, k), "cut-off", float(np.mean(values)), jobs, prediction_interval(values))
            for k, values in self._each(ours, "gammas").items()
        }

    def _accounted_for(
        self, numbers: Sequence[Number], printed: Mapping[int, Reported], done: Mapping[tuple[int, int], pd.DataFrame]
    ) -> list[Number]:
        """Add to the cut-offs of the stated size those of the inferred one, and the proof that it is not the stated."""
        inferred = self._numbers(INFERRED_SIZES, done[INFERRED_SIZES]) if INFERRED_SIZES in done else {}
        places = {_row(STATED_SIZES, k): k for k in self.ks if k in printed}
        found = []
        for number in numbers:
            k = places.get(number.row)
            if k is not None and not _holds(number.interval, printed[k].value):
                other = inferred.get(k)
                explanation = Explanation(_SETUP, other.value, other.interval) if other and other.value else None
                number = replace(number, explanation=explanation, contradiction=self._contradiction(k, printed[k]))
            found.append(number)
        return found

    def _unrelated(self, all_sizes: Sequence[tuple[int, int]], printed: Mapping[int, Reported]) -> list[Table]:
        """Return the table of what the printed cut-offs would be of features that are unrelated to the response."""
        lines: list[dict[str, object]] = []
        for n0, n1 in all_sizes:
            for k in self.ks:
                if k in printed:
                    below = _end_of(printed[k])
                    share = share_beyond(below, n0, n1, self.prior.theta0)
                    line: dict[str, object] = {**size_labels((n0, n1)), "k": k, "printed": printed[k].value}
                    line |= {"below": below, "features beyond": self.n_features * share}
                    lines.append(line | {"probability": probability_of_fewer(k, self.n_features, share)})
        title = "Features that would be beyond the printed cut-offs if none were related to the response"
        return [Table.of(title, lines, _UNRELATED_COLUMNS, name="unrelated")] if lines else []

    def _contradiction(self, k: int, printed: Reported) -> str:
        """Return why a printed cut-off cannot be that of the stated size; empty if it can be."""
        n, bound = sum(STATED_SIZES), _end_of(printed)
        shares = [share_beyond(bound, n0, n - n0, self.prior.theta0) for n0 in range(1, n // 2 + 1)]
        probability = max(probability_of_fewer(k, self.n_features, share) for share in shares)
        if probability > _PROVEN:
            return ""
        return (
            f"With {n} training cases, on average {self.n_features * min(shares):,.0f} of {self.n_features:,} features "
            f"or more would have a correlation beyond {bound:g} even if none were related to the response, but by the "
            f"printed cut-off fewer than {k:,} have. The probability of that is at most {probability:.0e}, however the "
            "cases are divided into classes."
        )

    def _scatter(self, shown: str, true: list[float], sample: list[float], gammas: list[float]) -> LineFigure:
        import pandas as pd

        points = pd.DataFrame({"series": "feature", "x": true, "y": sample})
        last = max(abs(points["x"]))
        equal = pd.DataFrame({"series": "sample = true", "x": [-last, last], "y": [-last, last]})
        levels: dict[str, float] = {}
        for k, gamma in zip(self.ks, gammas, strict=True):
            levels |= {f"k = {k:,}: {gamma:.2f}": gamma, f"k = {k:,}: −{gamma:.2f}": -gamma}
        return LineFigure(
            f"Correlation of features with the response, and cut-offs for k features ({shown})",
            "true correlation",
            "sample correlation",
            pd.concat([points, equal], ignore_index=True),
            name=file_stem(shown),
            levels=levels,
            marks={"feature": "cloud", "sample = true": "guide"},
        )


def _row(sizes: Sequence[int], k: int) -> str:
    return f"{show_sizes(sizes)}, k = {k}"


def _printed_cut_offs() -> dict[int, Reported]:
    """Return the printed cut-offs by k; they are the same for each size."""
    found = printed_numbers("selection_bias/selection_scatter")
    return {int(row.rsplit(" ", 1)[1]): one for (row, _), one in found.items()}


def _holds(interval: Interval | None, value: float) -> bool:
    return interval is not None and interval.low <= value <= interval.high


def _end_of(printed: Reported) -> float:
    """Return the largest number that rounds to a printed one."""
    return printed.value + 0.5 * 10.0**-printed.decimals


@job_function
def true_and_sample_correlations(
    data: Mapping[str, Any], data_seed: int, prior: Mapping[str, Any], ties: str, ks: list[int], with_points: bool
) -> dict[str, Json]:
    """Draw cases from the model, and compare each feature's true correlation with the one in the sample.

    Of the parameters that all such jobs have, only the data matters. `with_points` adds every feature's correlations.
    """
    cases = simulate(ModelSettings(**data), np.random.default_rng(data_seed))
    n0, n1 = data["class_sizes"]
    ones0, ones1 = class_counts(cases.X, cases.y)
    sample, true = correlation(ones0, ones1, n0, n1), cases.true_correlation
    ones, sizes = np.stack([ones0, ones1]), np.repeat([[n0], [n1]], len(ones0), axis=1)
    selections = [select(ones, sizes, k) for k in ks]
    chosen = [selection.features for selection in selections]
    result: dict[str, Json] = {
        "gammas": [selection.gamma for selection in selections],
        "mean_sample": [float(np.abs(sample[features]).mean()) for features in chosen],
        # The true correlation in the direction that the sample shows.
        "mean_true": [float((true[features] * np.sign(sample[features])).mean()) for features in chosen],
    }
    if with_points:
        result |= {"true": np.round(true, 6).tolist(), "sample": np.round(sample, 6).tolist()}
    return result


# How strongly features correlate with a response that they have nothing to do with.


def share_beyond(bound: float, n0: int, n1: int, theta0: float = 0.0) -> float:
    r"""Return the probability that a feature unrelated to the response has a sample correlation beyond a bound.

    Parameters
    ----------
    bound : float
        Of the absolute correlation.
    n0, n1 : int
        Cases in each class.
    theta0 : float
        The feature's probability of a one is uniform from `theta0` to 1 - `theta0`, the same in both classes.

    Notes
    -----
    It is the sum, over the numbers of ones (I_0, I_1) with \|cor\| > bound, of C(n_0, I_0) C(n_1, I_1) times the mean
    of theta^s (1 - theta)^(n - s) with s = I_0 + I_1, an incomplete beta function.
    """
    ones0, ones1 = np.arange(n0 + 1)[:, None], np.arange(n1 + 1)
    ones, n = ones0 + ones1, n0 + n1
    log_mean = betaln(ones + 1, n - ones + 1)
    inside = betainc(ones + 1, n - ones + 1, 1 - theta0) - betainc(ones + 1, n - ones + 1, theta0)
    probability = np.exp(_log_choose(n0, ones0) + _log_choose(n1, ones1) + log_mean) * inside / (1 - 2 * theta0)
    # The correlation squared is difference^2 / spread; that of a constant is 0.
    difference, spread = (n0 * ones1 - n1 * ones0).astype(float), float(n0 * n1) * ones * (n - ones)
    return float(probability[difference**2 > bound**2 * spread].sum())


def probability_of_fewer(k: int, n_features: int, share: float) -> float:
    """Return the probability that fewer than k of independent features are where each is with probability `share`."""
    from scipy.stats import binom

    return float(binom.cdf(k - 1, n_features, share))


def _log_choose(n: int, r: NDArray[np.int64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1)
    return result
