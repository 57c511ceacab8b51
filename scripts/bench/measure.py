"""What a benchmark measures: ratios within one run, each with its spread.

Ours and theirs are taken in turns, so that what else the machine does meets both. A ratio is that of the medians; below
1, ours takes less. Its spread is the distance between the quartiles of the ratios of the single turns, divided by the
ratio: with 0.1, half of the turns lie within about 5 % of it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Status = Literal["ok", "absent", "failed"]
Call = Callable[[], object]
# A call that takes less is repeated within one turn, so that the resolution of the clock does not matter.
SHORTEST = 0.01
# A call that takes less is made once before each turn, unmeasured: to bring back what the other call, or another
# machine on the same host, has pushed out of the processor's caches may take several times as long as the call.
QUICK = 1.0


@dataclass(frozen=True)
class Row:
    """One figure of a benchmark.

    Attributes
    ----------
    quantity : str
        What was measured.
    against : str
        What `theirs` belongs to; for growth, the sizes.
    ours, theirs : float, optional
        Medians in `unit`. For growth, the exponents: that found and 1, where time grows as the size does.
    unit : str
    ratio : float, optional
        Of ours to theirs. For growth: the time for twice the size, as a multiple.
    spread : float, optional
        Distance between the quartiles of the ratio, divided by the ratio; None where it was measured once.
    repetitions : int
    status : {"ok", "absent", "failed"}
        "absent" if what it needs is not there or was not asked for.
    note : str
        Version of the peer, or what is absent or failed.
    """

    quantity: str
    against: str
    ours: float | None = None
    theirs: float | None = None
    unit: str = ""
    ratio: float | None = None
    spread: float | None = None
    repetitions: int = 0
    status: Status = "ok"
    note: str = ""


def processor_seconds() -> float:
    """Return the processor time of this process and of the children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def repeated(calls: Sequence[Call], repetitions: int) -> NDArray[np.float64]:
    """Return the processor seconds of calls taken in turns after a warm-up, of shape (repetitions, n_calls)."""
    warm = [_warm_seconds(call) for call in calls]
    return np.array([[_turn(call, one) for call, one in zip(calls, warm, strict=True)] for _ in range(repetitions)])


def _warm_seconds(call: Call) -> float:
    """Return what a call takes once it has compiled and loaded what it needs."""
    first = _seconds(call, 1)
    return first if first > QUICK else _seconds(call, 1)


def _turn(call: Call, warm: float) -> float:
    """Return what a call takes in a turn, the mean of as many calls as the clock needs."""
    if warm < QUICK:
        call()
    return _seconds(call, max(1, int(np.ceil(SHORTEST / max(warm, 1e-6)))))


def _seconds(call: Call, number: int) -> float:
    start = processor_seconds()
    for _ in range(number):
        call()
    return (processor_seconds() - start) / number


def versus(
    quantity: str, against: str, ours: Call, theirs: Call, repetitions: int = 5, *, unit: str = "s", note: str = ""
) -> Row:
    """Compare the processor time of two calls."""
    return ratio_of(quantity, against, repeated([ours, theirs], repetitions), unit, note)


def ratio_of(quantity: str, against: str, pairs: NDArray[np.float64], unit: str, note: str = "") -> Row:
    """Return the row of measured pairs, of shape (repetitions, 2)."""
    ours, theirs = np.median(pairs, axis=0)
    ratio = float(ours / theirs)
    spread = _quartile_distance(pairs[:, 0] / pairs[:, 1]) / ratio if len(pairs) > 1 else None
    return Row(quantity, against, float(ours), float(theirs), unit, ratio, spread, len(pairs), note=note)


def against_printed(quantity: str, against: str, call: Call, printed: float, repetitions: int = 5) -> Row:
    """Compare the processor time of a call with seconds that a paper prints, of another machine."""
    ours = repeated([call], repetitions)
    return ratio_of(quantity, against, np.column_stack([ours, np.full(len(ours), printed)]), "s", "another machine")


def growth(quantity: str, sizes: Sequence[int], call_of: Callable[[int], Call], repetitions: int = 5) -> Row:
    """Fit the exponent of time in the size: the slope of the logarithms of both."""
    return growth_of(quantity, sizes, repeated([call_of(size) for size in sizes], repetitions))


def growth_of(quantity: str, sizes: Sequence[int], times: NDArray[np.float64]) -> Row:
    """Fit the exponent to measured times, of shape (repetitions, n_sizes)."""
    logs = np.log(np.array(sizes, dtype=np.float64))
    exponent = float(np.polyfit(logs, np.log(np.median(times, axis=0)), 1)[0])
    slopes = np.array([np.polyfit(logs, np.log(turn), 1)[0] for turn in times])
    ratio = 2.0**exponent
    spread = _quartile_distance(2.0**slopes) / ratio if len(times) > 1 else None
    against = ", ".join(f"{size:,}" for size in sizes)
    return Row(quantity, against, exponent, 1.0, "exponent", ratio, spread, len(times))


def version_of(package: str) -> str | None:
    """Return name and version of a package, None if it is not installed."""
    if importlib.util.find_spec(package) is None:
        return None
    name = {"sklearn": "scikit-learn"}.get(package, package)
    return f"{name} {importlib.metadata.version(name)}"


def absent(quantity: str, against: str, package: str) -> Row:
    """Return the row of a comparison whose peer is not installed."""
    return Row(quantity, against, status="absent", note=f"{package} is not installed")


def _quartile_distance(values: NDArray[np.float64]) -> float:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low)
