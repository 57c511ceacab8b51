"""Figure 7: trimmings of general networks, against selections by information gain."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, cast

import pandas as pd

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.inference.joint import ContractionTooLarge
from trimbench.networks.learning import learn
from trimbench.papers.networks import network_input, network_of
from trimbench.papers.trimming.classifiers import NAMES, PROBLEM_ENTRIES, TRIMMED, Problem
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.encodings import categorize
from trimbench.reproduction.execution.job import COUNT, POSITIVE, SHARE, TEXT, fields, job, list_of, seed_for, timed
from trimbench.trimming.baselines import select_features
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import feature_indices
from trimbench.trimming.engines.choice import Engine, EngineName, TableLimits, make_engine
from trimbench.trimming.engines.sdd import CircuitError
from trimbench.trimming.trim import trim

# The selections to compare with, by the prefix of their results: they take the classifier, the budget and the engine.
SELECTIONS = {
    "gain": vocab.Method("information gain", functools.partial(select_features, by="information_gain")),
    "joint_gain": vocab.Method(
        "joint information gain", functools.partial(select_features, by="information_gain", joint=True)
    ),
}
_CLASS = {"target": TEXT, "n_features": COUNT, "budget": COUNT}
_POINT = fields(
    **{**TRIMMED, "threshold": SHARE, "no_feature": SHARE, "seconds": POSITIVE},
    **{"*_same_threshold": SHARE, "*_best_threshold": SHARE},
)
_COMPARED = {
    **{"engine": TEXT, "engine_seconds": POSITIVE, "method_seconds": POSITIVE},
    **{"*_features": NAMES, "points": list_of(_POINT)},
}


@job(_CLASS | {"refused": TEXT}, _CLASS | _COMPARED)
def trim_drawn_class(
    network: vocab.Input,
    draw: int,
    seed: int,
    thresholds: list[float],
    budget_divisor: int,
    engine: EngineName,
    limits: TableLimits,
) -> dict[str, vocab.Json]:
    """Trim a network input whose features are its leaves and whose class is drawn from its binary roots.

    A network that is declared with its class keeps it. Draws count from 0; the seed shuffles the roots. If the input
    has evidence, every probability is conditional on it, and only leaves and roots that were not observed are taken.
    """
    loaded = network_of(network)
    model = loaded.model if isinstance(loaded.model, BayesianNetwork) else loaded.model.to_network()
    roots = [node for node in binary_roots(model) if node not in loaded.evidence]
    free = [node for node in loaded.features if node not in loaded.evidence]
    if loaded.evidence and loaded.target is None and draw >= len(roots):
        reason = f"only {len(roots)} of the binary roots are not observed"
        return {"target": "", "n_features": len(free), "budget": len(free) // budget_divisor, "refused": reason}
    target = loaded.target or draw_class(roots, network.name, draw, seed)
    classifier = BayesianClassifier(
        model,
        target,
        positive=loaded.positive or model.states(target)[-1],
        features=[node for node in free if node != target],
        evidence=loaded.evidence,
    )
    return _against_information_gain(classifier, thresholds, budget_divisor, engine, limits)


@job(_CLASS | {"refused": TEXT}, _CLASS | _COMPARED)
def trim_tree_augmented(
    dataset: vocab.Input,
    positive: str,
    smoothing: float,
    thresholds: list[float],
    budget_divisor: int,
    engine: EngineName,
) -> dict[str, vocab.Json]:
    """Learn a tree-augmented naive Bayes classifier on all rows of a data set, and trim it.

    Numbers are cut at their median; missing values are left out of the counts.
    """
    loaded = vocab.dataset_of(dataset)
    (rows,) = categorize(loaded.features, gaps="keep")
    model = learn(rows, loaded.target, structure="tree", smoothing=smoothing, missing="ignore")
    features = [str(label) for label in rows.columns]
    classifier = BayesianClassifier(model, str(loaded.target.name), positive=positive, features=features)
    return _against_information_gain(classifier, thresholds, budget_divisor, engine)


def binary_roots(network: BayesianNetwork) -> list[str]:
    """Return the binary roots that have children."""
    return [
        node
        for node in network.nodes
        if not network.parents(node) and network.children(node) and network.cardinality(node) == 2
    ]


def draw_class(roots: Sequence[str], name: str, draw: int, seed: int) -> str:
    """Draw one of the binary roots of a network, without repetition; ValueError if there are too few."""
    import numpy as np

    if draw >= len(roots):
        raise ValueError(f"classes must be at most {len(roots)} for {name!r} (its binary roots), got draw {draw + 1}")
    return roots[int(np.random.default_rng(seed).permutation(len(roots))[draw])]


def _against_information_gain(
    classifier: BayesianClassifier,
    thresholds: Sequence[float],
    budget_divisor: int,
    name: EngineName,
    limits: TableLimits | None = None,
) -> dict[str, vocab.Json]:
    """Return the trimming at each threshold, and how far selections by information gain agree there.

    For a network that exact methods cannot handle, the reason takes their place.
    """
    budget = classifier.n_features // budget_divisor
    facts: dict[str, vocab.Json] = {"target": classifier.target, "n_features": classifier.n_features, "budget": budget}
    try:
        engine, built = timed(lambda: _ready(make_engine(classifier, name, limits=limits)))
    except (ContractionTooLarge, CircuitError) as error:
        return facts | {"refused": str(error)}
    selections = {name: by.run(classifier, budget, engine=engine).features for name, by in SELECTIONS.items()}
    points = [
        _point(classifier, budget, float(level), engine.with_threshold(level), selections) for level in thresholds
    ]
    return facts | {
        "engine": type(engine).__name__,
        "engine_seconds": built,
        "method_seconds": sum(cast(float, point["seconds"]) for point in points),
        **{f"{name}_features": list(features) for name, features in selections.items()},
        "points": points,
    }


def _ready(engine: Engine) -> Engine:
    """Return an engine after it has made its table, which engines may put off until a value is needed."""
    engine.agreement((), 0.5)
    return engine


def _point(
    classifier: BayesianClassifier,
    budget: int,
    threshold: float,
    engine: Engine,
    selections: Mapping[str, Sequence[str]],
) -> dict[str, vocab.Json]:
    start = time.perf_counter()
    trimming = trim(classifier.with_threshold(threshold), budget, engine=engine)
    point: dict[str, vocab.Json] = {
        "threshold": threshold,
        "features": list(trimming.features),
        "agreement": trimming.agreement,
        "new_threshold": trimming.threshold,
        "optimal": trimming.optimal,
        "n_evaluations": trimming.n_evaluations,
        "no_feature": engine.best_cut(()).agreement,
        "seconds": time.perf_counter() - start,
    }
    for method, features in selections.items():
        places = sorted(feature_indices(classifier.features, features))
        point[f"{method}_same_threshold"] = engine.agreement(places, threshold)
        point[f"{method}_best_threshold"] = engine.best_cut(places).agreement
    return point


# Tables and figures of trimmings against information gain, on networks as they are and given evidence.

# Agreements that differ by less are equal: both are exact up to rounding.
_EQUAL = 1e-9
_WHOLE = 1.0 - _EQUAL
AT_LEAST = "at least as often as information gain"
STRICTLY = "strictly more often"
SUBSTITUTE = "substitute_"
_LABELS = {"network": "network", "class": "class", "class variable": "target"}
# Columns of the results, and their names in the table and the figures.
_METHODS = {
    "agreement": "trimming",
    "gain_same_threshold": "information gain, same T",
    **{f"{name}_best_threshold": f"{selection.title}, best T'" for name, selection in SELECTIONS.items()},
    "no_feature": "no feature",
}


def compared(
    rows: pd.DataFrame, engine: str, given: str = "", suffix: str = ""
) -> tuple[list[vocab.Table], list[vocab.LineFigure], pd.DataFrame]:
    """Return the tables and figures of some rows, and the rows of them that were solved.

    The tables are those of the agreement over all thresholds and at each, of the settings in which the claim of section
    6.3 holds, and of what could not be computed. `given` and `suffix` end the titles and names; `engine` is the one
    that was requested.
    """
    # Without any refused network, no result has such an entry.
    done = vocab.successes(rows.assign(refused=rows.get("refused")))
    solved, refused = done[done["refused"].isna()], done[done["refused"].notna()]
    points, figures = vocab.unpacked(solved, "points"), []
    if len(points):
        lead = points["agreement"] - points["gain_best_threshold"]
        points["lead"] = lead.where(lead.abs() > _EQUAL, 0.0)
        points["kept"] = points["features"].map(" ".join)
        points["engine"] = points["engine"].map(_ENGINES)
        figures = [
            _figure(f"{_network_title(labels['network'])}{given}", ours, _named(labels["network"], suffix))
            for labels, ours in vocab.groups(points, "network")
        ]
        if not given:  # the curves of all networks with evidence would be a tangle
            figures.append(_without_features(points))
    by_class = vocab.groups(points, **_LABELS, features="n_features", budget="budget", engine="engine")
    lines = points.reindex(columns=list(_LINE)).to_numpy(dtype=object)
    reasons = [
        # The rest of the message is advice for users of the library.
        (
            *(row[column] for column in _LABELS.values()),
            int(row["n_features"]),
            engine,
            row["refused"].split("; use ")[0],
        )
        for row in refused.to_dict("records")
    ]
    summary = [labels | _summary(ours) for labels, ours in by_class]
    tables = [
        vocab.Table.of(f"Figure 7{given}: {_SUMMARY_TITLE}", summary, _SUMMARY, name=suffix),
        vocab.Table.of(_LINES_TITLE + given, lines, _LINE_FORMATS, name=_named("thresholds", suffix), listed=False),
        vocab.Table.of(_CLAIM_TITLE + given, _claim(points), _CLAIM_COLUMNS, name=_named("claim", suffix)),
        vocab.Table.of(_REFUSED_TITLE + given, reasons, _REFUSED_COLUMNS, name=_named("refused", suffix)),
    ]
    return tables, figures, solved


def _named(name: str, suffix: str) -> str:
    return f"{name}_{suffix}" if suffix else name


def _claim(points: pd.DataFrame) -> list[tuple[object, ...]]:
    """Count the settings in which the claim of section 6.3 holds."""
    if points.empty:
        return []
    lead = points["agreement"] - points[["gain_same_threshold", "gain_best_threshold"]].max(axis=1)
    lead_at_same = points["agreement"] - points["gain_same_threshold"]
    looks = points["no_feature"] < _WHOLE
    return [
        (
            title,
            *(int(holds[chosen].sum()) for holds in (chosen, lead >= -_EQUAL, lead > _EQUAL, lead_at_same > _EQUAL)),
        )
        for title, chosen in (("all", looks | ~looks), ("those in which the original looks at its features", looks))
    ]


def _figure(title: str, points: pd.DataFrame, name: str) -> vocab.LineFigure:
    """Return the curves of one network, averaged over its classes."""
    n_classes = points["class"].nunique()
    over = f", mean over {n_classes} classes" if n_classes > 1 else ""
    return vocab.LineFigure.of(
        f"{title}: trimming and information gain{over}",
        _AXES,
        (
            (title, threshold, values.mean())
            for column, title in _METHODS.items()
            # A classifier without features is so far below at some thresholds that the others would look alike, so it
            # has a figure of its own.
            if column != "no_feature"
            for threshold, values in points.groupby("threshold")[column]
        ),
        name=name,
    )


def _without_features(points: pd.DataFrame) -> vocab.LineFigure:
    """Return the curves of the classifiers without features, averaged over the classes of each network."""
    curves = (
        (_network_title(labels["network"]), labels["threshold"], ours["no_feature"].mean())
        for labels, ours in vocab.groups(points, "network", "threshold")
    )
    return vocab.LineFigure.of("Agreement without any feature, mean over the classes", _AXES, curves, name="no_feature")


def _network_title(network: str) -> str:
    """Return the name of a network in titles; the substitutes are named after their data."""
    name = network.removeprefix(SUBSTITUTE)
    return f"{vocab.shown_name(name)} (substitute)" if name != network else vocab.shown_name(name)


def _count(ours: pd.DataFrame, holds: pd.Series[bool]) -> str:
    return f"{int(holds.sum())} of {len(ours)}"


def _summary(ours: pd.DataFrame) -> dict[str, object]:
    """Return the means over the thresholds of a network and class."""
    return {
        **{title: ours[result].mean() for result, title in _METHODS.items()},
        "smallest lead": ours["lead"].min(),
        "largest lead": ours["lead"].max(),
        "strictly better at": _count(ours, ours["lead"] > _EQUAL),
        "proven": _count(ours, ours["optimal"]),
        "evaluations": ours["n_evaluations"].mean(),
        "seconds": (ours["engine_seconds"] + ours["method_seconds"]).iloc[0],
    }


_AXES = ("threshold T of the original", "agreement (ECA)")
_ENGINES = {"DenseEngine": "dense", "SddEngine": "sdd", "LogOddsEngine": "log_odds"}
_SUMMARY_TITLE = "agreement with the original, mean over the thresholds"
_SUMMARY = {
    **dict.fromkeys((*_LABELS, "features", "budget", "engine"), ""),
    **dict.fromkeys((*_METHODS.values(), "smallest lead", "largest lead"), ".4f"),
    **{"strictly better at": "", "proven": "", "evaluations": ".0f", "seconds": ".2f"},
}
_LINES_TITLE = "Agreement with the original at each threshold"
_LINE = {
    **{column: title for title, column in _LABELS.items()},
    **{"threshold": "T", **_METHODS, "lead": "lead", "new_threshold": "T'", "kept": "kept"},
}
_LINE_FORMATS = dict.fromkeys(_LINE.values(), ".4f") | dict.fromkeys((*_LABELS, "kept"), "") | {"T": ".2f"}
_CLAIM_TITLE = "Settings (network, class and threshold) in which the trimming agrees more often"
_CLAIM_COLUMNS = ("settings", "number", AT_LEAST, STRICTLY, "than at the same T")
_REFUSED_TITLE = "Networks and classes that could not be computed within the limits"
_REFUSED_COLUMNS = (*_LABELS, "features", "engine", "reason")


# Figure 7: trimming of general networks against feature selection by information gain.

# The values of the label that tells the variants apart.
_NONE, _EVIDENCE = "none", "of the competition"
_GIVEN = (" given the competition's evidence", "given_evidence")


@vocab.settings
class Figure7:
    """Agreement of trimmings of general networks, over thresholds and drawn classes (Figure 7).

    The features of a network are its leaves; `classes` class variables are drawn from its binary roots. In place of the
    network for mammography, which is not public, a tree-augmented naive Bayes classifier is learned with `smoothing` on
    each of the `substitutes`, which are names in `problems`. The budget is the number of features divided by
    `budget_divisor`, rounded down.

    The `evidence_networks` are also computed given the evidence that is declared with them: every probability is
    conditional on it, and features and classes are among the variables that were not observed. None of the reported
    numbers depends on them.

    The table of a network may take `max_operations` products of two numbers; `n_threads` share the work.
    """

    networks: list[str]
    thresholds: vocab.Axis[vocab.Threshold]
    classes: vocab.Count = 3
    substitutes: list[str] = field(default_factory=list)
    problems: dict[str, Problem] = field(default_factory=dict)
    budget_divisor: vocab.Count = 3
    smoothing: vocab.Positive = 1.0
    engine: EngineName = "auto"
    evidence_networks: list[str] = field(default_factory=list)
    max_operations: Annotated[float, vocab.must("a number of at least 1", lambda n: 1 <= n < math.inf)] = 1e11
    n_threads: vocab.Count = 1
    seed: int = 0

    def __post_init__(self) -> None:
        vocab.check_axis("networks and substitutes", [*self.networks, *self.substitutes])
        vocab.check_names("substitutes", self.substitutes, self.problems, "problems", PROBLEM_ENTRIES)
        if len(set(self.evidence_networks)) < len(self.evidence_networks):
            raise ValueError(f"evidence_networks must be distinct, got {self.evidence_networks}")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each network and class, with evidence and without, and for each substitute."""
        limits = {"max_operations": int(self.max_operations), "n_threads": self.n_threads}
        drawn = [
            vocab.Cell.of(
                {"network": name, "class": draw + 1, "evidence": _EVIDENCE if given else _NONE},
                trim_drawn_class,
                self,
                network=network,
                draw=draw,
                seed=seed_for(purpose="class variable", network=name, seed=self.seed),
                limits=limits,
            )
            for names, given in ((self.networks, False), (self.evidence_networks, True))
            for name, network in ((name, network_input(inputs, name, evidence=given)) for name in names)
            # A network that is declared with its class keeps it.
            for draw in range(1 if network.declared.get("target") else self.classes)
        ]
        learned = [
            vocab.Cell.of(
                {"network": f"{SUBSTITUTE}{name}", "class": 1, "evidence": _NONE},
                trim_tree_augmented,
                self,
                dataset=inputs.dataset(self.problems[name].dataset),
                positive=self.problems[name].positive,
            )
            for name in self.substitutes
        ]
        return drawn + learned

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the agreement of all methods: averaged over the thresholds, and at each; and what was refused.

        What is computed given evidence has tables and figures of its own.
        """
        is_given = rows["evidence"] == _EVIDENCE
        tables, figures, solved = compared(rows[~is_given], self.engine)
        numbers = _numbers(tables[2], solved)
        notes: Sequence[str] = ()
        if is_given.any():
            more, further, _ = compared(rows[is_given], self.engine, *_GIVEN)
            tables, figures, notes = tables + more, figures + further, _EVIDENCE_NOTES
        return vocab.Outcome(tables, figures, numbers, notes)


def _numbers(claim: vocab.Table, solved: pd.DataFrame) -> list[vocab.Number]:
    """Return the percentage of settings in which the claim holds, read in two ways, and what depends on T and class.

    The others are the share of classes whose trimming keeps other features at other thresholds, and the share of
    networks with several classes for which information gain selects other features for each class. Where the original
    never looks at its features, all are equally good, so the first counts only thresholds at which it does, and only
    classes with several of these.
    """
    if claim.frame.empty:
        return []
    every = claim.frame.iloc[0]
    readings = {"at_least_as_often_percent": AT_LEAST, "more_often_percent": STRICTLY}
    percents = {quantity: 100 * float(every[column] / every["number"]) for quantity, column in readings.items()}
    kept = [[tuple(p["features"]) for p in points if p["no_feature"] < _WHOLE] for points in solved["points"]]
    if other := [len(set(sets)) > 1 for sets in kept if len(sets) > 1]:
        percents["classes_with_other_features_percent"] = 100 * sum(other) / len(other)
    selected = [[frozenset(one) for one in ours["gain_features"]] for _, ours in solved.groupby("network")]
    if several := [len(set(sets)) == len(sets) for sets in selected if len(sets) > 1]:
        percents["networks_with_other_gain_features_percent"] = 100 * sum(several) / len(several)
    return vocab.numbers_of("all settings", percents, solved)


_EVIDENCE_NOTES = (
    "Given evidence is a variant of ours, not of the paper: the networks of the UAI 2008 evaluation come with observed "
    "states of some variables, and without them most of the networks are too wide for exact methods. All "
    "probabilities are conditional on the evidence, features are the leaves that it leaves free, and classes are drawn "
    "from the binary roots that it leaves free. Its tables and figures are named so; none of the numbers that are "
    "compared with the paper comes from them.",
)
