"""Sums of products of tables, one slice after another or several at the same time."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.elimination_order import COMPILED_OPERATIONS, Plan
from trimbench.networks.table_products import Factor, Scaled, restricted, sum_out
from trimbench.networks.table_program import compiled


@dataclass(frozen=True)
class SlicedSum:
    """A product of tables, to be summed over the variables of a plan.

    Attributes
    ----------
    factors : sequence of Factor
        Their axes are in the order of `rank`.
    plan : Plan
    kept : tuple of int
        The variables that are not summed out.
    sizes : tuple of int
        The cardinality of each variable.
    scaled : bool
        Whether the sum is wanted only up to a power of two: nothing vanishes then, however small the numbers become.
    """

    factors: Sequence[Factor]
    plan: Plan
    kept: tuple[int, ...]
    sizes: tuple[int, ...]
    scaled: bool

    @property
    def rank(self) -> dict[int, int]:
        """The place of each variable: first those that are summed out, in their order, then those that are kept."""
        return {variable: i for i, variable in enumerate((*self.plan.order, *self.kept))}

    def total(self, n_threads: int, *, max_bytes: int) -> NDArray[np.float64]:
        """Return the sum, one axis for each variable that is kept; the same for any number of threads.

        Fewer threads work if their tables would take more than `max_bytes`.
        """
        fixed, sizes = self.plan.fixed, self.sizes
        slices = list(itertools.product(*(range(sizes[variable]) for variable in fixed)))
        if self.plan.operations >= COMPILED_OPERATIONS:
            part, bytes_each = self._compiled_part()
            n_threads = max(1, min(n_threads, max_bytes // bytes_each))
        else:
            part = self._part
        result = Scaled(np.zeros([sizes[variable] for variable in self.kept]))
        left = [sizes[variable] for variable in self.kept if variable not in fixed]
        for values, found in zip(slices, _in_order(part, slices, n_threads), strict=True):
            # Both get the larger exponent: what one of them loses then is below the rounding of the other.
            exponent = max(found.exponent, result.exponent) if result.table.any() else found.exponent
            table = result.at(exponent)
            at = dict(zip(fixed, values, strict=True))
            table[tuple(at.get(variable, slice(None)) for variable in self.kept)] += found.at(exponent).reshape(left)
            result = Scaled(table, exponent)
        return result.table

    def _part(self, values: tuple[int, ...]) -> Scaled:
        """Return the sum for given values of the fixed variables."""
        at = dict(zip(self.plan.fixed, values, strict=True))
        factors = [restricted(factor, at) for factor in self.factors]
        return sum_out(factors, self.plan.order, self.rank, scaled=self.scaled)

    def _compiled_part(self) -> tuple[Callable[[tuple[int, ...]], Scaled], int]:
        """Return the compiled counterpart of `_part`, and how many bytes each thread needs for it."""
        program = compiled(self.factors, self.plan.order, self.plan.fixed, self.sizes, self.rank, scaled=self.scaled)
        local = threading.local()

        def part(values: tuple[int, ...]) -> Scaled:
            if not hasattr(local, "work"):
                local.work = program.workspace()
            return program.run(local.work, values)

        return part, 8 * program.size


def _in_order(
    part: Callable[[tuple[int, ...]], Scaled], slices: Sequence[tuple[int, ...]], n_threads: int
) -> Iterator[Scaled]:
    """Yield the part of each slice in their order: added up like that, they give one result whoever computed them."""
    if n_threads == 1 or len(slices) == 1:
        yield from map(part, slices)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        # A few parts ahead, not all: each may be as large as the result.
        ahead: deque[Future[Scaled]] = deque()
        for values in slices:
            ahead.append(pool.submit(part, values))
            if len(ahead) == 2 * n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
