"""Settings that the experiments refuse before any job runs, and what they say."""

from __future__ import annotations

import re

import pytest

from trimbench.papers.commands.arguments import SHARED_KEYS, CommandLine, Composer
from trimbench.papers.conformant.tasks import Protocol
from trimbench.papers.data.cache import Cache
from trimbench.papers.validation import ConfigurationError, validated
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.planning import make_experiment

from .command_line import PROJECT, Command

COMPOSER = Composer(PROJECT)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("selection_bias/simulation ks=[0]", "ks must be numbers from 1 to n_features=10000, got 0"),
        ("selection_bias/simulation ks=[]", "ks must be a list of at least one value, each once, got []"),
        ("selection_bias/simulation class_sizes=[[5,5],[5,5]]", "class_sizes must be a list of at least one value, ea"),
        ("selection_bias/simulation class_sizes=[7]", "class_sizes must be two whole numbers, 1 or more, got [7]"),
        ("selection_bias/simulation class_sizes=7", "class_sizes must be two whole numbers, got 7; write [7,7]"),
        ("selection_bias/simulation class_sizes=[[0,7]]", "class_sizes must be two whole numbers, 1 or more"),
        ("selection_bias/simulation class_sizes=[[7,'7']]", "class_sizes.0.1 must be a whole number, got '7'"),
        ("selection_bias/simulation test_sizes=[0,0]", "test_sizes must be two whole numbers, not both 0"),
        ("selection_bias/simulation alpha=-1", "alpha must be a positive number, got -1.0"),
        ("selection_bias/simulation replicates=0", "replicates must be 1 or more, got 0"),
        ("selection_bias/simulation prior.shape=0", "prior: shape must be a positive number, got 0.0"),
        ("selection_bias/simulation +prior.shap=1", "a key of prior must be one of f0, f1, n_alpha,"),
        ("selection_bias/calibration k=10001", "k must be a number from 1 to n_features=10000, got 10001"),
        ("selection_bias/alpha_posterior class_sizes=[[5,5],[6,6]]", "class_sizes must be one pair of whole numbers,"),
        ("selection_bias/runtime class_sizes=[[5,5],[6,6]]", "class_sizes must be one pair of whole numbers, got [[5,"),
        ("selection_bias/correlation_table n0=0", "n0 must be 1 or more, got 0"),
        ("selection_bias/runtime repeats=0", "repeats must be 1 or more, got 0"),
        ("selection_bias/colon datasets=[]", "datasets must be a list of at least one value, each once, got []"),
        ("selection_bias/colon datasets=[digits]", "datasets must have two classes of at least 2 cases for leave-one-"),
        ("selection_bias/colon positive=tumour", "positive: a class of colon must be one of 0, 1, got 'tumour'"),
        ("selection_bias/colon prior.theta0=0.5", "prior: theta0 must be in [0, 0.5), got 0.5"),
        ("selection_bias/colon splits=0", "splits must be 1 or more, got 0"),
        ("selection_bias/colon n_subsets=500", "n_subsets times k must be at most 2000, the number of features of col"),
        ("selection_bias/noise simulated.correlations=[1.0]", "simulated.correlations.0 must be at least 0 and be"),
        ("selection_bias/noise real=[none]", "real must be names in real_sets, ["),
        ("selection_bias/noise k=2001", "ks must be numbers from 1 to n_features=2000, got 2001"),
        ("selection_bias/prior_calibration models.binary.k=601", "k must be at most n_features=600, got 601"),
        ("selection_bias/mixture ks=[2001]", "ks must be numbers from 1 to n_features=2000, got 2001"),
        ("selection_bias/mixture n_chains=1", "n_chains must be 2 or more, got 1"),
        ("selection_bias/mixture response=[0.5]", "response must be two probabilities between 0 and 1"),
        ("selection_bias/mixture prior.shape0=-1", "prior: shape0 must be a positive number, got -1.0"),
        ("selection_bias/mixture n_train=2", "n_train must be 4 or more, got 2"),
        ("conformant/figure1 prior=1.0", "prior must be strictly between 0 and 1, got 1.0"),
        ("conformant/figure3 missing=[1.5]", "missing must be fractions between 0 and 1, got 1.5; 20 % is 0.2"),
        ("conformant/figure6 rows=[1,1]", "rows must be a list of at least one value, each once, got [1, 1]"),
        ("conformant/table2 encodings=[]", "encodings must be a list of at least one value, each once, got []"),
        ("conformant/table4 repetitions_of.adult=0", "repetitions_of.adult must be 1 or more, got 0"),
        ("conformant/digits missing=[0.1] rounding=fifths", "missing must be multiples of 0.2 with rounding='fif"),
        ("conformant/digits mechanism=rates +rates.age=2", "rates must be between 0 and 1, got 2.0 for 'age'"),
        ("conformant/em_mice settings.n_components=0", "settings.n_components must be 1 or more, got 0"),
        ("conformant/missing_values methods=[nacl]", "methods must have mixture, with which the others are compa"),
        ("conformant/missing_values methods=[mixture,cart]", "methods.1 must be one of iterative, knn, masked_re"),
        ("conformant/em_mice methods=[cart]", "methods.0 must be one of em, knn, max, mean, median, mice"),
        ("conformant/missing_values missing=[50]", "missing must be fractions between 0 and 1, got 50.0"),
        ("conformant/missing_values mechanism=[mnar]", "mechanism.0 must be one of block, depends_on_features, d"),
        ("conformant/solvers solvers_of.splice=[simplex]", "solvers_of.splice.0 must be one of cvxpy, gpkit, new"),
        ("conformant/solvers n_classes=1", "n_classes must be 2 or more, got 1"),
        ("trimming/figure5 splits=0", "splits must be 1 or more, got 0"),
        ("trimming/figure5 budget_divisor=0", "budget_divisor must be 1 or more, got 0"),
        ("trimming/figure5 threshold=1.0", "threshold must be strictly between 0 and 1, got 1.0"),
        ("trimming/figure5 datasets=[x]", "datasets must be among the names in problems, ['pima', 'heart'], got"),
        ("trimming/figure5 +problems.toy={dataset:digits} datasets=[toy]", "key problems.toy.positive is missing"),
        ("trimming/figure7 networks=[] substitutes=[]", "networks and substitutes must be a list of at least one"),
        ("trimming/figure7 thresholds=[]", "thresholds must be a list of at least one value, each once, got []"),
        ("trimming/figure7 thresholds=[1.5]", "thresholds.0 must be a probability in [0, 1], got 1.5"),
        ("trimming/figure7 classes=0", "classes must be 1 or more, got 0"),
        ("trimming/figure7 evidence_networks=[c,c]", "evidence_networks must be distinct, got ['c', 'c']"),
        ("trimming/figure7 max_operations=0", "max_operations must be a number of at least 1, got 0.0"),
        ("trimming/figure7 smoothing=0.0", "smoothing must be a positive number, got 0.0"),
        ("trimming/scaling datasets=[x]", "datasets must be among the names in problems, ['breast_cancer', 'spli"),
        ("trimming/scaling evaluation_limit=0", "evaluation_limit must be 1 or more, got 0"),
        ("trimming/rows n_folds=1", "n_folds must be 2 or more, got 1"),
        ("trimming/rows candidates={sequential:5}", "problems.breast_cancer.budget must be 1 or more and below e"),
        ("trimming/rows candidates={sequential:3,recursive:9}", "problems.diabetes.budget must be 1 or more and"),
        ("trimming/quiz thresholds=[0.5]", "thresholds must be keys and values, got [0.5]"),
        ("trimming/quiz thresholds.q3=1.5", "thresholds.q3 must be a probability in [0, 1], got 1.5"),
        ("trimming/quiz posteriors=[[0.1,0.2]]", "posteriors must be two ranges [low, high], got [[0.1, 0.2]]"),
        ("trimming/quiz hard=1.0", "hard must be strictly between 0 and 1, got 1.0"),
        ("trimming/quiz n_grid=1", "n_grid must be 2 or more, got 1"),
        ("conformant/figure1 negative=[0.5]", "must have the same length, 1 or more, got ["),
        ("trimming/quiz ~agreements.q3", "agreements must have the keys"),
        ("conformant/naive_bayes repetitions_of.adult=0", "repetitions_of.adult must be 1 or more, got 0"),
    ],
)
def test_bad_settings_are_refused(words: str, message: str) -> None:
    inputs, words_of = Inputs(PROJECT, Cache.from_environment(offline=True)), f"experiment={words}".split()

    def planned() -> None:
        values = COMPOSER.compose(CommandLine.of(words_of).first)
        make_experiment(words.partition(" ")[0].partition("/")[2], values, SHARED_KEYS).cells(inputs)

    with pytest.raises(ConfigurationError, match=re.escape(message)):
        planned()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bins": 1}, "bins must be at least 2, got 1"),
        ({"cut": {"text": "mean"}}, "a key of cut must be one of authors, paper, got 'text'"),
    ],
)
def test_bad_settings_of_a_protocol_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        validated(Protocol, {"dataset": "x"} | changes, "here")


def test_a_rate_belongs_to_a_feature_of_the_data(command: Command) -> None:
    words = ("experiment=conformant/digits", "mechanism=rates", "+rates.pixel_9_9=0.5", "executor=serial")
    answer = command(*words, code=2)
    assert re.search("rates: a feature of digits must be one of .*, got 'pixel_9_9'", answer.err)


def test_several_values_of_the_prior_may_be_set_at_once(command: Command) -> None:
    words = ("experiment=selection_bias/simulation", "prior={rate: 2, rule: simpson}", "--cfg", "job")
    printed = command(*words, code=0).out
    assert "  rate: 2\n" in printed
    assert "  rule: simpson\n" in printed
    assert "  shape: 0.5\n" in printed, "the others keep their values"
    command("task=list", *words[:2], code=0)
