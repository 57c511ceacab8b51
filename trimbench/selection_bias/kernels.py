"""Compiled sums over counts of ones, and Markov chains; imports numba, so it is loaded only where it is needed.

The counts I_y of the classes are independent and beta-binomial given alpha and theta. Their probabilities are computed
from near the mean outwards, each from the one before, and only as far as they matter.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Share of a distribution that may be left out at each of its ends.
TAIL = 1e-16
# From here on, five terms of Stirling's series of log Gamma are exact to rounding.
_FAR = 10.0
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
    """Return P(low <= I <= high) from P(I < i), which `below` holds for first <= i <= last + 1."""
    low, high = max(low, first), min(high, last)
    return below[high + 1] - below[low] if low <= high else 0.0


@compiled
def weak_probability(
    alpha: float, theta: Floats, weights: Floats, sizes: Integers, low: Integers, high: Integers
) -> float:
    """Return the weighted sum over theta of P(low <= I_0 <= high | theta), with bounds that depend on the other counts.

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
    """Return the roots in I_0 of n sum I_y^2 / n_y - s^2 = cut s (n - s); (1, 0) if there are none.

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
    `shifts` has shape (n_shifts, n_nodes or more, C - 1); an I_0 within 1e-9 n of the cut-off counts as at it.
    """
    n_classes, n = sizes.size, int(sizes.sum())
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
    if x < _FAR:
        return math.lgamma(x) - (x - 0.5) * math.log(x) + x - _HALF_LOG_2PI
    inverse = 1.0 / x
    square = inverse * inverse
    rest = 1.0 / 1680.0 - square / 1188.0
    return inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * rest)))


@compiled
def log_quotient(difference: float, x: float, other: float) -> float:
    """Return log(other / x), other = x + difference, from whichever of the two is more accurate."""
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


# Compiled loops of the mixture model's factor.


@compiled
def hypergeometric(size0: int, size1: int, n_rows: int, log_factorial: Floats) -> Floats:
    """Return P(H = h | s): of s ones among size0 + size1 cases, h are among the size1; of shape (n_rows, size1 + 1)."""
    table = np.zeros((n_rows, size1 + 1))
    for s in range(n_rows):
        log_all = log_factorial[size0 + size1] - log_factorial[s] - log_factorial[size0 + size1 - s]
        for h in range(max(0, s - size0), min(s, size1) + 1):
            log_ways1 = log_factorial[size1] - log_factorial[h] - log_factorial[size1 - h]
            log_ways0 = log_factorial[size0] - log_factorial[s - h] - log_factorial[size0 - s + h]
            table[s, h] = math.exp(log_ways0 + log_ways1 - log_all)
    return table


