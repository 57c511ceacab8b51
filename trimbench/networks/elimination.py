"""Sums over hidden variables of products of tables, for many rows of observed values at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.contraction import ContractionTooLarge
from trimbench.networks.elimination_order import STEP_OPERATIONS, plan_whole
from trimbench.networks.value_codes import IntegerArray

# Entries of the largest table of a batch of rows, and of one row.
_BATCH_ENTRIES = 2**22
_MAX_ENTRIES = 2**26
_MAX_OPERATIONS = 2**37


@dataclass(frozen=True, eq=False)
class ProbabilityTable:
    """A table with its variables, one for each axis."""

    variables: tuple[int, ...]
    table: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HiddenSum:
    """The sum over hidden variables of a product of factors, as a function of the observed variables and the target.

    Attributes
    ----------
    columns : tuple of int
        The observed variables.
    order : tuple of int
        The hidden variables, the first to be summed out first.
    operations : int
        Products of two numbers that one row takes, at most.
    """

    columns: tuple[int, ...]
    order: tuple[int, ...]
    operations: int
    _factors: tuple[ProbabilityTable, ...]
    _target: int
    _n_states: int
    _largest: int
    _only_zeros: bool

    @classmethod
    def of(
        cls, factors: Sequence[ProbabilityTable], target: int, n_states: int, n_observed: int, *, only_zeros: bool
    ) -> HiddenSum:
        """Find an order of elimination.

        Parameters
        ----------
        target : int
            The variable that is neither observed nor summed out.
        n_observed : int
            Variables from 0 to below this number are observed.
        only_zeros : bool
            Whether only the sign of the result matters: where it is not zero, its logarithm is given as 0.

        Raises
        ------
        ContractionTooLarge
            When the table of a single row would be too large.
        """
        sizes = {v: n for f in factors for v, n in zip(f.variables, f.table.shape, strict=True)}
        unseen = [v for v in sizes if v == target or v >= n_observed]
        place = {v: i for i, v in enumerate(unseen)}
        scopes = [sum(1 << place[v] for v in factor.variables if v in place) for factor in factors]
        kept = 1 << place[target] if target in place else 0
        plan = plan_whole(scopes, kept, [sizes[v] for v in unseen])
        if plan.largest > _MAX_ENTRIES:
            raise ContractionTooLarge(
                f"a row with {len(plan.order)} hidden variables needs a table of {plan.largest:.3g} entries, more than "
                f"{_MAX_ENTRIES:.3g}; give the classifier more features, so that fewer variables are hidden"
            )
        # The plan counts every small table as a larger one, which holds for one row but not for a batch of them.
        overhead = STEP_OPERATIONS * (len(scopes) + len(plan.order))
        operations = max(plan.operations - overhead, len(plan.order))
        columns = sorted(v for v in sizes if v != target and v < n_observed)
        order = tuple(unseen[i] for i in plan.order)
        return cls(tuple(columns), order, operations, tuple(factors), target, n_states, plan.largest, only_zeros)

    def logs(self, codes: IntegerArray) -> NDArray[np.float64]:
        """Return the logarithm of the sum for each row, up to a constant of the row, shape (n_states, n_rows)."""
        distinct, which = _distinct(codes[:, list(self.columns)])
        if self.operations * len(distinct) > _MAX_OPERATIONS:
            raise ContractionTooLarge(
                f"{len(distinct)} different rows need {self.operations * len(distinct):.2g} operations, more than "
                f"{_MAX_OPERATIONS:.2g}; predict fewer rows at a time, or observe more of the variables"
            )
        step = max(1, _BATCH_ENTRIES // self._largest)
        batches = [self._of_rows(distinct[start : start + step]) for start in range(0, len(distinct), step)]
        return np.concatenate(batches, axis=1)[:, which] if batches else np.zeros((self._n_states, 0))

    def _of_rows(self, rows: IntegerArray) -> NDArray[np.float64]:
        """Return the logarithms for rows whose columns are those of `columns`."""
        place = {v: i for i, v in enumerate(self.columns)}
        rank = {v: i for i, v in enumerate((*self.order, self._target))}
        # A table waits for the first of its variables to be summed out. Its first axis runs over the rows, or has one
        # entry for all of them.
        waiting: dict[int | None, list[ProbabilityTable]] = {}

        def wait(factor: ProbabilityTable) -> None:
            first = min(factor.variables, key=rank.__getitem__, default=None)
            waiting.setdefault(first, []).append(factor)

        for factor in self._factors:
            wait(_selected(factor, rows, place))
        scale = np.zeros((len(rows), 1))
        with np.errstate(divide="ignore"):
            for variable in self.order:
                message = summed_product(waiting.pop(variable), variable, rank)
                axes = tuple(range(1, message.table.ndim))
                # With the largest entry of each row as 1, long products do not underflow.
                top = message.table.max(axis=axes, keepdims=True)
                top[top == 0] = 1.0
                scale += np.log(top.reshape(-1, 1))
                wait(ProbabilityTable(message.variables, message.table / top))
            total = np.zeros((len(rows), self._n_states)) + scale
            for factor in (factor for factors in waiting.values() for factor in factors):
                total += np.log(factor.table.reshape(len(factor.table), -1))
        if self._only_zeros:
            total[np.isfinite(total)] = 0.0
        return total.T


def _distinct(rows: IntegerArray) -> tuple[IntegerArray, NDArray[np.intp]]:
    """Return the distinct rows, and which of them each row is."""
    if rows.shape[1] == 0:
        return rows[:1], np.zeros(len(rows), dtype=np.intp)
    flat = np.ascontiguousarray(rows)
    keys = flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).reshape(-1)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return flat[first], which.reshape(-1)


def _selected(factor: ProbabilityTable, rows: IntegerArray, place: dict[int, int]) -> ProbabilityTable:
    """Return the part of a table that the observed values select: a first axis for the rows, then hidden variables."""
    seen = [axis for axis, v in enumerate(factor.variables) if v in place]
    rest = [axis for axis, v in enumerate(factor.variables) if v not in place]
    table = factor.table.transpose(*seen, *rest)
    hidden = tuple(factor.variables[axis] for axis in rest)
    if not seen:
        return ProbabilityTable(hidden, table[None])
    index = tuple(rows[:, place[factor.variables[axis]]] for axis in seen)
    return ProbabilityTable(hidden, table[index])


def summed_product(factors: Sequence[ProbabilityTable], variable: int, rank: dict[int, int]) -> ProbabilityTable:
    """Return the product of `factors`, summed over `variable`; first axes run over rows."""
    joined = product(factors, rank)
    axis = 1 + joined.variables.index(variable)
    rest = tuple(v for v in joined.variables if v != variable)
    return ProbabilityTable(rest, np.asarray(joined.table.sum(axis=axis)))


def product(factors: Sequence[ProbabilityTable], rank: dict[int, int]) -> ProbabilityTable:
    """Return the product of `factors`, its axes after the first in the order of `rank`; first axes run over rows."""
    variables = sorted({v for factor in factors for v in factor.variables}, key=rank.__getitem__)
    result: NDArray[np.float64] | None = None
    for factor in sorted(factors, key=lambda factor: factor.table.size):
        by_rank = sorted(range(len(factor.variables)), key=lambda axis: rank[factor.variables[axis]])
        table = factor.table.transpose(0, *(1 + axis for axis in by_rank))
        has = {factor.variables[axis]: factor.table.shape[1 + axis] for axis in by_rank}
        table = table.reshape(len(table), *(has.get(v, 1) for v in variables))
        result = table if result is None else result * table
    if result is None:
        raise ValueError("factors must hold at least one table")
    return ProbabilityTable(tuple(variables), result)
