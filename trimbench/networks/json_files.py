"""Models as JSON files: written whole or not at all, read with errors that name the file."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from trimbench.networks.file_parsing import short_errors
from trimbench.networks.whole_files import whole_file

Model = TypeVar("Model")


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write `content` to `path` through a temporary file beside it.

    Raises OSError if the folder does not exist or cannot be written to; an older file at `path` is then untouched.
    """
    with whole_file(path) as stream:
        json.dump(content, stream, indent=1, allow_nan=False)
        stream.write("\n")


@short_errors()
def read_json(path: str | Path, model_format: str, build: Callable[[Mapping[str, Any]], Model]) -> Model:
    """Read the JSON file at `path` and build a model from its decoded content.

    Raises ValueError if the file is not JSON, its ``"format"`` is not `model_format`, or it does not describe a model;
    the message names the file. Repeated keys are refused.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        content = json.loads(text, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} must be a JSON file with format {model_format!r}: {error}") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != model_format:
        raise ValueError(f"{path} must have format {model_format!r}, got {found!r}; was it saved by another class?")
    try:
        return build(content)
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"{path} lacks an entry or has one of the wrong type: {error!r}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = sorted(key for key, _ in pairs)
        raise ValueError(f"the key {next(a for a, b in itertools.pairwise(keys) if a == b)!r} must be stated once")
    return content
