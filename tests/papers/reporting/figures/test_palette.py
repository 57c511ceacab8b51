"""Colours of methods."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.beyond import budgets
from trimbench.papers.conformant import em_mice, mask_sweep
from trimbench.papers.reporting.figures.text import N_SLOTS, slots
from trimbench.papers.selection_bias.simulated_cases import CORRECTIONS
from trimbench.papers.trimming import figure5, figure7, table6

# The methods that a figure, or the lines of a sweep, compares with each other, and where they are declared.
IMPUTATION = ("NaCL", "mean", "median", "min", "max")
IMPUTERS = (*IMPUTATION, "EM, mixture", "EM as the authors ran it", "MICE", "nearest neighbours")
GAINS = ("information gain, same T", "information gain, best T'", "joint information gain, best T'")
COMPARED: list[tuple[tuple[str, ...], Collection[str]]] = [
    ((*IMPUTATION, "naive Bayes", "NaCL, categorical"), mask_sweep.METHODS.values()),
    (IMPUTERS, [method.title for method in em_mice.METHODS.values()]),
    (("highest ECA", "highest accuracy", "information gain"), figure5.PICKS.values()),
    (("trimming", *GAINS, "no feature"), figure7._METHODS.values()),
    (("information gain", "greedy accuracy"), [baseline.title for baseline in budgets.BASELINES.values()]),
    (("expected agreement (ECA)", "agreement on test rows", "accuracy on test rows"), budgets._CURVES),
    (("eca_trim", "fs_sdd"), table6._METHODS),
    (("corrected", "uncorrected"), CORRECTIONS),
]


@pytest.mark.parametrize(("methods", "declared"), COMPARED)
def test_a_method_has_its_colour_in_every_figure(methods: tuple[str, ...], declared: Collection[str]) -> None:
    assert {*methods} <= {*declared}
    alone = [slots([method])[0] for method in methods]
    assert slots(methods) == alone
    assert slots(methods[::-1]) == alone[::-1]
    assert len({*alone}) == len(methods), "methods that are compared differ in colour"
    assert slots(["some other method", *methods])[1:] == alone, "an unknown method takes no colour of a known one"


def test_the_trimming_has_one_colour() -> None:
    assert slots(["trimming"]) == slots(["highest ECA"]) == slots(["eca_trim"]) == [0]


def test_spelling_does_not_matter() -> None:
    assert slots(["ECA-trim", "eca_trim", "Eca Trim", "naive Bayes", "naive_bayes"]) == [0, 0, 0, 5, 5]


def test_two_known_methods_never_share_a_colour() -> None:
    assert slots(["NaCL", "corrected"]) == [0, 1], "both have the first colour in their own figures"
    assert slots(["NaCL", "corrected", "uncorrected", "NaCL"]) == [0, 2, 1, 0]


@given(st.lists(st.sampled_from(["NaCL", "mean", "corrected", "trimming", "own", "other", "third", "x", "y", "z"])))
def test_as_many_slots_as_methods(methods: list[str]) -> None:
    found = slots(methods)
    assert len({*zip(methods, found, strict=True)}) == len({*methods}) == len({*found})
    assert all(slot < max(N_SLOTS, len({*methods})) for slot in found)
