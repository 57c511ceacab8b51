"""Damaged network files, and small ones that ask for much: read, or refused soon with a short ValueError."""

from __future__ import annotations

import gzip
import random
import re
import time
import tracemalloc
from contextlib import nullcontext
from pathlib import Path

import pytest

import trimbench as tb
from tests.hardening.fuzz import mutated
from tests.hardening.fuzz_targets import TARGETS
from tests.networks.lawn_files import ERGO, TEXTS, UAI, XMLBIF, write

_CYCLE = ": parents must make an acyclic graph, got the cycle"
# (ending, what stands in the file, what stands there instead, the line that the message names, the message)
DAMAGE = [
    ("erg", "3\n2 2 3", "three\n2 2 3", 1, "the number of variables must be a whole number in 1..16384, got 'three'"),
    ("erg", "2 2 3", "2 2 -3", 2, "a cardinality must be a whole number in 1..1000000000, got '-3'"),
    ("erg", "2 2 3", "2 0 3", 2, "a cardinality must be a whole number in 1..1000000000, got '0'"),
    ("erg", "2  0 1", "3  0 1", 5, "the number of parents of variable 2 must be a whole number in 0..2, got '3'"),
    ("erg", "2  0 1", "2  0 3", 5, "a parent of variable 2 must be a whole number in 0..2, got '3'"),
    ("erg", "\n12\n", "\n11\n", 13, "table 2 must have 12 entries, one for each combination of values (2, 2, 3), got"),
    ("erg", "0.4 0.6", "0.4 O.6", 12, "an entry of table 1 must be a probability, got 'O.6'"),
    ("erg", "0.4 0.6", "0.4 nan", 12, "an entry of table 1 must be a probability, got 'nan'"),
    ("erg", "0.4 0.6", "1.4 -0.4", 12, "an entry of table 1 must be a probability, got '-0.4'"),
    ("erg", "0.4 0.6", "0.4 0.6 0.0", 12, "number of entries of table 2 must be a whole number in 0..9999999999999"),
    ("erg", "0.4 0.6", "0.4", 14, "the number of entries of table 2 must be a whole number"),
    ("erg", "dry damp wet", "dry damp", 27, "the name of state 2 of variable 2 must follow, got the end of the file"),
    ("erg", "dry damp wet", "dry damp wet soaked", 27, "the file must end here, got 'soaked'"),
    ("uai", "BAYES", "MARKOV", 1, "a network must begin with BAYES (a Markov network has no conditional tables), got"),
    ("uai", "\n3\n1 0", "\n2\n1 0", 4, "the number of tables (one for each variable) must be a whole number in 3..3"),
    ("uai", "2 0 1\n", "2 1 0\n", 6, "the last variable of a table must have no other table, got '0'"),
    ("uai", "1 0\n", "0\n", 5, "the number of variables of table 0 must be a whole number in 1..3, got '0'"),
    ("uai", "1.0 0.0 0.0", "1.0 0.0", 15, "12 entries of the table of variable 2 must follow, got the end of the file"),
    ("bif", "network", "net", 2, "'network' must follow, got 'net'"),
    ("bif", "// a lawn\n", "<?xml version='1.0'?>\n<BIF>", 1, "this is XML: rename a file in XMLBIF to .xmlbif, got "),
    ("bif", "// a lawn\n", "<?xml version='1.0'?>\n<smile>", 1, "this is a network of GeNIe, which pyAgrum reads as"),
    ("bif", "// a lawn\n", "% made by x\nnet\n{ }", 1, "this is a network of Hugin, which pyAgrum reads as .net and w"),
    ("bif", "[ 2 ]", "[ 3 ]", 6, "the number of states must be that of ['yes', 'no'], all distinct, got '3'"),
    ("bif", "yes, no", "yes, yes", 6, "the number of states must be that of ['yes', 'yes'], all distinct, got '2'"),
    ("bif", "discrete [ 3 ]", "continuous [ 3 ]", 11, "'discrete [ number of states ]' must follow, got 'continuous'"),
    ("bif", "  type discrete [ 3 ] { dry, damp, wet };\n", "", 11, "a variable must have a type, got '}'"),
    ("bif", "wet };", "wet }; type discrete [ 1 ] { x };", 11, "a variable must have one type, got 'type'"),
    ("bif", "(no, on) 0.1, 0.5, 0.4;", "property x", 22, "';' must follow a property; end it with one, on its line"),
    ("bif", "variable grass", "variable rain", 10, "the variable 'rain' must be declared once, got 'variable'"),
    ("bif", "variable grass", "node grass", 10, "'variable' or 'probability' must follow, got 'node'"),
    ("bif", "( grass |", "( rain |", 19, "the probabilities of 'rain' must be stated once"),
    ("bif", "( grass |", "( lawn |", 25, "the probabilities of 'grass' must follow, got the end of the file"),
    ("bif", "rain, sprinkler", "rain, snow", 19, "'snow' must be declared as a variable"),
    ("bif", "table 0.2, 0.8", "table 0.2, x", 14, "a probability or ';' must follow, got 'x'"),
    ("bif", "table 0.2, 0.8;", "table 0.2, 0.8", 15, "a probability or ';' must follow, got '}'"),
    ("bif", "table 0.2, 0.8", "table 0.2, 0.3, 0.5", 14, "the row table of 'rain' must have 2 numbers and not be besi"),
    ("bif", "table 0.2, 0.8;", "table 0.2 0.8; default 0.2 0.8;", 14, "not be beside a table, got 2"),
    ("bif", "(yes, off)", "(yes, on)", 23, "the row ('yes', 'on') must be stated once, got '('"),
    ("bif", "(yes, off)", "(yes)", 23, "must name a state of each of ['rain', 'sprinkler'], got ('yes',)"),
    ("bif", "(yes, off)", "(yes, dry)", 23, "a row of 'grass' must name a state of each of ['rain', 'sprinkler'], got"),
    ("bif", "on) 0.0, 0.1, 0.9", "on) 0.1, 0.1, 0.9", 21, "within 0.02), got a sum of 1.1"),  # quantum-fog#10
    ("uai", UAI[: UAI.index("2\n 0.2")], "MARKOV\n3\n2 2 3\n1\n2 0 1\n", 1, "must begin with BAYES"),  # pgmpy#458
    ("bif", "default 1 0 0;", "", 19, "1 rows of 'grass' must be stated, or a default"),
    ("bif", "0.1, 0.5, 0.4", "0.1, 0.5, 0.5", 22, "table of 'grass' must sum to 1 along the last axis (within 0.02)"),
    ("xmlbif", "<NAME>rain</NAME>", "<NAME>rain", 7, "NAME must hold ['text'], got 'OUTCOME'"),
    ("xmlbif", "<NAME>rain</NAME>", "<NAME></NAME>", 5, "there must be one NAME with a text, got ['']"),
    ("xmlbif", "<NAME>grass</NAME>", "<NAME>rain</NAME>", 16, "the variable 'rain' must be declared once"),
    ("xmlbif", "<GIVEN>rain", "<GIVEN>snow", 26, "'snow' must be declared as a variable"),
    ("xmlbif", "<FOR>grass", "<FOR>rain", 31, "'rain' must have one definition"),
    ("xmlbif", "0.0 0.3 0.7", "0.0 0.3 O.7", 37, "'O.7' must be a probability (could not convert string to float"),
    ("xmlbif", "0.0 0.3 0.7", "0.0 0.3", 31, "the table of 'grass' must have 12 numbers, one for each combination"),
    ("xmlbif", "0.2 0.8", "0.2 0.7", 22, "table of 'rain' must sum to 1 along the last axis (within 0.02), got a sum"),
    ("xmlbif", 'TYPE="nature"', 'TYPE="utility"', 5, "a VARIABLE must have TYPE 'nature', got 'utility'"),
    ("xmlbif", "</NETWORK>", "</NETWORK>\n<NETWORK/>", 43, "a file must hold one NETWORK, got another"),
    ("xmlbif", "<BIF ", '<!DOCTYPE BIF [<!ENTITY e "x">]>\n<BIF ', 2, "a network must not define entities, got 'e'"),
    ("xmlbif", "<BIF ", '<!DOCTYPE BIF [<!ENTITY e SYSTEM "x">]>\n<BIF ', 2, "must not define entities, got 'e'"),
    # The network makes no sense as a whole: no line is named.
    ("erg", "0\n1  0\n", "1  1\n1  0\n", None, "table 0 must have 4 entries"),
    ("erg", "rain\n", "grass\n", 22, "the name of variable 2 must differ from the names before it, got 'grass'"),
    ("erg", "yes no", "yes yes", 25, "the name of state 1 of variable 0 must differ from the names before it, got 'y"),
    ("erg", "0.2 0.8", "0.2 0.81", 8, "table of 'rain' must sum to 1 along the last axis (within 0.0001)"),
    ("erg", "0.2 0.8", "0.0 0.0", 8, "tables into which evidence was entered are not conditional distributions"),
    ("uai", "1 0\n", "2 0 0\n", None, "the table of variable 0 must have 4 entries"),
    ("xmlbif", "<FOR>rain</FOR>\n", "<FOR>rain</FOR>\n<GIVEN>rain</GIVEN>\n", None, "must have 4 numbers"),
    ("xmlbif", XMLBIF[XMLBIF.rindex("<DEF") : XMLBIF.rindex("</NET")], "", None, "a definition, got none for 'grass'"),
    ("xmlbif", "US-ASCII", "no-such-code", None, "must be an XML file: "),
    ("xmlbif", "</BIF>", "", None, "must be an XML file: no element found: line 44, column 0; is it cut short?"),
    ("xmlbif", XMLBIF[XMLBIF.index("<BIF") :], "<BIF/>", None, "must hold a BIF element with a NETWORK of at least o"),
    ("xmlbif", "<OUTCOME>no<", "<OUTCOME>yes<", None, "states of 'rain' must be distinct, got 'yes' more than once"),
    ("erg", ERGO, "2\n1 1\n1 1\n1 0\n1 1.0\n1 1.0\n", None, _CYCLE),
    ("uai", UAI, "BAYES 2 1 1 2 2 1 0 2 0 1 1 1.0 1 1.0", None, _CYCLE),
    ("bif", "probability ( rain ) {\n  table 0.2, 0.8", "probability ( rain | rain ) {\n  table 1 0 0 1", None, _CYCLE),
    ("xmlbif", "<FOR>rain</FOR>\n  <TABLE>0.2 0.8", "<FOR>rain</FOR><GIVEN>rain</GIVEN><TABLE>1 0 0 1", None, _CYCLE),
]


