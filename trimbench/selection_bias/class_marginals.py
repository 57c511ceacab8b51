"""Marginal likelihoods of features from their own counts, for any number of classes and cases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench.selection_bias.marginals import Marginals, by_the_slides_rule
from trimbench.selection_bias.prior import Prior


def class_marginals(prior: Prior, ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> Marginals:
    """Compute the marginals of features with given counts.

    Parameters
    ----------
    ones, sizes : ndarray of shape (n_classes, n_features)
        I_y and n_y.

    Notes
    -----
    As `marginals`, which sums tables of all counts that two classes can have: here only those that occur are computed,
    each from its own logarithm.
    """
    if prior.rule == "simpson":
        return by_the_slides_rule(prior, ones, sizes)
    return grid_marginals(prior, ones, sizes)


def grid_marginals(prior: Prior, ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> Marginals:
    """Compute the marginals on the grid over theta that the adjustment factor uses."""
    from trimbench.selection_bias import kernels

    distinct = [np.unique(np.stack([i, n]), axis=1, return_inverse=True) for i, n in zip(ones, sizes, strict=True)]
    n_cases = int(sizes.sum(axis=0).max())
    result = Marginals(*np.empty((3, prior.n_alpha, ones.shape[1])))
    for place, alpha in enumerate(prior.alphas().tolist()):
        theta, weights = prior.theta_nodes(n_cases, alpha)
        inside = (theta > 0.0) & (theta < 1.0)  # at the ends only constant features have a probability
        theta, weights = theta[inside], weights[inside]
        terms = np.tile(np.log(weights), (ones.shape[1], 1))
        for (values, n_values), places in distinct:
            terms += kernels.log_probabilities(values, n_values, alpha, theta)[places.ravel()]
        largest = terms.max(axis=1)
        shares = np.exp(terms - largest[:, None])
        mass = shares.sum(axis=1)
        result.log_likelihood[place] = largest + np.log(mass)
        result.theta_mean[place] = shares @ theta / mass
        result.theta_rest[place] = shares @ theta[::-1] / mass
    return result
