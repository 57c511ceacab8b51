"""Settings from configuration values: what is accepted, how mistakes are explained, what experiments refuse."""

from __future__ import annotations

import re
from dataclasses import asdict, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from trimbench.papers.conformant.protocols import Protocol
from trimbench.reproduction.commands.arguments import CommandLine, Composer, setting
from trimbench.reproduction.commands.common_settings import SHARED_KEYS
from trimbench.reproduction.configuration import NOT_SETTINGS
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.settings import ConfigurationError, must_be, settings, unknown, validated
from trimbench.reproduction.vocabulary.cells import Inputs
from trimbench.reproduction.vocabulary.planning import make_experiment

from .command_line import PROJECT, Command


@settings
class Line:
    shape: Literal["line"] = "line"
    length: Annotated[float, must_be("a number above 0", lambda length: length > 0)]


@settings
class Box:
    shape: Literal["box", "frame"]
    sides: list[int]
    labels: dict[str, Line] = field(default_factory=dict)


Drawing = Annotated[Line | Box, Field(discriminator="shape")]


@settings
class Sample:
    names: list[str]
    rate: float
    count: int = 3
    label: str | None = None
    quick: bool = False
    rounding: Literal["up", "down"] = "up"
    k: int | Literal["auto"] = "auto"
    size: Annotated[int, Field(ge=1, le=9)] = 1
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    rows: Annotated[list[int], Field(min_length=1, max_length=2)] = field(default_factory=lambda: [1])
    code: Annotated[str, Field(pattern="^[a-z]$")] = "a"
    pair: tuple[int, str] = (1, "a")
    words: tuple[str, ...] | None = None
    main: Drawing | None = None
    others: list[Drawing] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"count must be 0 or more, got {self.count}")


samples = st.builds(
    Sample,
    names=st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=4),
    rate=st.floats(allow_nan=False),
    count=st.integers(0, 2**70),
    label=st.none() | st.sampled_from(["a", "b c", "1", "null", "true"]),
    quick=st.booleans(),
    main=st.none() | st.builds(Line, length=st.floats(0.1, 9)),
    others=st.lists(st.builds(Box, shape=st.sampled_from(["box", "frame"]), sides=st.lists(st.integers())), max_size=2),
)


@given(samples)
def test_settings_come_back_as_they_were(sample: Sample) -> None:
    assert validated(Sample, asdict(sample), "sample") == sample


def test_defaults_fill_what_is_left_out_and_whole_numbers_become_floats() -> None:
    sample = validated(Sample, {"names": [], "rate": 1}, "sample")
    assert sample == Sample(names=[], rate=1.0)
    assert type(sample.rate) is float


