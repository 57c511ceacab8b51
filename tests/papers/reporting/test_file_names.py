"""Names of files and folders: readable, accepted everywhere, and different for different settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.files import safe_name, settings_name


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (["threshold=0.4"], "threshold=0.4"),
        (["networks=[heart,voting]", "engine=sdd"], "networks=heart+voting,engine=sdd"),
        (["thresholds=[0.1]"], "thresholds=0.1"),
        (["thresholds=[0.1, 0.2]"], "thresholds=0.1+0.2"),
    ],
)
def test_plain_settings_are_their_own_names(settings: list[str], name: str) -> None:
    assert settings_name(settings) == name


def test_what_a_file_system_may_not_accept_is_replaced() -> None:
    assert settings_name(["datasets=[müller a]"]).startswith("datasets=m_ller_a-")
    assert settings_name(["x=a/b"]) != settings_name(["x=a_b"])
    assert safe_name("..").strip(".")


@given(st.lists(st.text("aAb[]+,_ üÜé\u0301/=.", min_size=1, max_size=6), min_size=1, max_size=3, unique=True))
def test_different_texts_have_different_names(texts: list[str]) -> None:
    names = {safe_name(text).lower() for text in texts}  # as a file system has them that does not tell capitals
    assert len(names) == len(texts)
    assert all(len(name.encode()) <= 255 and name.isascii() and "/" not in name for name in names)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("state=Ja", "state=ja"),
        ("state=ä", "state=ö"),
        ("state=é", "state=e\u0301"),
        ("state=ß", "state=ẞ"),
        ("state=..", "state=/.."),
        ("state=" + "ä" * 400, "state=" + "ä" * 399 + "ö"),
        ("state=" + "a" * 400, "state=" + "a" * 399 + "b"),
    ],
)
def test_values_that_differ_in_anything_have_names_of_their_own(one: str, other: str) -> None:
    names = [settings_name([one]), settings_name([other])]
    assert names[0].lower() != names[1].lower()
    assert all(name.isascii() and len(name) <= 140 and name not in (".", "..") for name in names)


def test_different_settings_have_different_names() -> None:
    settings = [["x=[a,b]"], ["x=a+b"], ["x=a", "b=1"], ["x=[a,b=1]"], ["x=a b"], ["x=a_b"], ["x=ä"], ["x=ö"], ["x=/"]]
    assert len({settings_name(one) for one in settings}) == len(settings)


def test_long_settings_have_short_names() -> None:
    long = [f"x=[{','.join(map(str, range(200)))}]", f"x=[{','.join(map(str, range(201)))}]"]
    names = [settings_name([one]) for one in long]
    assert len(set(names)) == 2
    assert all(len(name) < 140 for name in names)
