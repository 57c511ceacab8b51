"""Settings that the trimming experiments refuse, and what they say."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from trimbench.papers.beyond.budgets import Scaling
from trimbench.papers.beyond.rows import Rows
from trimbench.papers.trimming.figure5 import Figure5
from trimbench.papers.trimming.figure7 import Figure7
from trimbench.papers.trimming.quiz import Quiz
from trimbench.papers.validation import ConfigurationError, validated

TOY = {"datasets": ["toy"], "problems": {"toy": {"dataset": "example_simulated", "positive": "1"}}, "splits": 1}
CPCS54 = {"networks": ["cpcs54"], "thresholds": [0.5]}
SIDES = {"positive": ["1"], "negative": ["7"]}
DIGITS = {"datasets": ["digits"], "problems": {"digits": {"dataset": "digits"} | SIDES}, "budgets": [2]}
BUDGETED = {"datasets": ["digits"], "problems": {"digits": {"dataset": "digits", "budget": 3} | SIDES}}
CANDIDATES = r"problems\.digits\.budget must be 1 or more and below"
THRESHOLDS = {"pass": 0.07, "q3": 0.15, "q1q3": 0.10, "q2q3": 0.30}
AGREEMENTS = {"pass": 0.32, "q3": 0.75, "q1q3": 0.91, "q2q3": 0.68}
POSTERIORS = {"knowing": 0.1, "hard": 0.4, "posteriors": [[0.175, 0.185], [0.075, 0.085]]}
QUIZ = POSTERIORS | {"thresholds": THRESHOLDS, "agreements": AGREEMENTS}
UNKNOWN = (
    r"datasets must be among the names in problems, \['{}'\], got 'x'; define it with \+problems.x={{dataset: {}}}"
)


@pytest.mark.parametrize(
    ("kind", "valid", "changes", "message"),
    [
        (Figure5, TOY, {"splits": 0}, "splits must be 1 or more, got 0"),
        (Figure5, TOY, {"budget_divisor": 0}, "budget_divisor must be 1 or more, got 0"),
        (Figure5, TOY, {"threshold": 1.0}, r"threshold must be strictly between 0 and 1, got 1\.0"),
        (Figure5, TOY, {"datasets": ["x"]}, UNKNOWN.format("toy", r"\.\.\., positive: \.\.\.")),
        (Figure5, TOY, {"problems": {"toy": {"dataset": "digits"}}}, "key problems.toy.positive is missing; add it"),
        (Figure7, CPCS54, {"networks": []}, "networks and substitutes must be a list of at least one value"),
        (Figure7, CPCS54, {"thresholds": []}, "thresholds must be a list of at least one value"),
        (Figure7, CPCS54, {"thresholds": [1.5]}, r"thresholds\.0 must be a probability in \[0, 1\], got 1.5"),
        (Figure7, CPCS54, {"classes": 0}, "classes must be 1 or more, got 0"),
        (Figure7, CPCS54, {"evidence_networks": ["c", "c"]}, r"evidence_networks must be distinct, got \['c', 'c'\]"),
        (Figure7, CPCS54, {"max_operations": 0}, "max_operations must be a number of at least 1, got 0"),
        (Figure7, CPCS54, {"n_threads": 0}, "n_threads"),
        (Figure7, CPCS54, {"smoothing": 0.0}, "smoothing must be a positive number, got 0.0"),
        (Scaling, DIGITS, {"datasets": []}, "datasets must be a list of at least one value"),
        (
            *(Scaling, DIGITS, {"datasets": ["x"]}),
            UNKNOWN.format("digits", r"\.\.\., positive: \[\.\.\.\], negative: \[\.\.\.\]"),
        ),
        (Scaling, DIGITS, {"budgets": [0]}, "budgets.0 must be 1 or more, got 0"),
        (Scaling, DIGITS, {"threshold": 1.0}, "threshold must be strictly between 0 and 1"),
        (Scaling, DIGITS, {"smoothing": 0.0}, "smoothing must be a positive number"),
        (Scaling, DIGITS, {"evaluation_limit": 0}, "evaluation_limit must be 1 or more, got 0"),
        (Rows, BUDGETED, {"datasets": ["x"]}, r"datasets must be among the names in problems, \['digits'\], got 'x'"),
        (Rows, BUDGETED, {"splits": 0}, "splits must be 1 or more, got 0"),
        (Rows, BUDGETED, {"n_folds": 1}, "n_folds must be 2 or more, got 1"),
        (Rows, BUDGETED, {"smoothing": 0.0}, "smoothing must be a positive number"),
        (Rows, BUDGETED, {"threshold": 1.0}, "threshold must be strictly between 0 and 1"),
        (
            Rows,
            BUDGETED,
            {"candidates": {"sequential": 5}},
            "candidates must have the entries sequential and recursive",
        ),
        (Rows, BUDGETED, {"candidates": {"sequential": 3, "recursive": 9}}, CANDIDATES),
        (Quiz, QUIZ, {"agreements": {"pass": 0.3}}, r"agreements must have the keys .* got \['pass'\]"),
        (Quiz, QUIZ, {"thresholds": THRESHOLDS | {"q3": 1.5}}, r"thresholds\.q3 must be a probability in \[0, 1\]"),
        (
            Quiz,
            QUIZ,
            {"posteriors": [[0.1, 0.2]]},
            r"posteriors must be two ranges \[low, high\], got \[\[0\.1, 0\.2\]\]",
        ),
        (Quiz, QUIZ, {"hard": 1.0}, "hard must be strictly between 0 and 1, got 1"),
        (Quiz, QUIZ, {"n_grid": 1}, "n_grid must be 2 or more, got 1"),
    ],
)
def test_wrong_settings_are_refused(
    kind: type[object], valid: Mapping[str, object], changes: Mapping[str, object], message: str
) -> None:
    assert isinstance(validated(kind, valid, "experiment"), kind)
    with pytest.raises(ConfigurationError, match=message):
        validated(kind, {**valid, **changes}, "experiment")
