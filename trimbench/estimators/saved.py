"""`save` and `load`: fitted models and estimators as JSON files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trimbench.conformant import saved as conformant
from trimbench.conformant.model import ConformantModel
from trimbench.estimators.forms import ESTIMATORS, WithoutEstimator
from trimbench.estimators.trimmed import TrimmedClassifier
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.formats.forms import Entries
from trimbench.networks.formats.parsing import read_json, write_json
from trimbench.networks.mixture import NaiveBayesMixture
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.selection_bias import saved as selection_bias
from trimbench.selection_bias.mixture import MixturePosterior
from trimbench.selection_bias.model import SelectionCorrectedModel
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.result import Trimming


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model or estimator as JSON; floats keep every digit, so that `load` predicts the same bits.

    Parameters
    ----------
    model : model or estimator
        Any that trimbench fits: a network, a naive Bayes model or a mixture of them, a classifier or a trimming, a
        conformant or selection-corrected model or the posterior of a mixture, or one of the estimators. Of an
        `ExpectedClassifier`, the classifier itself is not written, nor is the `estimator` that a
        `NaiveConformantClassifier` was given: JSON cannot hold objects of other libraries. Keep it as you keep it
        today, and give it to `load`.
    path : str or Path
        Ends in ``.json``; a file that is there is replaced.

    Raises
    ------
    TypeError
        When it is no fitted model of trimbench, or has a part that a file cannot hold, such as a solver or density of
        one's own.
    ValueError
        When the file would be longer than 64 MiB, or its name has the ending of another format.
    OSError
        When the file cannot be written; an older one is then untouched.

    Notes
    -----
    Rows are not written, apart from those that neighbours (``density="neighbours"``) are: `partial_fit` of a loaded
    estimator begins anew, and `trimming_` is None.

    Examples
    --------
    >>> import trimbench as tb
    >>> from sklearn.datasets import load_iris
    >>> from trimbench.estimators import NaiveConformantClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = NaiveConformantClassifier(n_components=1).fit(X, y)
    >>> tb.save(classifier, "iris.json")
    >>> bool((tb.load("iris.json").predict_proba(X) == classifier.predict_proba(X)).all())
    True
    """
    model = model.classifier if isinstance(model, Trimming) else model
    if isinstance(model, _WITH_METHODS):
        model.save(path)
        return
    form = _FORMS.get(type(model))
    if form is None:
        known = ", ".join(cls.__name__ for cls in (*_WITH_METHODS, *_FORMS))
        raise TypeError(
            f"model must be a model or an estimator of trimbench, one of {known}, got {type(model).__name__}; save "
            "what is of another library by the means of that library"
        )
    write_json(path, {"format": _format(type(model)), **form.written(model)})


def load(path: str | Path, *, estimator: Any = None) -> Any:
    """Read a model or an estimator that `save`, or the method `save` of a class, has written.

    Parameters
    ----------
    path : str or Path
    estimator : fitted classifier, optional
        For an `ExpectedClassifier`, the classifier whose expectation it takes; for a `NaiveConformantClassifier` that
        was given an `estimator`, that one. It must have the classes and columns that it had. All others are whole in
        their files, and take none.

    Returns
    -------
    model or estimator
        Of the class that was saved; its predictions are the same to the last bit on the same machine.

    Raises
    ------
    ValueError
        When the file does not hold a model: it is cut short, too long (64 MiB), of another format or a later version,
        or has an entry too many or too few, a number that is not finite, a shape that does not fit the others, or
        probabilities that do not sum to 1. The message names the file and the entry. Also when `estimator` is missing,
        not needed or another one.
    OSError
        When there is no such file.

    Examples
    --------
    >>> import numpy as np, trimbench as tb
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> tb.save(tb.expect(forest, X), "density.json")
    >>> tb.load("density.json", estimator=forest).predict([[5.0, np.nan, np.nan, 0.2]]).tolist()
    [0]
    """

    def build(content: Mapping[str, Any]) -> Any:
        kind, _, _ = str(content["format"]).removeprefix("trimbench.").partition("/")
        found = _READERS[content["format"]](content)
        if isinstance(found, WithoutEstimator):
            if estimator is None:
                raise ValueError(
                    f"estimator must be given to load a {kind}: its file has all but the classifier, which JSON cannot "
                    "hold; use load(path, estimator=classifier)"
                )
            return found.complete(estimator)
        if estimator is not None:
            raise ValueError(f"estimator must be left out to load a {kind}, which is whole in its file")
        return found

    return read_json(path, tuple(_READERS), build)


# The forms, and the classes that have methods of their own.

_FORMS: Mapping[Any, Entries] = {
    ConformantModel: conformant.FORM,
    SelectionCorrectedModel: selection_bias.MODEL,
    MixturePosterior: selection_bias.POSTERIOR,
    **ESTIMATORS,
}
_WITH_METHODS = (TrimmedClassifier, BayesianClassifier, NaiveBayesMixture, NaiveBayes, BayesianNetwork)


def _format(cls: Any) -> str:
    return f"trimbench.{cls.__name__}/1"


def _reader(form: Entries) -> Callable[[Mapping[str, Any]], Any]:
    return lambda content: form.read({name: entry for name, entry in content.items() if name != "format"}, "", {})


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    **{_format(cls): _reader(form) for cls, form in _FORMS.items()},
    _format(TrimmedClassifier): TrimmedClassifier._of,
    **{_format(cls): cls.from_dict for cls in _WITH_METHODS[1:]},
    # What a classifier of the most probable class was called in older files.
    "trimbench.ArgMaxClassifier/1": BayesianClassifier.from_dict,
}