@pytest.mark.parametrize(("ending", "old", "new", "line", "message"), DAMAGE)
def test_damage_is_named_by_its_file_and_line(
    tmp_path: Path, ending: str, old: str, new: str, line: int | None, message: str
) -> None:
    assert old in TEXTS[ending]
    path = write(tmp_path, ending, TEXTS[ending].replace(old, new, 1))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        tb.BayesianNetwork.read(path)
    assert str(caught.value).startswith(f"{path}, line {line}: " if line else str(path))


@pytest.mark.parametrize("ending", ["erg", "bif", "xmlbif"])
def test_a_table_that_no_array_can_hold_is_refused(tmp_path: Path, ending: str) -> None:
    n = 65
    parents = " ".join(f"p{i}" for i in range(n))
    text = {
        "erg": f"{n + 1}\n{' 1' * (n + 1)}\n{'0 ' * n}\n{n} {' '.join(map(str, range(n)))}\n{'1 1.0 ' * (n + 1)}",
        "bif": "network n { } variable c { type discrete [1] { x }; } "
        + " ".join(f"variable p{i} {{ type discrete [1] {{ x }}; }}" for i in range(n))
        + " ".join(f"probability ( p{i} ) {{ table 1; }}" for i in range(n))
        + f"probability ( c | {parents} ) {{ default 1; }}",
        "xmlbif": "<BIF><NETWORK>"
        + "".join(f"<VARIABLE><NAME>{v}</NAME><OUTCOME>x</OUTCOME></VARIABLE>" for v in ["c", *parents.split()])
        + f"<DEFINITION><FOR>c</FOR>{''.join(f'<GIVEN>{v}</GIVEN>' for v in parents.split())}<TABLE>1</TABLE>"
        "</DEFINITION></NETWORK></BIF>",
    }[ending]
    path = write(tmp_path, ending, text)
    with pytest.raises(ValueError, match=r"a table must have at most 64 axes, .*; got 66 axes") as caught:
        tb.BayesianNetwork.read(path)
    assert str(caught.value).startswith(str(path))


