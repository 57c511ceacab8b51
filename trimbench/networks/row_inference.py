"""The probability of each state of one variable together with the observed values of a row, for many rows at once.

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

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.elimination import HiddenSum, ProbabilityTable
from trimbench.networks.value_codes import IntegerArray

# Rows are added up in blocks of this many, which stay near the processor.
_BLOCK = 2**13
TARGET = -1


@dataclass(frozen=True, eq=False)
class Lookup:
    """Log-probabilities that the observed values of a row select, for each state of the target or for all of them.

    Attributes
    ----------
    columns : tuple of int
        Which observed variables select the entry.
    strides : tuple of int
        What each of them counts for in the place of the entry.
    logs : ndarray of shape (n_states or 1, n_entries)
    """

    columns: tuple[int, ...]
    strides: tuple[int, ...]
    logs: NDArray[np.float64]

    @classmethod
    def of(cls, factor: ProbabilityTable, *, only_zeros: bool) -> Lookup:
        """Return a factor without hidden variables; `only_zeros` leaves of its logarithms only where it is zero."""
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
        for node in number.keys() | evidence.keys():
            axes = (*network.parents(node), node)
            index = tuple(
                network.states(name).index(evidence[name]) if name in evidence else slice(None) for name in axes
            )
            names = [name for name in axes if name not in evidence]
            factors.append(ProbabilityTable(tuple(number[name] for name in names), network.table(node)[index]))
        return cls._of(factors, network.cardinality(target), len(observed), whole=whole)

    @classmethod
    def of_naive_bayes(cls, prior: NDArray[np.float64], likelihoods: Sequence[NDArray[np.float64]]) -> RowInference:
        """Prepare the inference in a naive Bayes model; the i-th likelihood has shape (n_classes, n_values_i)."""
        factors = [ProbabilityTable((TARGET,), prior)]
        factors += [ProbabilityTable((TARGET, i), table) for i, table in enumerate(likelihoods)]
        return cls._of(factors, len(prior), len(likelihoods), whole=False)

    @classmethod
    def _of(cls, factors: Sequence[ProbabilityTable], n_states: int, n_observed: int, *, whole: bool) -> RowInference:
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
        differences: list[Lookup] = []
        if n_states == 2 and not whole:
            differences = [lookup for lookup in lookups if len(lookup.logs) == 2 and np.isfinite(lookup.logs).all()]
        others = tuple(lookup for lookup in lookups if lookup not in differences)
        return cls(
            n_states,
            frozenset(relevant),
            tuple(lookups),
            tuple(sums),
            tuple(Lookup(f.columns, f.strides, f.logs[:1] - f.logs[1:]) for f in differences),
            others,
        )

    @property
    def operations(self) -> int:
        """How many products of two numbers a row takes, about."""
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


def relevant_nodes(network: BayesianNetwork, names: Sequence[str]) -> tuple[str, ...]:
    """Return some nodes and all their ancestors, in the order of the network."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(network.parents(node))
    return tuple(node for node in network.nodes if node in found)


def _connected(factors: Sequence[ProbabilityTable], n_observed: int) -> list[list[ProbabilityTable]]:
    """Split the factors into parts that share no hidden variable; each without one is a part of its own."""
    parts: list[list[ProbabilityTable]] = []
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
