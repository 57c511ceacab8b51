"""Trimmings are optimal in exact arithmetic, for every engine and any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from tests.trimming.exact_fractions import ENGINES, failures, random_case


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("block", range(4))
def test_trimmings_are_optimal_in_exact_arithmetic(engine: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kernels and threads take over at once.
    monkeypatch.setattr("trimbench.trimming.engines.table._WORTH_A_KERNEL", 1)
    monkeypatch.setattr("trimbench.trimming.engines.table._WORTH_A_THREAD", 1)
    monkeypatch.setattr("trimbench.trimming.search.lattices._is_worth_compiling", lambda classifier: block % 2 == 1)
    for seed in range(25):
        case = random_case(np.random.default_rng([block, seed]))
        wrong = failures(case, engine, n_jobs=1 + seed % 3)
        assert not wrong, (case, wrong)
