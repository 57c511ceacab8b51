"""Time the networks of the UAI 2008 evaluation given their evidence, and the parts of a large contraction.

Needs the networks in the data cache (`trimbench task=fetch`, or TRIMBENCH_CACHE). Takes about a minute of processor
time; names of networks as arguments choose among them. Seconds are those of the processor unless they say otherwise.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import trimbench as tb
from trimbench.networks.inference import joint as inference_joint
from trimbench.networks.inference.joint import ContractionTooLarge, joint_distribution
from trimbench.papers.networks import network_input, network_of
from trimbench.papers.trimming.figure7 import binary_roots, draw_class
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.execution.job import seed_for
from trimbench.reproduction.vocabulary.cells import Inputs

NETWORKS = ("cpcs54", *(f"bn_{i}" for i in range(13)), "bn_14")
# Each of these is to take less than this many seconds.
BOUND = {f"bn_{i}": 60.0 for i in (2, 3, 4, 5, 6, 7, 11)}
MAX_OPERATIONS = 10**12
# The joint distribution over a class and at most this many observed nodes is a second way to the same probabilities.
JOINT_NODES = 18


class Observed(NamedTuple):
    """A network, what was observed, the class that Figure 7 draws first, and the free leaves."""

    network: tb.BayesianNetwork
    evidence: dict[str, str]
    target: str
    features: tuple[str, ...]


def observed(name: str) -> Observed:
    inputs = Inputs(Catalogue(), Cache.from_environment())
    loaded = network_of(network_input(inputs, name, evidence=True))
    if not isinstance(loaded.model, tb.BayesianNetwork):
        sys.exit(f"{name} is no general network")
    roots = [node for node in binary_roots(loaded.model) if node not in loaded.evidence]
    target = draw_class(roots, name, 0, seed_for(purpose="class variable", network=name, seed=0))
    free = tuple(node for node in loaded.features if node not in loaded.evidence)
    return Observed(loaded.model, dict(loaded.evidence), target, free)


def table(
    problem: Observed, evidence: dict[str, str] | None, variables: Sequence[str], n_threads: int = 1
) -> NDArray[np.float64]:
    return joint_distribution(
        problem.network, variables, evidence=evidence, max_operations=MAX_OPERATIONS, n_threads=n_threads
    )


def difference_from_joint(problem: Observed, class_given: NDArray[np.float64]) -> float | None:
    """Return how far P(class | evidence) is from the joint without evidence, None where that is too large."""
    if len(problem.evidence) > JOINT_NODES:
        return None
    try:
        joint = joint_distribution(problem.network, [problem.target, *problem.evidence], max_operations=2**33)
    except ContractionTooLarge:
        return None
    place = tuple(problem.network.states(node).index(state) for node, state in problem.evidence.items())
    part = joint.reshape(2, -1)[:, np.ravel_multi_index(place, joint.shape[1:])]
    return float(np.abs(part / part.sum() - class_given).max())


def say(what: str, value: str) -> None:
    print(f"{what:<78} {value}", flush=True)


def one_network(name: str) -> bool:
    """Time one network; return whether it keeps its bound."""
    problem = observed(name)
    classifier = tb.BayesianClassifier(
        problem.network,
        problem.target,
        positive=problem.network.states(problem.target)[-1],
        features=problem.features,
        evidence=problem.evidence,
    )
    start = time.process_time()
    classifier.prepare_table(max_operations=MAX_OPERATIONS)
    trimming = tb.trim(classifier, len(problem.features) // 3, engine="dense")
    taken = time.process_time() - start
    say(
        f"{name}: {len(problem.evidence)} observed, {len(problem.features)} leaves left, contracted and trimmed",
        f"{taken:8.2f} s",
    )
    positive, negative = classifier.joint(range(classifier.n_features))
    error = difference_from_joint(problem, np.array([negative.sum(), positive.sum()]))
    if error is not None:
        say("    P(class | evidence) against the joint without evidence", f"{error:8.1e}")
    sound = trimming.optimal and (error is None or error < 1e-9) and taken < BOUND.get(name, np.inf)
    if not sound:
        say(
            "    NOT as it should be: optimal, equal to the joint and within its bound",
            f"{BOUND.get(name, np.inf):8.0f} s",
        )
    return sound


def parts_of_a_contraction() -> bool:
    """Compare NumPy with the compiled loop, and one thread with two, on a large contraction."""
    problem = observed("bn_8")
    variables = [problem.target, *problem.features]
    tables = {}
    for n_threads in (1, 2):
        start, processor = time.perf_counter(), time.process_time()
        tables[n_threads] = table(problem, problem.evidence, variables, n_threads)
        say(
            f"bn_8 given evidence, {n_threads} thread{'s' * (n_threads > 1)}: wall clock (and processor)",
            f"{time.perf_counter() - start:8.1f} s ({time.process_time() - processor:.1f})",
        )
    same = tables[1].tobytes() == tables[2].tobytes()
    say("    equal to the last digit", f"{same!s:>8}")
    small = observed("bn_1")
    variables = [small.target, *small.features]
    results = []
    for way, most in (("compiled", 0), ("NumPy", 2**62)):
        with patch.object(inference_joint, "COMPILED_OPERATIONS", most):
            table(small, small.evidence, variables)
            start = time.process_time()
            results.append(table(small, small.evidence, variables))
        say(f"bn_1 given evidence, {way}", f"{time.process_time() - start:8.2f} s")
    error = float(np.abs(results[0] - results[1]).max())
    say("    largest difference", f"{error:8.1e}")
    return same and error < 1e-12


def main() -> None:
    chosen = sys.argv[1:] or NETWORKS
    sound = [one_network(name) for name in chosen]
    if not sys.argv[1:]:
        sound.append(parts_of_a_contraction())
    if not all(sound):
        sys.exit("something is not as it should be; see above")


if __name__ == "__main__":
    main()
