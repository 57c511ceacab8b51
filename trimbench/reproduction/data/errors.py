"""What can go wrong with data, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from trimbench.reproduction.messages import ShortError
from trimbench.reproduction.project import project
from trimbench.reproduction.settings import ConfigurationError

# What can go wrong with data. The exceptions survive pickling between processes.

_TO_REACH = "run {command} task=fetch on a network that reaches it"
_TO_HOLD = re.compile(r"set \w+ to a folder that holds it$")


class DataUnavailable(ShortError):  # noqa: N818 - a state that a listing shows, not only an error
    """The data is in no cache and could not be fetched."""


class DeclarationError(ConfigurationError):
    """A declaration names a file or a column that the data does not have."""


class FactsMismatch(ShortError, ValueError):  # noqa: N818 - named after what was found
    """The loaded data differs from the facts that were declared for it."""


class Unreadable(ShortError, ValueError):  # noqa: N818 - never leaves this room
    """A file does not hold a table of the expected format; another copy may."""


def data_unavailable(what: str, where: str, reason: str, way_out: str = _TO_REACH) -> DataUnavailable:
    """Return the error for data that is in no cache and did not come from a place, such as an address."""
    ours = project()
    to_hold = f", or set {ours.cache_variable} to a folder that holds it" if ours.cache_variable else ""
    return DataUnavailable(
        f"{what} is not available from {where}: {reason}; {way_out.format(command=ours.command)}{to_hold}"
    )


_NOT_AGAIN = " (this host is not asked again)"
_UNAVAILABLE = re.compile(r"is not available from (.+?): (.*?)(?:; |$)")


def ways_out(messages: Iterable[str]) -> str:
    """Return what to do about missing data: the advice at the end of each message of `data_unavailable`, once each."""
    ends = [message.rpartition("; ")[2] for message in messages if _UNAVAILABLE.search(message)]
    ways = dict.fromkeys(way for end in ends for way in end.split(", or "))
    return ", or ".join(sorted(ways, key=lambda way: bool(_TO_HOLD.match(way))))


def by_host(missing: Mapping[str, str]) -> list[str]:
    """Return why data is missing, one line for each host and reason; `missing` has the messages by name of the data."""
    found: dict[str, dict[str, None]] = {}
    for name, why in missing.items():
        parts = _UNAVAILABLE.findall(why)
        for line in [f"{urlsplit(url).netloc or url}: {text.removesuffix(_NOT_AGAIN)}" for url, text in parts] or [why]:
            found.setdefault(line, {})[name] = None
    return [f"{', '.join(names)}: {line}" for line, names in found.items()]
