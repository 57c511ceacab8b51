from __future__ import annotations

import pandas as pd

from trimbench.papers.vocabulary.cells import successes

ROWS = pd.DataFrame(
    {
        "network": ["pima", "pima", "heart", "heart"],
        "threshold": [0.1, 0.5, 0.1, 0.5],
        "status": ["ok", "failed", "ok", "ok"],
    }
)


def test_only_jobs_that_succeeded_are_chosen() -> None:
    assert successes(ROWS).index.tolist() == [0, 2, 3]
    assert successes(ROWS, network="pima").index.tolist() == [0]
    assert successes(ROWS, network="heart", threshold=0.5).index.tolist() == [3]
    assert successes(ROWS, network="pima", threshold=0.5).empty
