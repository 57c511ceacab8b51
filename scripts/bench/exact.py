"""Trim thousands of random models with every engine, and compare with exact arithmetic: 0 failures are right.

Takes about ten minutes; `--cases N` sets the number of models.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.trimming.exact_fractions import ENGINES, failures, random_case


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    n_cases = parser.parse_args().cases
    total = 0
    for engine in ENGINES:
        for n_jobs in (1, 2, 3):
            n_failures = 0
            for seed in range(n_cases):
                wrong = failures(random_case(np.random.default_rng(seed)), engine, n_jobs)
                if wrong:
                    n_failures += 1
                    print(f"seed {seed}: {'; '.join(wrong)}", file=sys.stderr)
            total += n_failures
            print(f"{engine:<16} n_jobs={n_jobs}: {n_failures} failures in {n_cases} models", flush=True)
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
