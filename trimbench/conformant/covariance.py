"""Real-valued features with a common covariance: the normal distributions that conform with a regression.

With ``p(x, c) = exp(b_c + w_c . x) N(x; m, S) / Z`` the class given x has the probabilities of the regression, and x is
``N(m + S w_c, S)`` in class c: discriminant analysis whose directions are given. Given the shares p of the classes, the
moment equations ``m + S W p = mean`` and ``S + S W (diag(p) - p p') W' S = T``, T the covariance of the rows, have the
solution ``S = T^(1/2) 2 (I + (I + 4 A)^(1/2))^-1 T^(1/2)`` with ``A = T^(1/2) W (diag(p) - p p') W' T^(1/2)``, which
differs from T by a matrix of rank C - 1. What remains is p itself, the minimum of a convex function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector

Stack = NDArray[np.float64]

_LOG_2_PI = float(np.log(2 * np.pi))
# Fewer rows times components times squares of features are not worth importing the compiler.
_MANY = 100_000


@dataclass(frozen=True, eq=False)
class Normals:
    """Normal distributions of some features, one for each component of a mixture, which the classes tilt.

    Attributes
    ----------
    weights : ndarray of shape (n_real, n_classes)
        Weights of the classifier; features are standardised.
    means : ndarray of shape (n_components, n_real)
    covariances : ndarray of shape (n_components, n_real, n_real)
        Of the features given the class, the same in each.
    """

    weights: Matrix
    means: Matrix
    covariances: Stack

    @cached_property
    def slopes(self) -> Stack:
        """Covariance times weights, shape (n_components, n_real, n_classes): what a class adds to the means."""
        slopes: Stack = self.covariances @ self.weights
        return slopes

    @cached_property
    def normalisers(self) -> Matrix:
        """Logarithm of the integral of ``exp(w_c . x) N(x; m, S)``, shape (n_components, n_classes)."""
        return np.asarray(self.means @ self.weights + 0.5 * (self.weights * self.slopes).sum(axis=1))

    @cached_property
    def _roots(self) -> tuple[Stack, Vector]:
        """Inverses of the Cholesky factors, and half the logarithms of the determinants."""
        factors = np.linalg.cholesky(self.covariances)
        halves = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        return np.linalg.inv(factors), halves

    def of(self, component: int) -> Normals:
        """Return the normal distribution of one component."""
        chosen = slice(component, component + 1)
        return Normals(self.weights, self.means[chosen], self.covariances[chosen])

    @classmethod
    def together(cls, parts: Sequence[Normals]) -> Normals:
        """Return the distributions of several components with the same weights."""
        means, covariances = (np.concatenate([getattr(part, name) for part in parts]) for name in _STACKED)
        return cls(parts[0].weights, means, covariances)

    @cached_property
    def precisions(self) -> Stack:
        """Inverses of the covariances."""
        roots, _ = self._roots
        return np.asarray(np.swapaxes(roots, 1, 2) @ roots)

    def log_density(self, values: Matrix) -> Matrix:
        """Return log N(x; m, S) of complete rows under each component, shape (n_rows, n_components)."""
        roots, halves = self._roots
        found = np.empty((len(values), len(halves)))
        for z, root in enumerate(roots):
            scaled = (values - self.means[z]) @ root.T
            found[:, z] = -0.5 * np.einsum("ij,ij->i", scaled, scaled)
        return np.asarray(found - halves - 0.5 * _LOG_2_PI * values.shape[1])

    def log_likelihood(self, counts: Vector, first: Matrix, second: Stack) -> float:
        """Return the sum of log N(x; m, S) over rows with these numbers, sums, and sums of products, by component."""
        precisions, (_, halves) = self.precisions, self._roots
        of_means = np.einsum("zij,zj->zi", precisions, self.means)
        quadratic = (precisions * second).sum(axis=(1, 2)) - 2 * (of_means * first).sum(axis=1)
        quadratic = quadratic + counts * (of_means * self.means).sum(axis=1)
        n_real = len(self.weights)
        return float(-0.5 * quadratic.sum() - counts @ (halves + 0.5 * _LOG_2_PI * n_real))

    def gap_scores(self, values: Matrix, absent: NDArray[np.bool_]) -> tuple[Matrix, Stack]:
        """Return the log-density of what rows with missing values have, and what the missing ones add to the scores.

        What `given` says that a prediction needs.

        Returns
        -------
        log_density : ndarray of shape (n_rows, n_components)
        scores : ndarray of shape (n_rows, n_components, n_classes)
        """
        if absent.size * self.covariances[:, 0].size < _MANY:
            found = self.given(values, absent)
            return found.log_density, found.scores
        from trimbench.conformant.kernels import normal_gap_scores

        weights, means = np.ascontiguousarray(self.weights), np.ascontiguousarray(self.means)
        return normal_gap_scores(values, absent, weights, means, self.precisions, self._roots[1])

    def given(self, values: Matrix, absent: NDArray[np.bool_]) -> Conditionals:
        """Return what rows with missing values say.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_real)
            Anything where a value is missing.
        absent : ndarray of bool, shape (n_rows, n_real)
        """
        patterns = Patterns.of(absent)
        parts = [self._given(z, values, patterns) for z in range(len(self.means))]
        return Conditionals(patterns, tuple(parts), np.stack([part.log_density for part in parts], axis=1))

    def _given(self, z: int, values: Matrix, patterns: Patterns) -> Conditional:
        """Condition by the precision matrix P: missing values have the covariance V, the inverse of their block of P.

        Their mean is ``m - V (P r)`` with r the distance of the observed values from their means, 0 where missing.
        """
        precision, mean, halves = self.precisions[z], self.means[z], self._roots[1][z]
        places, real, of_rows = patterns.places, patterns.real, patterns.of_rows
        both = real[:, :, None] & real[:, None, :]
        blocks = np.where(both, precision[places[:, :, None], places[:, None, :]], np.eye(places.shape[1]))
        factors = np.linalg.cholesky(blocks)
        halves = halves + np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        variances = np.linalg.inv(blocks) * both
        distance = np.where(patterns.absent, 0.0, values - mean)
        pulled = np.take_along_axis(distance @ precision, places[of_rows], axis=1)
        shift = -(variances[of_rows] @ pulled[:, :, None])[:, :, 0]
        moved = np.zeros(distance.shape)
        np.put_along_axis(moved, places[of_rows], np.where(real[of_rows], shift, 0.0), axis=1)
        distance = distance + moved
        density = -0.5 * np.einsum("ij,ij->i", distance @ precision, distance) - halves[of_rows]
        n_seen = (~patterns.absent).sum(axis=1)
        weights = np.where(real[:, :, None], self.weights[places], 0.0)
        slopes = variances @ weights
        filled = distance + mean
        scores = np.where(patterns.absent, filled, 0.0) @ self.weights
        scores += 0.5 * (weights * slopes).sum(axis=1)[of_rows]
        return Conditional(density - 0.5 * _LOG_2_PI * n_seen, scores, filled, slopes, variances)


@dataclass(frozen=True, eq=False)
class Patterns:
    """Which values are missing in some rows, and the different ways in which they are.

    Attributes
    ----------
    absent : ndarray of bool, shape (n_rows, n_real)
    of_rows : ndarray of int, shape (n_rows,)
        The pattern of each row.
    places : ndarray of int, shape (n_patterns, n_places)
        The missing features of each pattern, filled up with others, which `real` tells apart.
    real : ndarray of bool, shape (n_patterns, n_places)
    """

    absent: NDArray[np.bool_]
    of_rows: NDArray[np.intp]
    places: NDArray[np.intp]
    real: NDArray[np.bool_]

    @classmethod
    def of(cls, absent: NDArray[np.bool_]) -> Patterns:
        """Return the patterns of a mask."""
        packed = np.ascontiguousarray(np.packbits(absent, axis=1))
        keys = packed.view([("", packed.dtype)] * packed.shape[1]).ravel()
        _, first, of_rows = np.unique(keys, return_index=True, return_inverse=True)
        missing = absent[first]
        n_places = int(missing.sum(axis=1).max(initial=0))
        places = np.argsort(~missing, axis=1, kind="stable")[:, :n_places]
        return cls(absent, of_rows.ravel().astype(np.intp), places, np.take_along_axis(missing, places, axis=1))


_STACKED = ("means", "covariances")


@dataclass(frozen=True, eq=False)
class Conditional:
    """What rows with missing values say under one component.

    Attributes
    ----------
    log_density : ndarray of shape (n_rows,)
        Log N(observed values; m, S).
    scores : ndarray of shape (n_rows, n_classes)
        What the missing values add to the score of each class: ``w . mu + w . V w / 2``, with mu and V their mean and
        covariance given the observed values under N(m, S).
    filled : ndarray of shape (n_rows, n_real)
        Values, with mu where they are missing.
    slopes : ndarray of shape (n_patterns, n_places, n_classes)
        ``V w``: by how much a class moves the mean of the missing values.
    variances : ndarray of shape (n_patterns, n_places, n_places)
        V.
    """

    log_density: Vector
    scores: Matrix
    filled: Matrix
    slopes: Stack
    variances: Stack


@dataclass(frozen=True, eq=False)
class Conditionals:
    """What rows with missing values say under each component.

    Attributes
    ----------
    patterns : Patterns
    parts : tuple of Conditional
    log_density : ndarray of shape (n_rows, n_components)
    """

    patterns: Patterns
    parts: tuple[Conditional, ...]
    log_density: Matrix

    @property
    def scores(self) -> Stack:
        """What missing values add to the scores of the classes, shape (n_rows, n_components, n_classes)."""
        return np.stack([part.scores for part in self.parts], axis=1)

    def expected(self, normals: Normals, shares: Stack) -> tuple[Matrix, Stack]:
        """Return the expected sums of values and of their products in each component.

        Parameters
        ----------
        shares : ndarray of shape (n_rows, n_components, n_classes)
            P(component, class | observed) of the rows.
        """
        places, of_rows, n_real = self.patterns.places, self.patterns.of_rows, normals.means.shape[1]
        first, second = np.zeros(normals.means.shape), np.zeros(normals.covariances.shape)
        cells = places[:, :, None] * n_real + places[:, None, :]
        for z, part in enumerate(self.parts):
            for c in range(shares.shape[2]):
                completed, weight = part.filled.copy(), shares[:, z, c : c + 1]
                moved = np.take_along_axis(completed, places[of_rows], axis=1) + part.slopes[of_rows, :, c]
                np.put_along_axis(completed, places[of_rows], moved, axis=1)
                first[z] += (weight * completed).sum(axis=0)
                second[z] += (weight * completed).T @ completed
            of_patterns = np.bincount(of_rows, weights=shares[:, z].sum(axis=1), minlength=len(places))
            spread = (of_patterns[:, None, None] * part.variances).ravel()
            second[z] += np.bincount(cells.ravel(), weights=spread, minlength=n_real**2).reshape(n_real, n_real)
        return first, second


# The normal distributions that fit given moments best.

_TOLERANCE = 1e-13
# Below it, the gradient tells better than the value whether a step descends.
_NEARLY = 1e-6
_MAX_ITERATIONS, _MOST_HALVINGS = 200, 40
# How far from the boundary the search begins.
_AWAY, _NEAR_START = 0.01, 0.05
_LEAST_SHARE = 1e-200


@dataclass(frozen=True, eq=False)
class NormalMoments:
    """What the covariance model is fitted to, for each component: moments, and how often the classes count.

    ``theta . first - tr(second / (2 S)) - sum_c (share p_c + constant_c) A_c`` is maximised over m and S together with
    the terms of the other features, where A_c is the log-normaliser of class c, and p_c its share in the model.

    Attributes
    ----------
    first : ndarray of shape (n_components, n_real)
    second : ndarray of shape (n_components, n_real, n_real)
    share : ndarray of shape (n_components,)
    constant : ndarray of shape (n_components, n_classes)
    """

    first: Matrix
    second: Stack
    share: Vector
    constant: Matrix

    @cached_property
    def total(self) -> Vector:
        """The weight of all classes together, shape (n_components,)."""
        total: Vector = self.share + self.constant.sum(axis=1)
        return total

    @cached_property
    def mean(self) -> Matrix:
        """Means of the features, shape (n_components, n_real)."""
        return np.asarray(self.first / self.total[:, None])

    @cached_property
    def covariance(self) -> Stack:
        """Covariances of the features in all classes together, shape (n_components, n_real, n_real)."""
        mean = self.mean
        return np.asarray(self.second / self.total[:, None, None] - mean[:, :, None] * mean[:, None, :])

    def class_weights(self, shares: Matrix) -> Matrix:
        """Return the weights of the classes in the moments, for shares in the model, (n_components, n_classes)."""
        weights = self.share[:, None] * shares + self.constant
        return np.asarray(weights / self.total[:, None])


def fit_normals(
    moments: NormalMoments, weights: Matrix, biases: Matrix, start: Matrix | None = None, tolerance: float = 0.0
) -> tuple[Normals, Matrix]:
    """Return the normal distributions of greatest likelihood that conform with a classifier, and the classes' shares.

    Newton's method on the shares: the mean is fixed by the moments given them, and so is the covariance.

    Parameters
    ----------
    moments : NormalMoments
    weights : ndarray of shape (n_real, n_classes)
    biases : ndarray of shape (n_components, n_classes)
        What else is in the scores of the classes: biases, and the log-normalisers of other features.
    start : ndarray of shape (n_components, n_classes), optional
        Shares of the classes to begin with.
    tolerance : float
        How far the shares may be from those of the model.

    Returns
    -------
    normals : Normals
    shares : ndarray of shape (n_components, n_classes)
        The shares of the classes in the model.
    """
    slopes = moments.covariance @ weights
    products = np.swapaxes(slopes, 1, 2) @ weights  # W'TW: all that the search needs of T
    products = (products + np.swapaxes(products, 1, 2)) / 2
    centres = moments.mean @ weights
    problem = _Shares(moments, products, centres, biases)
    shares = problem.solve(_softmax(biases + centres) if start is None else start, max(tolerance, _TOLERANCE))
    middle, _ = problem.middle(moments.class_weights(shares))
    covariances = moments.covariance - slopes @ middle @ np.swapaxes(slopes, 1, 2)
    covariances = (covariances + np.swapaxes(covariances, 1, 2)) / 2
    means = moments.mean - (covariances @ weights @ moments.class_weights(shares)[:, :, None])[:, :, 0]
    return Normals(weights, means, covariances), shares


def _softmax(scores: Matrix) -> Matrix:
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class _Shares:
    """The convex problem of the shares of the classes, from which all else follows.

    Its gradient is ``log p_c - b_c - A_c`` up to a constant, where ``A_c = w_c . m + w_c . S w_c / 2`` is that of the m
    and S which fit the moments best where the classes have the shares p.
    """

    moments: NormalMoments
    products: Stack
    centres: Matrix
    biases: Matrix

    def middle(self, weights: Matrix) -> tuple[Stack, Matrix]:
        """Return K with ``S = T - T W K W' T``, and the eigenvalues of S in units of T, (n_components, n_classes)."""
        n_classes = weights.shape[1]
        roots = (np.eye(n_classes) - weights[:, :, None]) * np.sqrt(weights)[:, None, :]
        inner = np.swapaxes(roots, 1, 2) @ self.products @ roots
        values, vectors = np.linalg.eigh((inner + np.swapaxes(inner, 1, 2)) / 2)
        shrunk = 2 / (1 + np.sqrt(1 + 4 * np.maximum(values, 0.0)))
        left = roots @ (vectors * shrunk[:, None, :])
        return left @ np.swapaxes(left, 1, 2), shrunk

    def at(self, shares: Matrix) -> _AtShares:
        """Return the objective and its derivative at some shares."""
        weights = self.moments.class_weights(shares)
        middle, shrunk = self.middle(weights)
        inside = self.products - self.products @ middle @ self.products
        squares = np.diagonal(inside, axis1=1, axis2=2)
        of_means = self.centres - (inside @ weights[:, :, None])[:, :, 0]
        logs = np.log(shares)
        gradient = logs - self.biases - of_means - 0.5 * squares
        of_moments = -0.5 * np.log(shrunk).sum(axis=1) - (weights * (of_means + squares)).sum(axis=1)
        of_shares = (shares * (logs - self.biases)).sum(axis=1)
        value = self.moments.total * of_moments + self.moments.share * of_shares
        centred = shares * (gradient - (shares * gradient).sum(axis=1, keepdims=True))
        size = np.abs(_softmax(logs - gradient) - shares).max(axis=1)
        return _AtShares(value, centred, inside, size)

    def curvature(self, shares: Matrix, inside: Stack) -> Stack:
        """Return the derivative of the gradient: ``diag(1 / p)`` minus that of the log-normalisers.

        With H = W'SW and O = diag(q) - q q', the moments say H + H O H = W'TW, hence dH + dH O H + H O dH = -H dO H.
        """
        weights = self.moments.class_weights(shares)
        n_components, n_classes = shares.shape
        eye = np.eye(n_classes)
        spread = weights[:, :, None] * eye - weights[:, :, None] * weights[:, None, :]
        half = 0.5 * eye + inside @ spread
        system = np.einsum("zij,kl->zikjl", half, eye) + np.einsum("ij,zkl->zikjl", eye, half)
        of_mean = (inside @ weights[:, :, None])[:, None, :, 0]
        # H dO H in the direction of class e, of which H has the column e: [z, e, i, j].
        outer = inside[:, :, :, None] * (inside - of_mean)[:, :, None, :]
        outer = outer - of_mean[..., None] * inside[:, :, None, :]
        size = n_classes * n_classes
        right = -np.moveaxis(outer, 1, 3).reshape(n_components, size, n_classes)
        solved = np.linalg.solve(system.reshape(n_components, size, size), right)
        moved = solved.reshape(n_components, n_classes, n_classes, n_classes)  # dH[i, j] in the direction e
        slopes = -inside - np.einsum("zije,zj->zie", moved, weights) + 0.5 * np.einsum("ziie->zie", moved)
        scale = (self.moments.share / self.moments.total)[:, None, None]
        return np.asarray(eye / shares[:, :, None] - scale * slopes)

    def step(self, shares: Matrix, at: _AtShares) -> Matrix:
        """Return the Newton step, relative to the shares, whose sum it does not change."""
        n_components, n_classes = shares.shape
        system = np.zeros((n_components, n_classes + 1, n_classes + 1))
        curvature = self.curvature(shares, at.inside)
        system[:, :-1, :-1] = curvature * shares[:, :, None] * shares[:, None, :]
        system[:, :-1, -1] = system[:, -1, :-1] = shares
        right = np.zeros((n_components, n_classes + 1, 1))
        right[:, :-1, 0] = -at.gradient
        return np.asarray(np.linalg.solve(system, right)[:, :-1, 0])

    def solve(self, start: Matrix, tolerance: float) -> Matrix:
        """Return the shares at the minimum, by Newton's method with steps that stay inside and descend."""
        shares = np.maximum(start, _LEAST_SHARE)
        at = self.at(shares)
        if (at.size > _NEAR_START).any():
            # Shares near 0 move slowly, where they are wrong.
            shares = (1 - _AWAY) * start + _AWAY / start.shape[1]
            at = self.at(shares)
        for _ in range(_MAX_ITERATIONS):
            if (at.size <= tolerance).all():
                break
            step = self.step(shares, at)
            slope = (at.gradient * step).sum(axis=1)
            length = np.minimum(1.0, 0.9 / np.maximum(-step.min(axis=1), 1e-300))
            for _ in range(_MOST_HALVINGS):
                moved = shares * (1 + length[:, None] * step)
                moved = np.maximum(moved / moved.sum(axis=1, keepdims=True), _LEAST_SHARE)
                there = self.at(moved)
                # Near the minimum the difference of two values is rounding; the gradient is not.
                is_lower = there.value <= at.value + 1e-4 * self.moments.share * length * slope
                better = (is_lower & (at.size > _NEARLY)) | (there.size < at.size)
                if (better | (at.size <= tolerance)).all():
                    break
                length = np.where(better, length, length / 2)
            if not better.any():
                break
            shares, at = np.where(better[:, None], moved, shares), at.updated(there, better)
        return shares


@dataclass(frozen=True, eq=False)
class _AtShares:
    """The convex objective at some shares, for each component.

    Attributes
    ----------
    value : ndarray of shape (n_components,)
    gradient : ndarray of shape (n_components, n_classes)
        Times the shares.
    inside : ndarray of shape (n_components, n_classes, n_classes)
        ``W' S W``.
    size : ndarray of shape (n_components,)
        How far the shares are from those of the model that they lead to.
    """

    value: Vector
    gradient: Matrix
    inside: Stack
    size: Vector

    def updated(self, there: _AtShares, better: NDArray[np.bool_]) -> _AtShares:
        """Return what holds at the better of two points."""
        return _AtShares(
            np.where(better, there.value, self.value),
            np.where(better[:, None], there.gradient, self.gradient),
            np.where(better[:, None, None], there.inside, self.inside),
            np.where(better, there.size, self.size),
        )
