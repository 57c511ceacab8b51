"""Reads values out of parsed YAML; every complaint names the owner, the key and what is allowed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any

from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.files import CacheOnlyFile, FileDeclaration

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class MappingReader:
    """A mapping with the name of its owner, for example ``data set 'diabetes'``.

    All methods raise `DeclarationError`.
    """

    owner: str
    mapping: Mapping[Any, Any]

    @classmethod
    def of(cls, owner: str, value: object) -> "MappingReader":
        """Wrap `value`, which must be a mapping."""
        if not isinstance(value, Mapping):
            raise DeclarationError(f"{owner}: must be a mapping of keys to values, got {value!r}")
        return cls(owner, value)

    def complain(self, text: str) -> DeclarationError:
        """Build the error for `text`."""
        return DeclarationError(f"{self.owner}: {text}")

    def expect(self, required: Sequence[str], optional: Sequence[str] = ()) -> None:
        """Refuse unknown keys and missing required ones."""
        allowed = [*required, *optional]
        for key in self.mapping:
            if key not in allowed:
                raise self.complain(f"unknown key {key!r}{_suggestion(key, allowed)}; allowed: {_listed(allowed)}")
        for key in required:
            if key not in self.mapping:
                raise self.complain(f"key `{key}` is missing; required: {_listed(required)}")

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        """Return one of the `allowed` words."""
        value = self.mapping.get(key)
        if value not in allowed:
            raise self.complain(
                f"`{key}` must be one of {_listed(allowed)}, got {value!r}{_suggestion(value, allowed)}"
            )
        return str(value)

    def text(self, key: str) -> str:
        """Return a text that is not empty."""
        value = self.mapping[key]
        if not isinstance(value, str) or not value:
            raise self.complain(f"`{key}` must be a text (put it in quotes), got {value!r}")
        return value

    def whole(self, key: str, minimum: int) -> int:
        """Return a whole number of at least `minimum`."""
        value = self.mapping[key]
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise self.complain(f"`{key}` must be a whole number of at least {minimum}, got {value!r}")
        return value

    def optional_whole(self, key: str, minimum: int) -> int | None:
        """Return a whole number, or None if the key is not there."""
        return self.whole(key, minimum) if key in self.mapping else None

    def fraction(self, key: str) -> float:
        """Return a number strictly between 0 and 1."""
        value = self.mapping[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
            raise self.complain(f"`{key}` must be a number between 0 and 1 (both excluded), got {value!r}")
        return float(value)

    def sha256(self, key: str) -> str:
        """Return a SHA-256 in lower-case hexadecimal digits."""
        value = self.mapping[key]
        if not isinstance(value, str) or not _SHA256.fullmatch(value):
            raise self.complain(f"`{key}` must be 64 lower-case hexadecimal digits in quotes, got {value!r}")
        return value

    def counts(self, key: str) -> dict[str, int]:
        """Return a mapping of labels to counts."""
        inner = self.inner(key)
        for label in inner.mapping:
            if not isinstance(label, str):
                raise inner.complain(f"a label must be a text (put it in quotes), got {label!r}")
        return {label: inner.whole(label, 0) for label in inner.mapping}

    def inner(self, key: str) -> "MappingReader":
        """Return the reader of a nested mapping."""
        return MappingReader.of(f"{self.owner}: `{key}`", self.mapping[key])

    def file(self, key: str) -> FileDeclaration:
        """Return a file's declaration."""
        inner = self.inner(key)
        inner.expect(["path", "url", "sha256"])
        return FileDeclaration(path=inner.cache_path("path"), url=inner.url("url"), sha256=inner.sha256("sha256"))

    def cache_only_file(self, key: str) -> CacheOnlyFile:
        """Return the declaration of a file that cannot be downloaded."""
        inner = self.inner(key)
        inner.expect(["path", "sha256"])
        return CacheOnlyFile(path=inner.cache_path("path"), sha256=inner.sha256("sha256"))

    def cache_path(self, key: str) -> str:
        """Return a place inside the cache."""
        path = self.text(key)
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise self.complain(f"`{key}` must be relative and stay inside the cache (no '..'), got {path!r}")
        return path

    def url(self, key: str) -> str:
        """Return a web address."""
        url = self.text(key)
        if not url.startswith(("https://", "http://")):
            raise self.complain(f"`{key}` must start with https:// or http://, got {url!r}")
        return url


def _listed(words: Sequence[str]) -> str:
    return ", ".join(repr(word) for word in words)


def _suggestion(word: object, allowed: Sequence[str]) -> str:
    close = get_close_matches(str(word), allowed, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
