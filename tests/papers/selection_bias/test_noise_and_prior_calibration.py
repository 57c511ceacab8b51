"""The experiments on data without signal and on data from the models' own priors."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import BernoulliNB

from trimbench.papers.beyond.noise import METHODS, Drawn, Noise, SimulatedSets, cross_validated, folds_of, wrong_by_k
from trimbench.papers.beyond.prior_calibration import VARIANTS, PriorCalibration, Sizes, draw_mixture

TINY = {"n_train": 12, "n_test": 30, "n_features": 30, "k": 2, "n_alpha": 5}


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "mixture"])
def test_the_posterior_places_the_true_alpha(variant: str) -> None:
    ranks = []
    for seed in range(30):
        draw = VARIANTS[variant](Sizes(**TINY), np.random.default_rng(seed))
        below, equal = draw.below["corrected"], draw.equal["corrected"]
        assert 0 <= below <= below + equal <= 1 + 1e-12
        ranks.append(below + equal / 2)
    # Uniform ranks have a standard deviation of 0.29.
    assert abs(np.mean(ranks) - 0.5) < 4 * 0.29 / 30**0.5


def test_cases_of_the_mixture_have_both_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []

    @dataclasses.dataclass
    class Fitted:
        log_alpha: np.ndarray
        converged: bool

    def fit(X: np.ndarray, y: np.ndarray, k: int, **settings: Any) -> Fitted:
        seen.append(y)
        return Fitted(np.full((4, 5), np.inf if settings["correct"] else -np.inf), settings["correct"])

    monkeypatch.setattr("trimbench.papers.beyond.prior_calibration.fit_selection_corrected", fit)
    draw = draw_mixture(Sizes(**TINY), np.random.default_rng(0))
    assert all(set(y) == {0, 1} for y in seen)
    assert draw.below == {"corrected": 0.0, "uncorrected": 1.0}
    assert not draw.converged


def test_prior_calibration_finds_what_is_wrong() -> None:
    """Corrected: uniform ranks and equal errors; uncorrected: all ranks high, and too sure by 0.1 everywhere."""
    steps = np.arange(100) / 100
    row: dict[str, Any] = {"status": "ok", "model": "binary", "first": 0, "converged": 100}
    noise = np.where(np.arange(100) % 2, 0.01, -0.01)
    for correction, ranks, gap in (("corrected", steps, 0.0), ("uncorrected", 0.9 + steps / 10, 0.1)):
        row |= {f"{correction}_expected_error": [0.2] * 100, f"{correction}_rank": ranks.tolist()}
        row[f"{correction}_actual_error"] = (0.2 + gap + noise).tolist()
    outcome = PriorCalibration(models={"binary": Sizes(**TINY)}).outcome(pd.DataFrame([row]))
    errors, ranked = (table.frame.set_index("correction") for table in outcome.tables)
    assert errors["within 2 standard errors of 0"].to_dict() == {"corrected": "yes", "uncorrected": "no"}
    assert errors.loc["uncorrected", "overconfidence"] == pytest.approx(0.1)
    assert ranked["bins outside their band"].to_dict() == {"corrected": "0 of 10", "uncorrected": "10 of 10"}
    assert (
        ranked.loc["uncorrected", "p-value (uniform ranks)"] < 1e-6 < ranked.loc["corrected", "p-value (uniform ranks)"]
    )


def test_naive_bayes_of_each_k_is_that_of_scikit_learn() -> None:
    split = Drawn(20.0, 0.3, 30, 200, 50, 10).split(np.random.default_rng(0))
    with np.errstate(invalid="ignore"):  # of constant features
        strength = np.abs(np.corrcoef(split.X.T, split.y)[-1, :-1])
    order = np.argsort(-np.nan_to_num(strength).round(12), kind="stable")
    ks = [1, 4, 20]
    expected = []
    for k in ks:
        model = BernoulliNB().fit(split.X[:, order[:k]], split.y)
        expected.append(int((model.predict(split.X_test[:, order[:k]]) != split.y_test).sum()))
    assert wrong_by_k(split.X, split.y, split.X_test, split.y_test, ks).tolist() == expected


def test_every_fold_leaves_out_both_classes() -> None:
    y = np.repeat([0, 1], [13, 27])
    folds = folds_of(y, 5, np.random.default_rng(0))
    for fold in range(5):
        assert np.bincount(y[folds == fold]).tolist() in ([3, 5], [2, 6], [3, 6], [2, 5])
    X = y[:, None].astype(np.uint8)
    assert cross_validated(X, y, [1], folds)[0] == 0.0


def test_features_of_a_block_are_correlated_within_the_classes() -> None:
    drawn = Drawn(None, 0.8, 10, 4000, 200, 2).split(np.random.default_rng(0))
    varied = drawn.X_test[drawn.y_test == 1].astype(float)
    middle = [j for j in range(0, 200, 2) if 0.3 < varied[:, j].mean() < 0.7 and 0.3 < varied[:, j + 1].mean() < 0.7]
    inside = [np.corrcoef(varied[:, j], varied[:, j + 1])[0, 1] for j in middle]
    between = [np.corrcoef(varied[:, j], varied[:, j - 2])[0, 1] for j in middle if j]
    assert np.mean(inside) == pytest.approx(2 / np.pi * np.arcsin(0.8), abs=0.08)
    assert abs(np.mean(between)) < 0.05


def test_verdicts_of_the_correction() -> None:
    """Closer to the truth than all methods but nested cross-validation, and as close as the uncorrected model."""
    gaps = dict.fromkeys(METHODS, 0.2) | {"corrected": 0.1, "uncorrected": 0.1, "nested": 0.0}
    rows = [
        {"status": "ok", "data": "none, rho = 0", "replicate": r, "p_value": p, "permutation_seconds": 1.0}
        | {f"{m}_expected": 0.5 - gap + 0.01 * (r % 2) for m, gap in gaps.items()}
        | {f"{m}_actual": 0.5 for m in METHODS}
        | {f"{m}_seconds": 0.1 for m in METHODS}
        for r, p in enumerate([0.01, 0.5, 0.6, 0.7])
    ]
    noise = Noise(simulated=SimulatedSets(signals={"none": None}, correlations=[0.0]), real_sets={}, real=[], ks=[1, 2])
    outcome = noise.outcome(pd.DataFrame(rows))
    verdicts = outcome.tables[1].frame.set_index("against")["the correction is"].to_dict()
    assert verdicts.pop(METHODS["nested"].title) == "worse"
    assert verdicts.pop(METHODS["uncorrected"].title) == "equal"
    assert set(verdicts.values()) == {"better"}
    assert outcome.tables[2].frame["share with p < 0.05"].tolist() == [0.25]
    assert "nested cross-validation: better on 0, equal on 0, worse on 1" in outcome.notes[0]
