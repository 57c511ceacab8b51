import pandas as pd
import pytest

from trimbench.papers.data.dataset import Facts, build_dataset
from trimbench.papers.validation import FactsMismatch

TABLE = pd.DataFrame({"x": [1, 2, 3], "y": pd.Categorical(["b", "a", "b"], categories=["c", "b", "a"])})


def test_classes_without_rows_do_not_count() -> None:
    facts = Facts(classes={"a": 1, "b": 2})
    dataset = build_dataset("mine", facts, TABLE, "y", {"y": ["c", "b", "a"]})
    assert list(dataset.target.cat.categories) == ["b", "a"]


@pytest.mark.parametrize("classes", [{"a": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2, "c": 0}])
def test_counts_of_classes_must_agree(classes: dict[str, int]) -> None:
    with pytest.raises(FactsMismatch, match=r"classes: declared \{'a': .*\}, got \{'a': 1, 'b': 2\}"):
        build_dataset("mine", Facts(classes=classes), TABLE, "y")


def test_all_wrong_facts_are_named() -> None:
    with pytest.raises(
        FactsMismatch, match=r"rows: declared 5, got 3.*features: declared 2, got 1.*sha256: declared 11"
    ):
        build_dataset("mine", Facts(rows=5, features=2, sha256="1" * 64), TABLE, "y")


def test_the_table_is_not_changed_and_not_shared() -> None:
    before = TABLE.copy()
    dataset = build_dataset("mine", Facts(), TABLE.assign(x=[0.5, 1.5, 2.5]), "y")
    numbers = pd.DataFrame({"x": [0.5, 1.5], "y": ["a", "b"]})
    other = build_dataset("mine", Facts(), numbers, "y")
    other.features.iloc[0, 0] = 99.0
    assert numbers["x"].tolist() == [0.5, 1.5]
    assert dataset.features["x"].tolist() == [0.5, 1.5, 2.5]
    pd.testing.assert_frame_equal(TABLE, before)


def test_index_and_names_of_columns_are_made_plain() -> None:
    table = pd.DataFrame({0: [1, 2], "y": ["a", "b"]}, index=[5, 6])
    dataset = build_dataset("mine", Facts(), table, "y")
    assert list(dataset.features.columns) == ["0"]
    assert dataset.features.index.equals(pd.RangeIndex(2))
    assert dataset.target.index.equals(pd.RangeIndex(2))


def test_table_may_have_no_features() -> None:
    dataset = build_dataset("mine", Facts(), TABLE[["y"]], "y")
    assert dataset.features.shape == (3, 0)
    assert len(dataset.target) == 3
