import numpy as np

from trimbench.papers.data.sources import simulate_naive_bayes


def test_rows_follow_the_model() -> None:
    rows = 200_000
    features, classes, likelihoods = simulate_naive_bayes(rows=rows, features=4, seed=3, prior=0.3)
    assert features.shape == (rows, 4)
    assert likelihoods.shape == (4, 2)
    assert (likelihoods >= 0.1).all()
    assert (likelihoods < 0.9).all()
    # Five standard errors of a proportion over the smaller class.
    tolerance = 5 * 0.5 / np.sqrt(0.3 * rows)
    assert abs(classes.mean() - 0.3) < tolerance
    for label in (0, 1):
        chosen = features[classes == label].astype(float)
        np.testing.assert_allclose(chosen.mean(axis=0), likelihoods[:, label], atol=tolerance)
        correlation = np.corrcoef(chosen, rowvar=False) - np.eye(4)
        assert np.abs(correlation).max() < 5 / np.sqrt(0.3 * rows), "independent given the class"