def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "erg.gz", ERGO)
    data = path.read_bytes()
    for broken in [b"", ERGO.encode(), *(data[:length] for length in range(1, len(data)))]:
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            tb.BayesianNetwork.read(path)
    for position in range(12, len(data), 7):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :])
        with pytest.raises(ValueError, match=re.escape(str(path))):
            tb.BayesianNetwork.read(path)


@pytest.mark.parametrize("name", [name for name in TARGETS if name.startswith(("lawn.", "ace."))])
def test_changed_bytes_are_another_network_or_an_error_that_names_the_file(tmp_path: Path, name: str) -> None:
    """A few of the changes that scripts/fuzz makes: the reader checks what it reads."""
    rng, sound, read = random.Random(name), TARGETS[name].sound(), TARGETS[name].prepare(tmp_path)
    n_refused = 0
    for _ in range(60):
        content = mutated(rng, rng.choice(sound), sound)
        try:
            read(content)
        except ValueError as error:
            n_refused += 1
            assert str(tmp_path) in str(error)  # noqa: PT017
    assert n_refused > 20


_N = 2**19
_PARENTS = [f"p{i}" for i in range(24)]
_BINARY = "variable {} {{ type discrete [2] {{ x y }}; }} "


def _large_bif(parents: list[str], children: int) -> str:
    """Networks whose tables have 2^len(parents) rows, of which one is stated."""
    names = [f"c{i}" for i in range(children)]
    variables = "".join(_BINARY.format(name) for name in (*parents, *names))
    roots = "".join(f"probability ({name}) {{ table 1 0; }} " for name in parents)
    return f"network n {{}} {variables}{roots}" + "".join(
        f"probability ({name} | {' '.join(parents)}) {{ default 1 0; }} " for name in names
    )


