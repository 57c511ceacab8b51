"""Time conformant learning: MNIST (784 x 10), a synthetic 20,000 x 100, GPkit and scikit-learn for the ratios.

Needs splice and MNIST in the data cache (`trimbench task=fetch`, or TRIMBENCH_CACHE). Takes about four minutes, and two
more for the logistic regression of the experiments on MNIST, which is kept in the user's cache folder.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from trimbench.conformant.choice import learn_mixture
from trimbench.conformant.conform import conform, conform_to_statistics
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.rows import FeatureStatistics
from trimbench.papers.conformant.protocols import EncodedRows, encoded_rows, fitted, make_task
from trimbench.papers.conformant.solvers import SOLVERS, SolverName
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.masks import exactly_missing
from trimbench.reproduction.vocabulary.cells import Inputs

from .measure import Call, Row, absent, growth, version_of, versus
from .missing_values import drawn


def seconds(call: Callable[[], object], repeat: int) -> float:
    """Return the median processor time of a call after one warm-up."""
    call()
    times = []
    for _ in range(repeat):
        times.append(once(call))
    return statistics.median(times)


def ratios(calls: Sequence[Callable[[], object]], repeat: int) -> list[float]:
    """Return the processor time of each call against that of the last, each the best of several taken in turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeat + 1):
        for call, taken in zip(calls, times, strict=True):
            taken.append(once(call))
    return [min(taken[1:]) / min(times[-1][1:]) for taken in times]


