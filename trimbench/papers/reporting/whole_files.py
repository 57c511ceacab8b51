"""Files that are written whole or not at all, and their names."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.execution.temporary import temporary_name
from trimbench.papers.reporting.file_names import is_accepted, safe_name

if TYPE_CHECKING:
    import pandas as pd

# A longer table is compressed.
_MOST_LINES = 2000
# What a spreadsheet would compute: text that begins with one of these signs, also a wide one, and is no number. It may
# begin with apostrophes of its own, so that the one that is added can be taken away again.
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf"
_FORMULA = re.compile(rf"'*(?:[=@\t\r\n＝＠＋－]|[+-](?!(?:{_NUMBER})?\Z))")


def beside(stem: Path, part: str, ending: str) -> Path:
    """Return the file of one part of an experiment, for example ``table6_rows.csv``."""
    # A part may be the name of a data set, which may have slashes and anything else.
    name = part if is_accepted(part) else safe_name(part)
    return stem.with_name(f"{stem.name}_{name}{ending}" if part else f"{stem.name}{ending}")


def csv_ending(frame: pd.DataFrame) -> str:
    """Return how the name of a table's file ends: a long table is compressed."""
    return ".csv.gz" if len(frame) > _MOST_LINES else ".csv"


def write_csv(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table without its index, compressed if the name ends with ``.gz``, and return its path."""
    # Without the time of writing, the same table gives the same bytes.
    packed: Any = {"method": "gzip", "mtime": 0} if path.suffix == ".gz" else None
    tame = _without_formulas(frame)
    return write(path, lambda temporary: tame.to_csv(temporary, index=False, encoding="utf-8", compression=packed))


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no text or heading is a formula to a spreadsheet: an apostrophe goes before one."""
    import pandas as pd

    # By number, because names may repeat. A list, because mapping would turn 1 beside a missing value into 1.0.
    tame = frame.set_axis(range(frame.shape[1]), axis=1)
    for at in range(frame.shape[1]):
        if tame[at].dtype.kind not in "iufb":
            tame[at] = pd.Series(list(map(_tame, tame[at])), index=tame.index, dtype=object)
    return tame.set_axis(list(map(_tame, frame.columns)), axis=1)


def _tame(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def as_it_was(text: str) -> str:
    """Return a text of a table without the apostrophe that `write_csv` put before it."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text[1:]) else text


def write_text(text: str, path: Path) -> Path:
    """Write a text, and return its path."""
    return write(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write(path: Path, write_to: Callable[[Path], object]) -> Path:
    """Write a file with a function that takes a path, and return its path."""
    with temporaries([path]) as (temporary,):
        write_to(temporary)
    return path


@contextmanager
def temporaries(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield a temporary name for each path; the files take their places once all are written."""
    folder = paths[0].parent / temporary_name("writing")
    folder.mkdir()
    try:
        names = [folder / path.name for path in paths]
        yield names
        for temporary, path in zip(names, paths, strict=True):
            temporary.replace(path)
    except OSError as error:  # the system's own message about a full disk names no file
        reason = error.strerror or str(error)
        raise OSError(error.errno or 0, f"cannot write {', '.join(map(str, paths))}: {reason}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
