"""Evidence files: both formats, compressed or not, damaged, and evidence that fits no network."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.lawn_files import write
from tests.networks.random_models import networks
from tests.networks.test_bayesian_network import lawn
from trimbench.networks.inference.joint import evidence_positions, joint_distribution
from trimbench.networks.sampling import RowSampler

# The variables of the lawn are rain (yes, no), sprinkler (on, off) and grass (dry, damp, wet).
SEEN = {"grass": "wet", "rain": "no"}
ERGO = "/* Evidence */\n2\n 2    2\n 0    1\n"


@pytest.mark.parametrize(
    "text",
    [
        ERGO,
        "2 2 2 0 1",
        "2 2 2 0 1\n",
        "2\n2 2 0 1\n",
        "2\n2\n2\n0\n1\n",
        "1\n2 2 2 0 1\n",
        "1 2 2 2 0 1",
        "1\n2\n2\n2\n0\n1",
        "\ufeff1 2 2 2 0 1",
        "2\n2 2 2 0 1\n1 1 0\n",
        "3\n2  2 2  0 1\n\n0\n2 0 0 1 1\n",
    ],
)
def test_both_formats_are_read_whatever_their_lines(tmp_path: Path, text: str) -> None:
    for ending in ("erg.evid", "erg.evid.gz", "uai.evid", "evid.gz"):
        found = lawn().read_evidence(write(tmp_path, ending, text))
        assert list(found.items()) == list(SEEN.items())


@pytest.mark.parametrize("text", ["0", "0\n", "1\n0\n", "2\n0\n1 0 1\n", "/* none */ 0"])
def test_nothing_may_be_observed(tmp_path: Path, text: str) -> None:
    assert lawn().read_evidence(write(tmp_path, "erg.evid", text)) == {}


DAMAGE = [
    ("2\n 2", "3\n 2", 4, "the index of an observed variable must follow, got the end of the file; is it cut short?"),
    (" 0    1", " 0", 4, "the index of the state of 'rain' must follow, got the end of the file"),
    ("2\n 2", "4\n 2", 2, "the number of observed variables must be a whole number in 0..3, got '4'"),
    ("2\n 2", "two\n 2", 2, "the number of observed variables must be a whole number in 0..3, got 'two'"),
    (" 2    2", " 3    2", 3, "the index of an observed variable must be a whole number in 0..2, got '3'"),
    (" 2    2", " 2    3", 3, "the index of the state of 'grass' must be a whole number in 0..2, got '3'"),
    (" 0    1", " 0    -1", 4, "the index of the state of 'rain' must be a whole number in 0..1, got '-1'"),
    (" 0    1", " 0    " + "9" * 5000, 4, f"must be a whole number in 0..1, got '{'9' * 60}...'"),
    (" 0    1", " 2    1", 4, "a variable must be observed once, got '2'"),
    (" 0    1\n", " 0    1\n 7\n", 5, "the file must end here, got '7'"),
    ("/* Evidence */\n2\n", "0\n1 0\n", 2, "the file must end here, got '1'"),
    ("/* Evidence */\n2\n", "1\n0\n", 3, "the file must end here, got '2'"),
    ("/* Evidence */\n2\n 2    2\n 0    1\n", "", 0, "the number of observed variables must follow"),
    ("/* Evidence */\n2\n", "0\n1 2 2\n", 1, "the number of samples must be a whole number in 1..1000000000, got '0'"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), DAMAGE)
def test_damage_is_named_by_its_file_and_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in ERGO
    path = write(tmp_path, "erg.evid", ERGO.replace(old, new, 1))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        lawn().read_evidence(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")


def test_a_file_that_is_no_evidence_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path must end in \.evid or \.evid\.gz, got '.*network\.erg'"):
        lawn().read_evidence(write(tmp_path, "erg", ERGO))
    path = write(tmp_path, "erg.evid.gz", ERGO)
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(ValueError, match=r"network\.erg\.evid\.gz must be a whole gzip file"):
        lawn().read_evidence(path)
    (tmp_path / "lawn.evid").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="must be UTF-8 text"):
        lawn().read_evidence(tmp_path / "lawn.evid")
    with pytest.raises(FileNotFoundError):
        lawn().read_evidence(tmp_path / "no.evid")


@given(network=networks(), data=st.data())
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, network: tb.BayesianNetwork, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("evidence")
    nodes = data.draw(st.lists(st.sampled_from(network.nodes), unique=True))
    seen = {node: data.draw(st.sampled_from(network.states(node))) for node in nodes}
    pairs = [(network.nodes.index(node), network.states(node).index(state)) for node, state in seen.items()]
    ergo = f"/* Evidence */\n{len(pairs)}\n" + "".join(f" {i}    {k}\n" for i, k in pairs)
    uai = "2\n" + " ".join(map(str, [len(pairs), *(n for pair in pairs for n in pair)])) + "\n0\n"
    for text in (ergo, uai):
        assert network.read_evidence(write(folder, "erg.evid", text)) == seen
    assert evidence_positions(network, seen) == {node: network.states(node).index(seen[node]) for node in nodes}


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_products_beyond_the_range_of_floats_keep_their_ratios(seed: int) -> None:
    """Posteriors equal those in exact fractions, where joint probabilities are as small as 1e-1000."""
    rng = np.random.default_rng(seed)
    names = ["c", *(f"v{i}" for i in range(int(rng.integers(3, 6))))]
    parents = {name: [above for above in names[:i] if rng.random() < 0.5][:2] for i, name in enumerate(names)}
    tables = {}
    for name in names:
        small = 10.0 ** -rng.choice([0.3, 160, 250, 300], size=(2,) * len(parents[name]))
        first = rng.random(small.shape) < 0.5
        tables[name] = np.stack([np.where(first, small, 1 - small), np.where(first, 1 - small, small)], axis=-1)
    network = tb.BayesianNetwork({name: ["0", "1"] for name in names}, parents, tables)
    observed = {name: str(rng.integers(2)) for name in names[1:] if rng.random() < 0.6}
    chances = [Fraction(0), Fraction(0)]
    for values in itertools.product(range(2), repeat=len(names)):
        at = dict(zip(names, values, strict=True))
        if all(at[name] == int(state) for name, state in observed.items()):
            factors = (network.table(name)[(*(at[above] for above in parents[name]), at[name])] for name in names)
            chances[at["c"]] += math.prod(Fraction(float(factor)) for factor in factors)
    assume(sum(chances) > 0)
    expected = float(chances[1] / sum(chances))
    found = joint_distribution(network, ["c"], evidence=observed)
    assert found[1] == pytest.approx(expected, abs=1e-9)
    features = [name for name in observed if rng.random() < 0.5]
    if features:
        evidence = {name: state for name, state in observed.items() if name not in features}
        classifier = tb.BayesianClassifier(network, "c", positive="1", features=features, evidence=evidence)
        row = pd.DataFrame({name: [observed[name]] for name in features})
        assert classifier.posterior(row)[0] == pytest.approx(expected, abs=1e-9)


def test_rows_are_drawn_given_evidence_below_the_range_of_floats() -> None:
    roots = tb.BayesianNetwork(
        {name: ["0", "1"] for name in ("a", "b", "c")},
        {"c": ["a", "b"]},
        {"a": [1e-300, 1.0], "b": [1e-160, 1.0], "c": np.full((2, 2, 2), 0.5)},
    )
    assert RowSampler.of(roots, ["c"], {"a": "0", "b": "0"}).draw(10, np.random.default_rng(0)).shape == (10, 1)


@pytest.mark.parametrize("states", [("TRUE", "FALSE"), pytest.param(("True", "False"), id="pgmpy#1391")])
def test_evidence_may_be_a_truth_value(states: tuple[str, str]) -> None:
    network = tb.BayesianNetwork({"C": ["true", "false"], "F": states}, {}, {"C": [0.3, 0.7], "F": [0.5, 0.5]})
    assert evidence_positions(network, {"C": True, "F": np.bool_(False)}) == {"C": 0, "F": 1}  # type: ignore[dict-item]


@pytest.mark.parametrize("states", [("True", "False"), ("true", "false"), ("TRUE", "FALSE"), ("1", "0"), ("yes", "no")])
def test_a_sample_is_read_back(tmp_path: Path, states: tuple[str, str]) -> None:
    network = tb.BayesianNetwork(
        {"C": states, "F": states}, {"F": ["C"]}, {"C": [0.3, 0.7], "F": [[0.9, 0.1], [0.2, 0.8]]}
    )
    rows = network.sample(50, np.random.default_rng(0))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    classifier = tb.BayesianClassifier(network, "C", positive=states[0])
    for read in (pd.read_csv(tmp_path / "rows.csv"), pd.read_csv(tmp_path / "rows.csv", dtype=str)):
        np.testing.assert_array_equal(classifier.posterior(read[["F"]]), classifier.posterior(rows[["F"]]))


@pytest.mark.parametrize("states", [("NA", "b"), ("007", "7.50"), ("None", "x")])
def test_what_a_reader_of_rows_changes_is_said_with_the_way_out(tmp_path: Path, states: tuple[str, str]) -> None:
    network = tb.BayesianNetwork(
        {"C": ["y", "n"], "F": states}, {"F": ["C"]}, {"C": [0.3, 0.7], "F": [[0.9, 0.1], [0.2, 0.8]]}
    )
    network.sample(50, np.random.default_rng(0)).to_csv(tmp_path / "rows.csv", index=False)
    classifier = tb.BayesianClassifier(network, "C", positive="y")
    with pytest.raises(
        ValueError, match=r"column 'F' .* read the file of rows with dtype=str and keep_default_na=False"
    ):
        classifier.posterior(pd.read_csv(tmp_path / "rows.csv")[["F"]])
    read = pd.read_csv(tmp_path / "rows.csv", dtype=str, keep_default_na=False)
    assert len(classifier.posterior(read[["F"]])) == 50
