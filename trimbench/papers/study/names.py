"""What data sets and networks are called in titles."""

from __future__ import annotations

# By the name in the configuration, of a data set, network, protocol or problem.
_NAMES = {
    "adult": "Adult",
    "anatomy": "Anatomy",
    "breast_cancer": "Wisconsin breast cancer",
    "bupa": "BUPA liver disorders",
    "c432": "Circuit c432",
    "colon": "Colon cancer",
    "covertype": "CovType",
    "covtype": "CovType",
    "cpcs54": "CPCS-54",
    "diabetes": "Pima Indians diabetes",
    "digits": "Handwritten digits",
    "example_simulated": "Simulated example",
    "fashion": "Fashion-MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "heart": "Heart disease",
    "heart_cleveland": "Heart disease, Cleveland",
    "heart_statlog": "Heart disease",
    "hepatitis": "Hepatitis",
    "ident": "Ident",
    "iris": "Iris",
    "liver_disorders": "BUPA liver disorders",
    "mnist": "MNIST",
    "mnist_3v5": "MNIST, 3 against 5",
    "mnist_5v3": "MNIST, 5 against 3",
    "mnist_784": "MNIST",
    "pima": "Pima Indians diabetes",
    "s386": "Circuit s386",
    "splice": "Splice",
    "vote": "Congressional voting",
    "voting": "Congressional voting",
    "wine": "Wine",
    **{f"bn_{number}": f"BN_{number}" for number in range(16)},
}


def shown_name(name: str, otherwise: str = "") -> str:
    """Return what a data set or network is called in titles: by default `otherwise`, or what the configuration says.

    >>> shown_name("fashion"), shown_name("my_data")
    ('Fashion-MNIST', 'my_data')
    """
    return _NAMES.get(name, otherwise or name)
