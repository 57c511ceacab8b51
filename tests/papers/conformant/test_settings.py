"""Settings of the conformant experiments are checked before any job runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from trimbench.papers.beyond.missing_values import MissingValues
from trimbench.papers.conformant.em_mice import EmMice
from trimbench.papers.conformant.figure1 import Figure1
from trimbench.papers.conformant.figure3 import Figure3
from trimbench.papers.conformant.figure6 import Figure6
from trimbench.papers.conformant.mask_sweep import MissingFeatures
from trimbench.papers.conformant.naive_bayes import NaiveBayesCrossing
from trimbench.papers.conformant.solvers import Solvers
from trimbench.papers.conformant.table2 import Table2
from trimbench.papers.conformant.tables_4_and_5 import Tables4And5
from trimbench.papers.conformant.tasks import Protocol
from trimbench.papers.validation import ConfigurationError, validated

from ..command_line import Command


def test_a_rate_belongs_to_a_feature_of_the_data(command: Command) -> None:
    words = ("experiment=conformant/digits", "mechanism=rates", "+rates.pixel_9_9=0.5", "executor=serial")
    answer = command(*words, code=2)
    assert re.search("rates: a feature of digits must be one of .*, got 'pixel_9_9'", answer.err)


MODELS = {"prior": 0.5, "positive": [0.5], "negative": [0.5], "other": [0.5]}
ADULT = {"datasets": ["adult"], "missing": [0.2]}
F1 = {**ADULT, "measure": "f1_weighted"}
OPTIONS = {"n_components": 20, "n_neighbours": 10, "n_nearest_features": None, "max_iterations": 5}
IMPUTERS = {**ADULT, "methods": ["em"], "fit_on": ["test"], "settings": OPTIONS}
SPLICE = {"datasets": ["splice"]}
METHODS = SPLICE | {"mechanism": ["mcar"], "missing": [0.5]}
FIFTHS = "missing must be multiples of 0.2 with rounding='fifths', got 0.1"


@pytest.mark.parametrize(
    ("kind", "valid", "changes", "message"),
    [
        (Figure1, MODELS, {"negative": [0.5, 0.5]}, r"must have the same length, 1 or more, got \[1, 2, 1\]"),
        (Figure1, MODELS, {"prior": 1.0}, "prior must be less than 1.0, got 1.0"),
        (Figure3, ADULT, {"missing": [1.5]}, "missing must be fractions between 0 and 1, got 1.5; 20 % is 0.2"),
        (Figure6, SPLICE | {"rows": [1]}, {"rows": [1, 1]}, r"rows must be a list of .* each once, got \[1, 1\]"),
        (Table2, SPLICE | {"encodings": ["paper"]}, {"encodings": []}, "encodings must be a list of at least one"),
        (Tables4And5, F1, {"repetitions_of": {"adult": 0}}, "repetitions_of.adult must be 1 or more, got 0"),
        (Tables4And5, F1, {"missing": [0.1]}, FIFTHS),
        (MissingFeatures, ADULT, {"missing": [0.1], "rounding": "fifths"}, FIFTHS),
        (MissingFeatures, ADULT, {"rates": {"age": 2}}, "rates must be between 0 and 1, got 2.0 for 'age'"),
        (NaiveBayesCrossing, ADULT, {"repetitions_of": {"adult": 0}}, "repetitions_of.adult must be 1 or more, got 0"),
        (
            EmMice,
            IMPUTERS,
            {"settings": OPTIONS | {"n_components": 0}},
            "settings.n_components must be 1 or more, got 0",
        ),
        (MissingValues, METHODS, {"methods": ["nacl"]}, "methods must have mixture"),
        (MissingValues, METHODS, {"methods": ["mixture", "cart"]}, "methods must be one of"),
        (MissingValues, METHODS, {"missing": [50]}, "missing must be fractions between 0 and 1"),
        (MissingValues, METHODS, {"mechanism": ["mnar"]}, "mechanism"),
        (Solvers, SPLICE, {"solvers_of": {"splice": ["simplex"]}}, "solvers_of.splice.0 must be one of cvxpy, gpkit"),
        (Solvers, SPLICE, {"n_classes": 1}, "n_classes must be 2 or more, got 1"),
        (Protocol, {"dataset": "x"}, {"bins": 1}, "bins must be at least 2, got 1"),
        (Protocol, {"dataset": "x"}, {"cut": {"text": "mean"}}, "a key of cut must be one of authors, paper, got 'tex"),
    ],
)
def test_settings_are_checked(
    kind: type[object], valid: Mapping[str, object], changes: Mapping[str, object], message: str
) -> None:
    assert isinstance(validated(kind, valid, "here"), kind)
    with pytest.raises(ConfigurationError, match=f"^here: {message}|^here: .*{message}"):
        validated(kind, {**valid, **changes}, "here")
