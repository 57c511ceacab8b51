"""Robust trimming, conformant learning and selection-bias correction of classifiers.

The public names are listed in ``__init__.pyi``; each is loaded on first use, so that the import is quick.
"""

from typing import Any

import lazy_loader

__version__ = "1.0.0"
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# Former names, and what to write instead.
_RENAMED = {
    "AceProblem": "trimbench.networks.formats.ace.AceProblem",
    "ArgMaxClassifier": "trimbench.BayesianClassifier(model) without `positive`",
    "ArgMaxTrimming": "trimbench.Trimming",
    "ConformantMixture": "trimbench.ConformantModel",
    "ContrastiveExplanation": "trimbench.conformant.explanations.ContrastiveExplanation",
    "DiscreteSelectionCorrectedModel": "trimbench.SelectionCorrectedModel",
    "GaussianSelectionCorrectedModel": "trimbench.SelectionCorrectedModel",
    "MixturePosterior": "trimbench.selection_bias.mixture.MixturePosterior",
    "ProbabilisticExplanation": "trimbench.conformant.probabilistic.ProbabilisticExplanation",
    "Progress": "trimbench.trimming.limits.Progress",
    "RowsAgreement": "trimbench.trimming.result.RowsAgreement",
    "SameDecisionSelection": "trimbench.trimming.baselines.FeatureSelection",
    "expected_agreement_interval": "trimbench.expected_agreement(..., interval=True)",
    "fit_discrete_selection_corrected": "trimbench.fit_selection_corrected(..., features='categorical')",
    "fit_gaussian_selection_corrected": "trimbench.fit_selection_corrected(..., features='gaussian')",
    "fit_mixture_selection_corrected": "trimbench.fit_selection_corrected(..., features='mixture')",
    "learn_mixture": "trimbench.learn(..., structure='mixture')",
    "learn_naive_bayes": "trimbench.learn(...)",
    "learn_tree_augmented": "trimbench.learn(..., structure='tree')",
    "read_ace": "trimbench.NaiveBayes.read_ace(...)",
    "read_ace_problem": "trimbench.networks.formats.ace.read_problem(...)",
    "read_evidence": "network.read_evidence(path)",
    "select_by_accuracy": "trimbench.select_features(..., by='accuracy')",
    "select_by_information_gain": "trimbench.select_features(..., by='information_gain')",
    "select_by_same_decision": "trimbench.select_features(..., by='same_decision')",
    "study": "trimbench.papers.study",
    "trim_at_thresholds": "trimbench.trimming_curve(..., thresholds=[...])",
}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        raise AttributeError(f"trimbench.{name} has another name now: {_RENAMED[name]}")
    return _load(name)
