"""Names of data sets and networks in titles."""

from __future__ import annotations

import pytest

from trimbench.papers.vocabulary.tables import shown_name

from ..command_line import PROJECT


@pytest.mark.parametrize("group", ["dataset", "network", "protocol"])
def test_everything_that_is_declared_has_a_name(group: str) -> None:
    names = PROJECT.names(group)
    assert [name for name in names if shown_name(name) == name] == []


def test_data_of_the_user_has_its_own_name() -> None:
    assert shown_name("my_data") == "my_data"
    assert shown_name("my_data", "My data") == "My data"
    assert shown_name("fashion", "Fashion") == "Fashion-MNIST"
