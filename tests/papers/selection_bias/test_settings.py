"""Settings that the selection-bias experiments refuse, and what they say."""

from __future__ import annotations

import re

import pytest

from trimbench.papers.commands.arguments import CommandLine, Composer
from trimbench.papers.commands.invocation import SHARED_KEYS
from trimbench.papers.data.cache import Cache
from trimbench.papers.validation import ConfigurationError
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.planning import make_experiment

from ..command_line import PROJECT, Command

COMPOSER = Composer(PROJECT)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("simulation ks=[0]", "ks must be numbers from 1 to n_features=10000, got 0"),
        ("simulation ks=[]", "ks must be a list of at least one value, each once, got []"),
        ("simulation class_sizes=[[5,5],[5,5]]", "class_sizes must be a list of at least one value, each once"),
        ("simulation class_sizes=[7]", "class_sizes must be two whole numbers, 1 or more, got [7]"),
        ("simulation class_sizes=7", "class_sizes must be a list, got 7; write class_sizes=[7]"),
        ("simulation class_sizes=[[0,7]]", "class_sizes must be two whole numbers, 1 or more"),
        ("simulation class_sizes=[[7,'7']]", "class_sizes.0.1 must be a whole number, got '7'"),
        ("simulation test_sizes=[0,0]", "test_sizes must be two whole numbers, not both 0"),
        ("simulation alpha=-1", "alpha must be a positive number, got -1.0"),
        ("simulation replicates=0", "replicates must be 1 or more, got 0"),
        ("simulation prior.shape=0", "prior: shape must be a positive number, got 0.0; the slides use 0.5"),
        ("simulation +prior.shap=1", "a key of prior must be one of f0, f1, n_alpha,"),
        ("calibration k=10001", "k must be a number from 1 to n_features=10000, got 10001"),
        ("alpha_posterior class_sizes=[[5,5],[6,6]]", "class_sizes must be one pair of whole numbers, got [[5, 5], ["),
        ("runtime class_sizes=[[5,5],[6,6]]", "class_sizes must be one pair of whole numbers, got [[5, 5], [6, 6]]"),
        ("correlation_table n0=0", "n0 must be 1 or more, got 0"),
        ("runtime repeats=0", "repeats must be 1 or more, got 0"),
        ("colon datasets=[]", "datasets must be a list of at least one value, each once, got []"),
        ("colon datasets=[digits]", "datasets must have two classes of at least 2 cases for leave-one-out, got"),
        ("colon positive=tumour", "positive: a class of colon must be one of 0, 1, got 'tumour'"),
        ("colon prior.theta0=0.5", "prior: theta0 must be in [0, 0.5), got 0.5"),
        ("colon splits=0", "splits must be 1 or more, got 0"),
        ("colon n_subsets=500", "n_subsets times k must be at most 2000, the number of features of colon, got 500"),
        ("mixture ks=[2001]", "ks must be numbers from 1 to n_features=2000, got 2001"),
        ("mixture n_chains=1", "n_chains must be 2 or more, got 1"),
        ("mixture response=[0.5]", "response must be two probabilities between 0 and 1"),
        ("mixture prior.shape0=-1", "prior: shape0 must be a positive number, got -1.0"),
        ("mixture n_train=2", "n_train must be a whole number, 4 or more, got 2"),
    ],
)
def test_bad_settings_are_refused(words: str, message: str) -> None:
    values = COMPOSER.compose(CommandLine.of(f"experiment=selection_bias/{words}".split()).first)
    inputs = Inputs(PROJECT, Cache.from_environment(offline=True))
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        make_experiment(words.partition(" ")[0], values, SHARED_KEYS).cells(inputs)


def test_several_values_of_the_prior_may_be_set_at_once(command: Command) -> None:
    words = ("experiment=selection_bias/simulation", "prior={rate: 2, rule: simpson}", "--cfg", "job")
    printed = command(*words, code=0).out
    assert "  rate: 2\n" in printed
    assert "  rule: simpson\n" in printed
    assert "  shape: 0.5\n" in printed, "the others keep their values"
    command("task=list", *words[:2], code=0)
