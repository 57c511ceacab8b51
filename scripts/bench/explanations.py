"""Compare explanations with brute force on 1,000 random models of up to 14 features, and time them on MNIST's pixels.

`scripts/bench/run explanations` takes about five minutes on one core. MNIST must be in the data cache
(`trimbench task=fetch`, or TRIMBENCH_CACHE).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.conformant.brute_force_explanations import compare, compare_search
from trimbench.papers.conformant.mask_sweep import conformant_model
from trimbench.papers.conformant.protocols import encoded_rows, make_task
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.vocabulary.cells import Inputs

_DELTAS = (0.8, 0.9, 0.95, 0.99, 1.0)
_ROWS = 20


def time_pixels() -> None:
    inputs = Inputs(Catalogue(), Cache.from_environment())
    task = make_task(inputs, "mnist_5v3", "paper", seed=0)
    model, rows = conformant_model(task), encoded_rows(task).test[:_ROWS].astype(np.float64)
    model.explain(rows[0], delta=0.9)
    for delta in _DELTAS:
        seconds, found = [], []
        for row in rows:
            start = time.process_time()
            found.append(model.explain(row, delta=delta))
            seconds.append(time.process_time() - start)
        sizes = [len(one.features) for one in found]
        widest = max(one.probability[1] - one.probability[0] for one in found)
        print(
            f"MNIST 5 v 3, delta {delta}: {np.median(seconds):.2f} s a row (at most {max(seconds):.2f}), median size "
            f"{np.median(sizes):.0f}, lower bound {np.median([one.size_lower_bound for one in found]):.0f}, proven "
            f"{sum(one.optimal for one in found)} of {_ROWS}, widest bounds {widest:.4f}",
            flush=True,
        )


def main() -> None:
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    time_pixels()
    print(sum(map(compare, seeds)), "comparisons with all sets agree", flush=True)
    print(sum(map(compare_search, seeds)), "proofs of the search for many features agree", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
