"""Probabilities of rows with each state of a target, for many rows at once, with hidden variables summed out.

A row that observes every other variable needs no table of all instances: its probability is a product of entries of the
network's tables. Where variables stay hidden, those that connect the target to what is observed are summed out, for
all rows of a batch together; each combination of observed values is computed once. Factors that do not involve the
target change no ratio and are left out, but where they are zero the row is impossible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import IntegerArray
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.inference.joint import STEP_OPERATIONS, ContractionTooLarge, plan_whole, relevant_nodes
from trimbench.networks.inference.products import IN_LOGS, PLAIN, VANISHING, Arithmetic, Factor, log_smallest

# Rows are added up in blocks of this many, which stay in the processor's cache.
_BLOCK = 2**13
TARGET = -1


@dataclass(frozen=True, eq=False)
class Lookup:
    """Log-probabilities that the observed values of a row select, for each state of the target or for all of them.

    Attributes
    ----------
    columns : tuple of int
        The observed variables that select the entry.
    strides : tuple of int
        The stride of each of them in the place of the entry.
    logs : ndarray of shape (n_states or 1, n_entries)
    """

    columns: tuple[int, ...]
    strides: tuple[int, ...]
    logs: NDArray[np.float64]

    @classmethod
    def of(cls, factor: Factor, *, only_zeros: bool) -> Lookup:
        """Return a factor without hidden variables; with `only_zeros`, one without the target keeps only its zeros."""
        table = factor.table
        columns = tuple(v for v in factor.variables if v != TARGET)
        if TARGET in factor.variables:
            table = np.moveaxis(table, factor.variables.index(TARGET), 0)
        else:
            table = table[None]
            if only_zeros:
                table = (table > 0).astype(np.float64)
        shape = table.shape[1:]
        strides = tuple(int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape)))
        with np.errstate(divide="ignore"):
            logs = np.log(np.ascontiguousarray(table).reshape(len(table), -1))
        return cls(columns, strides, logs)

    def add_to(self, total: NDArray[np.float64], codes: IntegerArray) -> None:
        """Add the entries of some rows to `total`, of shape (n_states, n_rows)."""
        if not self.columns:
            total += self.logs
            return
        places = codes[:, self.columns[0]].astype(np.intp)
        if self.strides[0] != 1:
            places *= self.strides[0]
        for column, stride in zip(self.columns[1:], self.strides[1:], strict=True):
            more = codes[:, column]
            places += more if stride == 1 else more.astype(np.intp) * stride
        for state, logs in enumerate(self.logs):
            # "clip" saves a copy; all places are valid.
            found = np.take(logs, places, mode="clip")
            if len(self.logs) == 1:
                total += found
            else:
                total[state] += found


@dataclass(frozen=True, eq=False)
class RowInference:
    """Pr(target, observed values) of rows, up to a factor of each row.

    Attributes
    ----------
    n_states : int
        Of the target.
    relevant : frozenset of int
        Positions of the observed variables that can change the ratios between the states of the target.
    lookups : tuple of Lookup
        Factors without hidden variables.
    sums : tuple of HiddenSum
        Sums over hidden variables.
    """

    n_states: int
    relevant: frozenset[int]
    lookups: tuple[Lookup, ...]
    sums: tuple[HiddenSum, ...]
    # Between two states only the difference counts: half as many entries to look up.
    _differences: tuple[Lookup, ...]
    _others: tuple[Lookup, ...]

    @classmethod
    def of_network(
        cls,
        network: BayesianNetwork,
        target: str,
        observed: Sequence[str],
        evidence: Mapping[str, str] | None = None,
        *,
        whole: bool = False,
    ) -> RowInference:
        """Prepare the inference in a network.

        Parameters
        ----------
        observed : sequence of str
            The variables whose values a row gives, in the order of its columns.
        evidence : mapping from node to state, optional
            Values that are the same in all rows.
        whole : bool
            Whether to keep the factors that all states of the target share, so that the result is the probability of
            the row (and of the evidence) itself.

        Raises
        ------
        ContractionTooLarge
            When too many hidden variables depend on each other.
        """
        evidence = evidence or {}
        number = {name: place for place, name in enumerate(observed)} | {target: TARGET}
        for node in relevant_nodes(network, [target, *observed, *evidence]):
            if node not in evidence:
                number.setdefault(node, len(number) - 1)
        factors = []
        for node in dict.fromkeys([*number, *evidence]):
            axes = (*network.parents(node), node)
            index = tuple(
                network.states(name).index(evidence[name]) if name in evidence else slice(None) for name in axes
            )
            names = [name for name in axes if name not in evidence]
            factors.append(Factor(tuple(number[name] for name in names), network.table(node)[index]))
        return cls._of(factors, network.cardinality(target), len(observed), whole=whole)

    @classmethod
    def of_naive_bayes(cls, log_prior: NDArray[np.float64], likelihoods: Sequence[NDArray[np.float64]]) -> RowInference:
        """Prepare the inference in a naive Bayes model; the i-th likelihood has shape (n_classes, n_values_i)."""
        tables = (Factor((TARGET, i), table) for i, table in enumerate(likelihoods))
        lookups = [Lookup((), (), log_prior[:, None]), *(Lookup.of(table, only_zeros=True) for table in tables)]
        return cls._with(lookups, [], len(log_prior), frozenset(range(len(likelihoods))), whole=False)

    @classmethod
    def _of(cls, factors: Sequence[Factor], n_states: int, n_observed: int, *, whole: bool) -> RowInference:
        lookups, sums, relevant = [], [], set[int]()
        for part in _connected(factors, n_observed):
            has_target = any(TARGET in factor.variables for factor in part)
            columns = {v for factor in part for v in factor.variables if 0 <= v < n_observed}
            if has_target:
                relevant |= columns
            elif not whole and all((factor.table > 0).all() for factor in part):
                continue
            if all(v < n_observed for factor in part for v in factor.variables):
                lookups += [Lookup.of(factor, only_zeros=not whole) for factor in part]
            else:
                sums.append(HiddenSum.of(part, TARGET, n_states, n_observed, only_zeros=not (whole or has_target)))
        return cls._with(lookups, sums, n_states, frozenset(relevant), whole=whole)

    @classmethod
    def _with(
        cls, lookups: list[Lookup], sums: list[HiddenSum], n_states: int, relevant: frozenset[int], *, whole: bool
    ) -> RowInference:
        differences: list[Lookup] = []
        if n_states == 2 and not whole:
            differences = [lookup for lookup in lookups if len(lookup.logs) == 2 and np.isfinite(lookup.logs).all()]
        others = tuple(lookup for lookup in lookups if lookup not in differences)
        return cls(
            n_states,
            relevant,
            tuple(lookups),
            tuple(sums),
            tuple(Lookup(f.columns, f.strides, f.logs[:1] - f.logs[1:]) for f in differences),
            others,
        )

    @property
    def operations(self) -> int:
        """Approximate number of multiplications for a row."""
        return len(self.lookups) * self.n_states + sum(hidden.operations for hidden in self.sums)

    def log_joint(self, codes: IntegerArray) -> NDArray[np.float64]:
        """Return log Pr(target, row) of each row, up to a constant of the row.

        Parameters
        ----------
        codes : ndarray of int, shape (n_rows, n_observed)
            Value indices; Fortran order is faster.

        Returns
        -------
        ndarray of shape (n_rows, n_states); ``-inf`` where the probability is zero
        """
        total = np.zeros((self.n_states, len(codes)))
        for start in range(0, len(codes), _BLOCK):
            block = codes[start : start + _BLOCK]
            work = np.zeros((self.n_states, len(block)))
            for lookup in self._differences:
                lookup.add_to(work[:1], block)
            for lookup in self._others:
                lookup.add_to(work, block)
            total[:, start : start + _BLOCK] = work
        for hidden in self.sums:
            total += hidden.logs(codes)
        return total.T


def _connected(factors: Sequence[Factor], n_observed: int) -> list[list[Factor]]:
    """Split the factors into parts that share no hidden variable; each without one is a part of its own."""
    parts: list[list[Factor]] = []
    home: dict[int, int] = {}
    alias: list[int] = []

    def root(part: int) -> int:
        while alias[part] != part:
            part = alias[part]
        return part

    for factor in factors:
        own = len(parts)
        parts.append([factor])
        alias.append(own)
        for hidden in (v for v in factor.variables if v >= n_observed):
            other = root(home.setdefault(hidden, own))
            if other != root(own):
                small, large = sorted((root(own), other), key=lambda part: len(parts[part]))
                parts[large] += parts[small]
                parts[small] = []
                alias[small] = large
    return [part for part in parts if part]


# Sums over hidden variables of products of tables, for many rows of observed values at once.

# Entries of the largest table of a batch of rows, and of one row.
_BATCH_ENTRIES = 2**22
_MAX_ENTRIES = 2**26
_MAX_OPERATIONS = 2**37


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
        Most multiplications for one row.
    """

    columns: tuple[int, ...]
    order: tuple[int, ...]
    operations: int
    _factors: tuple[Factor, ...]
    _target: int
    _n_states: int
    _largest: int
    _only_zeros: bool
    # Whether products might leave the range of floats.
    _may_vanish: bool

    @classmethod
    def of(
        cls, factors: Sequence[Factor], target: int, n_states: int, n_observed: int, *, only_zeros: bool
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
        # The plan charges every table for its overhead, which a batch of rows shares.
        overhead = STEP_OPERATIONS * (len(scopes) + len(plan.order))
        operations = max(plan.operations - overhead, len(plan.order))
        columns = sorted(v for v in sizes if v != target and v < n_observed)
        order = tuple(unseen[i] for i in plan.order)
        may_vanish = sum(log_smallest(factor.table) for factor in factors) < VANISHING
        return cls(
            tuple(columns), order, operations, tuple(factors), target, n_states, plan.largest, only_zeros, may_vanish
        )

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

    def _of_rows(self, rows: IntegerArray, arithmetic: Arithmetic = PLAIN) -> NDArray[np.float64]:
        """Return the logarithms for rows whose columns are those of `columns`.

        If products of plain numbers may vanish, they are computed again as logarithms.
        """
        place = {v: i for i, v in enumerate(self.columns)}
        rank = {v: i for i, v in enumerate((*self.order, self._target))}
        # A table waits for the first of its variables to be summed out. Its first axis runs over the rows, or has one
        # entry for all of them.
        waiting: dict[int | None, list[Factor]] = {}

        def wait(factor: Factor) -> None:
            first = min(factor.variables, key=rank.__getitem__, default=None)
            waiting.setdefault(first, []).append(factor)

        in_logs = arithmetic is IN_LOGS
        scale = np.zeros((len(rows), 1))
        with np.errstate(divide="ignore"):
            for factor in self._factors:
                selected = _selected(factor, rows, place)
                wait(Factor(selected.variables, np.log(selected.table)) if in_logs else selected)
            for variable in self.order:
                inputs = waiting.pop(variable)
                if not in_logs and self._may_vanish and sum(log_smallest(one.table) for one in inputs) < VANISHING:
                    return self._of_rows(rows, IN_LOGS)
                message = summed_product(inputs, variable, rank, arithmetic)
                if in_logs:
                    wait(message)
                    continue
                axes = tuple(range(1, message.table.ndim))
                # With the largest entry of each row as 1, long products do not underflow.
                top = message.table.max(axis=axes, keepdims=True)
                top[top == 0] = 1.0
                scale += np.log(top.reshape(-1, 1))
                wait(Factor(message.variables, message.table / top))
            total = np.zeros((len(rows), self._n_states)) + scale
            for factor in (factor for factors in waiting.values() for factor in factors):
                table = factor.table.reshape(len(factor.table), -1)
                total += table if in_logs else np.log(table)
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


def _selected(factor: Factor, rows: IntegerArray, place: dict[int, int]) -> Factor:
    """Return the part of a table that the observed values select: a first axis for the rows, then hidden variables."""
    seen = [axis for axis, v in enumerate(factor.variables) if v in place]
    rest = [axis for axis, v in enumerate(factor.variables) if v not in place]
    table = factor.table.transpose(*seen, *rest)
    hidden = tuple(factor.variables[axis] for axis in rest)
    if not seen:
        return Factor(hidden, table[None])
    index = tuple(rows[:, place[factor.variables[axis]]] for axis in seen)
    return Factor(hidden, table[index])


def summed_product(
    factors: Sequence[Factor], variable: int, rank: dict[int, int], arithmetic: Arithmetic = PLAIN
) -> Factor:
    """Return the product of `factors`, summed over `variable`; first axes run over rows."""
    joined = product(factors, rank, arithmetic)
    axis = 1 + joined.variables.index(variable)
    rest = tuple(v for v in joined.variables if v != variable)
    return Factor(rest, np.asarray(arithmetic.plus.reduce(joined.table, axis=axis)))


def product(factors: Sequence[Factor], rank: dict[int, int], arithmetic: Arithmetic = PLAIN) -> Factor:
    """Return the product of `factors`, its axes after the first in the order of `rank`; first axes run over rows."""
    variables = sorted({v for factor in factors for v in factor.variables}, key=rank.__getitem__)
    result: NDArray[np.float64] | None = None
    for factor in sorted(factors, key=lambda factor: factor.table.size):
        by_rank = sorted(range(len(factor.variables)), key=lambda axis: rank[factor.variables[axis]])
        table = factor.table.transpose(0, *(1 + axis for axis in by_rank))
        has = {factor.variables[axis]: factor.table.shape[1 + axis] for axis in by_rank}
        table = table.reshape(len(table), *(has.get(v, 1) for v in variables))
        result = table if result is None else arithmetic.times(result, table)
    if result is None:
        raise ValueError("factors must hold at least one table")
    return Factor(tuple(variables), result)
