"""What can go wrong with data, as three exceptions that survive pickling between processes."""


class DataUnavailable(Exception):  # noqa: N818 - a state that a listing shows, not only an error
    """The data is in no cache and could not be fetched."""


class DeclarationError(ValueError):
    """A declaration of a data set or network is not valid."""


class FactsMismatch(ValueError):  # noqa: N818 - named after what was found
    """The loaded data differs from the facts that were declared for it."""


WAY_OUT = "run `trimbench task=fetch` with a network, or set TRIMBENCH_CACHE to a folder that holds it"


def data_unavailable(what: str, url: str, reason: str) -> DataUnavailable:
    """Build the error for data that is in no cache and could not be downloaded.

    Parameters
    ----------
    what : str
        The data, for example ``"file 'a/b.csv'"``.
    url : str
        Where it was, or would have been, downloaded from.
    reason : str
        Why that did not work, in one line.

    Returns
    -------
    DataUnavailable
    """
    return DataUnavailable(f"{what} is not available from {url}: {reason}; {WAY_OUT}")
