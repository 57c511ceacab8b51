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
)

_HERE = __package__
_NAMES = listed(TEXT)
_TESTED = {"test_agreement": SHARE, "test_accuracy": SHARE, "full_test_accuracy": SHARE}
_SEARCHED = {"features": _NAMES, "agreement": SHARE, "n_evaluations": COUNT}
_TRIMMED = {**_SEARCHED, "new_threshold": NUMBER, "optimal": FLAG}
_SELECTION = {"method": TEXT, "features": _NAMES, "method_seconds": POSITIVE, **_TESTED}
_CROSS_FITTED = {"rows_weight": SHARE, "cross_fitted_low": SHARE, "cross_fitted_high": SHARE, "apparent": SHARE}
_SIZES = {"n_features": COUNT, "n_train": COUNT, "n_test": COUNT}
_METHOD = {"training": TEXT, "method": TEXT, "status": TEXT}


def _declare(function: str, *alternatives: dict[str, Kind]) -> None:
    declare_result(f"{_HERE}.{function}", *alternatives)


_declare(
    "budgets:trim_to_every_budget",
    {
        "n_features": COUNT,
        "points": listed(fields(budget=COUNT, agreement=SHARE, new_threshold=NUMBER, features=_NAMES)),
    },
)
_declare(
    "budgets:trim_learned",
    {
        **_TRIMMED,
        **_TESTED,
        **{"n_features": COUNT, "n_test": COUNT, "method_seconds": POSITIVE},
        **{"upper_bound": SHARE, "log2_instances": POSITIVE},
    },
)
_declare(
    "budgets:trim_many_features",
    {
        **_SIZES,
        **_TESTED,
        **{"features": _NAMES, "agreement_low": SHARE, "agreement_high": SHARE, "upper_bound": SHARE},
        **{"optimal": FLAG, "new_threshold": NUMBER, "n_evaluations": COUNT, "method_seconds": POSITIVE},
    },
)
_declare(
    "budgets:select_many_features",
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
_declare(
    "rows:compare_selections",
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
_declare(
    "incomplete_methods:compare_with_gaps",
    {
        **{"n_train": COUNT, "n_test": COUNT, "n_features": COUNT, "missing_percent": PERCENT},
        "methods": listed(
            fields(**_METHOD, reason=TEXT)
            | fields(
                **_METHOD,
                **{"log_loss": POSITIVE, "brier": POSITIVE, "accuracy": SHARE, "calibration": SHARE},
                **{"us_per_row": POSITIVE, "fit_seconds": POSITIVE},
            )
        ),
    },
)
_declare(
    "prior_calibration:calibrate",
    {
        "converged": COUNT,
        **{"*_expected_error": listed(SHARE), "*_actual_error": listed(SHARE), "*_rank": listed(SHARE)},
    },
)
_declare(
    "noise:compare_estimates",
    {
        **{"p_value": SHARE, "permutation_seconds": POSITIVE},
        **{"*_expected": SHARE, "*_actual": SHARE, "*_seconds": POSITIVE},
    },
)
