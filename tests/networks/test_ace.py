"""The reader of ACE files: round trips through a small encoder; every damage is named, or leaves the same network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import trimbench as tb
from tests.networks.ace_encoder import assert_same, encode_ace, encode_problem, example, write_ace
from tests.networks.random_models import distributions, naive_bayes_models
from trimbench.networks.formats.ace import AceProblem, read_problem

PROBLEM = AceProblem("C", 0.5, 2.5, {"A": 1.0, "B": 0.25})
CNF, LMAP = encode_ace(example())
SEARCH = encode_problem(PROBLEM)


@given(model=naive_bayes_models())
@settings(max_examples=100)
def test_what_is_encoded_is_read_back(model: tb.NaiveBayes, tmp_path_factory: pytest.TempPathFactory) -> None:
    paths = write_ace(tmp_path_factory.getbasetemp(), *encode_ace(model))
    assert_same(tb.NaiveBayes.read_ace(*paths), model)


def test_rounded_parameters_are_normalised_up_to_a_limit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rounded = LMAP.replace("$0.75$", "$0.734$")
    with caplog.at_level("INFO", logger="trimbench.networks"):
        model = tb.NaiveBayes.read_ace(*write_ace(tmp_path, CNF, rounded))
    assert "normalised; distributions were off by up to 0.016" in caplog.text
    np.testing.assert_allclose(model.likelihoods[0][2], [0.25 / 0.984, 0.734 / 0.984])
    too_far = LMAP.replace("$0.75$", "$0.72$")
    message = "the distributions of 'A' must sum to 1 within 0.02, got a deviation of 0.03; are "
    with pytest.raises(ValueError, match=re.escape(message)):
        tb.NaiveBayes.read_ace(*write_ace(tmp_path, CNF, too_far))
    no_prior = LMAP.replace("$0.3$", "$0.2$", 1)
    with pytest.raises(ValueError, match=re.escape("the distributions of 'C' must sum to 1 within 0.02")):
        tb.NaiveBayes.read_ace(*write_ace(tmp_path, CNF, no_prior))


def test_blank_lines_and_comments_at_the_end_may_be_lost(tmp_path: Path) -> None:
    for cnf_end in ("", "c\n", "\n\n", "c the end\n\n"):
        for lmap_end in ("", "\n", "c\n \n"):
            assert_same(tb.NaiveBayes.read_ace(*write_ace(tmp_path, CNF + cnf_end, LMAP + lmap_end)), example())
    windows = write_ace(tmp_path, CNF.replace("\n", "\r\n"), LMAP.replace("\n", "\r\n"))
    assert_same(tb.NaiveBayes.read_ace(*windows), example())


def test_files_of_two_networks_do_not_mix(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    models = [example()]
    for n_classes, cardinalities in [(3, (2, 3)), (3, (3, 2)), (3, (2, 3, 2)), (3, (2, 2, 2)), (3, (4,)), (2, (2, 3))]:
        prior, *tables = (
            distributions(rng, shape, coarse=False)
            for shape in [(n_classes,), *((n_classes, n) for n in cardinalities)]
        )
        models.append(tb.NaiveBayes(prior, tables))
    texts = [encode_ace(model) for model in models]
    for i, (cnf, _) in enumerate(texts):
        for j, (_, lmap) in enumerate(texts):
            paths = write_ace(tmp_path, cnf, lmap)
            if i == j:
                assert_same(tb.NaiveBayes.read_ace(*paths), models[i])
            else:
                with pytest.raises(ValueError, match=re.escape(str(tmp_path))):
                    tb.NaiveBayes.read_ace(*paths)


def test_two_roots_and_none_are_not_naive_bayes(tmp_path: Path) -> None:
    independent = "p cnf 8 8\n1 2 0\n-2 -1 0\n-1 3 0\n-2 4 0\n5 6 0\n-6 -5 0\n-5 7 0\n-6 8 0\n"
    lmap = "cc$N$8\ncc$v$2\ncc$V$A$2\ncc$V$B$2\n" + "".join(
        f"cc$I${variable}$1.0$+${name}${value}\ncc$C${variable + 2}$0.5$+$\n"
        for variable, name, value in [(1, "A", 0), (2, "A", 1), (5, "B", 0), (6, "B", 1)]
    )
    with pytest.raises(ValueError, match=re.escape("with one class node, got the roots ['A', 'B']")):
        tb.NaiveBayes.read_ace(*write_ace(tmp_path, independent, lmap))
    with pytest.raises(ValueError, match=re.escape("with one class node, got the roots []")):
        tb.NaiveBayes.read_ace(*write_ace(tmp_path, "p cnf 0 0\n", "cc$N$0\ncc$v$0\n"))


def test_a_search_file_is_read_and_refused_if_it_is_cut_short_after_any_line(tmp_path: Path) -> None:
    path = tmp_path / "a.search"
    path.write_text("\n" + SEARCH, encoding="utf-8")
    assert read_problem(path) == PROBLEM
    assert list(read_problem(path).costs) == ["A", "B"]
    lines = SEARCH.splitlines(keepends=True)
    for count in range(len(lines)):
        path.write_text("".join(lines[:count]), encoding="utf-8")
        with pytest.raises(ValueError, match=re.escape(str(path)) + ".*is it cut short"):
            read_problem(path)


def test_files_that_are_not_text_or_absent_are_named(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    for damaged in (0, 1):
        paths = list(write_ace(tmp_path, CNF, LMAP))
        paths[damaged].write_bytes(b"c \xff\xfe\n" + paths[damaged].read_bytes())
        for read in (lambda paths=paths: tb.NaiveBayes.read_ace(*paths), lambda at=paths[damaged]: read_problem(at)):
            with pytest.raises(ValueError, match=re.escape(f"{paths[damaged]} must be UTF-8 text, got ")):
                read()
        paths[damaged] = absent
        with pytest.raises(FileNotFoundError, match="absent"):
            tb.NaiveBayes.read_ace(*paths)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("$ 2", "$ 3", "must state the costs of 3 features, at least one, other than the class 'C', got ['A', 'B']"),
        ("$ 2", "$ two", "cannot read '$ two 0.5 2.5' (invalid literal for int()"),
        ("$ 2", "$ -2", "must state the costs of -2 features, at least one"),
        ("$ 2 0.5 2.5\nd C\nf A 1.0\nf B 0.25\n", "$ 0 0.5 2.5\nd C\n", "must state the costs of 0 features, at least"),
        ("$ 2 0.5", "$ 2 1.5", "line 1: cannot read '$ 2 1.5 2.5' (a number must be in 0..1)"),
        ("$ 2 0.5", "$ 2 nan", "line 1: cannot read '$ 2 nan 2.5' (a number must be in 0..1)"),
        ("2.5", "-2.5", "a number must be in 0..1.79769e+308"),
        ("2.5", "", "line 1: cannot read '$ 2 0.5' (unknown kind of line)"),
        ("$", "%", "unknown kind of line"),
        ("d C\n", "", "must have a line '$ features threshold budget' and a line 'd class'; is it cut short?"),
        ("d C", "d C\nd A", "'d' is stated twice"),
        ("d C", "$ 2 0.5 2.5", "'$' is stated twice"),
        ("d C", "d A", "other than the class 'A', got ['A', 'B']"),
        ("f B", "f A", "line 4: cannot read 'f A 0.25' ('A' is stated twice)"),
        ("0.25", "0.2x", "could not convert string to float: '0.2x'"),
    ],
)
def test_a_changed_search_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SEARCH
    path = tmp_path / "a.search"
    path.write_text(SEARCH.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_problem(path)
    assert str(caught.value).startswith(str(path))


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
    ("\n-1 4 0", "\n-1 4 1", f", line {CNF.splitlines().index('-1 4 0') + 1}: cannot read '-1 4 1'"),
    ("\n-1 4 0", "\n-7 4 0", "must hold a naive Bayes network with one class node, got the roots []"),
    ("\n-7 -1 9 0", "\n-8 -1 9 0", "the parameter for {'A': 1, 'C': 0} is stated twice"),
    ("\n-7 -1 9 0", "\n-1 9 0", "the parameter for {'C': 0} is stated twice"),
    ("\n-2 11 0", "\n-7 -2 11 0", "no parameter of 'A' for {'C': 1, 'A': 1}"),
    ("\n-7 -1 9 0", "\n-7 9 0", "a parameter of 'A' must name a value of 'C' and of nothing else but itself"),
    ("\n-7 -1 9 0", "\n-7 -1 8 0", "KeyError(8)"),
    ("\n-7 -1 9 0", "\n-1 0", "name it if it has no parameter"),
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
    ("cc$I$7$1.0$+$A$0", "cc$I$7$1.0$+$A$1", "node 'A' must have one indicator for each of its 2 values, got the"),
    ("cc$I$7$1.0$+$A$0", "cc$I$7$1.0$+$A$2", "for each of its 2 values, got the values [1, 2]"),
    ("cc$I$7$1.0$+$A$0", "cc$I$8$1.0$+$A$0", "8 is stated twice"),
    ("cc$I$7$1.0$+$A$0", "cc$I$9$1.0$+$A$0", "must give each of the variables 1..22 one meaning"),
    ("cc$I$7$1.0$+$A$0", "cc$I$7$0.9$+$A$0", "unknown kind of line"),
    ("cc$C$9$0.9$+$", "cc$C$10$0.9$+$", "10 is stated twice"),
    ("cc$C$9$0.9$+$", "cc$C$9$nan$+$", "a number must be in 0..1"),
    ("cc$C$9$0.9$+$", "cc$C$9$0,9$+$", "could not convert string to float"),
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


def tokens(text: str, separator: str) -> Iterator[tuple[str, str]]:
    """Each line with each of its tokens replaced by another number, by a word and by nothing."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        words = line.split(separator)
        for position, word in enumerate(words):
            for other in {"7", "-3", "-4", "0.4", ""} - {word}:
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


@pytest.mark.parametrize(("place", "text"), [(0, CNF), (1, LMAP)], ids=["cnf", "lmap"])
def test_a_network_cut_short_is_refused(tmp_path: Path, place: int, text: str) -> None:
    """Only the newline at the end can be lost; cuts between lines, and within each, are seen."""
    paths = write_ace(tmp_path, CNF, LMAP)
    ends = [end.start() for end in re.finditer("\n", text)]
    for length in sorted({0, *ends[:-1], *(end + 1 for end in ends[:-1]), *(end - 1 for end in ends)}):
        paths[place].write_text(text[:length], encoding="utf-8")
        with pytest.raises(ValueError, match=re.escape(str(paths[place]))):
            tb.NaiveBayes.read_ace(*paths)
    paths[place].write_text(text[:-1], encoding="utf-8")
    assert_same(tb.NaiveBayes.read_ace(*paths), example())
