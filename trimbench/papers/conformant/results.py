"""What the job functions of this package return.

No job's code version covers this file: a declaration checks a result and does not decide it.
"""

from __future__ import annotations

from trimbench.papers.execution.job import (
    COUNT,
    NOTHING,
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
_MEASURES = {"cross_entropy": POSITIVE, "accuracy": SHARE, "f1_weighted": SHARE}
_PLACES = listed(COUNT)


def _declare(function: str, *alternatives: dict[str, Kind]) -> None:
    declare_result(f"{_HERE}.{function}", *alternatives)


_declare(
    "tasks:count_rows",
    {
        **{"n_train": COUNT, "n_test": COUNT, "n_columns": COUNT, "n_features": COUNT, "n_classes": COUNT},
        **{"class_counts": _PLACES, "rows": COUNT, "features": COUNT, "dropped": COUNT},
    },
)
_declare(
    "tasks:fit_task",
    {
        **{"iterations": COUNT, "fit_seconds": POSITIVE},
        **{"test_accuracy": SHARE, "test_f1_weighted": SHARE, "test_entropy": NUMBER},
    },
)
_declare("mask_sweep:evaluate", {"missing_percent": PERCENT, **{f"*/{name}": _MEASURES[name] for name in _MEASURES}})
_declare(
    "em_mice:evaluate_imputer",
    {**_MEASURES, "missing_percent": PERCENT, "fit_seconds": POSITIVE, "ms_per_row": POSITIVE},
)
_declare(
    "mask_sweep:fit_mixture",
    {
        **{"components": COUNT, "learned_from": COUNT, "fit_seconds": POSITIVE},
        **{"residual": POSITIVE, "difference": POSITIVE},
    },
)
_SOLVED = {
    **{"n_columns": COUNT, "n_classes": COUNT, "objective": NUMBER, "residual": POSITIVE},
    **{"conformity_error": POSITIVE | NOTHING, "iterations": COUNT | NOTHING, "solver_seconds": POSITIVE},
    **{"memory_mb": POSITIVE, "prior": listed(NUMBER), "prediction_error": POSITIVE},
}
_declare("solvers:solve_task", {**_SOLVED, "mean_log_likelihood": NUMBER})
_declare("solvers:solve_synthetic", {**_SOLVED, "mean_log_likelihood": NOTHING})
_PRINTED = ("P1(c | x)", "P1(x)", "P2(c | x)", "P2(x)")
_MODEL = fields(prior=SHARE, positive=listed(SHARE), negative=listed(SHARE))
_declare(
    "figure1:conforming_models",
    {
        "weights": listed(NUMBER),
        "instances": listed(fields(x=_PLACES, F=SHARE, **dict.fromkeys(_PRINTED, SHARE))),
        **{"P1": _MODEL, "P2": _MODEL},
    },
)
_declare(
    "figure6:explain_rows",
    {
        **{"n_test": COUNT, "misclassified": COUNT, "median_size": POSITIVE, "median_size_correct": POSITIVE},
        **{"median_size_misclassified": POSITIVE | NOTHING, "median_support": POSITIVE},
        "milliseconds_per_row": POSITIVE,
        "chosen": listed(
            fields(
                **{"row": COUNT, "class": TEXT, "predicted": TEXT, "pixels": _PLACES},
                **{"support": _PLACES, "by_weight": _PLACES, "explanation": _PLACES},
            )
        ),
    },
)
_declare(
    "figure6:explain_further",
    {
        "features": listed(TEXT),
        "explained": listed(
            fields(
                **{"row": COUNT, "class": TEXT, "predicted": TEXT, "sufficient": _PLACES, "kept": _PLACES},
                **{"least": COUNT, "probability": listed(SHARE), "evidence": listed(NUMBER), "changed": _PLACES},
                **{"becomes": TEXT | NOTHING, "values": listed(NUMBER)},
            )
        ),
    },
)
