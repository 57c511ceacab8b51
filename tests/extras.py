"""Marks for tests that need a package of an extra; without it they are skipped, not failed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def _needs(extra: str, *packages: str) -> pytest.MarkDecorator:
    # Not pytest.importorskip: some of these packages print or warn when they are imported.
    absent = [name for name in packages if find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"needs {' and '.join(packages)}: install trimbench[{extra}]")


needs_pysdd = _needs("sdd", "pysdd")
needs_gpkit = _needs("solvers", "gpkit", "cvxopt")
needs_cvxpy = _needs("solvers", "cvxpy")
needs_arviz = pytest.mark.skipif(find_spec("arviz_stats") is None, reason="needs arviz-stats: run scripts/test")
