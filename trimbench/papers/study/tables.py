"""Tables: a frame of plain values and how to print them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Table:
    """A table to be written.

    `formats` maps columns to format specifications, for example ``".4f"``. The name is part of that of its file; the
    experiment's main table has none. A table that is not `listed`, because it is long, is written as CSV only.
    """

    title: str
    frame: pd.DataFrame
    formats: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    listed: bool = True

    @classmethod
    def of(
        cls,
        title: str,
        lines: Iterable[Mapping[Any, object]],
        formats: Mapping[str, str] | Sequence[str],
        *,
        name: str = "",
        listed: bool = True,
    ) -> Table:
        """Return the table of some lines, each with values by column.

        `formats` has all columns, in order; an empty format leaves a column as it is. A line may leave columns out, but
        must not have others.
        """
        import pandas as pd

        content = [dict(line) for line in lines]
        columns = list(formats)
        for line in content:
            if strange := [column for column in line if column not in columns]:
                raise ValueError(f"lines of {title!r} must have the columns {columns}, got {strange} besides")
        printed = {column: spec for column, spec in formats.items() if spec} if isinstance(formats, Mapping) else {}
        return cls(title, pd.DataFrame(content, columns=columns), printed, name, listed)
