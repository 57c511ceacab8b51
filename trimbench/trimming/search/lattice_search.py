"""The proof on lattices: the best subset of a naive Bayes classifier with a positive class, best bound first.

A node of the search has removed some units (features, or groups of them that are bought together) and decided to keep
others. Its bound is the loss of all but the removed units on a coarse lattice, less all that rounding may change. The
loss only grows when more is removed (Proposition 2), so a node whose bound reaches the loss of the best subset is
closed. What a coarse lattice cannot tell apart is decided on finer ones, and in the end by the exact value.
"""

from __future__ import annotations

import heapq
import json
import math
import pickle
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trimbench._numba import clock
from trimbench._typing import FloatArray
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.lattice import (
    Below,
    Lattice,
    Limited,
    Polynomials,
    Spectra,
    Weights,
    decided_by_finer,
    decided_exactly,
    decided_roughly,
)
from trimbench.trimming.engines.log_odds import MAX_ENTRIES, LogOddsEngine
from trimbench.trimming.problem import FREE, KEPT, REMOVED, Choice, Limits, highest_cost
from trimbench.trimming.result import AGREEMENT_TOLERANCE, SearchResult
from trimbench.trimming.search.sharing import share

# Steps of the lattices, each a multiple of the next; finer ones where exact values are out of reach.
_STEPS, _FINE_STEPS = (0.1, 0.02, 0.002), (0.1, 0.02, 0.001, 0.0002)
# With at most this many instances, their sums are found by meeting in the middle.
_MOST_INSTANCES = 2.0**40
# With at most this many instances, a search takes less time than loading compiled loops.
_SHORT_SEARCH = 2.0**27
# Most cells of the joint distribution of sums on the two finest lattices.
_MOST_CELLS = 2.0**25
# Number of local searches that start from a disturbed subset, and of the best subsets that finer lattices compare.
_RESTARTS, _RANKED = 5, 10
# Evaluations in compiled loops after which a search looks at its limits.
_STEP = 2000
# How many units are put back and taken out to disturb a subset.
_PUT_BACK, _TAKEN_OUT = 3, 2
# Seconds that a search with several workers goes on alone, and the most nodes that one of them gets at once.
_ALONE, _MOST_NODES = 1.0, 256

Removed = frozenset[int]
_NONE: Removed = frozenset([-1])  # no subset


def prove_piece(problem: bytes, piece: bytes) -> bytes:
    """Return the answer of a worker to a piece of a proof; both are data, though a problem is pickled."""
    return _worker(problem).answer(piece)


class _Held(threading.local):
    """The last problem of a thread, and its search."""

    problem: bytes = b""
    search: LatticeSearch


_held = _Held()


def _worker(problem: bytes) -> LatticeSearch:
    if _held.problem != problem:
        classifier, choice, lattices, order, decided, has_exact = pickle.loads(problem)
        engine = LogOddsEngine(classifier, of_any_size=True)
        is_small = math.prod(classifier.cardinalities) <= MAX_ENTRIES

        def exact(features: Sequence[int]) -> float | None:
            may_be_had = is_small or engine.seconds(features) < math.inf
            return engine.potential_agreement_of(features) if may_be_had else None

        search = LatticeSearch(classifier, choice, exact if has_exact else None, compiled=True, lattices=lattices)
        search._arrange(order)
        search._decided.update(decided)
        _held.problem, _held.search = problem, search
    return _held.search


class _Node(NamedTuple):
    """What is done with each unit, as in `Below`; no subset below it loses less than the bound."""

    bound: float
    order: int
    state: bytes