BOX = {"shape": "box", "sides": [1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cuont": 1}, "each key must be one of code, count, k, label, main, names, others, pair, quick, rate, "
         "rounding, rows, share, size, words, got 'cuont'; did you mean 'count'?"),
        ({"rate": "fast"}, "rate must be a number, got 'fast'"),
        ({"rate": True}, "rate must be a number, got True"),
        ({"count": 1.5}, "count must be a whole number, got 1.5"),
        ({"count": -1}, "count must be 0 or more, got -1"),
        ({"label": 3}, "label must be a text (in quotes), got 3"),
        ({"quick": "maybe"}, "quick must be true or false, got 'maybe'"),
        ({"names": "a"}, "names must be a list, got 'a'; write 'names=[a]'"),
        ({"names": ["a", 2]}, "names.1 must be a text (in quotes), got 2"),
        ({"rounding": "dwon"}, "rounding must be one of down, up, got 'dwon'; did you mean 'down'?"),
        ({"k": 0.5}, "k must be a whole number or 'auto', got 0.5"),
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"size": 10}, "size must be at most 9, got 10"),
        ({"share": 0}, "share must be more than 0.0, got 0"),
        ({"rows": []}, "rows must be a list of at least 1 value(s), got []"),
        ({"code": "A"}, "code must be a text that matches ^[a-z]$, got 'A'"),
        ({"pair": [1, 2]}, "pair.1 must be a text (in quotes), got 2"),
        ({"main": 3}, "main must be keys and values, got 3"),
        ({"main": {}}, "key main.shape is missing; add it"),
        ({"main": {"shape": "bos"}}, "main.shape must be one of box, frame, line, got 'bos'; did you mean 'box'?"),
        ({"main": {"shape": "line"}}, "key main.length is missing; add it"),
        ({"main": {"shape": "line", "length": -1}}, "main.length must be a number above 0, got -1"),
        ({"others": [BOX, {"shape": "line"}]}, "key others.1.length is missing; add it"),
        ({"others": [BOX | {"side": 3}]}, "each key of others.0 must be one of labels, shape, sides, got 'side'; "
         "did you mean 'sides'?"),
        ({"others": [BOX | {"labels": {"top": {"length": -1}}}]}, "others.0.labels.top.length must be a number "
         "above 0, got -1"),
        ({3: 1}, "each key must be a text (put it in quotes), got 3"),
        ({"others": [{True: 1}]}, "each key of others.0 must be a text (put it in quotes), got True"),
    ],
)  # fmt: skip
def test_wrong_settings_are_explained(change: dict[object, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        validated(Sample, {"names": ["a"], "rate": 0.5, **change}, "sample")
    assert str(raised.value) == f"sample: {message}"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"names": []}, ": key rate is missing; add it"),
        ({"nmaes": [], "rate": 1}, ": each key must be one of .*, got 'nmaes'; did you mean 'names'"),
        (None, " must be keys and values, got None"),
        ([1], r" must be keys and values, got \[1\]"),
    ],
)
def test_missing_keys_and_no_keys_are_explained(values: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^sample{message}"):
        validated(Sample, values, "sample")


def test_unknown_suggests_only_what_is_close() -> None:
    expected = "task must be one of list, run, got "
    assert str(unknown("task", ["run", "list"], "lst")) == f"{expected}'lst'; did you mean 'list'?"
    assert str(unknown("task", ["run", "list"], "zzz")) == f"{expected}'zzz'"
    assert str(unknown("x", ["a/t", "b/t"], "t")) == "x must be one of a/t, b/t, got 't'; did you mean 'a/t' or 'b/t'?"


# Settings that the experiments refuse before any job runs, and what they say.


COMPOSER = Composer(PROJECT)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("selection_bias/simulation ks=[0]", "ks must be numbers from 1 to n_features=10000, got 0"),
        ("selection_bias/simulation class_sizes=[7]", "class_sizes must be two whole numbers, 1 or more, got [7]"),
        ("selection_bias/simulation class_sizes=7", "class_sizes must be two whole numbers, got 7; write [7,7]"),
        ("selection_bias/simulation class_sizes=[[0,7]]", "class_sizes must be two whole numbers, 1 or more"),
        ("selection_bias/simulation class_sizes=[[7,'7']]", "class_sizes.0.1 must be a whole number, got '7'"),
        ("selection_bias/simulation test_sizes=[0,0]", "test_sizes must be two whole numbers, not both 0"),
        ("selection_bias/simulation alpha=-1", "alpha must be a positive number, got -1.0"),
        ("selection_bias/simulation prior.shape=0", "prior: shape must be a positive number, got 0.0"),
        ("selection_bias/simulation +prior.shap=1", "each key of prior must be one of f0, f1, n_alpha,"),
        ("selection_bias/calibration k=10001", "k must be a number from 1 to n_features=10000, got 10001"),
        ("selection_bias/alpha_posterior class_sizes=[[5,5],[6,6]]", "class_sizes must be one pair of whole numbers,"),
        ("selection_bias/runtime class_sizes=[[5,5],[6,6]]", "class_sizes must be one pair of whole numbers, got [[5,"),
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
        ("conformant/table4 repetitions_of.adult=0", "repetitions_of.adult must be 1 or more, got 0"),
        ("conformant/digits missing=[0.1] rounding=fifths", "missing must be multiples of 0.2 with rounding='fif"),
        ("conformant/digits mechanism=rates +rates.age=2", "rates must be between 0 and 1, got 2.0 for 'age'"),
        ("conformant/digits mechanism=rates +rates.pixel_9_9=0.5", "rates: a feature of digits must be one of "),
        ("conformant/missing_values methods=[nacl]", "methods must have mixture, with which the others are compa"),
        ("conformant/missing_values methods=[mixture,cart]", "methods.1 must be one of covariance, iterative, knn"),
        ("conformant/missing_values missing=[50]", "missing must be fractions between 0 and 1, got 50.0"),
        ("conformant/solvers n_classes=1", "n_classes must be 2 or more, got 1"),
        ("trimming/figure5 datasets=[x]", "datasets must be among the names in problems, ['pima', 'heart'], got"),
        ("trimming/figure5 +problems.toy={dataset:digits} datasets=[toy]", "key problems.toy.positive is missing"),
        ("trimming/figure7 networks=[] substitutes=[]", "networks and substitutes must be a list of at least one"),
        ("trimming/figure7 thresholds=[1.5]", "thresholds.0 must be a probability in [0, 1], got 1.5"),
        ("trimming/figure7 evidence_networks=[c,c]", "evidence_networks must be distinct, got ['c', 'c']"),
        ("trimming/figure7 max_operations=0", "max_operations must be a number of at least 1, got 0.0"),
        ("trimming/scaling datasets=[x]", "datasets must be among the names in problems, ['breast_cancer', 'spli"),
        ("trimming/rows n_folds=1", "n_folds must be 2 or more, got 1"),
        ("trimming/rows candidates={sequential:5}", "problems.breast_cancer.budget must be 1 or more and below e"),
        ("trimming/rows candidates={sequential:3,recursive:9}", "problems.diabetes.budget must be 1 or more and"),
        ("trimming/quiz posteriors=[[0.1,0.2]]", "posteriors must be two ranges [low, high], got [[0.1, 0.2]]"),
        ("trimming/quiz n_grid=1", "n_grid must be 2 or more, got 1"),
        ("conformant/figure1 negative=[0.5]", "must have the same length, 1 or more, got ["),
        ("trimming/quiz ~agreements.q3", "agreements must have the keys"),
    ],
)
def test_bad_settings_are_refused(words: str, message: str) -> None:
    inputs, words_of = Inputs(PROJECT, Cache.from_environment(offline=True)), f"experiment={words}".split()

    def planned() -> None:
        values = COMPOSER.compose(CommandLine.of(words_of).first)
        make_experiment(words.partition(" ")[0].partition("/")[2], values, SHARED_KEYS).cells(inputs)

    with pytest.raises(ConfigurationError, match=re.escape(message)):
        planned()


