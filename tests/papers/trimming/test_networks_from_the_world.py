"""Large networks of the bnlearn repository, all of whose variables but the class are features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trimbench as tb


@pytest.mark.parametrize("name", ["alarm", "pigs", "link", "munin1"])
def test_large_networks_are_trimmed_and_predict(name: str, given_folder: Path) -> None:
    path = given_folder / "files/bnlearn" / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"needs {path.name} in the cache")
    network = tb.BayesianNetwork.read(path)
    rows = network.sample(5, np.random.default_rng(0))
    for target in (network.order[0], network.order[-1]):
        classifier = tb.BayesianClassifier(network, target, positive=network.states(target)[0])
        trimming = tb.trim(classifier, 3, time_limit=1.0)
        assert len(trimming.features) <= 3
        # Half of the decisions agree with one class for all; little time leaves a wide interval.
        assert trimming.agreement_interval[0] > 0.4
        assert set(trimming.classifier.predict(rows)) <= {classifier.positive, classifier.negative}
