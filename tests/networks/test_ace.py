"""The reader of ACE files: round trips through a small encoder, and damage of every kind."""

from __future__ import annotations

import re
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
@settings(max_examples=100, deadline=None)
def test_what_is_encoded_is_read_back(model: tb.NaiveBayes, tmp_path_factory: pytest.TempPathFactory) -> None:
    paths = write_ace(tmp_path_factory.getbasetemp(), *encode_ace(model))
    assert_same(tb.NaiveBayes.read_ace(*paths), model)


def test_the_example_shows_every_kind_of_clause(tmp_path: Path) -> None:
    for clause, weight in [
        ("-1 4 0", "cc$C$4$0.5$+$"),  # a class
        ("-7 -1 9 0", "cc$C$9$0.9$+$"),  # a value given a class
        ("-2 11 0", "cc$C$11$0.5$+$"),  # all values given a class
        ("-2 20 0", "cc$C$20$0.5$+$"),  # all values but those of probability zero ...
        ("-14 -2 0", ""),  # ... such as this one
    ]:
        assert clause in CNF.splitlines()
        assert weight in LMAP.splitlines() or not weight
    model = tb.NaiveBayes.read_ace(*write_ace(tmp_path, CNF, LMAP))
    assert_same(model, example())
    assert model.likelihoods[0][1].tolist() == [0.5, 0.5]
    assert model.likelihoods[1][1].tolist() == [0.0, 0.5, 0.5]


def test_rounded_parameters_are_normalised_up_to_a_limit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rounded = LMAP.replace("$0.75$", "$0.734$")
    with caplog.at_level("INFO", logger="trimbench.networks.formats.ace"):
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


def test_the_search_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.search"
    path.write_text("\n" + SEARCH, encoding="utf-8")
    assert read_problem(path) == PROBLEM
    assert list(read_problem(path).costs) == ["A", "B"]


def test_a_search_file_cut_short_after_any_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.search"
    lines = SEARCH.splitlines(keepends=True)
    for count in range(len(lines)):
        path.write_text("".join(lines[:count]), encoding="utf-8")
        with pytest.raises(ValueError, match=re.escape(str(path)) + ".*is it cut short"):
            read_problem(path)


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
        ("2.5", "inf", "a number must be in 0..1.79769e+308"),
        ("2.5", "", "line 1: cannot read '$ 2 0.5' (unknown kind of line)"),
        ("$", "%", "unknown kind of line"),
        ("d C", "d", "unknown kind of line"),
        ("d C\n", "", "must have a line '$ features threshold budget' and a line 'd class'; is it cut short?"),
        ("d C", "d C\nd A", "'d' is stated twice"),
        ("d C", "$ 2 0.5 2.5", "'$' is stated twice"),
        ("d C", "d A", "other than the class 'A', got ['A', 'B']"),
        ("f B", "f A", "line 4: cannot read 'f A 0.25' ('A' is stated twice)"),
        ("f B", "g B", "unknown kind of line"),
        ("0.25", "-0.25", "a number must be in 0..1.79769e+308"),
        ("0.25", "nan", "a number must be in 0..1.79769e+308"),
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


def test_files_that_are_not_text_are_named(tmp_path: Path) -> None:
    for damaged in (0, 1):
        paths = write_ace(tmp_path, CNF, LMAP)
        paths[damaged].write_bytes(b"c \xff\xfe\n" + paths[damaged].read_bytes())
        with pytest.raises(ValueError, match=re.escape(f"{paths[damaged]} must be UTF-8 text: ")):
            tb.NaiveBayes.read_ace(*paths)
    with pytest.raises(ValueError, match=re.escape(f"{paths[1]} must be UTF-8 text: ")):
        read_problem(paths[1])


def test_absent_files_are_operating_system_errors(tmp_path: Path) -> None:
    cnf, lmap = write_ace(tmp_path, CNF, LMAP)
    for paths in ((cnf, tmp_path / "absent"), (tmp_path / "absent", lmap)):
        with pytest.raises(FileNotFoundError):
            tb.NaiveBayes.read_ace(*paths)
    with pytest.raises(FileNotFoundError):
        read_problem(tmp_path / "absent")
