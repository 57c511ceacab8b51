"""The fixtures of the tests of the framework."""

from tests.reproduction.execution.conftest import cluster, marks, programs, store  # noqa: F401
