"""Damaged ACE files: every change is a ValueError that names the file, or leaves the same network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.ace_encoder import assert_same, encode_ace, encode_problem, example, write_ace
from trimbench.networks.formats.ace import AceProblem, read_problem

CNF, LMAP = encode_ace(example())
SEARCH = encode_problem(AceProblem("C", 0.5, 2.5, {"A": 1.0, "B": 0.25}))

# (what stands in the file, what stands there instead, the message); the first match is replaced.
# `test_no_token_can_be_changed_unseen` makes every other change of one token.
CNF_DAMAGE = [
    ("p cnf ", "p wcnf ", "must be 'p cnf variables clauses'"),
    ("p cnf 22", "p cnf 23", "must state its numbers of variables and clauses in a line 'p cnf 22 "),
    ("p cnf 22", "c cnf 22", "got None; is it cut short, or does the literal map belong to another network?"),
    ("\n1 2 3 0", "\np cnf 22 30\n1 2 3 0", "'p' is stated twice"),
    ("\n1 2 3 0", "\n1 2 0", "must list the values of one node"),
    ("\n1 2 3 0", "\n1 2 7 0", "must list the values of one node"),
    ("\n1 2 3 0", "\n1 2 4 0", "KeyError(4)"),
    ("\n1 2 3 0", "\n1 2 2 3 0", "a clause must be distinct variables and end with 0"),
    ("\n1 2 3 0", "\n0", "a clause must be distinct variables and end with 0"),
    ("\n1 2 3 0", "\none 2 3 0", "invalid literal for int()"),
    ("\n1 2 3 0", "", "a clause must stand in the block of its node"),
    ("\n7 8 0", "\n1 2 3 0", "'C' is stated twice"),
    ("\n-2 -1 0", "\n-3 -1 0", "(('C', 0), ('C', 2)) is stated twice"),
    ("\n-8 -7 0", "\n-8 -1 0", "excluded pairs"),
    ("\n-8 -7 0", "\n-8 -7 9 0", "not a clause of a naive Bayes network"),
    ("\n-1 4 0", "\n-2 4 0", "the parameter for {'C': 1} is stated twice"),
    ("\n-1 4 0", "\n-1 5 0", "must use every parameter, got no clause for 4"),
    ("\n-1 4 0", "\n-1 4 5 0", "not a clause of a naive Bayes network"),
    ("\n-1 4 0", "\n-7 4 0", "must hold a naive Bayes network with one class node, got the roots []"),
    ("\n-7 -1 9 0", "\n-8 -1 9 0", "the parameter for {'A': 1, 'C': 0} is stated twice"),
    ("\n-7 -1 9 0", "\n-1 9 0", "the parameter for {'C': 0} is stated twice"),
    ("\n-2 11 0", "\n-7 -2 11 0", "no parameter of 'A' for {'C': 1, 'A': 1}"),
    ("\n-7 -1 9 0", "\n-7 9 0", "a parameter of 'A' must name a value of 'C' and of nothing else but itself"),
    ("\n-7 -1 9 0", "\n-7 -1 -14 9 0", "a parameter of 'A' must name a value of 'C' and of nothing else but itself"),
    ("\n-7 -1 9 0", "\n-7 -1 8 0", "KeyError(8)"),
    ("\n-7 -1 9 0", "\n-1 0", "name it if it has no parameter"),
    ("\n-14 -2 0", "\n-14 0", "a parameter of 'B' must name a value of 'C' and of nothing else but itself"),
]
LMAP_DAMAGE = [
    ("cc$N$22", "cc$N$21", "must say how many variables and nodes there are and describe them all, got {'N': 21"),
    ("cc$N$22", "cc$M$22", "unknown kind of line"),
    ("cc$N$22", "cc$N$22\ncc$N$22", "'N' is stated twice"),
    ("cc$v$3", "cc$v$4", "22 variables, 3 nodes; is it cut short?"),
    ("cc$V$A$2", "cc$V$A$3", "node 'A' must have one indicator for each of its 3 values, got the values [0, 1]"),
    ("cc$V$A$2", "cc$V$A$999999999999999999", "node 'A' must have one indicator for each of its 99999999"),
    ("cc$V$A$2", "cc$V$B$2", "'B' is stated twice"),
    ("cc$V$A$2", "cc$V$$2", "unknown kind of line"),
    ("cc$V$A$2", "cc$V$Z$2", "must have one indicator for each of its"),
    ("cc$I$7$1.0$+$A$0", "cc$I$7$1.0$+$A$1", "node 'A' must have one indicator for each of its 2 values, got the"),
    ("cc$I$7$1.0$+$A$0", "cc$I$7$1.0$+$A$2", "for each of its 2 values, got the values [1, 2]"),
    ("cc$I$7$1.0$+$A$0", "cc$I$7$1.0$+$Z$0", "must have one indicator for each of its"),
    ("cc$I$7$1.0$+$A$0", "cc$I$8$1.0$+$A$0", "8 is stated twice"),
    ("cc$I$7$1.0$+$A$0", "cc$I$9$1.0$+$A$0", "must give each of the variables 1..22 one meaning"),
    ("cc$I$7$1.0$+$A$0", "cc$I$7$0.9$+$A$0", "unknown kind of line"),
    ("cc$C$9$0.9$+$", "cc$C$10$0.9$+$", "10 is stated twice"),
    ("cc$C$9$0.9$+$", "cc$C$0$0.9$+$", "unknown kind of line"),
    ("cc$C$9$0.9$+$", "cc$C$9$nan$+$", "a number must be in 0..1"),
    ("cc$C$9$0.9$+$", "cc$C$9$1e999$+$", "a number must be in 0..1"),
    ("cc$C$9$0.9$+$", "cc$C$9$0,9$+$", "could not convert string to float"),
    ("cc$C$9$0.9$+$", "cc$C$9$0.9$*$", "unknown kind of line"),
    ("cc$C$-9$1.0$+$", "cc$C$-9$0.5$+$", "unknown kind of line"),
    ("cc$C$-9$1.0$+$", "cc$C$9$1.0$+$", "9 is stated twice"),
]


@pytest.mark.parametrize(
    ("place", "old", "new", "message"), [*((0, *case) for case in CNF_DAMAGE), *((1, *case) for case in LMAP_DAMAGE)]
)
def test_a_changed_line_is_refused(tmp_path: Path, place: int, old: str, new: str, message: str) -> None:
    texts = [CNF, LMAP]
    assert old in texts[place]
    texts[place] = texts[place].replace(old, new, 1)
    paths = write_ace(tmp_path, *texts)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        tb.NaiveBayes.read_ace(*paths)
    assert str(caught.value).startswith(str(paths[place]))


def test_a_message_names_the_line(tmp_path: Path) -> None:
    cnf, lmap = write_ace(tmp_path, CNF.replace("\n-1 4 0\n", "\n-1 4 1\n"), LMAP)
    number = CNF.splitlines().index("-1 4 0") + 1
    with pytest.raises(ValueError, match=f"^{re.escape(str(cnf))}, line {number}: cannot read '-1 4 1'"):
        tb.NaiveBayes.read_ace(cnf, lmap)


def tokens(text: str, separator: str) -> Iterator[tuple[str, str]]:
    """Each line with each of its tokens replaced by another number, by a word and by nothing."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        words = line.split(separator)
        for position, word in enumerate(words):
            for other in {"7", "77", "-3", "-4", "0.4", "word", ""} - {word}:
                changed = separator.join([*words[:position], other, *words[position + 1 :]])
                yield line, "\n".join([*lines[:number], changed, *lines[number + 1 :]]) + "\n"


