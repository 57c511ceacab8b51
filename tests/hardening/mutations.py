"""Bytes changed at random: what a damaged disk, a careless editor or somebody hostile makes of a file."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

LARGEST = 2**20
# Most inputs stay about as long as those they come from: long ones are slow, and rarely find more.
_USUAL = 2**12
_SHARE_OF_LONG = 0.01
_WORD = re.compile(rb"[A-Za-z0-9_.+-]+")
_TELLING = [
    *(b"0", b"1", b"-1", b"2", b"0.5", b"1e308", b"-1e308", b"1e-320", b"1e999", b"nan", b"inf", b"-inf", b"NaN"),
    *(b"64", b"65", b"2147483648", b"18446744073709551616", b"1" * 5000, b"0x10", b"1_000", b"\xd9\xa3", b"true"),
    *(b"", b" ", b"\n", b"\r", b"\t", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xc2\xa0", b"\xe2\x80\xa8", b"\\ud800"),
    *(b'"', b"'", b"/*", b"*/", b"//", b"{", b"}", b"[", b"]", b"(", b")", b"<", b">", b"&", b",", b";", b":", b"|"),
    *(b"null", b"~", b"? ", b"- ", b"&a ", b"*a", b"!!python/none", b"${oc.env:HOME}", b"${a}", b"???", b"%", b"?"),
    *(b"=1+1", b"$", b"#", b"@", b"../..", b"~nobody", b"a" * 700, b"\xf0\x9f\x90\x8d", b"[" * 3000, b'{"a":' * 3000),
]


def mutated(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """Return `content` after one to six changes, some of which take bytes from `others`; at most 1 MiB."""
    limit = LARGEST if rng.random() < _SHARE_OF_LONG else max(_USUAL, 2 * len(content))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        content = rng.choice(_CHANGES)(rng, content, others, limit)
    return content[: min(limit, LARGEST)]


def _span(rng: random.Random, content: bytes) -> tuple[int, int]:
    start = rng.randint(0, len(content))
    return start, min(len(content), start + int(2 ** rng.uniform(0, 8)))


def _flipped(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    place = rng.randrange(len(content) or 1)
    old = content[place : place + 1] or b"\0"
    return content[:place] + bytes([old[0] ^ (1 << rng.randrange(8))]) + content[place + 1 :]


def _set(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    place = rng.randrange(len(content) or 1)
    return content[:place] + bytes([rng.choice((0, 1, 32, 127, 128, 255, rng.randrange(256)))]) + content[place + 1 :]


def _telling_word(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    """One word becomes another that readers may stumble over, or that stands elsewhere in the file."""
    words = list(_WORD.finditer(content))
    if not words:
        return _inserted(rng, content, (), 0)
    word = rng.choice(words)
    new = rng.choice(_TELLING) if rng.random() < 0.5 else rng.choice(words)[0]
    return content[: word.start()] + new + content[word.end() :]


def _inserted(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    place = rng.randint(0, len(content))
    return content[:place] + rng.choice(_TELLING) + content[place:]


def _deleted(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    start, stop = _span(rng, content)
    return content[:start] + content[stop:]


def _repeated(rng: random.Random, content: bytes, _: Sequence[bytes], limit: int) -> bytes:
    start, stop = _span(rng, content)
    room = max(0, limit - len(content)) // max(1, stop - start)
    return content[:stop] + content[start:stop] * int(room ** rng.random()) + content[stop:]


def _moved(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    start, stop = _span(rng, content)
    rest = content[:start] + content[stop:]
    place = rng.randint(0, len(rest))
    return rest[:place] + content[start:stop] + rest[place:]


def _cut(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    place = rng.randint(0, len(content))
    return content[:place] if rng.random() < 0.7 else content[place:]


def _spliced(rng: random.Random, content: bytes, others: Sequence[bytes], __: int) -> bytes:
    other = rng.choice(others) if others else content
    return content[: rng.randint(0, len(content))] + other[rng.randint(0, len(other)) :]


def _lines(rng: random.Random, content: bytes, _: Sequence[bytes], __: int) -> bytes:
    """Lines are left out, said twice, or change places."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(3):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case _:
            lines[at], lines[to] = lines[to], lines[at]
    return b"".join(lines)


_CHANGES: tuple[Callable[[random.Random, bytes, Sequence[bytes], int], bytes], ...] = (
    *(_flipped, _set, _telling_word, _telling_word, _telling_word, _inserted, _deleted, _repeated, _moved, _cut),
    *(_spliced, _lines, _lines),
)


def smaller(content: bytes, is_same: Callable[[bytes], bool], tries: int) -> bytes:
    """Return a part of `content` that `is_same` accepts, found by leaving out shorter and shorter pieces."""
    piece = len(content) // 2
    while piece and tries > 0:
        start = 0
        while start < len(content) and tries > 0:
            shorter = content[:start] + content[start + piece :]
            tries -= 1
            if is_same(shorter):
                content = shorter
            else:
                start += piece
        piece //= 2
    return content
