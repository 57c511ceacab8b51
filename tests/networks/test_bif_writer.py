"""Networks written as BIF: read again to the last digit, whole or not at all, names quoted or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.random_models import networks
from tests.networks.test_bayesian_network import lawn, same

# Everything that BIF can carry, words of its grammar and comments among them.
CARRIED = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"'), min_size=1, max_size=6)
WORDS = st.sampled_from(["table", "default", "variable", "probability", "//", "/* x */", "a, b", "x|y", "{", "(", " "])


@given(network=networks(names=CARRIED | WORDS))
@settings(max_examples=100, deadline=None)
def test_a_written_network_is_read_bit_for_bit(
    network: tb.BayesianNetwork, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "written.bif"
    network.write(path)
    assert same(tb.BayesianNetwork.read(path), network)


def test_plain_names_are_not_quoted(tmp_path: Path) -> None:
    lawn().write(tmp_path / "lawn.BIF")
    text = (tmp_path / "lawn.BIF").read_text()
    assert '"' not in text
    assert "variable rain {" in text
    lawn().write(tmp_path / "lawn.json")
    assert same(tb.BayesianNetwork.read(tmp_path / "lawn.json"), lawn())


@pytest.mark.parametrize("name", ['a"b', "a\nb", "\x00"])
def test_names_that_bif_cannot_carry_are_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / "old.bif"
    path.write_text("an older file")
    for states in ({name: ["yes", "no"]}, {"x": ["yes", name]}):
        network = tb.BayesianNetwork(states, {}, {key: [0.5, 0.5] for key in states})
        with pytest.raises(ValueError, match=r"names must have no quote and no control character .* or write \.json"):
            network.write(path)
    assert path.read_text() == "an older file"
    assert list(tmp_path.iterdir()) == [path]


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path must end in \.bif or \.json, got '.*lawn\.uai'"):
        lawn().write(tmp_path / "lawn.uai")
    # JSON in a file of another name would not be read again.
    with pytest.raises(ValueError, match=r"must not end like a file of another format, got '.*\.bif'; save as \.json"):
        lawn().save(tmp_path / "lawn.bif")