@compiled
def strong_and_equal(
    first0: int, first1: int, n0: int, n1: int, upper: Integers, upper_equal: Integers, log_factorial: Floats
) -> Floats:
    """Return P(stronger than the cut-off | s_1, s_2) and P(equal to it | s_1, s_2).

    I_1 = H_1 + H_2 with hypergeometric H_g; for a given s_1 + s_2 the strong values of I_1 are those at both ends.

    Parameters
    ----------
    first0, first1 : int
        Cases of the first group with y = 0 and y = 1.
    upper, upper_equal : ndarray of int, shape (n0 + n1 + 1,)
        For each s_1 + s_2 the smallest I_1 with a correlation above the cut-off, and at least as large as it.

    Returns
    -------
    ndarray of shape (2, (first0 + first1) // 2 + 1, n0 + n1 - first0 - first1 + 1)
    """
    n, most = n0 + n1, n1 - first1
    n_rows, n_columns = (first0 + first1) // 2 + 1, n - first0 - first1 + 1
    ones1 = hypergeometric(first0, first1, n_rows, log_factorial)
    exactly = hypergeometric(n0 - first0, most, n_columns, log_factorial)
    # below[s_2, t] = P(H_2 < t | s_2) and above[s_2, t] = P(H_2 >= t | s_2)
    below, above = np.zeros((n_columns, most + 2)), np.zeros((n_columns, most + 2))
    for s2 in range(n_columns):
        for h2 in range(most + 1):
            below[s2, h2 + 1] = below[s2, h2] + exactly[s2, h2]
            above[s2, most - h2] = above[s2, most - h2 + 1] + exactly[s2, most - h2]
    shares = np.zeros((2, n_rows, n_columns))
    for s1 in range(n_rows):
        low, high = max(0, s1 - first0), min(s1, first1)
        for s2 in range(n_columns):
            total = s1 + s2
            # The lower end mirrors the upper one under x -> 1 - x.
            top, bottom = upper[total], n1 - upper[n - total]
            top_equal, bottom_equal = upper_equal[total], n1 - upper_equal[n - total]
            strong, equal = 0.0, 0.0
            for h1 in range(low, high + 1):
                at_top, at_bottom = max(top - h1, 0), bottom - h1 + 1
                chance = 0.0
                if at_top <= most:
                    chance += above[s2, at_top]
                if at_bottom > 0:
                    chance += below[s2, min(at_bottom, most + 1)]
                strong += ones1[s1, h1] * chance
                if top_equal < top and 0 <= top_equal - h1 <= most:
                    equal += ones1[s1, h1] * exactly[s2, top_equal - h1]
                if bottom_equal > bottom and 0 <= bottom_equal - h1 <= most:
                    equal += ones1[s1, h1] * exactly[s2, bottom_equal - h1]
            shares[0, s1, s2], shares[1, s1, s2] = strong, equal
    return shares


# Compiled loops of the Markov chains.

# Ratios of probabilities that are multiplied before their logarithm is taken: their product stays within range.
_TOGETHER = 8


@compiled
def log_rising(a: float, count: int) -> float:
    """Return log of a (a + 1) ... (a + count - 1)."""
    near = 1.0
    while count > 0 and a < _FAR:
        near *= a
        a += 1.0
        count -= 1
    if count == 0:
        return math.log(near)
    end = a + count
    main = (end - 0.5) * math.log1p(count / a) + count * (math.log(a) - 1.0)
    return math.log(near) + main + stirling_error(end) - stirling_error(a)


@compiled
def log_numerator(theta: float, concentration: float, ones: Integers, sizes: Integers, column: int) -> float:
    """Return the log of prod_g U(alpha theta, alpha (1 - theta), I_g, O_g), without its denominators."""
    first, second = concentration * theta, concentration * (1.0 - theta)
    total = 0.0
    for g in range(2):
        total += log_rising(first, ones[g, column]) + log_rising(second, sizes[g] - ones[g, column])
    return total


@compiled
def log_columns(theta: Floats, concentration: float, ones: Integers, sizes: Integers, start: int, stop: int) -> float:
    """Return the sum of log prod_g U(alpha theta, alpha (1 - theta), I_g, O_g) over some columns."""
    total = 0.0
    for column in range(start, stop):
        total += log_numerator(theta[column], concentration, ones, sizes, column)
    return total - (stop - start) * (log_rising(concentration, sizes[0]) + log_rising(concentration, sizes[1]))


@compiled
def log_prior_odds(x: Integers, ones: Integers, sizes: Integers, if_one: Floats, if_zero: Floats) -> float:
    """Return log P(x | first group) - log P(x | second group), given the other cases."""
    total, ratio = 0.0, 1.0
    for column in range(x.size):
        concentration = if_one[column] + if_zero[column]
        if x[column]:
            ratio *= (if_one[column] + ones[0, column]) / (if_one[column] + ones[1, column])
        else:
            ratio *= (if_zero[column] + sizes[0] - ones[0, column]) / (if_zero[column] + sizes[1] - ones[1, column])
        ratio *= (concentration + sizes[1]) / (concentration + sizes[0])
        if column % _TOGETHER == _TOGETHER - 1:
            total += math.log(ratio)
            ratio = 1.0
    return total + math.log(ratio)


