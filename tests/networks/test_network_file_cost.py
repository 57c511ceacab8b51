"""Small files that ask for much: each is read or refused within two seconds, 256 MB and 500 characters."""

from __future__ import annotations

import gzip
import time
import tracemalloc
from pathlib import Path

import pytest

import trimbench as tb

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


def test_rows_that_are_not_stated_take_memory_in_proportion(tmp_path: Path) -> None:
    path = tmp_path / "network.bif"
    path.write_text(_large_bif(_PARENTS[:16], 1))
    tracemalloc.start()
    tb.BayesianNetwork.read(path)
    assert tracemalloc.get_traced_memory()[1] < 80 * 2**16
    tracemalloc.stop()


def test_many_small_tables_are_read_soon(tmp_path: Path) -> None:
    n = 2**13
    path = tmp_path / "chain.uai"
    above = "".join(f"2 {i - 1} {i} " for i in range(1, n))
    path.write_text(f"BAYES {n} {'2 ' * n}{n} 1 0 {above}2 .5 .5 {'4 .5 .5 .5 .5 ' * (n - 1)}")
    start = time.process_time()
    assert len(tb.BayesianNetwork.read(path).nodes) == n
    assert time.process_time() - start < 20


def test_quotes_and_comments_take_memory_in_proportion(tmp_path: Path) -> None:
    for unit in ('"//"', "/**/", "//\n"):
        path = tmp_path / "network.bif"
        path.write_text("network n {} " + unit * (2**18 // len(unit)))
        tracemalloc.start()
        with pytest.raises(ValueError, match="must follow"):
            tb.BayesianNetwork.read(path)
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**18
        tracemalloc.stop()


def test_rows_of_many_states_take_time_in_proportion(tmp_path: Path) -> None:
    n = 15_000
    names = [f"s{i}" for i in range(n)]
    path = tmp_path / "rows.bif"
    path.write_text(
        f"network n {{}} variable a {{ type discrete [{n}] {{ {' '.join(names)} }}; }} {_BINARY.format('b')}"
        f"probability (a) {{ table 1 {'0 ' * (n - 1)}; }}"
        f"probability (b | a) {{ {' '.join(f'({name}) 1 0;' for name in names)} }}"
    )
    start = time.process_time()
    assert tb.BayesianNetwork.read(path).cardinality("a") == n
    assert time.process_time() - start < 20


def test_what_stands_in_comments_and_quotes_is_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "network.bif"
    path.write_text(
        '/* a */ network "/* no // comment */" { } // */ {\nvariable a /* two\nlines */ '
        '{ type discrete [1] { "//" }; }\n'
        "probability (a) /**/ { table 1; } // the end"
    )
    assert tb.BayesianNetwork.read(path).states("a") == ("//",)
