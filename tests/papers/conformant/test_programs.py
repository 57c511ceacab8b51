"""Newton's method against the geometric program and the cone program, and how these programs behave."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.conformant.brute_force import fake_classifier
from tests.conformant.problems import Case, cases, hide, learned
from tests.extras import needs_cvxpy, needs_gpkit
from trimbench._extras import MissingExtraError
from trimbench.conformant.conform import conform_to_statistics
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.rows import FeatureStatistics
from trimbench.papers.conformant.programs import ProgramSolution, silent_descriptors, solve_cvxpy, solve_gpkit


# Interior-point methods lose digits where probabilities are nearly 0 or 1; Newton is tested there on its own.
@needs_gpkit
@needs_cvxpy
@given(case=cases(max_binary=4, max_classes=3, max_scale=1.0))
@settings(max_examples=12)
def test_all_solvers_find_the_same_model(case: Case) -> None:
    newton, *others = (learned(case, solver) for solver in ("newton", solve_gpkit, solve_cvxpy))
    rng = np.random.default_rng(0)
    hidden = np.vstack([hide(case.X, case.categorical, rng), np.full((1, case.X.shape[1]), np.nan)])
    for model in others:
        assert model.residual < 1e-5
        likelihoods = [float(m.log_likelihood(case.X).mean()) for m in (newton, model)]
        assert likelihoods[1] == pytest.approx(likelihoods[0], abs=1e-6)
        np.testing.assert_allclose(model.predict_proba(hidden), newton.predict_proba(hidden), atol=1e-6)
    solution = others[0].components[0].solution
    assert isinstance(solution, ProgramSolution)
    assert solution.conformity_error < 1e-6
    assert solution.iterations == 0, "GPkit does not tell them"


@needs_cvxpy
@pytest.mark.parametrize("n_columns", [3, 2])  # without the last one no feature is discrete
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_newton_and_cvxpy_agree_on_real_valued_features(n_columns: int, smoothing: float) -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 200)
    X = np.column_stack([rng.normal(y, 1.5), rng.exponential(2, 200) + y, rng.random(200) < 0.3 + 0.2 * y])
    X = X[:, :n_columns]
    classifier = LogisticRegression(C=10).fit(X, y)
    hidden = np.where(rng.random(X.shape) < 0.4, np.nan, X)
    how: dict[str, Any] = {"real": [0, 1], "n_components": 1, "covariance": "diagonal"}
    newton, cvxpy = (tb.conform(classifier, X, s, smoothing, **how) for s in ("newton", solve_cvxpy))  # type: ignore[arg-type]
    # What is to be chosen is what any solver can do.
    chosen = tb.conform(classifier, X, solve_cvxpy, smoothing, real=[0, 1])
    assert (chosen.n_components, chosen.covariance) == (1, "diagonal")
    np.testing.assert_allclose(cvxpy.predict_proba(hidden), newton.predict_proba(hidden), atol=1e-6)
    np.testing.assert_allclose(cvxpy.log_likelihood(hidden), newton.log_likelihood(hidden), atol=1e-5)


@needs_cvxpy
def test_cvxpy_answers_or_refuses_where_there_are_hundreds_of_features() -> None:
    rng = np.random.default_rng(18)
    n_columns, n_classes = 300, 10
    means = rng.uniform(0, 1, n_columns) ** 4
    layout, statistics = FeatureLayout.of(n_columns), FeatureStatistics(60_000, means, means * (1 - means))
    weights, biases = rng.normal(0, 0.3, (n_columns, n_classes)), rng.normal(0, 1, n_classes)
    try:
        model = conform_to_statistics(weights, biases, np.arange(n_classes), layout, statistics, solve_cvxpy)
    except RuntimeError as error:
        assert re.match(  # noqa: PT017 - either will do
            "CVXPY found no solution for 300 values .* 10 classes \\(Solver 'CLARABEL' failed.*; use solver='newton'"
            "|solver solve_cvxpy left a moment residual .*; use solver='newton'",
            str(error),
        )
    else:
        newton = conform_to_statistics(weights, biases, np.arange(n_classes), layout, statistics)
        np.testing.assert_allclose(model.log_prior, newton.log_prior, atol=1e-4)


@needs_cvxpy
def test_cvxpy_says_nothing_and_its_failure_is_named(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import cvxpy as cp

    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    classifier = fake_classifier(np.array([[0.0, 1.0], [0.0, 0.5]]), np.zeros(2))
    tb.conform(classifier, X, solver=solve_cvxpy)
    assert capfd.readouterr() == ("", "")

    def fail(*_: Any, **__: Any) -> None:
        raise cp.error.SolverError("Solver 'CLARABEL' failed. Try another solver. See the documentation.")

    monkeypatch.setattr(cp.Problem, "solve", fail)
    with pytest.raises(RuntimeError, match=r"2 classes \(Solver 'CLARABEL' failed\); use solver='newton'"):
        tb.conform(classifier, X, solver=solve_cvxpy)


@needs_gpkit
def test_gpkit_takes_discrete_features_only() -> None:
    X = np.eye(2)
    with pytest.raises(ValueError, match="solve_gpkit takes discrete features only; use solver='newton'"):
        tb.conform(LogisticRegression().fit(X, [0, 1]), X, solver=solve_gpkit, real=[0])


@pytest.mark.parametrize("solver", [solve_gpkit, solve_cvxpy])
def test_what_is_not_installed_is_named_with_its_extra(solver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench._extras.is_installed", lambda name: False)
    extra = "gpkit" if solver is solve_gpkit else "solvers"
    with pytest.raises(MissingExtraError, match=rf"{solver.__name__} needs packages .* 'trimbench\[{extra}\]'"):
        tb.conform(LogisticRegression().fit(np.eye(2), [0, 1]), np.eye(2), solver)


_SOLVE = """
import numpy as np
from sklearn.linear_model import LogisticRegression
import trimbench as tb
from trimbench.papers.conformant.programs import solve_gpkit
X = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
assert tb.conform(LogisticRegression().fit(X, [0, 1, 1, 1]), X, solve_gpkit).residual < 1e-5
import gpkit, os, sys
assert "pydantic" not in sys.modules, "the extra solvers is enough"
print(gpkit.__file__, flush=True)
os.system("echo the shell is heard >&2")
"""


@needs_gpkit
def test_the_first_import_is_silent(tmp_path: Path) -> None:
    """An installation that has not looked for solvers yet does so, with children that complain."""
    found = importlib.util.find_spec("gpkit")
    assert found is not None
    assert found.origin is not None
    shutil.copytree(
        Path(found.origin).parent, tmp_path / "gpkit", ignore=shutil.ignore_patterns("settings", "build.log")
    )
    done = subprocess.run(
        [sys.executable, "-c", _SOLVE],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "HOME": str(tmp_path / "home")},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "gpkit" / "env" / "settings").exists()
    assert done.stdout == f"{tmp_path / 'gpkit' / '__init__.py'}\n"
    assert done.stderr == "the shell is heard\n"


def test_descriptors_are_given_back_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    os.write(1, b"before ")
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    with pytest.raises(ZeroDivisionError), silent_descriptors():
        os.write(1, b"within ") + os.write(2, b"within ") / 0
    assert not before or len(list(Path("/proc/self/fd").iterdir())) == before
    os.write(1, b"after")
    assert capfd.readouterr() == ("before after", "")


def test_silence_needs_no_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "__stdout__", None)
    monkeypatch.setattr(sys, "__stderr__", None)
    with silent_descriptors():
        pass
