"""Settings of the conformant experiments are checked before any job runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from trimbench.papers.conformant.em_mice import EmMice
from trimbench.papers.conformant.figure1 import Figure1
from trimbench.papers.conformant.figure3 import Figure3
from trimbench.papers.conformant.figure6 import Figure6
from trimbench.papers.conformant.naive_bayes import NaiveBayesCrossing
from trimbench.papers.conformant.protocol import Protocol
from trimbench.papers.conformant.solvers import Solvers
from trimbench.papers.conformant.sweep import Sweep
from trimbench.papers.conformant.uci_tables import UciTable

from ..command_line import Answer

Command = Callable[..., Answer]
DIGITS = ("experiment=conformant/digits", "executor=serial", "offline=true", "repetitions=2")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("missing=[0.5,20]", "missing must be fractions between 0 and 1, got 20"),
        ("missing=[]", "missing must be a list of at least one value"),
        ("missing=0.5", r"missing must be a list, got 0.5; write missing=\[0.5\]"),
        ("mechanism=mnar", "mechanism must be one of mcar, rates, block, got 'mnar'"),
        ("encoding=codes", "encoding must be one of paper, authors, got 'codes'"),
        ("repetitions=0", "repetitions must be 1 or more, got 0"),
        ("mechanism=rates +rates.pixel_9_9=0.5", "rates: a feature of digits must be one of .*, got 'pixel_9_9'"),
        ("datasets=[digitz]", "dataset must be one of .*, got 'digitz'; did you mean 'digits'"),
    ],
)
def test_bad_settings_are_told(command: Command, words: str, message: str) -> None:
    answer = command(*DIGITS, *words.split())
    assert answer.code == 2
    assert re.search(message, answer.err), answer.err


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Figure1(0.5, [0.5], [0.5, 0.5], [0.5]), "must be of one length, got 1, 2 and 1"),
        (lambda: Figure1(1.0, [0.5], [0.5], [0.5]), "strictly between 0 and 1, got 1.0"),
        (lambda: Figure3(["mnist"], [1.5]), "missing must be fractions"),
        (lambda: Figure3(["mnist"], [0.5], encodings=["x"]), "encodings must be of paper, authors, got 'x'"),
        (lambda: Figure6(["mnist_5v3"], [-1]), "rows must be numbers of test rows, 0 or more"),
        (lambda: UciTable("auc", ["adult"], [0.2]), "measure must be one of cross_entropy, f1_weighted, got 'auc'"),
        (lambda: UciTable("f1_weighted", ["adult"], [0.2], 0), "repetitions must be 1 or more, got 0"),
        (
            lambda: UciTable("f1_weighted", ["adult"], [0.2], repetitions_of={"adult": 0}),
            "repetitions_of.adult must be 1 or more, got 0",
        ),
        (
            lambda: UciTable("f1_weighted", ["adult"], [0.2], roundings=["up"]),
            "roundings must be of down, nearest, fifths, got 'up'",
        ),
        (
            lambda: NaiveBayesCrossing(["adult"], [0.2], measure_of={"adult": "auc"}),
            "measure_of.adult must be one of accuracy, f1_weighted, got 'auc'",
        ),
        (
            lambda: EmMice(["adult"], [0.1], ["em"], ["test"], {"n_components": 0}),
            "settings.n_components must be a whole number, 1 or more, got 0",
        ),
        (
            lambda: EmMice(["adult"], [0.1], ["em"], ["test"], {"components": 5}),
            "settings must have the keys n_components, .*, got 'components'",
        ),
        (lambda: EmMice(["adult"], [0.1], ["gan"], ["train"], {}), "methods must be of nacl, .*, got 'gan'"),
        (lambda: EmMice(["adult"], [0.1], ["em"], ["all"], {}), "fit_on must be of train, test, got 'all'"),
        (lambda: Solvers(["splice"], ["simplex"]), "solvers must be of newton, gpkit, cvxpy, got 'simplex'"),
        (
            lambda: Solvers(["splice"], solvers_of={"splice": ["simplex"]}),
            "solvers_of.splice must be of newton, gpkit, cvxpy, got 'simplex'",
        ),
        (lambda: Protocol("x", test_fraction=1.0), "test_fraction must be between 0 and 1, got 1.0"),
        (lambda: Protocol("x", inverse_penalty=0), "inverse_penalty must be positive, got 0"),
        (lambda: Protocol("x", cut={"text": "mean"}), "cut must have the keys paper, authors"),
        (
            lambda: Sweep(["digits"], [0.1], rounding="fifths"),
            "missing must be multiples of 0.2 with rounding='fif",
        ),
        (lambda: UciTable("f1_weighted", ["adult"], [0.1]), "missing must be multiples of 0.2 with rounding='fif"),
        (lambda: Sweep(["digits"], [0.1], rounding="up"), "rounding must be one of down, nearest, fifths, got 'up'"),
    ],
)
def test_settings_are_checked(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
