"""What the job functions of this package return.

No job's code version covers this file: a declaration checks a result and does not decide it.
"""

from __future__ import annotations

from trimbench.papers.execution.job import COUNT, FLAG, NOTHING, NUMBER, POSITIVE, SHARE, Kind, declare_result, listed

_HERE = __package__
_QUALITY = {
    **{"expected_error": SHARE, "actual_error": SHARE},
    **{"minus_log_probability": POSITIVE, "squared_error": SHARE},
}
_BINS = {"counts": listed(COUNT), "predicted_sums": listed(POSITIVE), "positives": listed(COUNT)}


def _declare(function: str, *alternatives: dict[str, Kind]) -> None:
    declare_result(f"{_HERE}.{function}", *alternatives)


def _both(kinds: dict[str, Kind]) -> dict[str, Kind]:
    """Return kinds of values with the correction and without."""
    return {f"{name}_{key}": kind for name in ("corrected", "uncorrected") for key, kind in kinds.items()}


_declare("simulation:select_and_predict", {"gamma": SHARE, "n_tied": COUNT, **_both(_QUALITY | _BINS)})
_declare(
    "colon:leave_one_out_on_subsets",
    {
        **{"n_cases": COUNT, "n_positive": COUNT, "method_seconds": POSITIVE},
        **_both({name: listed(kind) for name, kind in _QUALITY.items()}),
    },
)
_declare(
    "mixture:sample_mixture",
    {
        "gamma": SHARE,
        **_both(_QUALITY),
        **_both({"seconds": POSITIVE, "mean_log_alpha": NUMBER, "converged": FLAG}),
        **_both({"r_hat": POSITIVE | NOTHING, "effective_sample_size": POSITIVE | NOTHING}),
    },
)
_declare(
    "alpha_posterior:posterior_of_alpha",
    {"log_alpha": listed(NUMBER), **_both({"log_density": listed(NUMBER), "mean_log_alpha": NUMBER})},
)
_declare("correlation_table:correlation_table", {"correlation": listed(listed(NUMBER))})
_declare("runtime:prediction_seconds", _both({"seconds": listed(POSITIVE)}))
_MEANS = {"gammas": listed(SHARE), "mean_sample": listed(SHARE), "mean_true": listed(NUMBER)}
_declare(
    "selection_scatter:true_and_sample_correlations",
    _MEANS,
    {**_MEANS, "true": listed(NUMBER), "sample": listed(NUMBER)},
)
