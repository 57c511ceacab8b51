"""Settings that are checked: frozen dataclasses filled from configurations, their errors, and how messages put them."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import shutil
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, TypeVar, dataclass_transform
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError, WrapValidator


Settings = TypeVar("Settings")
_LONGEST_VALUE, _LONGEST_REASON, _LONGEST_MESSAGE = 120, 350, 500
_HALF = re.compile("[\ud800-\udfff]")  # what Python makes of bytes that are not UTF-8
# Characters that control a terminal, or change the direction of writing; not tabs and line ends.
CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]")
_UNIONS = (typing.Union, types.UnionType)


class ShortError(Exception):
    """An error whose message fits on a screen, whatever a file holds: the middle of a long one is left out."""

    def __init__(self, message: str = "", *, whole: bool = False) -> None:
        half = _LONGEST_MESSAGE // 2 - 5
        is_short = whole or len(message) <= _LONGEST_MESSAGE
        super().__init__(message if is_short else f"{message[:half]} [...] {message[-half:]}")


class ConfigurationError(ShortError, ValueError):
    """Something in the configuration or on the command line does not exist or is not allowed."""


def brief(value: object) -> str:
    """Return the repr of a value for the message of an error, without its middle if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:80]} ... {text[-30:]}"


def reason(error: BaseException) -> str:
    """Return the message of an error on one line, without its middle if it is long."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST_REASON else f"{text[:250]} ... {text[-90:]}"


def visible(text: str) -> str:
    r"""Return a text with escapes such as ``\x1b`` for its control characters; line ends and tabs stay."""
    return CONTROL.sub(lambda character: character[0].encode("unicode_escape").decode(), text)


class Shown:
    """A stream on which nothing of a text controls the terminal; `stream` takes what may, such as a progress bar."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text, with its control characters as escapes."""
        return self.stream.write(visible(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        self.stream.writelines(map(visible, lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def controllable(stream: TextIO) -> TextIO:
    """Return the stream behind what shows all characters, for what controls the terminal on purpose."""
    return stream.stream if isinstance(stream, Shown) else stream


def unknown(what: str, allowed: Sequence[str], got: str, written: Callable[[str], str] = repr) -> ConfigurationError:
    """Return the error for a name that does not exist: it lists those that do, and offers near ones as `written`."""
    tails = [name for name in allowed if got and name.endswith(f"/{got}")]  # of an experiment without its family
    close = tails or get_close_matches(got, allowed, n=1)
    hint = f"; did you mean {' or '.join(map(written, close))}?" if close else ""
    text = f"{what} must be one of {', '.join(sorted(allowed))}, got {brief(got)}{hint}"
    return ConfigurationError(text, whole=True)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def settings(cls: type[Settings]) -> type[Settings]:
    """Make a frozen dataclass whose fields are the keys of a configuration, for `validated`.

    Values are not converted, except whole numbers to floats, and other keys are refused.
    """
    cls.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    return dataclasses.dataclass(frozen=True, kw_only=True)(cls)


def must_be(words: str, is_valid: Callable[[Any], object]) -> WrapValidator:
    """Return a constraint for an annotated type; the message for any other value says what it must be, in `words`."""
    from pydantic import ValidationError, WrapValidator

    def check(value: Any, of_type: Callable[[Any], Any]) -> Any:
        try:
            typed = of_type(value)
        except ValidationError:
            valid = False
        else:
            valid = bool(is_valid(typed))
        if not valid:
            raise ValueError(f"must be {words}, got {brief(value)}")
        return typed

    return WrapValidator(check)


def validated(kind: type[Settings], values: object, what: str) -> Settings:
    """Return settings filled from configuration values.

    Parameters
    ----------
    kind : type
        A class made by `settings`, or a union of such classes with a discriminator.
    values : mapping
        One value for each field; fields with a default may be left out.
    what : str
        What error messages call the configuration.

    Raises
    ------
    ConfigurationError
        If a key is unknown (the message lists those that exist), missing or of the wrong type, or the class refuses its
        values. The message is about one such key, an unknown one if there is any.
    """
    from pydantic import ValidationError

    if not isinstance(values, Mapping):
        raise ConfigurationError(f"{what} must be keys and values, got {brief(values)}")
    _check_texts(values, what, ())
    try:
        # As JSON, because only then does a strict check accept mappings for dataclasses.
        found: Settings = _adapter(typing.cast("Any", kind)).validate_json(
            json.dumps(values, default=repr), strict=True
        )
    except ValidationError as error:
        raise _explained(error, kind, what) from error
    return found


def _check_texts(values: object, what: str, path: tuple[str, ...]) -> None:
    """Raise an error unless all keys are text (JSON would convert others), and no text has lone surrogates."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            if not isinstance(key, str):
                raise ConfigurationError(
                    f"{what}: each key{_inside(path)} must be a text (put it in quotes), got {brief(key)}"
                )
            _check_texts(value, what, (*path, key))
    elif isinstance(values, list):
        for place, value in enumerate(values):
            _check_texts(value, what, (*path, str(place)))
    elif isinstance(values, str) and _HALF.search(values):
        raise ConfigurationError(
            f"{what}: {'.'.join(path)} must be a text in UTF-8, got {brief(values)}; write it anew"
        )


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


# What pydantic expects, in the words of somebody who writes YAML.
_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "a text (in quotes)",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "keys and values",
    "dataclass_type": "keys and values",
    "dataclass_exact_type": "keys and values",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "string_pattern_mismatch": "a text that matches {pattern}",
    "too_short": "a list of at least {min_length} value(s)",
    "too_long": "a list of at most {max_length} value(s)",
}


def _explained(error: ValidationError, kind: Any, what: str) -> ConfigurationError:
    """Return the error in the project's own words."""
    errors = error.errors(include_url=False)
    # A misspelt key is also missing; that it is unknown says more.
    first = next((one for one in errors if one["type"] == "unexpected_keyword_argument"), errors[0])
    path, got, context = _place(kind, first["loc"])[0], first["input"], first.get("ctx", {})
    if "discriminator" in context:
        path.append(context["discriminator"].strip("'"))
    same = [one for one in errors if _place(kind, one["loc"])[0] == path] or [first]  # one for each member of a union
    key = ".".join(part if len(part) <= _LONGEST_VALUE else brief(part) for part in path)
    match first["type"]:
        case "value_error":
            text = reason(context["error"])
            separator = "" if not key else " " if text.startswith("must ") else ": "
            return ConfigurationError(f"{what}: {key}{separator}{text}")
        case "unexpected_keyword_argument":
            inside, found = _place(kind, first["loc"][:-1])
            return unknown(f"{what}: each key{_inside(inside)}", _keys(found), path[-1])
        case "missing" | "missing_keyword_only_argument" | "union_tag_not_found":
            return ConfigurationError(f"{what}: key {key} is missing; add it")
        case "list_type" | "tuple_type" if len(same) == 1 and _any_length(_place(kind, first["loc"])[1]):
            return ConfigurationError(
                f"{what}: {key} must be a list, got {brief(got)}; write '{key}=[{str(got)[:80]}]'"
            )
        case "literal_error" if len(same) == 1:
            return unknown(f"{what}: {key}", _names(context["expected"].replace(" or ", ", ")), str(got))
        case "union_tag_invalid":
            return unknown(f"{what}: {key}", _names(context["expected_tags"]), context["tag"])
    expected = " or ".join(dict.fromkeys(map(_expected, same)))
    return ConfigurationError(f"{what}: {key} must be {expected}, got {brief(got)}")


def _names(listed: str) -> list[str]:
    return [name.strip("'") for name in listed.split(", ")]


def _any_length(kind: Any) -> bool:
    return typing.get_origin(kind) is list or ... in typing.get_args(kind)


def _expected(error: Mapping[str, Any]) -> str:
    if error["type"] in _EXPECTED:
        return _EXPECTED[error["type"]].format(**error.get("ctx", {}))
    return str(error["msg"]).removeprefix("Input should be ")


def _inside(path: Sequence[str]) -> str:
    return f" of {'.'.join(path)}" if path else ""


def _keys(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []


def _place(kind: Any, location: Sequence[int | str]) -> tuple[list[str], Any]:
    """Return the keys that lead to an error, without the members of unions that pydantic names, and the type there."""
    path: list[str] = []
    for part in location:
        members = _members(kind)
        if len(members) > 1:
            kind = next((one for one in members if _is_called(one, part)), members[0])
            continue
        kind = members[0]
        if dataclasses.is_dataclass(kind):
            kind = typing.get_type_hints(kind, include_extras=True).get(str(part), Any)
        elif arguments := typing.get_args(kind):
            kind = arguments[0 if isinstance(part, int) else -1]
        path.append(str(part))
    return path, _members(kind)[0]


def _members(kind: Any) -> list[Any]:
    """Return the members of a union, None aside, or the type itself if it is none."""
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) not in _UNIONS:
        return [kind]
    members = [one for one in typing.get_args(kind) if one is not types.NoneType]
    return _members(members[0]) if len(members) == 1 else members


def _is_called(member: Any, name: int | str) -> bool:
    """Tell whether pydantic means a member of a union by a name: its class, or the value of its discriminator."""
    hints = typing.get_type_hints(member).values() if dataclasses.is_dataclass(member) else ()
    return getattr(member, "__name__", "") == name or any(name in typing.get_args(hint) for hint in hints)


# Values and rows in messages, which stay short whatever a table holds.

_LONGEST, _COMPARED = 24, 60


def quoted(value: str) -> str:
    """Return a value in quotes, shortened if it is long."""
    return repr(shortened(value))


def shortened(value: str) -> str:
    """Return a value, shortened if it is long."""
    return value if len(value) <= _LONGEST else value[: _LONGEST - 3] + "..."


def shown(values: Sequence[str], limit: int = 8) -> str:
    """Return values as a list in quotes.

    >>> shown(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    return some([*map(quoted, values)], limit)


def some(texts: Sequence[str], limit: int, between: str = ", ") -> str:
    """Return the first texts, at most `limit`, and how many more there are."""
    more = len(texts) - limit
    return between.join(texts[:limit]) + (f" and {more:,} more" if more > 0 else "")


def rows_in(count: int) -> str:
    """Return a number of rows in words."""
    return "1 row" if count == 1 else f"{count:,} rows"


def rows_named(rows: Sequence[int], limit: int = 10) -> str:
    """Return the numbers of some rows in words.

    >>> rows_named([7]), rows_named([1, 2, 3], 2)
    ('row 7', 'rows 1, 2 and 1 more')
    """
    listed = some([*map(str, rows)], limit)
    return f"row {listed}" if len(rows) == 1 else f"rows {listed}"


def terminal_width() -> int:
    """Return the width of the terminal; 80 if it is unknown, as for a pipe."""
    return shutil.get_terminal_size().columns


def fitted(text: str, indent: int | None = None) -> str:
    """Wrap a text to the terminal, indented after the first line; table rows, words and percentages stay whole."""
    width, lines = terminal_width(), []
    fill = functools.partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
    for line in text.replace(" %", "\xa0%").split("\n"):
        start = len(line) - len(line.lstrip()) if indent is None else indent
        is_whole = len(line) <= width or line.startswith("|") or len(line.split()) == 1
        lines.append(line if is_whole else fill(line, subsequent_indent=" " * start))
    return "\n".join(lines).replace("\xa0%", " %")


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return a question about the nearest name, or nothing if none is near."""
    # The time for a comparison grows with the square of the length.
    folded = {one.casefold()[:_COMPARED]: one for one in reversed(names)}
    close = get_close_matches(name.casefold()[:_COMPARED], folded, n=1)
    return f" (did you mean {quoted(folded[close[0]])}?)" if close else ""


# What can go wrong with data. The exceptions survive pickling between processes.

_TO_REACH, _TO_HOLD = (
    "run trimbench task=fetch on a network that reaches it",
    "set TRIMBENCH_CACHE to a folder that holds it",
)


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
    return DataUnavailable(f"{what} is not available from {where}: {reason}; {way_out}, or {_TO_HOLD}")


_NOT_AGAIN = " (this host is not asked again)"
_UNAVAILABLE = re.compile(r"is not available from (.+?): (.*?)(?:; |$)")


def ways_out(messages: Iterable[str]) -> str:
    """Return what to do about missing data: the advice at the end of each message of `data_unavailable`, once each."""
    ends = [message.rpartition("; ")[2] for message in messages if _UNAVAILABLE.search(message)]
    ways = dict.fromkeys(way for end in ends for way in end.split(", or "))
    return ", or ".join(sorted(ways, key=_TO_HOLD.__eq__))


def by_host(missing: Mapping[str, str]) -> list[str]:
    """Return why data is missing, one line for each host and reason; `missing` has the messages by name of the data."""
    found: dict[str, dict[str, None]] = {}
    for name, why in missing.items():
        parts = _UNAVAILABLE.findall(why)
        for line in [f"{urlsplit(url).netloc or url}: {text.removesuffix(_NOT_AGAIN)}" for url, text in parts] or [why]:
            found.setdefault(line, {})[name] = None
    return [f"{', '.join(names)}: {line}" for line, names in found.items()]


# What JSON can say.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
