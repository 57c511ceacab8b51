"""Compiled sums over counts of ones; imports numba, so it is imported only where it is needed.

The counts I_y of the classes are independent and beta-binomial given alpha and theta. Their probabilities are walked
through from near the mean outwards, each from the one before, and only as far as they matter.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Share of a distribution that may be left out at each of its ends.
TAIL = 1e-16
# Above this Stirling's series has all digits.
_LARGE = 16.0
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@compiled
def walk(n: int, a: float, b: float, mass: Floats) -> tuple[int, int]:
    """Write P(I) of a beta-binomial count into mass[first] to mass[last], and return first and last.

    What lies below `first` and what lies above `last` have at most the share `TAIL` of the probability each: with
    P(j + 1) / P(j) = (n - j) (a + j) / ((j + 1) (b + n - j - 1)), the ratios of all j >= i are at most
    R = max(1, (a + i) / (i + 1)) (n - i) / (b + n - i - 1) if b >= 1, so that the tail beyond i is at most
    P(i) R / (1 - R); if b < 1 the walk goes to the end. The other side is the same with a and b exchanged.
    """
    start = min(int(n * (a / (a + b))), n)
    mass[start] = 1.0
    total = 1.0
    ends = (0, 0)
    for side in range(2):
        rise, fall = (a, b) if side == 0 else (b, a)
        step = 1 if side == 0 else -1
        i = start if side == 0 else n - start
        at, p = start, 1.0
        while i < n:
            left = (n - i) / (fall + (n - i - 1.0)) if fall + (n - i - 1.0) > 0.0 else math.inf
            growth = (rise + i) / (i + 1.0)
            if fall >= 1.0:
                bound = max(1.0, growth) * left
                if bound < 1.0 and p * bound <= TAIL * total * (1.0 - bound):
                    break
            p *= growth * left
            i += 1
            at += step
            mass[at] = p
            total += p
        ends = (ends[0], at) if side == 0 else (at, ends[1])
    for at in range(ends[0], ends[1] + 1):
        mass[at] /= total
    return ends


@compiled
def between(below: Floats, first: int, last: int, low: int, high: int) -> float:
    """Return P(low <= I <= high) from P(I < i), which `below` has for first <= i <= last + 1."""
    low, high = max(low, first), min(high, last)
    return below[high + 1] - below[low] if low <= high else 0.0


@compiled
def weak_probability(
    alpha: float, theta: Floats, weights: Floats, sizes: Integers, low: Integers, high: Integers
) -> float:
    """Return the sum over theta of P(low <= I_0 <= high | theta), the bounds depending on the other counts.

    `theta` is the lower half of a symmetric grid, `weights` those of both halves. `low` and `high` have an entry for
    each (I_1, ..., I_C-1), the last of them running fastest.
    """
    n_classes = sizes.size
    mass = np.empty((n_classes, sizes.max() + 2))
    below = np.empty(sizes[0] + 2)
    first, last = np.empty(n_classes, dtype=np.int64), np.empty(n_classes, dtype=np.int64)
    count = np.empty(n_classes, dtype=np.int64)
    result = 0.0
    for node in range(theta.size):
        for y in range(n_classes):
            first[y], last[y] = walk(sizes[y], alpha * theta[node], alpha * (1.0 - theta[node]), mass[y])
        below[first[0]] = 0.0
        for i in range(first[0], last[0] + 1):
            below[i + 1] = below[i] + mass[0, i]
        count[:] = first
        sum_of_node = 0.0
        while True:
            outer, place = 1.0, 0
            for y in range(1, n_classes - 1):
                outer *= mass[y, count[y]]
                place = place * (sizes[y] + 1) + count[y]
            place *= sizes[-1] + 1
            run = 0.0
            for i in range(first[-1], last[-1] + 1):
                run += mass[-1, i] * between(below, first[0], last[0], low[place + i], high[place + i])
            sum_of_node += outer * run
            y = n_classes - 2
            while y >= 1 and count[y] == last[y]:
                count[y] = first[y]
                y -= 1
            if y < 1:
                break
            count[y] += 1
        result += weights[node] * sum_of_node
    return result


@compiled
def bounds_in_last_digits(outer_sum: int, outer_squares: float, cut: float, n: int, size: int) -> tuple[float, float]:
    """Return the roots in I_0 of n sum I_y^2 / n_y - s^2 = cut s (n - s); none (1, 0) if it has none.

    Parameters
    ----------
    outer_sum, outer_squares : int, float
        Sums of I_y and of I_y^2 / n_y over the other classes.
    """
    square = n / size - 1.0 + cut
    half = -outer_sum - 0.5 * cut * (n - 2.0 * outer_sum)
    constant = n * outer_squares - outer_sum * (outer_sum + cut * (n - outer_sum))
    inside = half * half - square * constant
    if inside < 0.0:
        return 1.0, 0.0
    root = math.sqrt(inside)
    return (-half - root) / square, (-half + root) / square


@compiled
def sampled_weakness(
    alpha: float, theta: Floats, weights: Floats, sizes: Integers, cut: float, shifts: Floats, n_points: int
) -> Floats:
    """Estimate P(eta^2 < cut) and P(eta^2 = cut), each from several shifted lattices; of shape (2, n_shifts).

    I_1, ..., I_C-1 are drawn at each node of theta by inverse transform of lattice points, I_0 is summed over.
    `shifts` has shape (n_shifts, at least the nodes, C - 1); a distance of 1e-9 from the cut-off counts as none.
    """
    n_classes, n = sizes.size, sizes.sum()
    below = np.empty((n_classes, sizes.max() + 2))
    first, last = np.empty(n_classes, dtype=np.int64), np.empty(n_classes, dtype=np.int64)
    base = 2.0
    for _ in range(60):  # the generalised golden ratio, root of x^C = x + 1
        base = (1.0 + base) ** (1.0 / n_classes)
    steps = base ** -np.arange(n_classes)
    result = np.zeros((2, shifts.shape[0]))
    for node in range(theta.size):
        for y in range(n_classes):
            mass = below[y, 1:]
            first[y], last[y] = walk(sizes[y], alpha * theta[node], alpha * (1.0 - theta[node]), mass)
            below[y, first[y]] = 0.0
            for i in range(first[y], last[y] + 1):
                below[y, i + 1] += below[y, i]
        for shift in range(shifts.shape[0]):
            for point in range(n_points):
                outer_sum, outer_squares = 0, 0.0
                for y in range(1, n_classes):
                    u = shifts[shift, node, y - 1] + point * steps[y]
                    u -= math.floor(u)
                    found, end = first[y], last[y]
                    while found < end:
                        middle = (found + end) // 2
                        if below[y, middle + 1] <= u:
                            found = middle + 1
                        else:
                            end = middle
                    outer_sum += found
                    outer_squares += found * found / sizes[y]
                low, high = bounds_in_last_digits(outer_sum, outer_squares, cut, n, sizes[0])
                less_low, less_high = math.floor(low + 1e-9 * n) + 1, math.ceil(high - 1e-9 * n) - 1
                if outer_sum == 0:
                    less_low, low = 0, -1.0
                if outer_sum == n - sizes[0]:
                    less_high, high = sizes[0], n + 1.0
                weight = weights[node] / n_points
                result[0, shift] += weight * between(below[0], first[0], last[0], less_low, less_high)
                for root in (low, high):
                    edge = round(root)
                    if low <= high and abs(root - edge) <= 1e-9 * n:
                        result[1, shift] += weight * between(below[0], first[0], last[0], edge, edge)
    return result


@compiled
def stirling_error(x: float) -> float:
    """Return log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2, for x > 0."""
    if x < _LARGE:
        return math.lgamma(x) - (x - 0.5) * math.log(x) + x - _HALF_LOG_2PI
    square = 1.0 / (x * x)
    return (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / x


@compiled
def log_quotient(difference: float, x: float, other: float) -> float:
    """Return log(other / x), other = x + difference, with the digits of whichever is known better."""
    return math.log1p(difference / x) if difference > -0.5 * x else math.log(other / x)


@compiled
def log_probabilities(ones: Integers, sizes: Integers, alpha: float, theta: Floats) -> Floats:
    """Return log P(I | alpha, theta) without the binomial coefficient, of shape (n_counts, n_nodes); n is in `sizes`.

    With a = alpha theta, b = alpha (1 - theta), O = n - I and e = alpha (I - n theta) / (alpha + n), Stirling's series
    of the Gamma functions leave a log(1 + e / a) + b log(1 - e / b) + I log(1 - e / I) + O log(1 + e / O)
    + I log(I / n) + O log(O / n), and terms that are small: no large numbers are subtracted.
    """
    result = np.empty((ones.size, theta.size))
    of_node = np.empty(theta.size)
    for node in range(theta.size):
        a, b = alpha * theta[node], alpha * (1.0 - theta[node])
        of_node[node] = 0.5 * math.log(a * b) - stirling_error(a) - stirling_error(b)
    for place in range(ones.size):
        i, n = float(ones[place]), float(sizes[place])
        o = n - i
        fixed = stirling_error(alpha) - stirling_error(alpha + n) + 0.5 * math.log1p(n / alpha)
        fixed += (i * math.log(i / n) if i > 0.0 else 0.0) + (o * math.log(o / n) if o > 0.0 else 0.0)
        for node in range(theta.size):
            a, b = alpha * theta[node], alpha * (1.0 - theta[node])
            e = alpha * (i - n * theta[node]) / (alpha + n)
            p, q = (a + i) / (alpha + n), (b + o) / (alpha + n)
            value = fixed + of_node[node] - 0.5 * math.log((a + i) * (b + o))
            value += stirling_error(a + i) + stirling_error(b + o)
            value += a * log_quotient(e, a, alpha * p) + b * log_quotient(-e, b, alpha * q)
            if i > 0.0:
                value += i * log_quotient(-e, i, n * p)
            if o > 0.0:
                value += o * log_quotient(e, o, n * q)
            result[place, node] = value
    return result
