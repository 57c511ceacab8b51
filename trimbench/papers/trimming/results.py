"""What the job functions of this package return.

No job's code version covers this file: a declaration checks a result and does not decide it.
"""

from __future__ import annotations

from trimbench.papers.execution.job import (
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
    "table6:trim_by_algorithm_1",
    {"n_features": COUNT, "budget": COUNT},
    {
        **_SEARCHED,
        **{"n_features": COUNT, "budget": COUNT, "method_seconds": POSITIVE},
        **{"n_evaluations_repeated": COUNT, "n_evaluations_ties_searched": COUNT},
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
_declare("figure7:trim_drawn_class", *_AGAINST)
_declare("figure7:trim_tree_augmented", *_AGAINST)
_declare(
    "authors_networks:compare_parameters",
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
    "quiz:smallest_deviation",
    {"guess_low": SHARE, "guess_high": SHARE, "deviation": POSITIVE, "n_programs": COUNT},
)
_declare("quiz:nearest_quiz", {"deviation": POSITIVE, "wrong_outcomes": COUNT, "*": SHARE})
_declare(
    "figure5:agreement_and_accuracy",
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
