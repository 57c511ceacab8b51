"""The fixtures of the tests of the framework."""

from tests.reproduction.reporting.conftest import browser  # noqa: F401
