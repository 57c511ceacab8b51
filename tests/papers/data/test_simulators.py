import numpy as np
import pytest
from trimbench.papers.data.simulators import simulate_naive_bayes


def test_rows_follow_the_model() -> None:
    rows = 200_000
    table = simulate_naive_bayes(rows=rows, features=4, seed=3, prior=0.3)
    assert table.features.shape == (rows, 4)
    assert table.likelihoods.shape == (4, 2)
    assert (table.likelihoods >= 0.1).all()
    assert (table.likelihoods < 0.9).all()
    # Five standard errors of a proportion over the smaller class.
    tolerance = 5 * 0.5 / np.sqrt(0.3 * rows)
    assert abs(table.classes.mean() - 0.3) < tolerance
    for label in (0, 1):
        chosen = table.features[table.classes == label].astype(float)
        np.testing.assert_allclose(chosen.mean(axis=0), table.likelihoods[:, label], atol=tolerance)
        correlation = np.corrcoef(chosen, rowvar=False) - np.eye(4)
        assert np.abs(correlation).max() < 5 / np.sqrt(0.3 * rows), "independent given the class"


def test_seed_decides_everything() -> None:
    one, two, other = (simulate_naive_bayes(20, 3, seed, 0.5) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.features, two.features)
    np.testing.assert_array_equal(one.classes, two.classes)
    assert (one.features != other.features).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 0, 0.5), "`rows` must be at least 1, got 0"),
        ((1, 0, 0, 0.5), "`features` must be at least 1, got 0"),
        ((1, 1, 0, 0.0), r"`prior` must be between 0 and 1 \(both excluded\), got 0.0"),
    ],
)
def test_arguments_are_checked(arguments: tuple[int, int, int, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate_naive_bayes(*arguments)
