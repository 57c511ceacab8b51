"""Measure the processor time of all experiments with the quick profile, nothing stored, in products of matrices.

Takes as long as `scripts/reproduce`, minutes, with data in the cache.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator

import numpy as np

from .measure import Row, processor_seconds, ratio_of, repeated

SIZE = 4000


def quick_profile() -> Iterator[Row]:
    """Compare one run with the median of five products."""
    with tempfile.TemporaryDirectory() as folder:
        start = processor_seconds()
        subprocess.run([sys.executable, "-m", "trimbench", f"results={folder}"], check=True, stdout=subprocess.DEVNULL)
        seconds = processor_seconds() - start
    matrix = np.random.default_rng(0).normal(size=(SIZE, SIZE))
    product = float(np.median(repeated([lambda: matrix @ matrix], 5)))
    pair = np.array([[seconds, product]])
    yield ratio_of("all experiments, quick profile, nothing stored", f"product of {SIZE} x {SIZE} matrices", pair, "s")


COMPARISONS = (quick_profile,)


if __name__ == "__main__":
    for row in quick_profile():
        print(f"{row.quantity}: {row.ours:.0f} s of processor time, {row.ratio:.0f} times a {row.against}")
