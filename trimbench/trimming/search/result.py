"""What a search over feature subsets finds."""

from __future__ import annotations

from dataclasses import dataclass

# Agreements closer than this count as equal: they are sums of probabilities with errors of about 1e-14.
AGREEMENT_TOLERANCE = 1e-12


@dataclass(frozen=True)
class SearchResult:
    """The best subset found, and what is proven about it.

    Attributes
    ----------
    features : frozenset of int
    agreement : float
        Maximum potential agreement of the subset.
    upper_bound : float
        No subset within the budget has a higher one; 1 if the search was stopped before it had any bound.
    n_evaluations : int
        Number of evaluations of the criterion.
    """

    features: frozenset[int]
    agreement: float
    upper_bound: float
    n_evaluations: int