def test_no_token_can_be_changed_unseen(tmp_path: Path) -> None:
    """Where a change makes no error, the line says nothing about the network, and the network is the same."""
    cnf, lmap = write_ace(tmp_path, CNF, LMAP)
    for path, original, separator, idle in (
        (cnf, CNF, " ", "c( .*)?"),
        (lmap, LMAP, "$", r"c( .*)?|cc\$[KStT]\$.*|cc\$C\$-\d+\$1\.0\$\+\$"),
    ):
        unseen = set()
        for line, text in tokens(original, separator):
            path.write_text(text, encoding="utf-8")
            try:
                model = tb.NaiveBayes.read_ace(cnf, lmap)
            except ValueError as error:
                assert str(error).startswith((str(cnf), str(lmap)))  # noqa: PT017
            else:
                assert_same(model, example())
                unseen.add(line)
        path.write_text(original, encoding="utf-8")
        assert unseen == {line for line in original.splitlines() if re.fullmatch(idle, line)}


@pytest.mark.parametrize("which", ["cnf", "lmap"])
def test_a_network_cut_short_anywhere_is_refused(tmp_path: Path, which: str) -> None:
    """Only the newline at the end can be lost; all other cuts, between lines or within one, are seen."""
    cnf, lmap = write_ace(tmp_path, CNF, LMAP)
    path, text = (cnf, CNF) if which == "cnf" else (lmap, LMAP)
    for length in range(len(text) - 1):
        path.write_text(text[:length], encoding="utf-8")
        with pytest.raises(ValueError, match=re.escape(str(path))):
            tb.NaiveBayes.read_ace(cnf, lmap)
    path.write_text(text[:-1], encoding="utf-8")
    assert_same(tb.NaiveBayes.read_ace(cnf, lmap), example())