def once(call: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def say(what: str, value: str) -> None:
    print(f"{what:<72} {value}", flush=True)


def learner(name: str) -> tuple[EncodedRows, Callable[[SolverName], ConformantModel]]:
    """Return the rows of a protocol, and what learns from their means."""
    inputs = Inputs(Catalogue(), Cache.from_environment())
    task = make_task(inputs, name, "paper", seed=2018)
    rows, classifier = encoded_rows(task), fitted(task)
    layout = FeatureLayout.of(rows.train.shape[1])
    means = FeatureStatistics.of(rows.train, layout)
    classes = np.arange(len(rows.classes))

    def learn(solver: SolverName) -> ConformantModel:
        return conform_to_statistics(
            classifier.weights, classifier.biases, classes, layout, means, SOLVERS[solver], task.protocol.smoothing
        )

    return rows, learn


def synthetic(n_features: int = 20_000, n_classes: int = 100) -> ConformantModel:
    """Return the model of random weights."""
    rng = np.random.default_rng(0)
    means = rng.uniform(0.01, 0.99, n_features)
    return conform_to_statistics(
        rng.normal(0, 0.1, (n_features, n_classes)),
        rng.normal(0, 1, n_classes),
        np.arange(n_classes),
        FeatureLayout.of(n_features),
        FeatureStatistics(10_000, means, means * (1 - means)),
    )


def hide(rows: EncodedRows, missing: float) -> NDArray[np.float64]:
    """Return the test rows with a share of their pixels missing."""
    n_rows, n_columns = rows.test.shape
    return rows.hide(rows.test, exactly_missing(n_rows, n_columns, int(missing * n_columns), np.random.default_rng(0)))


def mixtures(rows: EncodedRows, model: ConformantModel) -> None:
    """Time mixtures with a number of components, and say how often their classes are right."""
    truth, hidden = rows.test_labels, hide(rows, 0.5)
    right = float((model.predict(hidden) == truth).mean())
    say("    accuracy with half of the pixels missing", f"{right:9.3f}")
    for n_components in (20, 150):
        start = time.process_time()
        mixture = learn_mixture(model.components[0], rows.train, n_components, 1.0, random_state=0)
        fit = time.process_time() - start
        say(f"    {n_components} components: processor time of the fit", f"{fit:9.1f} s")
        say("        steps, moment residual", f"{len(mixture.objectives):9d}, {mixture.residual:.1e}")
        say("        accuracy", f"{float((mixture.predict(hidden) == truth).mean()):9.3f}")
        say("        largest error of the conditional probabilities", f"{mixture.conformity_error(rows.test):9.1e}")
        for missing in (0.0, 0.1, 0.5, 0.9):
            few = hide(rows, missing)
            calls = [functools.partial(one.predict_proba, few) for one in (mixture, model)]
            what = f"        predicting against one component, {missing:.0%} missing"
            say(what, f"{ratios(calls, 7)[0]:9.2f} x")


def logistic_regression(rows: EncodedRows) -> None:
    """Compare with scikit-learn's newton-cg on 20,000 rows, to the gradient that it reaches, and fit all rows."""
    few, labels = rows.train[:20_000], rows.train_labels[:20_000]
    theirs = LogisticRegression(solver="newton-cg", tol=1e-5, max_iter=200)
    features = few.astype(np.float64)
    slow = once(lambda: theirs.fit(features, labels))
    reached = gradient(theirs, features, labels)
    fast = once(lambda: fit_logistic_regression(few, labels, tol=reached))
    say("logistic regression of 20,000 rows of MNIST: scikit-learn's newton-cg", f"{slow:9.2f} s")
    say("    largest entry of its gradient", f"{reached:9.1e}")
    say("    fit_logistic_regression, to that gradient", f"{fast:9.2f} s")
    say("    scikit-learn against it", f"{slow / fast:9.1f} x")
    everything = once(lambda: fit_logistic_regression(rows.train, rows.train_labels, tol=1e-5))
    say("    60,000 rows, gradient 1e-5", f"{everything:9.2f} s")


def gradient(fitted: LogisticRegression, X: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """Return the largest entry of the gradient of the mean loss at a fit with C = 1."""
    probabilities = fitted.predict_proba(X)
    probabilities[np.arange(len(y)), y] -= 1
    slopes = (probabilities.T @ X + fitted.coef_) / len(y)
    return float(max(np.abs(slopes).max(), np.abs(probabilities.mean(axis=0)).max()))


def against_solvers() -> Iterator[Row]:
    """Compare Newton's method with the paper's geometric program and with a cone program, on splice."""
    _, learn = learner("splice")
    what = "NaCL, splice, 240 columns, 3 classes: one fit"
    newton = functools.partial(learn, "newton")
    solvers: tuple[tuple[SolverName, str, int], ...] = (("gpkit", "GPkit", 2), ("cvxpy", "CVXPY", 5))
    for solver, name, repetitions in solvers:
        note = version_of(solver)
        if note is None:
            yield absent(what, name, solver)
            continue
        yield versus(what, name, newton, functools.partial(learn, solver), repetitions, note=note)


def against_matrix_products() -> Iterator[Row]:
    """Compare predictions with the two products of their formula, and those of a mixture with those of one model."""
    data = drawn(5000, 784, missing=0.5)
    fit = fit_logistic_regression(data.X, data.y, tol=1e-3)
    model, mixture = conform(fit, data.X, n_components=1), conform(fit, data.X, n_components=20)
    known, gone = np.nan_to_num(data.gaps), np.isnan(data.gaps).astype(np.float64)

    def products() -> None:
        known @ model.weights, gone @ model.components[0].missing_scores

    one = functools.partial(model.predict_proba, data.gaps)
    what = "5,000 rows of 784 features, half missing"
    yield versus(f"NaCL, {what}: prediction", "two matrix products", one, products, 9)
    yield versus(
        f"mixture of 20, {what}: prediction", "NaCL", functools.partial(mixture.predict_proba, data.gaps), one, 9
    )


def against_logistic_regressions() -> Iterator[Row]:
    """Compare the fit of logistic regressions with scikit-learn's, to the gradient that each of its solvers reaches."""
    easy = drawn(5000, 400)
    yield from regressions("5,000 drawn rows, 400 features, 10 classes", easy.X.astype(np.uint8), easy.y)
    inputs = Inputs(Catalogue(), Cache.from_environment())
    digits = encoded_rows(make_task(inputs, "mnist", "paper", seed=2018))
    yield from regressions("5,000 rows of MNIST", digits.train[:5000], digits.train_labels[:5000])
    yield from regressions("20,000 rows, 12 one-hot features with rare values, 5 classes", *rare_values(20_000))


def rare_values(n_rows: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw features of 7 values, some of them rare, and 5 classes, all of which depend on the same hidden number."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=n_rows)
    cuts = [-2.5, -1.0, 0.0, 0.3, 1.5, 2.8]
    codes = [np.digitize(hidden + 0.5 * rng.normal(size=n_rows), cuts) for _ in range(12)]
    X = np.hstack([np.eye(len(cuts) + 1, dtype=np.uint8)[code] for code in codes])
    return X, np.digitize(hidden + 0.2 * rng.normal(size=n_rows), [-2.0, 0.0, 0.2, 2.0])


def regressions(what: str, X: NDArray[Any], y: NDArray[np.int64]) -> Iterator[Row]:
    features = X.astype(np.float64)
    for solver in ("newton-cg", "lbfgs"):
        theirs = LogisticRegression(solver=solver, tol=1e-5, max_iter=1000)
        reached = gradient(theirs.fit(features, y), features, y)
        ours = functools.partial(fit_logistic_regression, X, y, tol=reached)
        quantity = f"logistic regression, {what}: one fit to the same gradient"
        note = f"{version_of('sklearn')}, gradient {reached:.1e}"
        fit = functools.partial(theirs.fit, features, y)
        yield versus(quantity, f"scikit-learn, {solver}", ours, fit, 3, note=note)


def growth_of_fits() -> Iterator[Row]:
    """Fit how long NaCL takes by its numbers of features and classes, and a logistic regression by that of rows."""
    features = (1000, 2000, 4000, 8000)
    yield growth("NaCL, 10 classes: growth of a fit in features", features, lambda n: lambda: synthetic(n, 10), 3)
    classes = (5, 10, 20, 40)
    yield growth("NaCL, 2,000 features: growth of a fit in classes", classes, lambda n: lambda: synthetic(2000, n), 3)

    def regression(n_rows: int) -> Call:
        data = drawn(n_rows, 100)
        return functools.partial(fit_logistic_regression, data.X, data.y)

    rows = (2500, 5000, 10_000, 20_000)
    yield growth("logistic regression, 100 features, 10 classes: growth in rows", rows, regression, 3)


COMPARISONS = (against_solvers, against_matrix_products, against_logistic_regressions, growth_of_fits)


def main() -> None:
    rows, learn = learner("mnist")
    model = learn("newton")
    fit = seconds(lambda: learn("newton"), 15)
    say("MNIST, 784 features, 10 classes: one fit from the feature means", f"{fit * 1e3:9.1f} ms")
    say("    iterations, moment residual", f"{model.components[0].solution.iterations:9d}, {model.residual:.1e}")
    hidden = hide(rows, 0.5)
    predict = seconds(lambda: model.predict_proba(hidden), 5)
    say("    predicting 10,000 rows with half of the pixels missing", f"{predict * 1e3:9.1f} ms")
    known, gone = np.nan_to_num(hidden), np.isnan(hidden).astype(np.float64)
    missing = model.components[0].missing_scores
    both = [lambda: model.predict_proba(hidden), lambda: (known @ model.weights, gone @ missing)]
    say("    against the two matrix products alone", f"{ratios(both, 9)[0]:9.2f} x")
    mixtures(rows, model)

    _, learn_splice = learner("splice")
    newton = seconds(lambda: learn_splice("newton"), 25)
    once(lambda: learn_splice("gpkit"))  # its first import takes seconds of its own
    gpkit, cvxpy = once(lambda: learn_splice("gpkit")), seconds(lambda: learn_splice("cvxpy"), 3)
    say("splice, 240 columns, 3 classes: newton", f"{newton * 1e3:9.2f} ms")
    say("    gpkit", f"{gpkit * 1e3:9.0f} ms")
    say("    gpkit against newton", f"{gpkit / newton:9.0f} x")
    say("    cvxpy", f"{cvxpy * 1e3:9.0f} ms")

    logistic_regression(rows)

    large = synthetic()
    say("synthetic, 20,000 features, 100 classes: one fit", f"{once(synthetic):9.2f} s")
    say("    iterations, moment residual", f"{large.components[0].solution.iterations:9d}, {large.residual:.1e}")


if __name__ == "__main__":
    # One thread: the figures are for one core.
    with threadpool_limits(1):
        main()
