"""The nightly comparisons: each runs on a model or two, and a difference is reported with its seed."""

from __future__ import annotations

import pytest

from tests.nightly import __main__ as nightly
from tests.nightly import cases
from tests.nightly.cases import COMPARISONS, Case

# Starting circuits and interior-point solvers takes seconds; other tests do.
_SLOW = ("conformant/solvers", "trimming/circuits", "trimming/larger_naive_bayes")


@pytest.mark.parametrize("name", sorted(set(COMPARISONS) - set(_SLOW)))
def test_nothing_differs_on_a_few_models(name: str) -> None:
    (tally,) = nightly.compare([name], seed=7, seconds=0.3, models=5)
    assert tally.failures == []
    assert tally.models > 0
    assert tally.compared > 0


def test_a_difference_is_told_with_its_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails_at_times(case: Case) -> None:
        value = float(case.rng.integers(2))
        case.equal("a value", value, 0.0, 1e-9)

    monkeypatch.setattr(cases, "COMPARISONS", COMPARISONS)
    monkeypatch.setitem(COMPARISONS, "sample/fails_at_times", fails_at_times)
    words = ["--only", "sample/fails_at_times", "--seed", "3", "--minutes", "1"]
    assert nightly.main([*words, "--models", "10"]) == 1
    out = capsys.readouterr().out
    expected = [seed for seed in range(3, 13) if Case(seed).rng.integers(2)]
    for seed in range(3, 13):
        assert (f"fails_at_times differs with seed {seed}: AssertionError:" in out) == (seed in expected)
        again = ["--only", "sample/fails_at_times", "--models", "1", "--seed", str(seed)]
        assert (f"again: scripts/nightly {' '.join(again)}\n" in out) == (seed in expected)
        assert nightly.main(again) == (seed in expected)
    assert f"sample/fails_at_times       10        10  {len(expected):>6}" in out
    assert 0 < len(expected) < 10
