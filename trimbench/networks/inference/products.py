"""Products of tables, summed over one variable after another: in NumPy, and as programs for a compiled loop.

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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# numpy multiplies a broadcast table in runs of the axes that both have; runs shorter than this are slow.
SHORTEST_RUN = 64


@dataclass(frozen=True)
class Factor:
    """A table with its variables, one for each axis, here in the order of elimination."""

    variables: tuple[int, ...]
    table: NDArray[np.float64]


class Arithmetic(NamedTuple):
    """How entries of tables are multiplied and added, and what 1 is: as they are, or as logarithms."""

    times: np.ufunc
    plus: np.ufunc
    one: float


PLAIN = Arithmetic(np.multiply, np.add, 1.0)
IN_LOGS = Arithmetic(np.add, np.logaddexp, 0.0)
# A product of probabilities may vanish where the smallest ones multiply to less than the exponential of this.
VANISHING = -600.0


def log_smallest(table: NDArray[np.float64]) -> float:
    """Return the logarithm of the smallest positive entry, at most 0."""
    return math.log(float(table.min(initial=1.0, where=table > 0)))


@dataclass(frozen=True)
class Scaled:
    """A table to be multiplied by 2**exponent, so that products of many small numbers do not vanish."""

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
    """Multiply factors that have the same variables with each other.

    The factors are in the order of their first appearance. If `scaled`, each is scaled as in `Scaled`, and their
    product is right up to a power of two.
    """
    tables: dict[tuple[int, ...], Scaled] = {}
    for factor in factors:
        one = tables.get(factor.variables)
        table, exponent = (factor.table, 0) if one is None else (one.table * factor.table, one.exponent)
        tables[factor.variables] = Scaled.of(table, exponent) if scaled else Scaled(np.asarray(table), exponent)
    return [Factor(key, part.table) for key, part in tables.items()]


def sum_out(
    factors: Sequence[Factor],
    order: Sequence[int],
    rank: Mapping[int, int],
    *,
    scaled: bool,
    arithmetic: Arithmetic = PLAIN,
) -> Scaled:
    """Return the product of `factors`, summed over the variables of `order`.

    Parameters
    ----------
    factors : sequence of Factor
    order : sequence of int
        A variable that no factor has is skipped.
    rank : mapping from variable to its place in the order of axes
    scaled : bool
        Whether to scale every table that is made.
    arithmetic : Arithmetic
        Whether the tables, and the result, are logarithms.

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
        result = _summed_product(inputs, rank, arithmetic)
        if scaled:
            part = Scaled.of(result.table, exponent)
            result, exponent = Factor(result.variables, part.table), part.exponent
        waiting.setdefault(result.variables[0] if result.variables else None, []).append(result)
    last = _product(list(itertools.chain.from_iterable(waiting.values())), rank, arithmetic)
    return Scaled(last.table, exponent)


def _summed_product(factors: Sequence[Factor], rank: Mapping[int, int], arithmetic: Arithmetic) -> Factor:
    """Return the product of `factors`, summed over the first axis that they all have."""
    if len(factors) == 1:
        return Factor(factors[0].variables[1:], np.asarray(arithmetic.plus.reduce(factors[0].table, axis=0)))
    blocks = (
        _product(
            [Factor(factor.variables[1:], np.asarray(factor.table[value])) for factor in factors], rank, arithmetic
        )
        for value in range(len(factors[0].table))
    )
    total = next(blocks)
    table = total.table
    for block in blocks:
        table = arithmetic.plus(table, block.table, out=table if table.ndim else None)
    return Factor(total.variables, np.asarray(table))


def _product(factors: Sequence[Factor], rank: Mapping[int, int], arithmetic: Arithmetic) -> Factor:
    """Return the product of `factors`, small ones first, so that only the last step is as large as the result."""
    by_size = sorted(factors, key=lambda factor: factor.table.size)
    start = Factor((), np.array(arithmetic.one))
    return reduce(lambda one, other: _times(one, other, rank, arithmetic), by_size, start)


def _times(one: Factor, other: Factor, rank: Mapping[int, int], arithmetic: Arithmetic) -> Factor:
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
    return Factor(variables, np.asarray(arithmetic.times(*tables)))


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


# A sum of products of tables as a program for the compiled loop: which entries of one array are combined into which.

# Entries that are computed together: the buffer for them stays in the L1 cache.
LONGEST_RUN = 256
# Two inputs whose product is this many times smaller than the product of all are multiplied with each other first.
MUCH_SMALLER = 8


@dataclass(frozen=True)
class _Table:
    """A table in the work array: its variables, outermost first, and where it begins if all fixed values are 0."""

    variables: tuple[int, ...]
    start: int
    entries: int


