"""One proof on many workers: whatever happens to pieces, the answer and its certificate are those of one process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trimbench as tb
from tests.trimming import brute_force
from trimbench.trimming.engines.log_odds import LogOddsEngine
from trimbench.trimming.problem import Choice, Limits, checked_choice
from trimbench.trimming.result import SearchResult
from trimbench.trimming.search import lattice_search, sharing
from trimbench.trimming.search.lattice_search import LatticeSearch, prove_piece
from trimbench.trimming.search.sharing import ChildProcesses

Problem = tuple[tb.BayesianClassifier, Choice]


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches of a moment are shared, in pieces of a few evaluations."""
    monkeypatch.setattr(lattice_search, "_ALONE", 0.0)
    monkeypatch.setattr(lattice_search, "_STEP", 1)
    monkeypatch.setattr(sharing, "PIECE", 0.0)
    monkeypatch.setattr(sharing, "SHORT_PIECE", 0.0)


def random_problem(seed: int, most: int = 12) -> Problem:
    """Return a classifier with copies and features that are nearly as good, or with equal weights."""
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(6, most + 1))
    classifier = brute_force.random_classifier(rng, [2] * n_features, float(rng.choice([0.2, 0.5])))
    tables = list(classifier.tables)
    for i in range(2, n_features):
        if seed % 3 == 0 and rng.random() < 0.4:  # a mirror image is as good, but no copy
            tables[i] = tables[i - 2][:, ::-1]
        if seed % 3 == 1:
            tables[i] = tables[i - 2] + rng.choice([-1e-3, 1e-3]) * np.array([[1, -1], [0, 0]]) * tables[i - 2].min()
    model = tb.NaiveBayes(classifier.prior, tables)
    costs = rng.choice([0.5, 1.0, 1.5], n_features).tolist() if seed % 2 else [1.0] * n_features
    choice = checked_choice(model.feature_names, float(rng.uniform(0.3, 0.7)) * sum(costs), costs)
    return tb.BayesianClassifier(model, positive="0", threshold=classifier.threshold), choice


def search_of(problem: Problem) -> LatticeSearch:
    classifier, choice = problem
    return LatticeSearch(classifier, choice, LogOddsEngine(classifier).potential_agreement_of, compiled=True)


def answer(found: SearchResult) -> tuple[object, ...]:
    """Return all but the number of evaluations."""
    return found.features, found.agreement, found.upper_bound, found.proven, found.complete


class Inline:
    """An executor that runs pieces at once, unless `fate` says that they are lost or late."""

    def __init__(self, fate: Callable[[], str] = lambda: "fine") -> None:
        self.fate, self.n_pieces, self.late = fate, 0, list[tuple[Future[bytes], bytes]]()

    def submit(self, function: Callable[..., bytes], /, *args: Any) -> Future[bytes]:
        self.n_pieces += 1
        future: Future[bytes] = Future()
        fate = self.fate()
        if fate == "refused":
            raise RuntimeError("no more workers")
        if fate == "lost":
            future.set_exception(RuntimeError("the worker has ended"))
        elif fate == "late":
            self.late.append((future, function(*args)))
        else:
            future.set_result(function(*args))
        while len(self.late) > 1:  # the answer of one piece comes when another one begins
            late, known = self.late.pop(0)
            if late.set_running_or_notify_cancel():
                late.set_result(known)
        return future


@pytest.mark.parametrize("seed", range(50))
def test_pieces_that_are_lost_or_late_change_neither_answer_nor_certificate(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "_WAIT", 0.0)
    monkeypatch.setattr(sharing, "_LATE", 0.0)
    problem, rng = random_problem(seed, most=14), np.random.default_rng(seed)
    if seed % 2:  # nearly every piece finds something better
        monkeypatch.setattr(LatticeSearch, "_climb", poor_guess)
    alone = search_of(problem).run(Limits())
    fates = ["lost", "late", "refused"]
    executor = Inline(lambda: str(rng.choice(fates)) if rng.random() < 0.3 else "fine")
    for n_jobs in (2, 5):
        found = search_of(problem).run(Limits(n_jobs=n_jobs, executor=executor))
        assert answer(found) == answer(alone)
    assert alone.proven
    assert executor.n_pieces
    best = max(map(LogOddsEngine(problem[0]).potential_agreement_of, maximal(problem[1])))
    assert alone.agreement == pytest.approx(best, abs=2e-12)


