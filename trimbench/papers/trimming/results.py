"""What the job functions of this package return.

No job's code version covers this file: a declaration checks a result and does not decide it.
"""

from __future__ import annotations

from trimbench.papers.execution.results import (
    COUNT,
    FLAG,
    NUMBER,
    PERCENT,
    POSITIVE,
    SHARE,
    TEXT,
    Kind,
    declare_result,
    fields,
    listed,
    number,
)

_HERE = __package__
_NAMES = listed(TEXT)
_TESTED = {"test_agreement": SHARE, "test_accuracy": SHARE, "full_test_accuracy": SHARE}
_SIZES = {"n_features": COUNT, "n_train": COUNT, "n_test": COUNT}
_SEARCHED = {"features": _NAMES, "agreement": SHARE, "n_evaluations": COUNT}
_TRIMMED = {**_SEARCHED, "new_threshold": NUMBER, "optimal": FLAG}
# Residuals of parameters and deviations of guesses are differences of probabilities.
_DIFFERENCE = number(-1 - 1e-9, 1 + 1e-9)


def _declare(function: str, *alternatives: dict[str, Kind]) -> None:
    declare_result(f"{_HERE}.{function}", *alternatives)


_declare("table4:best_threshold", {"agreement": SHARE, "threshold_low": NUMBER, "threshold_high": NUMBER})
_declare(
    "table6:trim_network",
    {
        **_TRIMMED,
        **{"n_features": COUNT, "budget": COUNT, "method_seconds": POSITIVE},
        **{"threshold_low": NUMBER, "threshold_high": NUMBER},
    },
)
_declare(
    "table6:select_from_network",
    {
        **_SEARCHED,
        **{"n_features": COUNT, "budget": COUNT, "method_seconds": POSITIVE, "n_tied": COUNT},
        **{"agreement_at_best_threshold": SHARE, "agreement_of_best_tie": SHARE},
    },
)
_declare(
    "literal_search:trim_by_algorithm_1",
    {
        **_SEARCHED,
        **{"n_features": COUNT, "budget": COUNT, "method_seconds": POSITIVE},
        **{"n_evaluations_repeated": COUNT, "n_evaluations_ties_searched": COUNT},
    },
)
_declare(
    "agreement_by_budget:trim_to_every_budget",
    {
        "n_features": COUNT,
        "points": listed(fields(budget=COUNT, agreement=SHARE, new_threshold=NUMBER, features=_NAMES)),
    },
)
_declare(
    "accuracy_by_budget:trim_learned",
    {
        **_TRIMMED,
        **_TESTED,
        **{"n_features": COUNT, "n_test": COUNT, "method_seconds": POSITIVE},
        **{"upper_bound": SHARE, "log2_instances": POSITIVE},
    },
)
_declare(
    "many_features:trim_many_features",
    {
        **_SIZES,
        **_TESTED,
        **{"features": _NAMES, "agreement_low": SHARE, "agreement_high": SHARE, "upper_bound": SHARE},
        **{"optimal": FLAG, "new_threshold": NUMBER, "n_evaluations": COUNT, "method_seconds": POSITIVE},
    },
)
_declare(
    "many_features:select_many_features",
    {
        **_SIZES,
        "method_seconds": POSITIVE,
        "points": listed(
            fields(
                **{"budget": COUNT, "features": _NAMES, "same_threshold_low": SHARE, "same_threshold_high": SHARE},
                **{"best_threshold_low": SHARE, "best_threshold_high": SHARE},
                **_TESTED,
            )
        ),
    },
)
_SELECTION = {"method": TEXT, "features": _NAMES, "method_seconds": POSITIVE, **_TESTED}
_CROSS_FITTED = {"rows_weight": SHARE, "cross_fitted_low": SHARE, "cross_fitted_high": SHARE, "apparent": SHARE}
_declare(
    "rows_selection:compare_selections",
    {
        **_SIZES,
        "budget": COUNT,
        "methods": listed(
            fields(**_SELECTION)
            | fields(**_SELECTION, agreement=SHARE)
            | fields(**_SELECTION, agreement=SHARE, cross_fitted=SHARE, **_CROSS_FITTED)
        ),
    },
)
_CLASS = {"target": TEXT, "n_features": COUNT, "budget": COUNT}
_POINT = fields(
    **{**_TRIMMED, "threshold": SHARE, "no_feature": SHARE, "seconds": POSITIVE},
    **{"*_same_threshold": SHARE, "*_best_threshold": SHARE},
)
_AGAINST = (
    _CLASS | {"refused": TEXT},
    _CLASS
    | {"engine": TEXT, "engine_seconds": POSITIVE, "method_seconds": POSITIVE}
    | {"*_features": _NAMES, "points": listed(_POINT)},
)
_declare("against_information_gain:trim_drawn_class", *_AGAINST)
_declare("against_information_gain:trim_tree_augmented", *_AGAINST)
_declare(
    "authors_parameters:compare_parameters",
    {
        **{"n_rows": COUNT, "n_positive": COUNT},
        "parameters": listed(
            fields(
                **{"feature": TEXT, "column": TEXT, "given": number(-1, 1), "shared": FLAG, "state": COUNT},
                **{"file": SHARE, "rows": COUNT, "observed": COUNT, "missing": COUNT, "implied_count": NUMBER},
                **{"count": COUNT, "ratio": SHARE, "expected": SHARE},
                **{"residual": _DIFFERENCE, "residual_unfilled": _DIFFERENCE},
            )
        ),
    },
)
_declare(
    "quiz_consistency:smallest_deviation",
    {"guess_low": SHARE, "guess_high": SHARE, "deviation": POSITIVE, "n_programs": COUNT},
)
_declare("quiz_consistency:nearest_quiz", {"deviation": POSITIVE, "wrong_outcomes": COUNT, "*": SHARE})
_declare(
    "subset_accuracies:agreement_and_accuracy",
    *(
        {
            **{"n_rows": COUNT, "n_test_rows": COUNT, "n_subsets": COUNT, "full_accuracy": SHARE},
            **{"full_test_accuracy": SHARE, "better_than_full_percent": PERCENT},
            **{"*_features": _NAMES, "*_eca": SHARE, "*_cv_accuracy": SHARE},
            **{"*_agreement": SHARE, "*_accuracy": SHARE},
            **points,
        }
        for points in ({}, {"points": listed(listed(SHARE))})
    ),
)