# Lists that may be empty or have a value twice, and numbers without limits.
FREE = {
    "conformant/defaults": {"incomplete", "numbers"},
    "conformant/figure6": {"tables", "table_rows"},
    "conformant/missing_values": {"missing_at_random", "incomplete", "numbers"},
    "conformant/table2": {"named_rows"},
    "selection_bias/noise": {"real"},
    "trimming/figure7": {"networks", "evidence_networks", "substitutes"},
}


@pytest.mark.parametrize("name", PROJECT.names("experiment"))
def test_numbers_and_lists_have_limits(name: str) -> None:
    values = COMPOSER.compose([setting("experiment", name)])
    for key in {*PROJECT.keys("experiment", name)} - {*NOT_SETTINGS} - FREE.get(name, set()):
        value = values.get(key)
        number = [-1] if isinstance(value, int | float) and not isinstance(value, bool) else []
        for wrong in [[], [*value, *value[:1]]] if isinstance(value, list) else number:
            with pytest.raises(ConfigurationError, match=key):
                make_experiment(name.partition("/")[2], values | {key: wrong}, SHARED_KEYS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bins": 1}, "bins must be at least 2, got 1"),
        ({"cut": {"text": "mean"}}, "each key of cut must be one of authors, paper, got 'text'"),
    ],
)
def test_bad_settings_of_a_protocol_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        validated(Protocol, {"dataset": "x"} | changes, "here")


def test_several_values_of_the_prior_may_be_set_at_once(command: Command) -> None:
    words = ("experiment=selection_bias/simulation", "prior={rate: 2, rule: simpson}", "--cfg", "job")
    printed = command(*words, code=0).out
    assert "  rate: 2\n" in printed
    assert "  rule: simpson\n" in printed
    assert "  shape: 0.5\n" in printed, "the others keep their values"
    command("task=list", *words[:2], code=0)
