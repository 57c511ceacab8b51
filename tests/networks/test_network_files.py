"""Readers of network files: known files, round trips, rounding, files that end too early."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.lawn_files import TEXTS, XMLBIF, write
from tests.networks.network_writers import encode_bif, encode_ergo, encode_uai, encode_xmlbif
from tests.networks.random_models import networks
from tests.networks.test_bayesian_network import lawn, same

ENCODERS: dict[str, Callable[[tb.BayesianNetwork], str]] = {
    "erg": encode_ergo,
    "uai": encode_uai,
    "bif": encode_bif,
    "xmlbif": encode_xmlbif,
}
# What every format can hold: no blanks, no quotes, nothing that XML has no character for.
PLAIN = st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters='"'), min_size=1, max_size=6)


def plain(network: tb.BayesianNetwork, *, names: bool = False) -> tb.BayesianNetwork:
    """The network with the names that a file without names gives (only those of states if `names`)."""
    new = {node: node if names else f"x{i}" for i, node in enumerate(network.nodes)}
    return tb.BayesianNetwork(
        {new[v]: [str(k) for k in range(network.cardinality(v))] for v in network.nodes},
        {new[v]: [new[u] for u in network.parents(v)] for v in network.nodes},
        {new[v]: network.table(v) for v in network.nodes},
    )


@pytest.mark.parametrize("ending", [*TEXTS, "erg.gz", "UAI.GZ", "xml"])
def test_a_small_file(tmp_path: Path, ending: str) -> None:
    kind = ending.lower().removesuffix(".gz")
    network = tb.BayesianNetwork.read(write(tmp_path, ending.lower(), TEXTS.get(kind, XMLBIF)))
    assert same(network, plain(lawn()) if kind == "uai" else lawn())


@pytest.mark.parametrize("ending", ENCODERS)
@given(network=networks(names=PLAIN))
@settings(max_examples=40, deadline=None)
def test_a_written_network_is_read_bit_for_bit(
    ending: str, network: tb.BayesianNetwork, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write(tmp_path_factory.getbasetemp(), ending, ENCODERS[ending](network))
    assert same(tb.BayesianNetwork.read(path), plain(network) if ending == "uai" else network)


@pytest.mark.parametrize("names", [False, True])
def test_ergo_names_may_be_left_out(tmp_path: Path, names: bool) -> None:
    path = write(tmp_path, "erg", encode_ergo(lawn(), names=names, states=False))
    assert same(tb.BayesianNetwork.read(path), plain(lawn(), names=names))


@pytest.mark.parametrize("ending", TEXTS)
def test_every_way_to_cut_a_file_short_is_seen(tmp_path: Path, ending: str) -> None:
    lines = TEXTS[ending].splitlines(keepends=True)
    whole = tb.BayesianNetwork.read(write(tmp_path, ending, TEXTS[ending]))
    for count in range(len(lines)):
        path = write(tmp_path, ending, "".join(lines[:count]))
        # An Ergo file may end before the names of the nodes or of the states.
        if ending == "erg" and "".join(lines[count:]).lstrip().startswith(("/* Names", "rain", "/* Labels", "yes no")):
            assert same(tb.BayesianNetwork.read(path), plain(whole, names="grass\n" in "".join(lines[:count])))
            continue
        with pytest.raises(ValueError, match=re.escape(str(path))):
            tb.BayesianNetwork.read(path)


@pytest.mark.parametrize(("ending", "digits"), [("erg", 5), ("uai", 5), ("bif", 2), ("xmlbif", 2)])
def test_rounded_tables_are_normalised_and_the_deviation_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, ending: str, digits: int
) -> None:
    text = TEXTS[ending].replace("0.1 0.5 0.4", " ".join([f"{1 / 3:.{digits}f}"] * 3))
    text = text.replace("0.1, 0.5, 0.4", ", ".join([f"{1 / 3:.{digits}f}"] * 3))
    path = write(tmp_path, ending, text)
    with caplog.at_level(logging.INFO, logger="trimbench.networks"):
        network = tb.BayesianNetwork.read(path)
    np.testing.assert_allclose(network.table(network.nodes[2])[1, 0], np.full(3, 1 / 3), rtol=0, atol=1e-15)
    assert caplog.messages == [f"{path}: normalised; distributions were off by up to {10**-digits:.2g}"]