HOSTILE = {
    "comments.bif": "network n {} " + "/*" * _N,
    "comments.erg": "/*" * _N,
    "slashes.bif": "network n {} " + "/*/" * (_N // 2),
    "entries.bif": _large_bif(_PARENTS, 1),
    "together.bif": _large_bif(_PARENTS[:20], 8),
    "properties.xmlbif": "<BIF><NETWORK><PROPERTY>" + "<a>" * (_N // 2),
    "name.xmlbif": f"<BIF><{'a' * _N}/></BIF>",
    "names.bif": f"network n {{}} variable a {{ type discrete [1] {{ {' '.join(f's{i}' for i in range(50_000))} }}; }}",
    "variables.uai": f"BAYES {60_000} " + "1 " * 60_000,
    "axes.bif": f"network n {{}} {_BINARY.format('a')} probability (a | {'a ' * _N}) {{ default 1 0; }}",
    "axes.erg": f"16384 {'999999999 ' * 16384} {'16383 ' + '0 ' * 16383} {'0 ' * 16383} 1",
    "attributes.xmlbif": "<!DOCTYPE BIF ["
    + "".join(f'<!ATTLIST VARIABLE a{i} CDATA "x">' for i in range(2000))
    + f"]><BIF><NETWORK>{'<VARIABLE/>' * 20_000}</NETWORK></BIF>",
    "default.xmlbif": f'<!DOCTYPE BIF [<!ATTLIST VARIABLE a CDATA "{"x" * _N}">]><BIF>'
    + f"<NETWORK>{'<VARIABLE/>' * 20_000}</NETWORK></BIF>",
    "outcomes.xmlbif": "<BIF><NETWORK><VARIABLE><NAME>a</NAME>"
    + "".join(f"<OUTCOME>{i // 2}</OUTCOME>" if i > 39_000 else f"<OUTCOME>{i}</OUTCOME>" for i in range(40_000))
    + f"</VARIABLE><DEFINITION><FOR>a</FOR><TABLE>1{' 0' * 39_999}</TABLE></DEFINITION></NETWORK></BIF>",
    "parents.json": '{"format":"trimbench.BayesianNetwork/1",'
    + '"nodes":[{"name":"a","states":["x"],"table":[1],"parents":['
    + ",".join(f'"{min(i, 120_000)}"' for i in range(120_002))
    + "]}]}",
    "repeated.json": "{" + ",".join(f'"a{i // 2}":1' for i in range(50_000)) + "}",
}


def _refused(path: Path) -> str:
    start = time.process_time()
    with pytest.raises(ValueError) as caught:
        tb.BayesianNetwork.read(path)
    assert time.process_time() - start < 20
    message = str(caught.value)
    assert message.startswith(str(path)[:100])
    assert len(message) <= 500
    return message


@pytest.mark.parametrize("name", HOSTILE)
def test_small_files_that_cost_much_are_refused_soon(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(HOSTILE[name])
    assert name in _refused(tmp_path / name)


@pytest.mark.parametrize("ending", ["bif", "uai", "erg", "xmlbif"])
def test_a_compressed_file_that_becomes_very_long_is_not_unpacked(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"network.{ending}.gz"
    path.write_bytes(gzip.compress(b"1 " * (2**21 + 1), 1))
    tracemalloc.start()
    assert "must hold at most max_unpacked=4194304 bytes" in _refused(path)
    assert tracemalloc.get_traced_memory()[1] < 16e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "refused", "most_bytes"),
    [
        (_large_bif(_PARENTS[:16], 1), False, 80 * 2**16),
        *(("network n {} " + unit * (2**17 // len(unit)), True, 16 * 2**17) for unit in ('"//"', "/**/", "//\n")),
    ],
    ids=["rows that are not stated", "quotes", "comments", "lines of comments"],
)
def test_memory_grows_in_proportion(tmp_path: Path, text: str, refused: bool, most_bytes: int) -> None:
    path = tmp_path / "network.bif"
    path.write_text(text)
    tracemalloc.start()
    with pytest.raises(ValueError, match="must follow") if refused else nullcontext():
        tb.BayesianNetwork.read(path)
    assert tracemalloc.get_traced_memory()[1] < most_bytes
    tracemalloc.stop()


def _chain(n: int) -> str:
    above = "".join(f"2 {i - 1} {i} " for i in range(1, n))
    return f"BAYES {n} {'2 ' * n}{n} 1 0 {above}2 .5 .5 {'4 .5 .5 .5 .5 ' * (n - 1)}"


def _rows(n: int) -> str:
    names = [f"s{i}" for i in range(n)]
    return (
        f"network n {{}} variable a {{ type discrete [{n}] {{ {' '.join(names)} }}; }} {_BINARY.format('b')}"
        f"probability (a) {{ table 1 {'0 ' * (n - 1)}; }}"
        f"probability (b | a) {{ {' '.join(f'({name}) 1 0;' for name in names)} }}"
    )


@pytest.mark.parametrize(
    ("ending", "text", "n_nodes"), [("uai", _chain(2**13), 2**13), ("bif", _rows(15_000), 2)], ids=["chain", "rows"]
)
def test_many_small_tables_and_rows_take_time_in_proportion(
    tmp_path: Path, ending: str, text: str, n_nodes: int
) -> None:
    path = write(tmp_path, ending, text)
    start = time.process_time()
    assert len(tb.BayesianNetwork.read(path).nodes) == n_nodes
    assert time.process_time() - start < 20