class _Room:
    """Places in the work array; what is given back is used again."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []

    def take(self, entries: int) -> int:
        for i, (start, length) in enumerate(self._free):
            if length >= entries:
                self._free[i : i + 1] = [(start + entries, length - entries)] if length > entries else []
                return start
        # The last free piece may touch the end.
        start = self.size
        if self._free and sum(self._free[-1]) == self.size:
            start = self._free.pop()[0]
        self.size = start + entries
        return start

    def give_back(self, start: int, entries: int) -> None:
        pieces = sorted([*self._free, (start, entries)])
        self._free = pieces[:1]
        for begin, length in pieces[1:]:
            before, size = self._free[-1]
            if before + size == begin:
                self._free[-1] = (before, size + length)
            else:
                self._free.append((begin, length))


@dataclass(frozen=True)
class TableProgram:
    """All products and sums of one slice, in terms of one work array.

    Attributes
    ----------
    factors : ndarray of float64
        The entries that the work array begins with.
    size : int
        Entries of the work array.
    steps : ndarray of int64, shape (n_steps, 6)
        For each table that is made: the number of runs, the length of a run, the number of values summed over, its
        first input and the one after its last, and where it begins.
    inputs : ndarray of int64, shape (n_inputs, 4)
        The stride of the summed variable, where the offsets of the runs begin, the kind (see `kernels.CONSTANT`), and
        where the offsets within a run begin.
    bases, strides : ndarray of int64, shapes (n_inputs,) and (n_inputs, n_fixed)
        Input i begins at ``bases[i] + strides[i] @ values`` for given values of the fixed variables.
    offsets : ndarray of uint32
        All lists of offsets.
    result : slice
        Where the last table lies.
    shape : tuple of int
        Its shape.
    scaled : bool
        Whether tables are scaled by powers of two, so that none of them vanishes.
    """

    factors: NDArray[np.float64]
    size: int
    steps: NDArray[np.int64]
    inputs: NDArray[np.int64]
    bases: NDArray[np.int64]
    strides: NDArray[np.int64]
    offsets: NDArray[np.uint32]
    result: slice
    shape: tuple[int, ...]
    scaled: bool

    def workspace(self) -> NDArray[np.float64]:
        """Return a new work array; one is needed for each thread."""
        work = np.empty(self.size)
        work[: len(self.factors)] = self.factors
        return work

    def run(self, work: NDArray[np.float64], values: Sequence[int]) -> Scaled:
        """Return the sum for the given values of the fixed variables."""
        from trimbench.networks.inference.kernels import run_steps

        bases = self.bases + self.strides @ np.array(values, dtype=np.int64)
        buffer = np.empty(2 * LONGEST_RUN)
        exponent = run_steps(work, self.steps, self.inputs, bases, self.offsets, buffer, self.scaled)
        return Scaled(work[self.result].reshape(self.shape).copy(), int(exponent))


class _Compiler:
    def __init__(self, sizes: Sequence[int], rank: Mapping[int, int], fixed: Sequence[int]) -> None:
        self.sizes, self.rank, self.fixed = sizes, rank, list(fixed)
        self.room = _Room()
        self.steps: list[tuple[int, ...]] = []
        self.inputs: list[tuple[int, ...]] = []
        self.bases: list[int] = []
        self.strides: list[list[int]] = []
        self.offsets: list[NDArray[np.uint32]] = []
        self.n_offsets = 0
        self._known_offsets: dict[bytes, int] = {}
        # By where a factor begins: the stride of each fixed variable.
        self.fixed_strides: dict[int, list[int]] = {}

    def volume(self, variables: Sequence[int]) -> int:
        return math.prod(self.sizes[variable] for variable in variables)

    def factor(self, factor: Factor) -> tuple[_Table, NDArray[np.float64]]:
        """Place a factor, fixed variables outermost, and return its place and its entries."""
        outer = [v for v in factor.variables if v in self.fixed]
        inner = [v for v in factor.variables if v not in self.fixed]
        axes = [factor.variables.index(v) for v in (*outer, *inner)]
        start = self.room.take(factor.table.size)
        entries = self.volume(inner)
        strides = dict(zip(outer, self._strides(outer), strict=True))
        self.fixed_strides[start] = [entries * strides.get(variable, 0) for variable in self.fixed]
        return _Table(tuple(inner), start, entries), np.asarray(factor.table.transpose(axes).reshape(-1))

    def _strides(self, variables: Sequence[int]) -> list[int]:
        return [self.volume(variables[i + 1 :]) for i in range(len(variables))]

    def combine(self, tables: Sequence[_Table], summed: int | None) -> _Table:
        """Add the step that multiplies tables and sums over the variable `summed`, the first of each, unless None."""
        tables = self._small_ones_first(tables, summed)
        union = sorted({v for table in tables for v in table.variables} - {summed}, key=self.rank.__getitem__)
        run: list[int] = []
        for variable in reversed(union):
            if self.volume(run) * self.sizes[variable] > LONGEST_RUN:
                break
            run.insert(0, variable)
        outer = union[: len(union) - len(run)]
        made = _Table(tuple(union), self.room.take(self.volume(union)), self.volume(union))
        first = len(self.inputs)
        for table in tables:
            self._input(table, summed, outer, run)
        n_values = 1 if summed is None else self.sizes[summed]
        self.steps.append((self.volume(outer), self.volume(run), n_values, first, len(self.inputs), made.start))
        for table in tables:
            if table.start not in self.fixed_strides:  # factors stay for the next slice
                self.room.give_back(table.start, table.entries)
        return made

    def _small_ones_first(self, tables: Sequence[_Table], summed: int | None) -> list[_Table]:
        rest = sorted(tables, key=lambda table: (table.entries, table.start))
        whole = self.volume(list({v for table in tables for v in table.variables}))
        while len(rest) > 2:
            pair = {v for table in rest[:2] for v in table.variables}
            if self.volume(list(pair)) * MUCH_SMALLER > whole:
                break
            rest = sorted([self.combine(rest[:2], None), *rest[2:]], key=lambda table: (table.entries, table.start))
        return rest

    def _input(self, table: _Table, summed: int | None, outer: Sequence[int], run: Sequence[int]) -> None:
        from trimbench.networks.inference.kernels import CONSTANT, CONTIGUOUS, GATHERED

        strides = dict(zip(table.variables, self._strides(table.variables), strict=True))
        has = [variable in strides for variable in run]
        kind = CONTIGUOUS if all(has) else GATHERED if any(has) else CONSTANT
        inner = self._offsets(run, strides) if kind == GATHERED else 0
        self.inputs.append((0 if summed is None else strides[summed], self._offsets(outer, strides), kind, inner))
        self.bases.append(table.start)
        self.strides.append(self.fixed_strides.get(table.start, [0] * len(self.fixed)))

    def _offsets(self, variables: Sequence[int], strides: Mapping[int, int]) -> int:
        """Store the offset of each combination of values, the last variable fastest; return where the list begins."""
        places = np.zeros(1, dtype=np.uint32)
        for variable in variables:
            steps = strides.get(variable, 0) * np.arange(self.sizes[variable], dtype=np.uint32)
            places = np.add.outer(places, steps).reshape(-1)
        key = places.tobytes() if len(places) <= LONGEST_RUN else b""
        if key in self._known_offsets:
            return self._known_offsets[key]
        begin = self.n_offsets
        self.offsets.append(places)
        self.n_offsets += len(places)
        if key:
            self._known_offsets[key] = begin
        return begin


def compiled(
    factors: Sequence[Factor],
    order: Sequence[int],
    fixed: Sequence[int],
    sizes: Sequence[int],
    rank: Mapping[int, int],
    *,
    scaled: bool,
) -> TableProgram:
    """Return the program that does for each slice what `sum_out` does.

    Parameters
    ----------
    factors : sequence of Factor
        With all their variables, fixed ones included.
    order, fixed : sequence of int
        The variables to sum out (fixed ones among them are skipped), and those that are fixed.
    sizes : sequence of int
        The cardinality of each variable.
    rank, scaled
        As in `sum_out`.
    """
    compiler = _Compiler(sizes, rank, fixed)
    placed = [compiler.factor(factor) for factor in factors]
    live = [table for table, _ in placed]
    for variable in order:
        inputs = [table for table in live if variable in table.variables]
        if inputs:
            live = [table for table in live if variable not in table.variables]
            live.append(compiler.combine(inputs, variable))
    last = compiler.combine(live, None)
    return TableProgram(
        factors=np.concatenate([entries for _, entries in placed]),
        size=compiler.room.size,
        steps=np.array(compiler.steps, dtype=np.int64).reshape(-1, 6),
        inputs=np.array(compiler.inputs, dtype=np.int64).reshape(-1, 4),
        bases=np.array(compiler.bases, dtype=np.int64),
        strides=np.array(compiler.strides, dtype=np.int64).reshape(len(compiler.bases), len(fixed)),
        offsets=np.concatenate(compiler.offsets),
        result=slice(last.start, last.start + last.entries),
        shape=tuple(sizes[variable] for variable in last.variables),
        scaled=scaled,
    )