def poor_guess(search: LatticeSearch) -> Iterator[None]:
    """Begin with the subset of the least missed units."""
    kept, left = set[int](), search._left
    for u in reversed(search._order):
        if search._costs[u] <= left:
            kept.add(u)
            left -= search._costs[u]
    search._climbed[frozenset(search._order) - kept] = 1.0
    yield


def maximal(choice: Choice) -> Iterator[tuple[int, ...]]:
    """Yield the allowed subsets to which nothing can be added."""
    for kept in brute_force.allowed_subsets(choice):
        if not any(choice.is_affordable((*kept, i)) for i in range(len(choice.units)) if i not in kept):
            yield kept


def test_a_search_that_is_stopped_while_workers_have_pieces_goes_on_with_any_number_of_them() -> None:
    problem = random_problem(4, most=14)
    alone = search_of(problem).run(Limits())
    with ThreadPoolExecutor(3) as executor:
        search, n_stops = search_of(problem), 0
        for n_jobs in (3, 1, 2, 4) * 20:
            found = search.run(Limits(0.003, n_jobs=n_jobs, executor=executor))
            assert found.agreement - 1e-12 <= alone.agreement <= found.upper_bound + 1e-12
            if found.proven:
                break
            n_stops += 1
        assert answer(search.run(Limits())) == answer(alone)
    assert n_stops


def test_where_all_pieces_are_lost_the_search_goes_on_alone_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_MOST_LOST", 2)
    problem = random_problem(4, most=14)
    executor = Inline(lambda: "lost")
    with pytest.warns(RuntimeWarning, match="the last 2 pieces of a proof were lost .*the worker has ended"):
        found = search_of(problem).run(Limits(n_jobs=2, executor=executor))
    assert answer(found) == answer(search_of(problem).run(Limits()))
    assert executor.n_pieces >= 2


def test_evaluations_that_are_limited_are_not_shared() -> None:
    executor = Inline()
    search_of(random_problem(1)).run(Limits(evaluation_limit=10**6, n_jobs=4, executor=executor))
    assert executor.n_pieces == 0


# Child processes.


def number_of_process(_: bytes) -> bytes:
    return str(os.getpid()).encode()


def sleep_for_long(_: bytes) -> bytes:
    time.sleep(600)
    return b""


def fail(_: bytes) -> bytes:
    sys.stdout.write("to the standard error")
    raise KeyError("a mistake")


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def test_children_answer_fail_are_killed_and_end_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # where this module is
    with ChildProcesses(1) as executor:
        first = int(executor.submit(number_of_process, b"").result(300))
        assert int(executor.submit(number_of_process, b"").result(300)) == first != os.getpid()
        with pytest.raises(RuntimeError, match="KeyError: 'a mistake'"):
            executor.submit(fail, b"").result(300)
        lost = executor.submit(sleep_for_long, b"")
        threading.Timer(0.2, os.kill, (first, signal.SIGKILL)).start()
        with pytest.raises(EOFError, match="a worker has ended"):
            lost.result(300)
        second = int(executor.submit(number_of_process, b"").result(300))
        assert second != first
        executor.submit(sleep_for_long, b"")
        time.sleep(0.2)
    assert not is_running(second)


def test_a_proof_by_children_of_which_one_is_killed_is_that_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = brute_force.beta_classifier(28, 2.0)
    alone = tb.trim(classifier, 14)
    killed: list[int] = []

    class Killing(ChildProcesses):
        def submit(self, function: Callable[..., bytes], /, *args: Any) -> Future[bytes]:
            if not killed:
                killed.append(int(super().submit(_pid_of_worker, *args).result(300)))
                os.kill(killed[0], signal.SIGKILL)
            return super().submit(function, *args)

    monkeypatch.setattr(sharing, "ChildProcesses", Killing)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    found = tb.trim(classifier, 14, n_jobs=2)
    assert (found.features, found.agreement, found.upper_bound) == (alone.features, alone.agreement, alone.upper_bound)
    assert (found.threshold_interval, found.optimal) == (alone.threshold_interval, True)
    assert killed


def _pid_of_worker(problem: bytes, piece: bytes) -> bytes:
    prove_piece(problem, piece)
    return number_of_process(b"")
