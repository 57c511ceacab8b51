"""Network files: known ones, round trips through every format, rounding, names that BIF cannot carry, early ends."""

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
@settings(max_examples=40)
def test_a_written_network_is_read_bit_for_bit(
    ending: str, network: tb.BayesianNetwork, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write(tmp_path_factory.getbasetemp(), ending, ENCODERS[ending](network))
    assert same(tb.BayesianNetwork.read(path), plain(network) if ending == "uai" else network)


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


HEAD = """network n { }
variable A { type discrete[2] { a, b }; }
variable B { type discrete [ 2] { c, d }; }
probability ( A ) { table 0.3, 0.7; }
probability ( B | A ) {
"""
# What is read, by the standard and by what other programs write: of each, a row or a name was lost.
ROWS = [
    pytest.param('  property "position = (257, 99)" ;\n  (a) \t0.9 0.1 ;\n  (b) 0.5 0.5 ;\n}', id="pgmpy#885"),
    "  property source = http://example.org/table ;\n  (a) 0.9, 0.1;\n  default 0.5, 0.5;\n}",
    "  property path = /usr/*/x ;\n  (a) 0.9, 0.1; /* one\n two */ /**/ default 0.5, 0.5;\n}",
    '  property weight = None ;\n  (a) 0.9, 0.1;\n  property "a; (b) 1 0;" ;\n  default 0.5, 0.5;\n}',
    pytest.param("  property weight = None ;\n  (a) 0.9, 0.1;\n  (b) 0.5, 0.5;\n}", id="pgmpy#1552"),
    pytest.param("  (b) 0.5, 0.5;\n  (a) 0.9, 0.1;\n}", id="pgmpy#1053"),
    '  property size = 5" ;\n  (a) 0.9, 0.1;\n  property long = one\n    two ;\n  default 0.5, 0.5;\n}',
    "  // property of nothing\n  (a) 0.9, 0.1; // (a) 1, 0;\n  default 0.5, 0.5; // last\n}",
]


@pytest.mark.parametrize("rows", ROWS)
def test_a_property_ends_at_its_semicolon(tmp_path: Path, rows: str) -> None:
    network = tb.BayesianNetwork.read(write(tmp_path, "bif", f"{HEAD}{rows}\n"))
    assert network.table("B").tolist() == [[0.9, 0.1], [0.5, 0.5]]


@pytest.mark.parametrize("line", ["property note = expert", 'property note = "expert;"', 'property "a" x'])
def test_a_property_without_its_semicolon_is_an_error(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, "bif", f"{HEAD}  {line}\n  (a) 0.9, 0.1;\n  default 0.5, 0.5;\n}}\n")
    with pytest.raises(ValueError, match=r"line 6: ';' must follow a property; end it with one, on its line"):
        tb.BayesianNetwork.read(path)


def test_comments_without_number_and_quotes_without_end_take_no_time(tmp_path: Path) -> None:
    text = "/* c */\n" * 30_000 + HEAD + "  (a) 0.9, 0.1;\n  (b) 0.5, 0.5;\n}\n"
    assert tb.BayesianNetwork.read(write(tmp_path, "bif", text)).nodes == ("A", "B")
    with pytest.raises(ValueError, match="';' must follow a property"):
        tb.BayesianNetwork.read(write(tmp_path, "bif", f"{HEAD} property " + '"a" ' * 30_000))


# The latter two are from pgmpy#1493 and pgmpy#1557.
@pytest.mark.parametrize("name", ["_0_25]", "[0-25", "<5", "a/b", "x[1]", "0", "节点1"])
def test_brackets_in_names_are_read(tmp_path: Path, name: str) -> None:
    text = f"{HEAD}  ({name}) 0.9, 0.1;\n  (b) 0.5, 0.5;\n}}\n".replace("{ a, b }", f"{{ {name}, b }}")
    network = tb.BayesianNetwork.read(write(tmp_path, "bif", re.sub(r"\bA\b", name if name[0] in "0节" else "A", text)))
    assert network.states(network.nodes[0]) == (name, "b")
    network.write(tmp_path / "again.bif")
    assert same(tb.BayesianNetwork.read(tmp_path / "again.bif"), network)


@pytest.mark.parametrize(
    ("ending", "old", "new"),
    [
        *((ending, "^", "\ufeff") for ending in TEXTS),
        *((ending, "\n", end) for ending in ("bif", "uai", "erg") for end in ("\r", "\r\n")),
        ("xmlbif", "OUTCOME>", "VALUE>"),  # the older name
        ("bif", r"\) ;\n", ') ;\n  /* a */ property "/* no // comment */" ; // } // { */\n  '),
    ],
)
def test_what_says_nothing_is_passed_over(tmp_path: Path, ending: str, old: str, new: str) -> None:
    expected = tb.BayesianNetwork.read(write(tmp_path, ending, TEXTS[ending]))
    text = re.sub(old, new, TEXTS[ending])
    assert text != TEXTS[ending]
    assert same(tb.BayesianNetwork.read(write(tmp_path, ending, text)), expected)


@pytest.mark.parametrize(
    ("ending", "encoding", "message"),
    [
        ("bif", "utf-16", r"must be UTF-8 text, got UTF-16 \(.*\); save it as UTF-8"),
        ("uai", "utf-16-le", r"must be UTF-8 text, got zero bytes, which UTF-16 has; save it as UTF-8"),
        ("bif", "gbk", r"must be UTF-8 text, got another encoding \(.*\); save it as UTF-8"),  # pgmpy#1560
        ("xmlbif", "shift_jis", r"network.xmlbif cannot be read: multi-byte encodings are not supported; save it as U"),
        ("xmlbif", "gbk", r"network.xmlbif cannot be read: multi-byte encodings are not supported; save it as UTF-8"),
    ],
)
def test_other_encodings_are_named(tmp_path: Path, ending: str, encoding: str, message: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><a>漢字</a>' if ending == "xmlbif" else "1\n2\n漢字"
    path = tmp_path / f"network.{ending}"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(ValueError, match=message):
        tb.BayesianNetwork.read(path)


def test_a_uai_file_of_pyagrum_is_not_misread(tmp_path: Path) -> None:
    text = "BAYES\n2\n2 2 \n2\n1 0   # a\n2 0 1   # b\n\n2\n 0.3 0.7 \n\n4\n 0.1 0.9 \n 0.2 0.8 \n"
    with pytest.raises(
        ValueError, match=r"no comments after '#': pyAgrum writes them .* write \.bif with pyagrum\.saveBN"
    ):
        tb.BayesianNetwork.read(write(tmp_path, "uai", text))


# Everything that BIF can carry, words of its grammar and comments among them.
CARRIED = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"'), min_size=1, max_size=6)
WORDS = st.sampled_from(["table", "default", "variable", "probability", "//", "/* x */", "a, b", "x|y", "{", "(", " "])


@given(network=networks(names=CARRIED | WORDS))
@settings(max_examples=100)
def test_a_network_written_as_bif_is_read_bit_for_bit(
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


OBSERVED = """<BIF VERSION="0.3"><NETWORK><NAME>n</NAME>
<VARIABLE TYPE="nature"><NAME>A</NAME><OUTCOME>a</OUTCOME><OUTCOME>b</OUTCOME><OBSERVED>{}</OBSERVED></VARIABLE>
<DEFINITION><FOR>A</FOR><TABLE>0.3 0.7</TABLE></DEFINITION></NETWORK></BIF>"""


def test_evidence_that_samiam_saves_with_a_network_is_named_and_not_used(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"network.xmlbif was saved with evidence, .* network: {'A': 'b'}; give it as"):
        network = tb.BayesianNetwork.read(write(tmp_path, "xmlbif", OBSERVED.format("1")))
    assert network.table("A").tolist() == [0.3, 0.7]


@pytest.mark.parametrize("place", ["2", "-1", "b", ""])
def test_evidence_on_no_outcome_is_an_error(tmp_path: Path, place: str) -> None:
    with pytest.raises(ValueError, match="line 2: OBSERVED of 'A' must be one place among the 2 outcomes, counted"):
        tb.BayesianNetwork.read(write(tmp_path, "xmlbif", OBSERVED.format(place)))


@given(data=st.data(), network=networks(names=PLAIN))
@settings(max_examples=20)
def test_comment_lines_of_the_competition_change_nothing(
    data: st.DataObject, network: tb.BayesianNetwork, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = encode_uai(network).split("\n")
    for place in data.draw(st.lists(st.integers(0, len(lines)), max_size=4)):
        lines.insert(place, data.draw(st.sampled_from(["c", "c a comment", "  c 1 2 3", "c: BAYES"])))
    path = write(tmp_path_factory.getbasetemp(), "uai", "\n".join(lines))
    assert same(tb.BayesianNetwork.read(path), plain(network))


def test_errors_after_comment_lines_name_the_line_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 3: "):
        tb.BayesianNetwork.read(write(tmp_path, "uai", "c one\nc two\nMARKOV\n1\n2\n"))
    with pytest.raises(ValueError, match="line 1: a network must begin with BAYES"):
        tb.BayesianNetwork.read(write(tmp_path, "uai", "class\nBAYES\n"))
