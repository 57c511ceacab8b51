"""What can go wrong with data. The exceptions survive pickling between processes."""

from trimbench.papers.validation import ConfigurationError, ShortError

WAY_OUT = "run trimbench task=fetch with a network, or set TRIMBENCH_CACHE to a folder that holds it"


class DataUnavailable(ShortError):  # noqa: N818 - a state that a listing shows, not only an error
    """The data is in no cache and could not be fetched."""


class DeclarationError(ConfigurationError):
    """A declaration names a file or a column that the data does not have."""


class FactsMismatch(ShortError, ValueError):  # noqa: N818 - named after what was found
    """The loaded data differs from the facts that were declared for it."""


class Unreadable(ShortError, ValueError):  # noqa: N818 - never leaves this room
    """A file does not hold a table of the expected format; another copy may."""


def data_unavailable(what: str, url: str, reason: str) -> DataUnavailable:
    """Return the error for data that is in no cache and could not be downloaded from `url`."""
    return DataUnavailable(f"{what} is not available from {url}: {reason}; {WAY_OUT}")
