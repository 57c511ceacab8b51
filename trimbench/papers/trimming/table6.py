"""Table 6: trimmings of the UCI networks against FS-SDD, with the literal search of Algorithm 1."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import geometric_mean
from typing import Any, NamedTuple

import pandas as pd

from trimbench.papers.networks import classifier_input, classifier_of
from trimbench.papers.trimming.classifiers import SEARCHED, TRIMMED
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.code_hash import JobFunction
from trimbench.reproduction.execution.job import COUNT, NUMBER, POSITIVE, SHARE, job, timed, timed_warm
from trimbench.trimming.baselines import select_features
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.choice import EngineName, SignedMeasure, make_engine
from trimbench.trimming.result import AGREEMENT_TOLERANCE
from trimbench.trimming.trim import maximum_achievable_agreement, trim

# Agreements that differ by less are equal: both are exact up to rounding.
_STRICTLY = 1e-9
# Three ways to judge FS-SDD's features, with the entry of a job's result that each compares.
READINGS = {
    "threshold kept": "agreement",
    "best threshold, smallest tie": "agreement_at_best_threshold",
    "best threshold, most favourable tie": "agreement_of_best_tie",
}
# The reading of the claim's wording, and the one that favours FS-SDD most.
KEPT, FAVOURABLE = "threshold kept", "best threshold, most favourable tie"


def strictly_better(done: pd.DataFrame) -> pd.DataFrame:
    """Return whether the trimming is strictly better, for each network, threshold and reading of the claim.

    `done` has the rows of successful jobs of both methods; an instance counts if both succeeded.
    """
    columns = ["network", "threshold", "reading", "better"]
    if done.empty or not set(_TWO) <= set(done["method"]):
        return pd.DataFrame(columns=columns)
    trimmed, selected = (done[done["method"] == method] for method in _TWO)
    both = selected.merge(trimmed[["network", "threshold", "agreement"]], on=columns[:2], suffixes=("", "_trimmed"))
    parts = [
        both.assign(reading=reading, better=both["agreement_trimmed"] - both[entry] > _STRICTLY)[columns]
        for reading, entry in READINGS.items()
    ]
    return pd.concat(parts, ignore_index=True)


def counts(found: pd.DataFrame, networks: Sequence[str], timed_out: Collection[str]) -> vocab.Table:
    """Return the strictly better instances by network and reading, with the networks that timed out and without."""
    every = [name for name in networks if name in set(found["network"])]
    sets = {"all": every}
    if without := sorted(set(every) & set(timed_out)):
        sets[f"without {', '.join(without)}"] = [name for name in every if name not in without]
    lines = [
        {"networks": which, "FS-SDD's features": labels["reading"]}
        | ours.groupby("network")["better"].sum().astype(int).to_dict()
        | {"better": int(ours["better"].sum()), "of": len(ours), "percent": 100 * float(ours["better"].mean())}
        for which, chosen in sets.items()
        for labels, ours in vocab.groups(found[found["network"].isin(chosen)], "reading")
    ]
    columns = dict.fromkeys(("networks", "FS-SDD's features"), "") | dict.fromkeys(every, ".0f")
    columns |= {"better": "", "of": "", "percent": ".1f"}
    return vocab.Table.of(_BETTER_TITLE, lines, columns, name="strictly_better")


_BETTER_TITLE = "Thresholds at which the trimming agrees strictly more often than FS-SDD's features, by network"


# Algorithm 1 of the trimming paper as printed, to count its evaluations.


class LiteralTrimming(NamedTuple):
    """The optimum with its maximum achievable agreement, and the evaluations of MAA and MPA that it took.

    Neither is computed again where it is known from the parent node: MAA(I) after an exclusion, MPA(F minus E) after an
    inclusion. `n_evaluations_repeated` counts them if both were computed again.
    """

    features: tuple[int, ...]
    agreement: float
    n_evaluations: int
    n_evaluations_repeated: int


def trim_literally(
    classifier: BayesianClassifier,
    budget: int,
    order: Sequence[int],
    *,
    prune_ties: bool = True,
    engine: EngineName = "dense",
) -> LiteralTrimming:
    """Search by inclusion and exclusion, depth first, at unit costs.

    The classifier is naive Bayes: MAA and MPA are the same then (Proposition 3), as the paper computes them. `order`
    and `prune_ties` are those of `search_nodes`.
    """
    root = make_engine(classifier, engine).root

    @functools.cache
    def remaining(excluded: tuple[int, ...]) -> SignedMeasure:
        return remaining(excluded[:-1]).without(excluded[-1]) if excluded else root

    # Known values are not computed again: after an exclusion, the included features are those of the node above.
    @functools.cache
    def bound(excluded: tuple[int, ...]) -> float:
        return remaining(excluded).potential_agreement()

    known: dict[tuple[int, ...], float] = {}

    def achieved(included: tuple[int, ...], excluded: tuple[int, ...]) -> float:
        if included not in known:
            measure = remaining(excluded)
            for feature in [one for one in measure.features if one not in included]:
                measure = measure.without(feature)
            known[included] = measure.potential_agreement()
        return known[included]

    nodes = list(search_nodes(order, [1.0] * len(order), budget, achieved, bound, prune_ties=prune_ties))
    repeated = sum((node.achieved is not None) + (node.bound is not None) for node in nodes)
    last = nodes[-1]
    return LiteralTrimming(last.best, last.agreement, len(known) + bound.cache_info().currsize, repeated)


class Node(NamedTuple):
    """A node of the search of Algorithm 1, in the order in which the search visits it.

    `achieved` is MAA of the included features, None where they cost more than the budget; `bound` is MPA of all but the
    excluded ones, None where the budget affords none of the rest. `best` are the best features so far, with their
    `agreement`. If the node is `pruned`, the bound ends the branch.
    """

    included: tuple[int, ...]
    excluded: tuple[int, ...]
    achieved: float | None
    bound: float | None
    best: tuple[int, ...]
    agreement: float
    pruned: bool


def search_nodes(
    order: Sequence[int],
    costs: Sequence[float],
    budget: float,
    achieved: Callable[[tuple[int, ...], tuple[int, ...]], float],
    bound: Callable[[tuple[int, ...]], float],
    *,
    prune_ties: bool = True,
) -> Iterator[Node]:
    """Search as Algorithm 1 is printed, depth first, and yield each node.

    Parameters
    ----------
    order : sequence of int
        All features, in the order in which the search decides them.
    costs : sequence of float
        Cost of each feature, by its number.
    achieved, bound : callable
        MAA of the included features, from (included, excluded); MPA of all but the excluded ones, from (excluded).
    prune_ties : bool
        Whether a bound equal to the best agreement so far ends a branch, as in line 6 of the algorithm.
    """
    best: tuple[tuple[int, ...], float] = ((), -math.inf)
    waiting: list[tuple[tuple[int, ...], tuple[int, ...], float]] = [((), (), budget)]
    while waiting:
        included, excluded, left = waiting.pop()
        found = achieved(included, excluded) if left >= 0 else None
        if found is not None and found > best[1] + AGREEMENT_TOLERANCE:
            best = included, found
        undecided = order[len(included) + len(excluded) :]
        most = bound(excluded) if undecided and min(costs[feature] for feature in undecided) <= left else None
        lead = None if most is None else most - best[1]
        pruned = lead is not None and lead <= (AGREEMENT_TOLERANCE if prune_ties else -AGREEMENT_TOLERANCE)
        yield Node(included, excluded, found, most, *best, pruned)
        if lead is not None and not pruned:
            feature = undecided[0]
            waiting.append((included, (*excluded, feature), left))
            waiting.append(((*included, feature), excluded, left - costs[feature]))


_SIZES = {"n_features": COUNT, "budget": COUNT, "method_seconds": POSITIVE}


@job(
    {"n_features": COUNT, "budget": COUNT},
    {**SEARCHED, **_SIZES, "n_evaluations_repeated": COUNT, "n_evaluations_ties_searched": COUNT},
)
def trim_by_algorithm_1(
    network: vocab.Input, threshold: float, budget_divisor: int, engine: EngineName
) -> dict[str, vocab.Json]:
    """Trim the classifier of a network input as the paper prints it, features in reverse order of the file.

    The algorithm is for naive Bayes networks: for a general one, nothing is counted.
    """
    classifier, budget = _problem(network, threshold, budget_divisor)
    if not classifier.is_naive_bayes:
        return {"n_features": classifier.n_features, "budget": budget}
    order = range(classifier.n_features)[::-1]
    found, seconds = timed(lambda: trim_literally(classifier, budget, order, engine=engine))
    all_ties = trim_literally(classifier, budget, order, prune_ties=False, engine=engine)
    counted = {"n_evaluations_repeated": found.n_evaluations_repeated}
    counted |= {"n_evaluations_ties_searched": all_ties.n_evaluations}
    features = [classifier.features[i] for i in sorted(found.features)]
    return _found(classifier, budget, features, found, seconds, **counted)


def _problem(network: vocab.Input, threshold: float, budget_divisor: int) -> tuple[BayesianClassifier, int]:
    classifier = classifier_of(network, threshold)
    return classifier, classifier.n_features // budget_divisor


def _found(
    classifier: BayesianClassifier, budget: int, features: Sequence[str], found: Any, seconds: float, **own: vocab.Json
) -> dict[str, vocab.Json]:
    """Return the results that every method has, and those of its own."""
    sizes = {"n_features": classifier.n_features, "budget": budget, "features": list(features)}
    counted = {"n_evaluations": found.n_evaluations, "method_seconds": seconds}
    return {**sizes, "agreement": found.agreement, **own, **counted}


# Table 6: run time and evaluations of trimming and of FS-SDD.


@vocab.settings
class Table6:
    """Run time and evaluations of both methods on the seven naive Bayes networks (Table 6).

    The budget is the number of features divided by `budget_divisor`, rounded down. The printed evaluations are also
    compared with those of the paper's Algorithm 1 at `counted_threshold`, if that is one of the thresholds and the
    network is naive Bayes: the algorithm is not meant for others.
    """

    networks: vocab.Axis[str]
    thresholds: vocab.Axis[vocab.Threshold]
    budget_divisor: vocab.Count = 3
    counted_threshold: vocab.Threshold = 0.5
    engine: EngineName = "dense"

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each network, threshold and method."""
        return [
            vocab.Cell.of(one, _METHODS[one["method"]], self, network=classifier_input(inputs, one["network"]))
            for one in vocab.grid(network=self.networks, threshold=self.thresholds, method=_METHODS)
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the table, averaged over the thresholds, and the share of strictly better trimmings."""
        printed, done = vocab.printed_numbers("trimming/table6"), vocab.successes(rows)
        main = vocab.Table(_TITLE, self._main(done), _FORMATS)
        evaluations = self._evaluations(done, printed)
        better = strictly_better(done)
        timed_out = [row for (row, _), one in printed.items() if math.isinf(one.value)]
        # Without all instances, the share is not known, and without all networks, neither is the largest.
        ratios = _ratios(main, printed)
        numbers = [*self._numbers(main, done), *(_claims(better, ratios, done) if len(done) == len(rows) else ())]
        whole = main.frame.dropna(subset=[_TRIM_EVALUATIONS] if len(main.frame) else [])
        if len(whole) == len(self.networks):
            largest = whole.sort_values("n_features")["network"].iloc[-1]
            numbers += [
                replace(one, row="largest network", explanation=None)
                for one in numbers
                if (one.row, one.quantity) == (largest, _TRIM_EVALUATIONS)
            ]
        return vocab.Outcome((main, evaluations, counts(better, self.networks, timed_out), ratios), (), numbers)

    def _main(self, done: pd.DataFrame) -> pd.DataFrame:
        """Return the sizes of each network, the means of both methods, and how many subsets the budget allows."""
        sizes = done.reindex(columns=["network", "n_features", "budget"]).groupby("network", sort=False).first()
        for method in _PRINTED:
            means = self._means(done, method)
            sizes = sizes.assign(**{f"{method}_{quantity}": means[column] for quantity, column in _MEASURED.items()})
        subsets = [math.comb(*map(int, line)) for line in sizes[["n_features", "budget"]].to_numpy()]
        return sizes.assign(subsets=subsets).reset_index()

    def _means(self, done: pd.DataFrame, method: str) -> pd.DataFrame:
        """Return the means of a method's results over the thresholds, by network; NaN unless all are there."""
        results = [*dict.fromkeys((*_MEASURED.values(), *_LITERAL_MEANS.values()))]
        own = done[done["method"] == method].reindex(columns=["network", *results]).groupby("network")
        whole = own[results].mean()[own.size() == len(self.thresholds)]
        return whole.reindex(pd.Index(done["network"].unique(), name="network"))

    def _counted(self, done: pd.DataFrame) -> pd.DataFrame:
        """Return the jobs and evaluations of Algorithm 1 at the threshold where they are counted, by network."""
        jobs = done[(done["method"] == _LITERAL) & (done["threshold"] == self.counted_threshold)]
        return jobs.reindex(columns=["network", "job", "n_evaluations"]).dropna().set_index("network")

    def _evaluations(self, done: pd.DataFrame, printed: Mapping[tuple[str, str], vocab.Reported]) -> vocab.Table:
        """Return the printed evaluations beside ours and those of Algorithm 1."""
        by_network = {network: one.value for (network, what), one in printed.items() if what == _TRIM_EVALUATIONS}
        ours, literal = self._means(done, "eca_trim"), self._means(done, _LITERAL)
        frame = pd.DataFrame({"printed": ours.index.map(by_network), "ours, mean": ours["n_evaluations"]})
        if self.counted_threshold in self.thresholds:
            frame[f"Algorithm 1 at T = {self.counted_threshold:g}"] = self._counted(done)["n_evaluations"].astype(float)
        frame = frame.assign(**{title: literal[entry] for title, entry in _LITERAL_MEANS.items()})
        formats = dict.fromkeys(map(str, frame), ".0f") | dict.fromkeys(("ours, mean", *_LITERAL_MEANS), ".1f")
        return vocab.Table(_EVALUATIONS_TITLE, frame.reset_index(), formats, "evaluations")

    def _numbers(self, main: vocab.Table, done: pd.DataFrame) -> Iterator[vocab.Number]:
        """Yield the numbers of each network; its evaluations are explained by those of Algorithm 1."""
        setup = (
            "Algorithm 1, known values not computed again, features in reverse order of the file, "
            f"T = {self.counted_threshold:g}"
        )
        counted = self._counted(done)
        for line in main.frame.to_dict("records"):
            name = line["network"]
            ours = done[done["network"] == name]
            yield from vocab.numbers_of(
                name, {quantity: line[quantity] for quantity in ("n_features", "subsets")}, ours
            )
            for method in _PRINTED:
                own = ours[ours["method"] == method]
                for quantity in (f"{method}_{measured}" for measured in _MEASURED):
                    explanation = None
                    if quantity == _TRIM_EVALUATIONS and name in counted.index:
                        job, count = counted.loc[name]
                        explanation = vocab.Explanation(setup, float(count), jobs=(job,))
                    yield vocab.number_of(name, quantity, line[quantity], own, explanation=explanation)


_MEASURED = {"seconds": "method_seconds", "evaluations": "n_evaluations"}
# The methods that the paper prints, with the formats of their printed quantities.
_PRINTED = {"fs_sdd": {"seconds": ".4f", "evaluations": ".0f"}, "eca_trim": {"seconds": ".4f", "evaluations": ".1f"}}
_FORMATS = {f"{method}_{quantity}": one for method, formats in _PRINTED.items() for quantity, one in formats.items()}
_TWO = ("eca_trim", "fs_sdd")
_LITERAL = "algorithm_1"
_LITERAL_MEANS = {
    "Algorithm 1, mean": "n_evaluations",
    "mean, equal bounds searched": "n_evaluations_ties_searched",
    "mean, known values computed again": "n_evaluations_repeated",
}
_TRIM_EVALUATIONS = "eca_trim_evaluations"
_TITLE = "Table 6: seconds and evaluations, mean over the thresholds"
_EVALUATIONS_TITLE = "Evaluations of the criterion: printed, by our search, and by Algorithm 1"


def _ratios(main: vocab.Table, printed: Mapping[tuple[str, str], vocab.Reported]) -> vocab.Table:
    """Return the seconds of the trimming divided by those of FS-SDD, on the authors' machine and on this one."""
    lines = []
    for line in main.frame.to_dict("records"):
        found = [printed.get((line["network"], f"{method}_seconds")) for method in _TWO]
        known = [one.value for one in found if one and math.isfinite(one.value)]
        theirs = known[0] / known[1] if len(known) == len(_TWO) else None
        pairs = (("eca_trim_seconds", "fs_sdd_seconds"), (_TRIM_EVALUATIONS, "fs_sdd_evaluations"))
        # A small network may need no search.
        seconds, evaluations, subsets = (
            line[ours] / line[other] if line[other] else None
            for ours, other in (*pairs, (_TRIM_EVALUATIONS, "subsets"))
        )
        lines.append((line["network"], theirs, seconds, 1000 * line["eca_trim_seconds"], evaluations, subsets))
    return vocab.Table.of("Trimming by FS-SDD, within one machine", lines, _RATIO_COLUMNS, name="ratios")


_RATIO_COLUMNS = {
    "network": "",
    **dict.fromkeys(("printed", "ours", "our milliseconds", "our evaluations", "our evaluations by subsets"), ".2f"),
}
# The claim of section 6.2, "comparable on smaller classifiers, and more efficient for larger ones", by what the
# networks take in print: at most an eighth of a second, or more than a second.
_SIZES_CLAIMED = {
    "smaller networks": ("bupa", "pima", "ident"),
    "larger networks": ("anatomy", "heart", "voting", "hepatitis"),
}


def _claims(better: pd.DataFrame, ratios: vocab.Table, done: pd.DataFrame) -> list[vocab.Number]:
    """Return the numbers behind the words of section 6.2: how often trimmings agree more than FS-SDD, and how fast."""
    percents = {str(reading): 100.0 * float(own["better"].mean()) for reading, own in better.groupby("reading")}
    # By the wording, FS-SDD keeps the threshold. The reading that favours FS-SDD most gives it the best threshold, and
    # the best of tied subsets.
    n_instances = int((better["reading"] == FAVOURABLE).sum())
    setup = f"FS-SDD's features at their best threshold, most favourable tie, all {n_instances} instances"
    explanation = vocab.Explanation(setup, percents[FAVOURABLE]) if FAVOURABLE in percents else None
    done = done[done["method"].isin(_TWO)]
    worded = vocab.number_of("all", "strictly_better_percent", percents.get(KEPT), done, explanation=explanation)
    trimmed, selected = (done[done["method"] == method].set_index(["network", "threshold"]) for method in _TWO)
    behind = selected["agreement"] - trimmed["agreement"] > _STRICTLY
    numbers = [worded, vocab.number_of("all", "no_lower_percent", 100 * float(1 - behind.mean()), done)]
    own = ratios.frame.set_index("network")
    for row, names in _SIZES_CLAIMED.items():
        if set(names) <= set(own.index):
            means = {"seconds_by_fs_sdd": "ours"}
            means |= {"evaluations_by_subsets": "our evaluations by subsets"} if row.startswith("larger") else {}
            values = {quantity: geometric_mean(own.loc[[*names], title]) for quantity, title in means.items()}
            numbers += vocab.numbers_of(row, values, done[done["network"].isin(names)])
    return numbers


@job({**TRIMMED, **_SIZES, "threshold_low": NUMBER, "threshold_high": NUMBER})
def trim_network(
    network: vocab.Input, threshold: float, budget_divisor: int, engine: EngineName
) -> dict[str, vocab.Json]:
    """Trim the classifier of a network input at unit costs."""
    classifier, budget = _problem(network, threshold, budget_divisor)
    trimming, seconds = timed_warm(lambda: trim(classifier, budget, engine=engine))
    low, high = trimming.threshold_interval
    own = {"new_threshold": trimming.threshold, "threshold_low": low, "threshold_high": high}
    return _found(classifier, budget, trimming.features, trimming, seconds, **own, optimal=trimming.optimal)


@job({**SEARCHED, **_SIZES, "n_tied": COUNT, "agreement_at_best_threshold": SHARE, "agreement_of_best_tie": SHARE})
def select_from_network(network: vocab.Input, threshold: float, budget_divisor: int) -> dict[str, vocab.Json]:
    """Select features of a network input by expected same-decision probability (FS-SDD), at unit costs."""
    classifier, budget = _problem(network, threshold, budget_divisor)
    selection, seconds = timed_warm(lambda: select_features(classifier, budget))
    at_best_threshold = [maximum_achievable_agreement(classifier, features)[0] for features in selection.tied]
    own = {"agreement_at_best_threshold": at_best_threshold[0], "agreement_of_best_tie": max(at_best_threshold)}
    return _found(classifier, budget, selection.features, selection, seconds, **own, n_tied=len(selection.tied))


# Jobs follow from this.
_METHODS: dict[str, JobFunction] = {
    "eca_trim": trim_network,
    "fs_sdd": select_from_network,
    _LITERAL: trim_by_algorithm_1,
}