@st.composite
def edited(draw: st.DrawFn, texts: tuple[str, ...]) -> tuple[int, bytes]:
    """One of the texts, with up to 4 of its bytes replaced, removed, doubled or preceded by others."""
    which = draw(st.integers(0, len(texts) - 1))
    content = bytearray(texts[which].encode())
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(content) - 1))
        kind = draw(st.sampled_from(["replace", "remove", "insert", "double"]))
        fresh = draw(
            st.one_of(st.binary(min_size=1, max_size=3), st.sampled_from([b"0", b"9", b"-", b"$", b"\n", b" "]))
        )
        if kind == "replace":
            content[position : position + 1] = fresh
        elif kind == "insert":
            content[position:position] = fresh
        elif kind == "double":
            content[position:position] = content[position : position + 12]
        elif len(content) > 1:
            del content[position]
    return which, bytes(content)


@given(edit=edited((CNF, LMAP)))
@settings(max_examples=500, deadline=None)
def test_a_network_with_any_bytes_changed_is_read_or_a_value_error(
    edit: tuple[int, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    paths = write_ace(tmp_path_factory.getbasetemp(), CNF, LMAP)
    which, content = edit
    paths[which].write_bytes(content)
    try:
        model = tb.NaiveBayes.read_ace(*paths)
    except ValueError as error:
        assert str(error).startswith(tuple(map(str, paths)))  # noqa: PT017
    else:
        assert model.cardinalities == (2, 3)
        for table in (model.prior, *model.likelihoods):
            np.testing.assert_allclose(table.sum(axis=-1), 1.0)


@given(edit=edited((SEARCH,)))
@settings(max_examples=200, deadline=None)
def test_a_search_file_with_any_bytes_changed_is_read_or_a_value_error(
    edit: tuple[int, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "a.search"
    path.write_bytes(edit[1])
    try:
        problem = read_problem(path)
    except ValueError as error:
        assert str(error).startswith(str(path))  # noqa: PT017
    else:
        assert 0 <= problem.threshold <= 1
        assert problem.target not in problem.costs
        assert all(0 <= number < np.inf for number in (problem.budget, *problem.costs.values()))
