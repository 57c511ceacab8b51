"""Robust trimming, conformant learning and selection-bias correction of classifiers.

The public names are loaded when they are first used, so that the command line stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimbench.conformant.conform import conform
    from trimbench.conformant.explanations import Explanation
    from trimbench.conformant.model import ConformantModel
    from trimbench.networks.ace import AceProblem, read_ace, read_ace_problem
    from trimbench.networks.bayesian_network import BayesianNetwork
    from trimbench.networks.learning import learn_naive_bayes
    from trimbench.networks.naive_bayes import NaiveBayes
    from trimbench.networks.tree_augmented import learn_tree_augmented
    from trimbench.selection_bias.cross_validation import cross_validate_selection
    from trimbench.selection_bias.discrete import (
        DiscreteSelectionCorrectedModel,
        fit_discrete_selection_corrected,
    )
    from trimbench.selection_bias.mixture import MixturePosterior, fit_mixture_selection_corrected
    from trimbench.selection_bias.model import SelectionCorrectedModel, fit_selection_corrected
    from trimbench.trimming.accuracy import select_by_accuracy
    from trimbench.trimming.agreement import (
        expected_agreement,
        expected_agreement_interval,
        maximum_achievable_agreement,
        maximum_potential_agreement,
    )
    from trimbench.trimming.classifier import BayesianClassifier
    from trimbench.trimming.curve import trim_at_thresholds, trimming_curve
    from trimbench.trimming.information_gain import select_by_information_gain
    from trimbench.trimming.same_decision import SameDecisionSelection, select_by_same_decision
    from trimbench.trimming.trim import Trimming, trim

__all__ = [
    "AceProblem",
    "BayesianClassifier",
    "BayesianNetwork",
    "ConformantModel",
    "DiscreteSelectionCorrectedModel",
    "Explanation",
    "MixturePosterior",
    "NaiveBayes",
    "SameDecisionSelection",
    "SelectionCorrectedModel",
    "Trimming",
    "conform",
    "cross_validate_selection",
    "expected_agreement",
    "expected_agreement_interval",
    "fit_discrete_selection_corrected",
    "fit_mixture_selection_corrected",
    "fit_selection_corrected",
    "learn_naive_bayes",
    "learn_tree_augmented",
    "maximum_achievable_agreement",
    "maximum_potential_agreement",
    "read_ace",
    "read_ace_problem",
    "select_by_accuracy",
    "select_by_information_gain",
    "select_by_same_decision",
    "trim",
    "trim_at_thresholds",
    "trimming_curve",
]

_MODULES = {
    "trimbench.conformant.conform": ("conform",),
    "trimbench.conformant.explanations": ("Explanation",),
    "trimbench.conformant.model": ("ConformantModel",),
    "trimbench.networks.ace": ("AceProblem", "read_ace", "read_ace_problem"),
    "trimbench.networks.bayesian_network": ("BayesianNetwork",),
    "trimbench.networks.learning": ("learn_naive_bayes",),
    "trimbench.networks.naive_bayes": ("NaiveBayes",),
    "trimbench.selection_bias.cross_validation": ("cross_validate_selection",),
    "trimbench.selection_bias.discrete": ("DiscreteSelectionCorrectedModel", "fit_discrete_selection_corrected"),
    "trimbench.selection_bias.mixture": ("MixturePosterior", "fit_mixture_selection_corrected"),
    "trimbench.selection_bias.model": ("SelectionCorrectedModel", "fit_selection_corrected"),
    "trimbench.networks.tree_augmented": ("learn_tree_augmented",),
    "trimbench.trimming.accuracy": ("select_by_accuracy",),
    "trimbench.trimming.agreement": (
        "expected_agreement",
        "expected_agreement_interval",
        "maximum_achievable_agreement",
        "maximum_potential_agreement",
    ),
    "trimbench.trimming.classifier": ("BayesianClassifier",),
    "trimbench.trimming.curve": ("trim_at_thresholds", "trimming_curve"),
    "trimbench.trimming.information_gain": ("select_by_information_gain",),
    "trimbench.trimming.same_decision": ("SameDecisionSelection", "select_by_same_decision"),
    "trimbench.trimming.trim": ("Trimming", "trim"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'trimbench' has no attribute {name!r}; it has {__all__}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
