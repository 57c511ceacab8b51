"""The fixtures of the tests of the framework."""

from tests.reproduction.data.conftest import _own_surroundings, cache, closed_address, loopback, store  # noqa: F401
