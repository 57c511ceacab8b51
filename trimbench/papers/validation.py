"""Settings and declarations as frozen dataclasses, filled from configuration values that are checked."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import ErrorDetails

Settings = TypeVar("Settings")


class ConfigurationError(ValueError):
    """Something in the configuration or on the command line that does not exist or cannot be."""


def unknown(what: str, allowed: Sequence[str], got: str) -> ConfigurationError:
    """Return the error for a name that does not exist: it lists those that do."""
    tails = [name for name in allowed if got and name.endswith(f"/{got}")]  # of an experiment without its family
    close = tails or get_close_matches(got, allowed, n=1)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return ConfigurationError(f"{what} must be one of {', '.join(sorted(allowed))}, got {got!r}{hint}")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def settings(cls: type[Settings]) -> type[Settings]:
    """Make a frozen dataclass whose fields are the keys of a configuration, for `validated`.

    No value is converted but whole numbers to floats, and no other key is taken.
    """
    cls.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    return dataclasses.dataclass(frozen=True, kw_only=True)(cls)


def validated(kind: type[Settings], values: object, what: str) -> Settings:
    """Return settings filled from configuration values.

    Parameters
    ----------
    kind : type
        A class made by `settings`, or a union of such classes that one key tells apart.
    values : mapping
        One value for each of its fields; fields with a default may be left out.
    what : str
        How an error message calls the configuration.

    Raises
    ------
    ConfigurationError
        When a key is unknown (the message lists those that exist), has the wrong type or is missing, or the class
        refuses its values. The message is that of the first such key.
    """
    from pydantic import ValidationError

    if not isinstance(values, Mapping):
        raise ConfigurationError(f"{what} must be keys and values, got {values!r}")
    _check_keys(values, what)
    try:
        # As JSON: only there a strict check takes mappings for dataclasses.
        return _adapter(kind).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        raise _explained(error, kind, what) from error


def _check_keys(values: object, what: str) -> None:
    """Raise an error unless all keys are text: JSON would write another text for them."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            if not isinstance(key, str):
                raise ConfigurationError(f"{what}: a key must be a text (put it in quotes), got {key!r}")
            _check_keys(value, what)
    elif isinstance(values, list):
        for value in values:
            _check_keys(value, what)


@functools.cache
def _adapter(kind: type[Settings]) -> TypeAdapter[Settings]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


# What pydantic calls a type, in the words of somebody who writes YAML.
_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "a text (in quotes)",
    "bool_type": "true or false",
    "dict_type": "keys and values",
    "dataclass_type": "keys and values",
    "dataclass_exact_type": "keys and values",
}


def _explained(error: ValidationError, kind: Any, what: str) -> ConfigurationError:
    """Return the error in the project's own words."""
    first: ErrorDetails = error.errors(include_url=False)[0]
    path, got = [str(part) for part in first["loc"]], first["input"]
    key = ".".join(path)
    match first["type"]:
        case "value_error":
            inside = f"{key}: " if key else ""
            return ConfigurationError(f"{what}: {inside}{first['ctx']['error']}")
        case "unexpected_keyword_argument" | "extra_forbidden":
            return unknown(f"{what}: a key{_inside(path[:-1])}", _keys(kind, path[:-1]), path[-1])
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return ConfigurationError(f"{what}: key {key} is missing; add it")
        case "list_type":
            return ConfigurationError(f"{what}: {key} must be a list, got {got!r}; write {key}=[{got}]")
        case "literal_error":
            choices = [choice.strip("'") for choice in first["ctx"]["expected"].replace(" or ", ", ").split(", ")]
            return unknown(f"{what}: {key}", choices, str(got))
        case "union_tag_invalid":
            tag, tags = first["ctx"]["discriminator"].strip("'"), first["ctx"]["expected_tags"].split(", ")
            return unknown(f"{what}: {tag}", [name.strip("'") for name in tags], str(first["ctx"]["tag"]))
        case "union_tag_not_found":
            return ConfigurationError(f"{what}: key {first['ctx']['discriminator']} is missing; add it")
    expected = _EXPECTED.get(first["type"], first["msg"].removeprefix("Input should be "))
    return ConfigurationError(f"{what}: {key} must be {expected}, got {got!r}")


def _inside(path: Sequence[str]) -> str:
    return f" of {'.'.join(path)}" if path else ""


def _keys(kind: Any, path: Sequence[str]) -> list[str]:
    """Return the keys that exist at a place inside settings."""
    for part in path:
        if dataclasses.is_dataclass(kind) and part in (hints := typing.get_type_hints(kind)):
            kind = hints[part]
        elif typing.get_origin(kind) in (dict, Mapping, list, Sequence):
            kind = typing.get_args(kind)[-1]
        kind = _dataclass_among(kind, part)
    kind = _dataclass_among(kind, "")
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []


def _dataclass_among(kind: Any, tag: str) -> Any:
    """Return the dataclass that is meant in a union: the one with this value of its discriminator, or the only one."""
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return kind
    members = [one for one in typing.get_args(kind) if dataclasses.is_dataclass(one)]
    for member in members:
        if any(tag in typing.get_args(hint) for hint in typing.get_type_hints(member).values()):
            return member
    return members[0] if members else kind
