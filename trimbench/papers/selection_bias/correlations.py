"""Correlations of features with the response: the slides' table, and the cut-offs of the selection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betainc, betaln, gammaln

from trimbench.papers.selection_bias import simulated_cases as sim
from trimbench.papers.selection_bias.simulation import overall_tables
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import NUMBER, SHARE, job, list_of
from trimbench.selection_bias.selection import select


@vocab.settings
class CorrelationTable:
    """Sample correlation of a binary feature with the response, for each number of ones among n0 and n1 cases."""

    n0: vocab.Count = 8
    n1: vocab.Count = 14

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return the single job."""
        return [vocab.Cell.of({"n0": self.n0, "n1": self.n1}, correlation_table, self)]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the table, from the largest I_1 to the smallest, as in the slides."""
        columns = [f"I0 = {i0}" for i0 in range(self.n0 + 1)]
        found = vocab.unlisted(rows, "I1", range(self.n1 + 1), ["correlation"])[::-1]
        lines = [
            {"I1": i1, **dict(zip(columns, row, strict=True))}
            for i1, row in found.reindex(columns=["I1", "correlation"]).itertuples(index=False)
        ]
        numbers = [
            number
            for line in lines
            for number in vocab.numbers_of(f"I1 = {line['I1']}", {column: line[column] for column in columns}, rows)
        ]
        title = f"Correlation of a feature with I0 of {self.n0} and I1 of {self.n1} ones"
        table = vocab.Table.of(title, lines, {"I1": ".0f"} | dict.fromkeys(columns, "+.2f"))
        return vocab.Outcome((table,), (), numbers)


@job(correlation=list_of(list_of(NUMBER)))
def correlation_table(n0: int, n1: int) -> dict[str, vocab.Json]:
    """Compute the correlation of a binary feature with the response for all its counts, of n0 and n1 cases."""
    ones0, ones1 = np.meshgrid(np.arange(n0 + 1), np.arange(n1 + 1))
    return {"correlation": sim.correlation(ones0, ones1, n0, n1).tolist()}


# True against sample correlation of every feature, and what the printed cut-offs reveal.

_Sizes = tuple[int, int]
_PROVEN = 1e-6  # a statement that has at most this probability is refuted


@vocab.settings
class SelectionScatter(sim.Replicated):
    """How much stronger selected features look than they are, and the cut-off for each number of them.

    The figure shows the first replicate. Stated sizes whose cut-offs differ from the printed ones are explained by the
    inferred sizes, if both are run.
    """

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each size and replicate."""
        return [
            self.cell(true_and_sample_correlations, sizes, {"replicate": replicate}, with_points=replicate == 0)
            for sizes in self.class_sizes
            for replicate in range(self.replicates)
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the cut-offs, what the printed ones reveal about the sizes, and a scatter plot for each size."""
        drawn = vocab.unlisted(rows, "k", self.ks, ["gammas", "mean_sample", "mean_true"])
        found = vocab.printed_numbers("selection_bias/selection_scatter")
        printed = {int(row.rsplit(" ", 1)[1]): one for (row, _), one in found.items()}
        tests: dict[_Sizes, vocab.Held[int]] = {}
        for sizes, ours in vocab.groups(drawn, "n0", "n1"):
            cut_offs = {labels["k"]: own["gammas"].tolist() for labels, own in vocab.groups(ours, "k")}
            if test := vocab.held_against(printed, cut_offs):
                tests[sizes["n0"], sizes["n1"]] = test
        lines = [labels | _cut_off(ours) for labels, ours in vocab.groups(drawn, "n0", "n1", "k")]
        tables = [
            vocab.Table.of(_TITLE, lines, _CUT_OFFS),
            *overall_tables(tests),
            *self._if_unrelated(printed, [sizes for sizes in (sim.INFERRED_SIZES, sim.STATED_SIZES) if sizes in tests]),
        ]
        figures = [
            self._scatter(sim.show_sizes((row["n0"], row["n1"])), row["true"], row["sample"], row["gammas"])
            for row in vocab.successes(rows, replicate=0).to_dict("records")
        ]
        return vocab.Outcome(tables, figures, list(self._numbers(drawn, printed, tests)), self.notes())

    def _numbers(
        self, drawn: pd.DataFrame, printed: Mapping[int, vocab.Reported], tests: Mapping[_Sizes, vocab.Held[int]]
    ) -> Iterator[vocab.Number]:
        """Yield the mean cut-offs of the stated size, with the inferred one and the proof against the stated."""
        means = {
            (labels["n0"], labels["n1"], labels["k"]): (vocab.mean_of(ours["gammas"], "prediction"), ours)
            for labels, ours in vocab.groups(drawn, "n0", "n1", "k")
        }
        for (n0, n1, k), (mean, ours) in means.items():
            if (n0, n1) != sim.STATED_SIZES:
                continue
            explanation, proof = None, ""
            one = printed.get(k)
            if one and not mean.holds(one.value):
                proof = self._contradiction(k, one)
                if inferred := means.get((*sim.INFERRED_SIZES, k)):
                    jobs = tuple(inferred[1]["job"])
                    explanation = vocab.Explanation(sim.INFERRED_SETUP, inferred[0].value, inferred[0].interval, jobs)
            yield vocab.number_of(
                f"k = {k}",
                "cut-off",
                mean,
                ours,
                explanation=explanation,
                contradiction=proof,
                probability=tests[n0, n1].together.get(k) if (n0, n1) in tests else None,
            )

    def _contradiction(self, k: int, printed: vocab.Reported) -> str:
        """Return why a printed cut-off cannot be that of the stated size; empty if it can be."""
        n, bound = sum(sim.STATED_SIZES), printed.largest
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

    def _if_unrelated(self, printed: Mapping[int, vocab.Reported], tested: Sequence[_Sizes]) -> list[vocab.Table]:
        """Return how many features would pass the printed cut-offs if none were related to the response, as a table."""
        if sim.STATED_SIZES not in tested:
            return []
        lines = [
            {
                **{"n0": n0, "n1": n1, "k": k, "printed": printed[k].value, "below": printed[k].largest},
                "features beyond": self.n_features * share,
                "probability": probability_of_fewer(k, self.n_features, share),
            }
            for n0, n1 in tested
            for k in self.ks
            if k in printed
            for share in [share_beyond(printed[k].largest, n0, n1, self.prior.theta0)]
        ]
        title = "Features that would be beyond the printed cut-offs if none were related to the response"
        return [vocab.Table.of(title, lines, _UNRELATED, name="unrelated")]

    def _scatter(self, shown: str, true: list[float], sample: list[float], gammas: list[float]) -> vocab.LineFigure:
        last = max(map(abs, true))
        cuts = {f"k = {k:,}: ±{gamma:.2f}": gamma for k, gamma in zip(self.ks, gammas, strict=True)}
        # Names that differ in spaces alone are drawn as one.
        levels = cuts | {f"{name} ": -gamma for name, gamma in cuts.items()}
        return vocab.LineFigure.against_diagonal(
            f"Correlation of features with the response, and cut-offs for k features ({shown})",
            ("true correlation", "sample correlation"),
            [("feature", x, y) for x, y in zip(true, sample, strict=True)],
            (-last, last),
            mark="cloud",
            diagonal="sample = true",
            name=sim.file_stem(shown),
            levels=levels,
        )


_TITLE = "Cut-offs, and mean absolute correlation of the selected features in the sample and in truth"
_CUT_OFFS = {
    **dict.fromkeys(("n0", "n1", "k", "replicates"), ""),
    **dict.fromkeys(("cut-off", "low", "high", "mean sample", "mean true"), ".3f"),
}


def _cut_off(ours: pd.DataFrame) -> dict[str, object]:
    low, high = vocab.mean_of(ours["gammas"], "prediction").ends
    return {
        **{"replicates": len(ours), "cut-off": ours["gammas"].mean(), "low": low, "high": high},
        **{"mean sample": ours["mean_sample"].mean(), "mean true": ours["mean_true"].mean()},
    }


_UNRELATED = {
    **dict.fromkeys(("n0", "n1", "k"), ""),
    **{"printed": ".2f", "below": ".3f", "features beyond": ",.1f", "probability": ".1e"},
}
_MEANS = {"gammas": list_of(SHARE), "mean_sample": list_of(SHARE), "mean_true": list_of(NUMBER)}


@job(_MEANS, _MEANS | {"true": list_of(NUMBER), "sample": list_of(NUMBER)})
def true_and_sample_correlations(
    data: sim.ModelSettings, data_seed: int, ks: list[int], with_points: bool
) -> dict[str, vocab.Json]:
    """Draw cases from the model, and compare each feature's true correlation with the one in the sample.

    `with_points` adds every feature's correlations.
    """
    cases = sim.simulate(data, np.random.default_rng(data_seed))
    n0, n1 = data.class_sizes
    ones0, ones1 = sim.class_counts(cases.X, cases.y)
    sample, true = sim.correlation(ones0, ones1, n0, n1), cases.true_correlation
    ones, sizes = np.stack([ones0, ones1]), np.repeat([[n0], [n1]], len(ones0), axis=1)
    selections = [select(ones, sizes, k) for k in ks]
    chosen = [selection.features for selection in selections]
    result: dict[str, vocab.Json] = {
        "gammas": [selection.gamma for selection in selections],
        "mean_sample": [float(np.abs(sample[features]).mean()) for features in chosen],
        # The true correlation in the direction that the sample shows.
        "mean_true": [float((true[features] * np.sign(sample[features])).mean()) for features in chosen],
    }
    if with_points:
        result |= {"true": np.round(true, 6).tolist(), "sample": np.round(sample, 6).tolist()}
    return result


# How strongly features correlate with a response that is unrelated to them.


def share_beyond(bound: float, n0: int, n1: int, theta0: float = 0.0) -> float:
    r"""Return the probability that a feature unrelated to the response has an absolute correlation beyond a bound.

    The correlation is that of n0 and n1 cases in the classes. The feature's probability of a one is uniform from
    `theta0` to 1 - `theta0`, the same in both classes.

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
    """Return P(N < k) for N ~ Binomial(`n_features`, `share`)."""
    from scipy.stats import binom

    return float(binom.cdf(k - 1, n_features, share))


def _log_choose(n: int, r: NDArray[np.int64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1)
    return result