@compiled
def update_labels(
    case: int,
    values: Integers,
    z: Integers,
    ones: Integers,
    sizes: Integers,
    if_one: Floats,
    if_zero: Floats,
    prior: Floats,
    places: Integers,
    log_factors: Floats,
    thresholds: Floats,
) -> int:
    """Draw the label of each case given all others, from `case` on, in place.

    Parameters
    ----------
    if_one, if_zero : ndarray of shape (k + 1,)
        alpha theta and alpha (1 - theta).
    prior : ndarray of shape (2,)
        f1 and f2.
    places : ndarray of int, shape (n0 + 1, n1 + 1)
        For the numbers of cases of the first group with y = 0 and y = 1, the place of log A in `log_factors`, -1 where
        it is not known yet; empty without correction.
    log_factors : ndarray of shape (n_known,)
        At the current alpha.
    thresholds : ndarray of shape (n_cases,)
        Uniform random numbers.

    Returns
    -------
    int
        The case for which a factor is needed that is not known; the number of cases if all have been updated.
    """
    n, width = values.shape
    while case < n:
        x, own = values[case], z[case]
        without = sizes[0] - (own == 0)
        score = math.log(prior[0] + without) - math.log(prior[1] + n - 1 - without)
        if places.size:
            first1 = ones[0, 0] - (own == 0) * x[0]
            first0 = without - first1
            joined, left = places[first0 + 1 - x[0], first1 + x[0]], places[first0, first1]
            if joined < 0 or left < 0:
                return case
            score += log_factors[joined] - log_factors[left]
        for column in range(width):
            ones[own, column] -= x[column]
        sizes[own] -= 1
        score += log_prior_odds(x, ones, sizes, if_one, if_zero)
        new = 0 if thresholds[case] * (1.0 + math.exp(min(max(-score, -700.0), 700.0))) < 1.0 else 1
        for column in range(width):
            ones[new, column] += x[column]
        sizes[new] += 1
        z[case] = new
        case += 1
    return case


@compiled
def update_theta(
    theta: Floats, concentrations: Floats, ones: Integers, sizes: Integers, steps: Floats, thresholds: Floats
) -> int:
    """Propose steps for each theta, in place, and return how many were accepted.

    Parameters
    ----------
    steps, thresholds : ndarray of shape (n_steps, k + 1)
        What is added to theta, and the uniform random numbers that decide whether it is accepted.
    """
    accepted = 0
    for column in range(theta.size):
        density = log_numerator(theta[column], concentrations[column], ones, sizes, column)
        for step in range(steps.shape[0]):
            proposal = theta[column] + steps[step, column]
            if not 0.0 < proposal < 1.0:
                continue
            proposed = log_numerator(proposal, concentrations[column], ones, sizes, column)
            if math.log1p(-thresholds[step, column]) < proposed - density:
                theta[column], density = proposal, proposed
                accepted += 1
    return accepted


@compiled
def draw_alpha(
    alphas: Floats, log_factors: Floats, theta: Floats, ones: Integers, sizes: Integers, start: int, threshold: float
) -> int:
    """Draw alpha from its grid given everything else, and return its place.

    Parameters
    ----------
    log_factors : ndarray of shape (n_alpha,)
    start : int
        0 for the response alone and alpha0; 1 for the features and alpha.
    threshold : float
        Uniform random number.
    """
    stop = theta.size if start else 1
    weights = np.empty(alphas.size)
    for place in range(alphas.size):
        weights[place] = log_factors[place] + log_columns(theta, alphas[place], ones, sizes, start, stop)
    weights = np.exp(weights - weights.max())
    left = threshold * weights.sum()
    for place in range(alphas.size - 1):
        left -= weights[place]
        if left < 0.0:
            return place
    return alphas.size - 1
