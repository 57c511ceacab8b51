"""Settings that are checked: frozen dataclasses filled from configurations, and what JSON can say."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, dataclass_transform

from trimbench.reproduction.messages import LONGEST_VALUE, ShortError, brief, reason

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError, WrapValidator


Settings = TypeVar("Settings")
_HALF = re.compile("[\ud800-\udfff]")  # what Python makes of bytes that are not UTF-8
_UNIONS = (typing.Union, types.UnionType)


class ConfigurationError(ShortError, ValueError):
    """Something in the configuration or on the command line does not exist or is not allowed."""


def unknown(what: str, allowed: Sequence[str], got: str, written: Callable[[str], str] = repr) -> ConfigurationError:
    """Return the error for a name that does not exist: it lists those that do, and offers near ones as `written`."""
    tails = [name for name in allowed if got and name.endswith(f"/{got}")]  # of an experiment without its family
    close = tails or get_close_matches(got, allowed, n=1)
    hint = f"; did you mean {' or '.join(map(written, close))}?" if close else ""
    text = f"{what} must be one of {', '.join(sorted(allowed))}, got {brief(got)}{hint}"
    return ConfigurationError(text, whole=True)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def settings(kind: type[Settings]) -> type[Settings]:
    """Make a frozen dataclass whose fields are the keys of a configuration.

    Values are not converted, except whole numbers to floats, and other keys are refused.

    Parameters
    ----------
    kind : type
        A class with annotated fields, which a file of the configuration names as its ``runner``. A field without a
        default must be in the file; one with a default may be, and only what is in the file can be changed from the
        command line. A field ``seed: int`` takes the seed of the command.

    Returns
    -------
    type
        The dataclass, frozen and made with keywords only.
    """
    kind.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    return dataclasses.dataclass(frozen=True, kw_only=True)(kind)


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
    key = ".".join(part if len(part) <= LONGEST_VALUE else brief(part) for part in path)
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


# What JSON can say.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
