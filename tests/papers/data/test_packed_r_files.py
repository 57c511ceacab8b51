"""Data files of R that become very long, or are packed again and again, are not unpacked."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from trimbench.papers.data.sources import _objects
from trimbench.papers.validation import Unreadable


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_becomes_too_long_or_is_packed_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr("trimbench.papers.data.sources._MAX_UNPACKED", 2**16)
    path = tmp_path / "file.rda"
    for content in (b"RDX2\n" + bytes(2**25), gzip.compress(b"RDX2\n")):
        path.write_bytes(pack(content))
        tracemalloc.start()
        with pytest.raises(Unreadable, match="at most 65536 bytes and not be packed again"):
            _objects(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
        tracemalloc.stop()
