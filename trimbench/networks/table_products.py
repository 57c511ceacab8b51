"""Products of tables, summed over one variable after another with NumPy.

Every table keeps its axes in the order in which they are summed out, those that are kept last. The variable that is
summed out next is then always the first axis of the tables that have it: a sum over contiguous blocks, without a
transposed copy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

# numpy multiplies a broadcast table in runs of the axes that both have; runs shorter than this are slow.
SHORTEST_RUN = 64


@dataclass(frozen=True)
class Factor:
    """A table with its variables, one for each axis, in the order of elimination."""

    variables: tuple[int, ...]
    table: NDArray[np.float64]


@dataclass(frozen=True)
class Scaled:
    """A table that stands for itself times 2**exponent: products of many small numbers do not vanish."""

    table: NDArray[np.float64]
    exponent: int = 0

    @classmethod
    def of(cls, table: NDArray[np.float64], exponent: int = 0) -> Scaled:
        """Return the table scaled to a largest entry in [0.5, 1), which changes no digit; zeros stay as they are."""
        largest = float(table.max(initial=0.0))
        if largest == 0.0:
            return cls(table, exponent)
        shift = math.frexp(largest)[1]
        return cls(np.asarray(np.ldexp(table, -shift)), exponent + shift)

    def at(self, exponent: int) -> NDArray[np.float64]:
        """Return the table for another exponent."""
        return self.table if exponent == self.exponent else np.asarray(np.ldexp(self.table, self.exponent - exponent))


def restricted(factor: Factor, at: Mapping[int, int]) -> Factor:
    """Return the part of a factor where some variables are fixed at a value."""
    if not at.keys() & set(factor.variables):
        return factor
    index = tuple(at.get(variable, slice(None)) for variable in factor.variables)
    rest = tuple(variable for variable in factor.variables if variable not in at)
    return Factor(rest, np.array(factor.table[index], order="C"))


def joined(factors: Iterable[Factor], *, scaled: bool) -> list[Factor]:
    """Multiply the factors of equal variables with each other.

    The factors are in the order of their first appearance. If `scaled`, each is scaled as `Scaled` says: their product
    is right up to a power of two.
    """
    tables: dict[tuple[int, ...], Scaled] = {}
    for factor in factors:
        one = tables.get(factor.variables)
        table, exponent = (factor.table, 0) if one is None else (one.table * factor.table, one.exponent)
        tables[factor.variables] = Scaled.of(table, exponent) if scaled else Scaled(np.asarray(table), exponent)
    return [Factor(key, part.table) for key, part in tables.items()]


def sum_out(factors: Sequence[Factor], order: Sequence[int], rank: Mapping[int, int], *, scaled: bool) -> Scaled:
    """Return the product of `factors`, summed over the variables of `order`.

    Parameters
    ----------
    factors : sequence of Factor
    order : sequence of int
        A variable that no factor has is passed over.
    rank : mapping from variable to its place in the order of axes
    scaled : bool
        Whether to scale every table that is made.

    Returns
    -------
    Scaled, one axis for each variable that is left, in the order of `rank`
    """
    # A factor waits for the first of its variables, which stands on its first axis.
    waiting: dict[int | None, list[Factor]] = {}
    exponent = 0
    for factor in factors:
        waiting.setdefault(factor.variables[0] if factor.variables else None, []).append(factor)
    for variable in order:
        inputs = waiting.pop(variable, None)
        if inputs is None:
            continue
        result = _summed_product(inputs, rank)
        if scaled:
            part = Scaled.of(result.table, exponent)
            result, exponent = Factor(result.variables, part.table), part.exponent
        waiting.setdefault(result.variables[0] if result.variables else None, []).append(result)
    last = _product(list(itertools.chain.from_iterable(waiting.values())), rank)
    return Scaled(last.table, exponent)


def _summed_product(factors: Sequence[Factor], rank: Mapping[int, int]) -> Factor:
    """Return the product of `factors`, summed over the first axis that they all have."""
    if len(factors) == 1:
        return Factor(factors[0].variables[1:], np.asarray(factors[0].table.sum(axis=0)))
    blocks = (
        _product([Factor(factor.variables[1:], np.asarray(factor.table[value])) for factor in factors], rank)
        for value in range(len(factors[0].table))
    )
    total = next(blocks)
    table = total.table
    for block in blocks:
        table = np.add(table, block.table, out=table if table.ndim else None)
    return Factor(total.variables, np.asarray(table))


def _product(factors: Sequence[Factor], rank: Mapping[int, int]) -> Factor:
    """Return the product of `factors`, small ones first, so that only the last step is as large as the result."""
    by_size = sorted(factors, key=lambda factor: factor.table.size)
    return reduce(lambda one, other: _times(one, other, rank), by_size, Factor((), np.ones(())))


def _times(one: Factor, other: Factor, rank: Mapping[int, int]) -> Factor:
    sizes = dict(zip((*one.variables, *other.variables), (*one.table.shape, *other.table.shape), strict=True))
    variables = tuple(sorted(sizes, key=rank.__getitem__))
    run: list[int] = []
    length = 1
    for variable in reversed(variables):
        if length >= SHORTEST_RUN:
            break
        run.append(variable)
        length *= sizes[variable]
    tables = (_aligned(factor, variables, {v: sizes[v] for v in run}) for factor in (one, other))
    return Factor(variables, np.asarray(np.multiply(*tables)))


def _aligned(factor: Factor, variables: Sequence[int], widened: Mapping[int, int]) -> NDArray[np.float64]:
    """Return the factor's table with an axis for each of `variables`; those of `widened` get their size."""
    has = dict(zip(factor.variables, factor.table.shape, strict=True))
    table = factor.table.reshape([has.get(variable, 1) for variable in variables])
    if not has:
        return table
    for axis, variable in enumerate(variables):
        if variable in widened and variable not in has:
            table = np.repeat(table, widened[variable], axis=axis)
    return table
