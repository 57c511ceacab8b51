"""What follows from a study, in sentences with its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from trimbench.papers.conformant.gap_groups import MECHANISMS
from trimbench.papers.conformant.gap_methods import METHODS
from trimbench.papers.data.tables.findings import DETERMINES
from trimbench.papers.own_table.baseline import CLASSIFIERS
from trimbench.papers.own_table.frontier import CANDIDATES, SEQUENTIAL_ROWS
from trimbench.papers.own_table.steps import Steps


def conclusions(found: Steps) -> list[str]:
    """Return one or two sentences for each question that the study answers."""
    return [*_what_to_keep(found), *_what_is_lost(found), *_whether_to_believe(found)]


def notes(found: Steps) -> list[str]:
    """Return what a reader needs to know: repairs of the table, rows that were left out, classes, methods."""
    own, n_rows = found.settings, len(found.table.labels)
    n_test = round(n_rows * own.test_share)
    said = [*found.table.repairs]
    said.append(
        f"{n_rows:,} rows were split at random, each class with its share in both parts: {n_rows - n_test:,} to learn "
        f"from and {n_test:,} to test on."
    )
    if n_rows - n_test > own.rows:
        said.append(
            f"To save time, all steps but missing features learn from {own.rows:,} random training rows; rows={n_rows} "
            "takes all."
        )
    if n_test > own.gap_rows or n_rows - n_test > own.gap_rows:
        said.append(
            f"Missing features: {own.splits} random splits with at most {own.gap_rows:,} rows to learn from and as "
            "many to test on; gap_rows=... changes it."
        )
    classes = found.table.classes
    if found.positive is not None:
        said.append(
            f"Trimming decides between {found.positive} and the other {len(classes) - 1} classes together; all other "
            f"steps predict the {len(classes)} classes."
        )
    elif len(classes) > 2:
        said.append(
            f"All steps predict the {len(classes)} classes as they are; positive=... makes trimming decide between one "
            "class and the rest."
        )
    stopped = [f"{one['budget']:g}" for one in found.trimmings if one["was_stopped"]]
    if stopped:
        said.append(
            f"The search was stopped after {own.time_limit:g} s of its own for the budgets {', '.join(stopped)}: the "
            "selection is the best that was found, which depends on the speed of the machine; time_limit=... gives it "
            "more time."
        )
    return [
        *said,
        "Trimming keeps the features whose naive Bayes classifier agrees most often with that of all features; the "
        "promised agreement blends that of the model with the cross-fitted one on training rows. Agreement and "
        "accuracy are those on test rows, with Wilson's 95 % intervals.",
        "SequentialFeatureSelector chooses as many features as trimming keeps, whatever they cost, from the "
        f"{CANDIDATES} most informative ones, by the cross-validated accuracy of CategoricalNB on at most "
        f"{SEQUENTIAL_ROWS:,} rows.",
        "A category is several columns of zeros and ones for logistic regression, and where the confidence after "
        "selection is judged; there, numbers are cut in two at their median.",
    ]


def _what_to_keep(found: Steps) -> Iterator[str]:
    chosen = found.chosen
    if chosen is None:
        yield "What to keep: no trimming could be computed."
        return
    full = found.trimmings[-1]
    total = sum(found.costs.values())
    names = ", ".join(chosen["features"]) or "no feature"
    yield (
        f"What to keep: {names} ({len(chosen['features'])} of {len(found.costs)} features, {chosen['cost']:g} of "
        f"{total:g} in cost). With them {100 * chosen['agreement']:.1f} % of the decisions of all features stay, and "
        f"{100 * chosen['accuracy']:.1f} % are right, where all features give {100 * full['accuracy']:.1f} %. "
        + (
            "It is the best found within the given budget."
            if found.settings.budget is not None
            else "It is the cheapest of the frontier within one standard error of the best accuracy."
        )
    )
    suspicious = [one.name for one in found.table.card if one.name in chosen["features"] and DETERMINES in one.notes]
    if suspicious:
        yield (
            f"Look at {', '.join(suspicious)} first: {'they determine' if len(suspicious) > 1 else 'it determines'} "
            "the target in this table. What is known only together with the answer, or after it, must be left out with "
            "drop=[...], and all numbers here change."
        )


def _what_is_lost(found: Steps) -> Iterator[str]:
    for group in found.gaps:
        if group.missing != max(one.missing for one in found.gaps):
            continue
        losses = {name: group.estimate(name, "log_loss") for name in found.settings.methods}
        known = {name: one.mean for name, one in losses.items() if one.n}
        if not known:
            continue
        best = min(known, key=lambda name: known[name])
        right = group.estimate(best, "accuracy").mean
        yield (
            f"Missing features ({MECHANISMS[group.mechanism]}, {100 * group.missing:.0f} %): {METHODS[best].title} has "
            f"the lowest log loss, {known[best]:.3f}, and {100 * right:.1f} % right; the others have "
            + ", ".join(f"{METHODS[name].title} {loss:.3f}" for name, loss in known.items() if name != best)
            + "."
        )


def _whether_to_believe(found: Steps) -> Iterator[str]:
    if found.baseline:
        yield (
            "Whether to believe it, with all features: "
            + "; ".join(
                f"{CLASSIFIERS[row['classifier']][0]}, {100 * row['confidence']:.1f} % stated and "
                f"{100 * row['accuracy']:.1f} % right"
                for row in found.baseline
            )
            + "."
        )
    too_low = []
    for k in dict.fromkeys(row["k"] for row in found.confidence):
        both = {bool(row["correct"]): row for row in found.confidence if row["k"] == k}
        if len(both) < 2:
            continue
        with_it, without = both[True], both[False]
        n_selected, n_columns = len(with_it["selected"]), with_it["n_columns"]
        what = f"After selecting {n_selected} of {n_columns}" if n_selected < n_columns else f"With all {n_columns}"
        yield (
            f"{what} columns: error rate "
            f"{100 * without['actual_error']:.1f} %, stated {100 * without['expected_error']:.1f} %; with the "
            f"correction {100 * with_it['actual_error']:.1f} %, stated {100 * with_it['expected_error']:.1f} %."
        )
        if with_it["expected_error"] < 1 - with_it["accuracy_high"]:
            too_low.append(str(n_selected))
    if too_low:
        yield (
            f"With {' and '.join(dict.fromkeys(too_low))} columns the stated error is too low even with the "
            "correction, by more than chance explains: selection is not the reason. Naive Bayes takes columns that "
            "depend on each other for independent and counts what they share several times. Do not use its "
            "probabilities as they are: calibrate them on rows that it has not learned from (CalibratedClassifierCV "
            "of scikit-learn), or state the error on test rows."
        )
