"""Classifiers as JSON files: the same decisions come back, nothing more is stored, and damage is named."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.random_models import distributions
from tests.trimming.brute_force import random_network_classifier


def naive_bayes(n_features: int = 3) -> tb.NaiveBayes:
    rng = np.random.default_rng(1)
    return tb.NaiveBayes([0.2, 0.3, 0.5], [rng.dirichlet([1, 1, 1], size=3) for _ in range(n_features)])


@given(seed=st.integers(0, 2**32), n_kept=st.integers(0, 3), several=st.booleans(), observed=st.booleans())
@settings(max_examples=40)
def test_naive_bayes_and_mixtures_keep_every_bit_of_what_they_need(
    seed: int, n_kept: int, several: bool, observed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = np.random.default_rng(seed)
    names = ["ä", "b c", "d", "e"]
    model: Any = tb.NaiveBayes(
        rng.dirichlet([1, 1, 1]),
        [distributions(rng, (3, 3), coarse=False) for _ in names],
        feature_names=names,
        class_variable="k",
    )
    if rng.random() < 0.5:
        model = tb.NaiveBayesMixture(model, ["ill", "well", "ill"])
    evidence = {"e": "1"} if observed else None
    kept = [str(name) for name in rng.permutation(names[:3])[:n_kept]]
    path = tmp_path_factory.getbasetemp() / "classifier.json"
    if several:
        classifier = tb.BayesianClassifier(model, features=kept, evidence=evidence)
    else:
        states = model.class_names
        classifier = tb.BayesianClassifier(
            model, positive=states[:1], features=kept, threshold=float(rng.random()), evidence=evidence
        )
    classifier.save(path)
    again = tb.BayesianClassifier.load(path)
    assert again.features == tuple(kept)
    assert again.evidence == classifier.evidence
    rows = model.sample(20, rng)
    assert again.predict(rows).tolist() == classifier.predict(rows).tolist()
    if several:
        assert again.log_joint(rows).tobytes() == classifier.log_joint(rows).tobytes()
    else:
        assert again.threshold == classifier.threshold
        assert (again.positive_states, again.negative) == (classifier.positive_states, classifier.negative)
        assert again.posterior(rows).tobytes() == classifier.posterior(rows).tobytes()
    parts = getattr(again.model, "components", again.model)
    assert set(parts.feature_names) == {*kept, *(evidence or {})}


@given(seed=st.integers(0, 2**32))
@settings(max_examples=20)
def test_networks_keep_the_ancestors_of_what_they_need(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = np.random.default_rng(seed)
    whole = random_network_classifier(rng, 4, 0.4)
    classifier = whole.with_features(whole.features[:2], 0.3)
    path = tmp_path_factory.getbasetemp() / "network.json"
    classifier.save(path)
    again = tb.BayesianClassifier.load(path)
    assert isinstance(whole.model, tb.BayesianNetwork)
    kept = set(again.model.nodes) if isinstance(again.model, tb.BayesianNetwork) else {*again.features, again.target}
    needed = {classifier.target, *classifier.features}
    while more := {parent for node in needed for parent in whole.model.parents(node)} - needed:
        needed |= more
    assert kept == needed
    rows = whole.model.sample(20, rng)
    np.testing.assert_allclose(again.posterior(rows), classifier.posterior(rows), rtol=1e-12)


def test_a_trimming_saves_its_trimmed_classifier(tmp_path: Path) -> None:
    classifier = tb.BayesianClassifier(naive_bayes(), positive=["0", "2"], threshold=0.4)
    trimming = tb.trim(classifier, budget=2)
    trimming.save(tmp_path / "trimmed.json")
    again = tb.BayesianClassifier.load(tmp_path / "trimmed.json")
    assert (again.features, again.threshold) == (trimming.features, trimming.threshold)
    assert again.positive_states == ("0", "2")
    assert isinstance(again.model, tb.NaiveBayes)
    assert again.model.feature_names == trimming.features
    content = json.loads((tmp_path / "trimmed.json").read_text(encoding="utf-8"))
    assert content["format"] == "trimbench.BayesianClassifier/1"


def test_files_of_the_most_probable_class_from_before_are_read(tmp_path: Path) -> None:
    classifier = tb.BayesianClassifier(naive_bayes(), features=["x2", "x0"])
    path = tmp_path / "classifier.json"
    classifier.save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    old = {key: value for key, value in content.items() if key not in ("positive", "threshold")}
    path.write_text(json.dumps(old | {"format": "trimbench.ArgMaxClassifier/1"}), encoding="utf-8")
    again = tb.BayesianClassifier.load(path)
    assert (again.features, again.threshold, again.class_names) == (("x2", "x0"), None, ("0", "1", "2"))
    assert tb.BayesianClassifier.from_dict(old | {"kind": "ArgMaxClassifier"}).features == again.features


def saved(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "classifier.json"
    tb.BayesianClassifier(naive_bayes(1), positive="0").save(path)
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return path, content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"model": {"kind": "Forest"}},
            ": kind of model must be one of NaiveBayes, NaiveBayesMixture, BayesianNetwork",
        ),
        ({"model": {}}, "lacks an entry or has one of the wrong type: KeyError('kind')"),
        ({"threshold": 2}, ": threshold must be a probability in [0, 1], got 2"),
        ({"positive": ["9"]}, ": positive must be one of"),
        ({"features": ["z"]}, ": features must be among"),
        ({"evidence": ["z"]}, ": evidence must be a mapping"),
    ],
)
def test_a_file_without_a_classifier_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path, content = saved(tmp_path)
    path.write_text(json.dumps(content | change), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        tb.BayesianClassifier.load(path)
    assert str(caught.value).startswith(str(path))


def test_every_entry_is_needed_and_every_way_to_cut_a_file_short_is_named(tmp_path: Path) -> None:
    path, content = saved(tmp_path)
    text = path.read_text(encoding="utf-8")
    for entry in content:
        path.write_text(json.dumps({key: value for key, value in content.items() if key != entry}), encoding="utf-8")
        with pytest.raises(ValueError, match=re.escape(str(path))):
            tb.BayesianClassifier.load(path)
    for length in range(0, len(text) - 1, 7):
        path.write_text(text[:length], encoding="utf-8")
        with pytest.raises(ValueError, match=re.escape(str(path))):
            tb.BayesianClassifier.load(path)