class LatticeSearch:
    """A search with bounds from lattices; it can be stopped and continued.

    Parameters
    ----------
    classifier : BayesianClassifier
        Naive Bayes, with a threshold and a prior strictly between 0 and 1.
    choice : Choice
        Which subsets are allowed.
    exact : callable or None
        Returns the maximum potential agreement of a set of features, or None if that takes too long: the agreement is
        then a lower bound. None in place of the callable if it always takes too long.
    compiled : bool, optional
        Whether bounds are computed by compiled loops; by default where the search is expected to be long.
    lattices : list of Lattice, optional
        Those of another search for the same classifier, which need not be made again.
    """

    def __init__(
        self,
        classifier: BayesianClassifier,
        choice: Choice,
        exact: Callable[[Sequence[int]], float | None] | None,
        *,
        compiled: bool | None = None,
        lattices: list[Lattice] | None = None,
    ) -> None:
        if compiled is None:
            compiled = math.prod(map(float, classifier.cardinalities)) > _SHORT_SEARCH
        self._classifier, self._choice = classifier, choice
        self._n_features, self._exact = classifier.n_features, exact
        required, limit = choice.required_units, highest_cost(choice.budget)
        always = [u for u, cost in enumerate(choice.costs) if u in required or cost == 0]
        self._left = limit - math.fsum(choice.costs[u] for u in always)
        bought = [u for u, cost in enumerate(choice.costs) if u not in always and cost <= self._left]
        never = [u for u in range(len(choice.units)) if u not in always and u not in bought]
        self._units, self._costs = [choice.units[u] for u in bought], np.array([choice.costs[u] for u in bought])
        self._never = (*choice.forbidden, *choice.features(never))
        self._lattices = _lattices(classifier, compiled=compiled) if lattices is None else lattices
        kind = Polynomials if compiled else Spectra
        self._laws, self._finer = (
            kind(lattice, self._units, choice.features(always), self._never) for lattice in self._lattices[:2]
        )
        self._copies = _copies(classifier, self._units)
        self._best, self._best_removed = math.inf, _NONE
        self._lowest = 0.0
        self._decided: set[Removed] = set()
        # What subsets lose, or bounds on that, where they may be as good as the best one; the first one decided.
        self._losses: dict[Removed, tuple[float, float]] = {}
        self._first_decided: Removed | None = None
        # Lower bounds on the losses of subsets whose exact loss is not known, perhaps including the best one.
        self._unresolved: dict[Removed, float] = {}
        self._climbed: dict[Removed, float] = {}
        self._frontier: list[_Node] = []
        # Open nodes that workers have, by the number of their piece.
        self._out: dict[int, list[_Node]] = {}
        self._n_pieces, self._shares = 0, compiled
        self._order: Sequence[int] = range(len(self._units))
        self.n_evaluations = self._n_nodes = 0
        self.limits = Limits()
        self._steps = self._search()

    def run(self, limits: Limits) -> SearchResult:
        """Search, or go on searching, until the optimum is proven or a limit is reached."""
        self.limits = limits
        is_over, began = False, clock()
        # Workers would share the evaluations differently each time.
        n_jobs = limits.n_jobs if limits.evaluation_limit is None else 1
        for _ in self._steps:
            if not limits.may_go_on(self.n_evaluations):
                break
            self.report()
            if n_jobs > 1 and self._shares and self._frontier and clock() >= began + _ALONE:
                self._shares = share(self, prove_piece, limits)
        else:
            is_over = self._settle()
            self._choose()
        loss, removed = self._guess() if self._best == math.inf else (self._best, self._best_removed)
        limits.report(1.0 - loss, self._upper_bound, self.n_evaluations, last=True)
        kept = self._others(self._gone(self._last_copies(removed)))
        bound, proven = self._upper_bound(), self._is_proven()
        return SearchResult(tuple(kept), 1.0 - loss, bound, self.n_evaluations, proven=proven, complete=is_over)

    def _search(self) -> Iterator[None]:
        """Search; yield whenever the search may be interrupted."""
        everything = range(len(self._units))
        if self._cost(everything) <= self._left:
            self._decide(frozenset())
            return
        low, high = self._laws.losses_without_each(everything, (), everything)
        self.n_evaluations += len(self._units)
        # The most missed first: its branch is closed soon.
        self._arrange(sorted(everything, key=lambda u: (-high[u], u)))
        self._lowest = max(0.0, self._least_loss(low))
        yield
        yield from self._climb()
        ranked = sorted(self._climbed, key=lambda removed: self._climbed[removed])[:_RANKED]
        self._decide(min(ranked, key=lambda removed: self._on(self._lattices[-1], removed)[1]))
        self._push(self._lowest, bytes(len(self._units)))
        while self._frontier:
            yield
            self.step()

    def _arrange(self, order: Sequence[int]) -> None:
        """Set the order of the units."""
        self._order = order
        for laws in (self._laws, self._finer):
            if isinstance(laws, Polynomials):
                laws.prepare(order, self._costs, self._copies)

    def step(self) -> None:
        """Replace the open node with the lowest bound by what is below it; if none may be better, close all."""
        if self._frontier and self._is_worse(self._frontier[0].bound):
            self._frontier.clear()
        if self._frontier:
            self._expand(heapq.heappop(self._frontier))

    def report(self) -> None:
        """Say how far the search is."""
        self.limits.report(max(0.0, 1.0 - self._best), self._upper_bound, self.n_evaluations)

    def _settle(self) -> bool:
        """Compute exact losses for which there was no time; return whether nothing is left for which there may be."""
        for removed in sorted(self._unresolved, key=lambda one: (one != self._best_removed, self._unresolved[one])):
            if self._is_proven():
                return True
            if self._exact and self.limits.may_go_on(self.n_evaluations):
                value = self._exact(self._others(self._gone(removed)))
                if value is not None:
                    self.n_evaluations += 1
                    self._note(removed, 1.0 - value, 1.0 - value)
        return self._is_proven() or self.limits.time_limit is None

    def _upper_bound(self) -> float:
        """Return an upper bound on the agreement of all allowed subsets."""
        # Until something is decided, there is only the bound of the root.
        lowest = math.inf if self._decided else self._lowest
        nodes = [*self._frontier[:1], *(min(nodes) for nodes in self._out.values())]
        rivals = (low for low in self._unresolved.values() if not self._is_worse(low))
        return 1.0 - max(0.0, min(lowest, self._best, *rivals, *(node.bound for node in nodes)))

    def _is_proven(self) -> bool:
        """Return whether no other subset can lose less than the best one, whose own loss may not be known exactly."""
        rivals = (low for removed, low in self._unresolved.items() if removed != self._best_removed)
        return bool(self._decided) and all(map(self._is_worse, (*rivals, *(node.bound for node in self._frontier[:1]))))

    def _is_worse(self, bound: float) -> bool:
        return bound >= self._best - AGREEMENT_TOLERANCE

    def _cost(self, units: Iterable[int]) -> float:
        return float(self._costs[list(units)].sum())

    def _gone(self, removed: Iterable[int]) -> list[int]:
        """Return the features that a subset lacks."""
        return [*self._never, *(i for u in removed for i in self._units[u])]

    def _others(self, features: Iterable[int]) -> list[int]:
        return sorted(set(range(self._n_features)).difference(features))

    def _last_copies(self, removed: Removed) -> Removed:
        """Return the equal subset that keeps the first of identical units that cost the same."""
        twins = list(zip(self._copies, self._costs.tolist(), strict=True))
        for u in sorted(removed):
            kept = (v for v in range(u, len(twins)) if twins[v] == twins[u] and v not in removed)
            removed = removed - {u} | {max(kept, default=u)}
        return removed

    def _least_loss(self, low: FloatArray) -> float:
        """Return a lower bound on the loss of every allowed subset: of units too dear together, each lacks one."""
        price, lacking = 0.0, math.inf
        for u in np.argsort(-low, kind="stable").tolist():
            price, lacking = price + self._costs[u], min(lacking, float(low[u]))
            if price > self._left:
                break
        return lacking

    def _climb(self) -> Iterator[None]:
        """Look for good subsets by local search, several times from a disturbed one."""
        generator = np.random.default_rng(0)
        best = yield from self._descend(frozenset())
        for _ in range(_RESTARTS):
            kept = sorted(set(self._order).difference(best))
            back = generator.choice(sorted(best), min(_PUT_BACK, len(best)), replace=False).tolist()
            out = generator.choice(kept, min(_TAKEN_OUT, len(kept)), replace=False).tolist()
            found = yield from self._descend(best.difference(back).union(out))
            if self._climbed[found] < self._climbed[best]:
                best = found

    def _descend(self, removed: Removed) -> Generator[None, None, Removed]:
        """Remove the least missed unit until the rest is affordable, then exchange units while that helps."""
        loss = self._laws.loss(self._kept(removed), [*removed])[1]
        while self._cost(kept := self._kept(removed)) > self._left:
            high = self._laws.losses_without_each(kept, [*removed], kept)[1]
            self.n_evaluations += len(kept)
            place = int(np.argmin((high - loss) / self._costs[kept]))
            removed, loss = removed | {kept[place]}, float(high[place])
            yield
        removed = self._filled(removed)
        loss = self._laws.loss(self._kept(removed), [*removed])[1]
        changed = True
        while changed:
            changed = False
            for u in [u for u in self._order if u in removed]:
                less = removed - {u}
                kept = self._kept(less)
                price = self._cost(kept)
                candidates = [v for v in kept if v != u and price - self._costs[v] <= self._left]
                if not candidates:
                    continue
                high = self._laws.losses_without_each(kept, [*less], candidates)[1]
                self.n_evaluations += len(candidates)
                if high.min() < loss - AGREEMENT_TOLERANCE:
                    removed, loss = less | {candidates[int(high.argmin())]}, float(high.min())
                    changed = True
                yield
        removed = self._filled(removed)
        self._climbed[removed] = min(loss, self._laws.loss(self._kept(removed), [*removed])[1])
        return removed

    def _kept(self, removed: Removed) -> list[int]:
        return [u for u in self._order if u not in removed]

    def _filled(self, removed: Removed) -> Removed:
        """Put back the units that are affordable, the most missed first."""
        for u in self._order:
            if u in removed and self._cost(self._kept(removed - {u})) <= self._left:
                removed = removed - {u}
        return removed

    def _guess(self) -> tuple[float, Removed]:
        """Return the best subset so far, or else the most missed units that are affordable, after its loss at most."""
        removed = min(self._climbed, key=lambda one: self._climbed[one], default=self._filled(frozenset(self._order)))
        return self._on(self._lattices[-1], removed)[1], removed

    def _on(self, lattice: Lattice, removed: Iterable[int]) -> tuple[float, float]:
        """Return bounds on the loss without some units, on a lattice."""
        gone = self._gone(removed)
        self.n_evaluations += 1
        return lattice.loss(self._others(gone), gone)

    def _decide(self, removed: Removed) -> None:
        """Compare a subset that uses up the budget with the best one, only as exactly as necessary."""
        if removed in self._decided:
            return
        low, high = -math.inf, math.inf
        for lattice in self._lattices[1:]:
            low, high = self._on(lattice, removed)
            if self._is_worse(low):
                self._decided.add(removed)
                return
        value = self._exact(self._others(self._gone(removed))) if self._exact else None
        self.n_evaluations += value is not None
        self._note(removed, *((low, high) if value is None else (1.0 - value, 1.0 - value)))

    def _note(self, removed: Removed, low: float, high: float) -> None:
        """Take note of what a subset loses: bounds, which are equal if it is known exactly."""
        self._decided.add(removed)
        if self._first_decided is None:
            self._first_decided = removed
        self._unresolved.pop(removed, None)
        if low < high:
            self._unresolved[removed] = low
        if low < high or high < self._best + AGREEMENT_TOLERANCE:
            self._losses[removed] = low, high
        if high < self._best - AGREEMENT_TOLERANCE or removed == self._best_removed:
            self._best, self._best_removed = high, removed

    def _choose(self) -> None:
        """Of the best subsets, which may have been found in any order, take the first one decided, or else in order.

        All of them have been found: bounds are lower than losses by twice the tolerance, so no node was closed above a
        subset that is as good as the best one.
        """
        lowest = min(high for _, high in self._losses.values())
        good = [one for one, (_, high) in self._losses.items() if high <= lowest + 0.5 * AGREEMENT_TOLERANCE]
        self._best_removed = min(good, key=lambda removed: (removed != self._first_decided, sorted(removed)))
        self._best = self._losses[self._best_removed][1]

    # What a queue of pieces needs, see `sharing`.

    def problem(self) -> bytes:
        """Return what all pieces share: a search without its open nodes."""
        lattices = [replace(lattice) for lattice in self._lattices]  # without what they remember
        classifier = self._classifier.with_threshold(self._classifier.threshold)
        decided = [*self._decided][:_MOST_NODES]
        return pickle.dumps((classifier, self._choice, lattices, list(self._order), decided, self._exact is not None))

    def take(self, n_parts: int) -> int | None:
        """Take one of so many parts of the open nodes."""
        if not self._frontier or self._is_worse(self._frontier[0].bound):
            self._frontier.clear()
            return None
        size = min(_MOST_NODES, -(-len(self._frontier) // n_parts))
        self._n_pieces += 1
        self._out[self._n_pieces] = [heapq.heappop(self._frontier) for _ in range(size)]
        return self._n_pieces

    def piece(self, number: int, seconds: float) -> bytes:
        """Return the nodes that were taken, and the loss at which branches are closed."""
        nodes = [(node.bound, node.state.hex()) for node in self._out[number]]
        return json.dumps({"best": self._best, "nodes": nodes, "seconds": seconds}).encode()

    def give_back(self, number: int) -> None:
        """Open nodes again that were taken."""
        for node in self._out.pop(number):
            heapq.heappush(self._frontier, node)

    def merge(self, number: int, answer: bytes) -> None:
        """Put what a worker found in the place of the nodes that it got."""
        found = json.loads(answer)
        nodes = [(float(bound), bytes.fromhex(state)) for bound, state in found["nodes"]]
        for state, low, high in found["subsets"]:
            removed = _units_that_are(REMOVED, bytes.fromhex(state))
            if removed not in self._decided:
                self._note(removed, float(low), float(high))
        self.n_evaluations += int(found["evaluations"])
        del self._out[number]
        for bound, state in nodes:
            self._push(bound, state)

    def answer(self, piece: bytes) -> bytes:
        """Return what a worker finds below the nodes of a piece: what is still open, and the subsets it has decided."""
        given, began = json.loads(piece), time.thread_time()
        self._best, self._frontier, self.n_evaluations = float(given["best"]), [], 0
        before = {*self._decided}
        self._losses, self._unresolved, self._best_removed = {}, {}, _NONE
        for bound, state in given["nodes"]:
            self._push(float(bound), bytes.fromhex(state))
        while self._frontier:
            self.step()
            if time.thread_time() >= began + given["seconds"]:
                break
        n_units, self._decided = len(self._units), before
        subsets = [(_state(n_units, removed, ()).hex(), *bounds) for removed, bounds in self._losses.items()]
        nodes = [(node.bound, node.state.hex()) for node in self._frontier]
        return json.dumps({"nodes": nodes, "subsets": subsets, "evaluations": self.n_evaluations}).encode()

    def _expand(self, node: _Node) -> None:
        """Replace a node by what is below it.

        The finer lattice decides where the bounds of the coarse one lie on both sides of the loss of the best subset.
        """
        if isinstance(self._laws, Polynomials) and isinstance(self._finer, Polynomials):
            most = self.limits.evaluations_left(self.n_evaluations)
            limits = Limited(self._left, self._best - AGREEMENT_TOLERANCE, min(most, _STEP))
            nodes, found, n_evaluations = self._laws.explore(self._finer, node.bound, node.state, limits)
            self.n_evaluations += n_evaluations
            for state in found:
                self._decide(_units_that_are(REMOVED, state))
            for bound, state in nodes:
                self._push(bound, state)
            return
        for state, low, high in self._below(node):
            if FREE not in state:
                self._decide(_units_that_are(REMOVED, state))
                continue
            if high >= self._best - AGREEMENT_TOLERANCE and not self._is_worse(low):
                self.n_evaluations += 1
                removed = _units_that_are(REMOVED, state)
                low = max(low, self._finer.loss(self._kept(removed), [*removed])[0])
            self._push(low, state)

    def _below(self, node: _Node) -> Iterator[Below]:
        removed, kept = _units_that_are(REMOVED, node.state), _units_that_are(KEPT, node.state)
        costs = self._costs
        left = self._left - self._cost(kept)
        while True:
            open_ = [u for u in self._order if u not in removed and u not in kept]
            free = [u for u in open_ if costs[u] <= left]
            if len(free) < len(open_):
                removed = removed.union(open_).difference(free)
                if self._is_closed(removed):
                    return
            cheapest = sorted(costs[free].tolist())
            if sum(cheapest) <= left:
                yield self._complete(removed)
                return
            if sum(cheapest[:2]) > left:
                yield from self._keep_one(removed, free)
                return
            if len(free) > 4 and sum(cheapest[:3]) > left and self._needs_more(removed, free, left):
                return
            candidates = self._candidates(free, left)
            lows, highs = self._laws.losses_without_each([*free, *kept], [*removed], candidates)
            self.n_evaluations += len(candidates)
            for place, u in enumerate(candidates):
                low = max(node.bound, float(lows[place]))
                if not self._is_worse(low):
                    yield from self._without_first(removed, kept, free[place:], left, (low, float(highs[place])))
                kept, left = kept | {u}, left - float(costs[u])

    def _is_closed(self, removed: Removed) -> bool:
        self.n_evaluations += 1
        return self._is_worse(self._laws.loss(self._kept(removed), [*removed])[0])

    def _candidates(self, free: Sequence[int], left: float) -> list[int]:
        """Return the first free units, up to the one after which at most one more can be kept."""
        for count in range(1, len(free)):
            left -= self._costs[free[count - 1]]
            rest = sorted(self._costs[free[count:]].tolist())
            if sum(rest[:2]) > left or rest[-1] > left:
                return list(free[:count])
        return list(free)

    def _without_first(
        self, removed: Removed, kept: Removed, free: Sequence[int], left: float, bounds: tuple[float, float]
    ) -> Iterator[Below]:
        """Yield the node in which the first free unit is removed, and with it all later copies that cost as much."""
        copies, costs = self._copies, self._costs
        gone = {u for u in free if u == free[0] or (copies[u] == copies[free[0]] and costs[u] >= costs[free[0]])}
        rest = self._cost(set(free) - gone)
        if len(gone) > 1 and rest + min(costs[u] for u in gone) <= left:
            return  # one of them could stay, and an equal subset keeps the first unit instead
        without, (low, high) = removed | gone, bounds
        if rest <= left:
            yield self._complete(without)
            return
        if len(gone) > 1:
            self.n_evaluations += 1
            lowest, high = self._laws.loss(self._kept(without), [*without])
            low = max(low, lowest)
        yield Below(_state(len(self._units), without, kept), low, high)

    def _complete(self, removed: Removed) -> Below:
        return Below(_state(len(self._units), removed, self._kept(removed)), 0.0, 1.0)

    def _push(self, bound: float, state: bytes) -> None:
        if not self._is_worse(bound):
            self._n_nodes += 1
            heapq.heappush(self._frontier, _Node(bound, self._n_nodes, state))

    def _needs_more(self, removed: Removed, free: Sequence[int], left: float) -> bool:
        """Return whether a subset below a node has to keep more free units than it can pay for.

        The free units form three groups. If the loss without each of them is too high, a subset must keep a unit of
        each, which costs no less than the cheapest one.
        """
        groups = [free[first::3] for first in range(3)]
        price = sum(float(self._costs[list(group)].min()) for group in groups)
        return price > left and all(self._is_closed(removed.union(group)) for group in groups)

    def _keep_one(self, removed: Removed, free: Sequence[int]) -> Iterator[Below]:
        """Yield the subsets that keep one of the free units, of which no two are affordable, by halving."""
        stack = [list(free)]
        while stack:
            part = stack.pop()
            for half in (part[: len(part) // 2], part[len(part) // 2 :]):
                without = removed.union(free).difference(half)
                if half and not self._is_closed(without):
                    if len(half) > 1:
                        stack.append(half)
                    else:
                        yield self._complete(without)


def _state(n_units: int, removed: Iterable[int], kept: Iterable[int]) -> bytes:
    state = bytearray(n_units)
    for u in removed:
        state[u] = REMOVED
    for u in kept:
        state[u] = KEPT
    return bytes(state)


def _units_that_are(what: int, state: bytes) -> Removed:
    return frozenset(u for u, one in enumerate(state) if one == what)


def _lattices(classifier: BayesianClassifier, *, compiled: bool) -> list[Lattice]:
    """Return lattices from coarse to fine, each with its decision."""
    weights = Weights.of(classifier)
    are_few = math.prod(max(1.0, len(one)) for one in weights.weights) <= _MOST_INSTANCES
    steps = _STEPS if are_few else _FINE_STEPS
    finest = Lattice.of(weights, steps[-1])
    found = [decided_exactly(finest, compiled=compiled) if are_few else decided_roughly(finest)]
    for step in steps[-2::-1]:
        found.insert(0, decided_by_finer(Lattice.of(weights, step), found[0]))
    return found


def fits(classifier: BayesianClassifier) -> bool:
    """Return whether the lattices of a classifier with many features are short enough for memory."""
    span = sum(float(one.max(initial=0.0)) for one in Weights.of(classifier).weights)
    ratio = _FINE_STEPS[-2] / _FINE_STEPS[-1]
    return span / _FINE_STEPS[-2] * classifier.n_features * ratio <= _MOST_CELLS


def _copies(classifier: BayesianClassifier, units: Sequence[tuple[int, ...]]) -> list[int]:
    """Return for each unit the first one whose tables are the same."""
    keys = [tuple(sorted(classifier.tables[i].tobytes() for i in unit)) for unit in units]
    return [keys.index(key) for key in keys]
