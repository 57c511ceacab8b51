"""Tables: a frame of plain values and how to print them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from trimbench.reproduction.project import per_project, project

if TYPE_CHECKING:
    import pandas as pd


# Tables: a frame of plain values and how to print them.


@dataclass(frozen=True, eq=False)
class Table:
    """A table to be written.

    Make one with `Table.of`.

    Attributes
    ----------
    title : str
    frame : DataFrame
        Plain values.
    formats : mapping from column to str
        Format specifications, for example ``".4f"``.
    name : str
        Part of the name of its file; the experiment's main table has none.
    listed : bool
        Whether it is on the page; a long one may be written as CSV only.
    literal : bool
        Whether names of columns stay as they are; else they are put into words.
    """

    title: str
    frame: pd.DataFrame
    formats: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    listed: bool = True
    literal: bool = False

    @classmethod
    def of(
        cls,
        title: str,
        lines: Iterable[Mapping[Any, object] | Sequence[object]],
        formats: Mapping[str, str] | Sequence[str],
        *,
        name: str = "",
        listed: bool = True,
    ) -> Table:
        """Return a table of lines.

        Parameters
        ----------
        title : str
        lines : iterable
            Each a mapping from columns to values, or a sequence with one value for each column. A line may leave out
            columns.
        formats : mapping from column to str, or sequence of columns
            All columns, in order; an empty format leaves a column as it is.
        name : str
            Part of the name of its file; the experiment's main table has none.
        listed : bool
            Whether it is on the page.

        Returns
        -------
        Table

        Raises
        ------
        ValueError
            If a line has another column.
        """
        import pandas as pd

        columns = list(formats)
        content = [dict(line if isinstance(line, Mapping) else zip(columns, line, strict=True)) for line in lines]
        for line in content:
            if strange := [column for column in line if column not in columns]:
                raise ValueError(f"lines of {title!r} must have the columns {columns}, got {strange} besides")
        printed = {column: spec for column, spec in formats.items() if spec} if isinstance(formats, Mapping) else {}
        return cls(title, pd.DataFrame(content, columns=columns), printed, name, listed)


def shown_name(name: str, otherwise: str = "") -> str:
    """Return what ``conf/titles.yaml`` calls a data set, network or column; else `otherwise`, or the name itself.

    >>> shown_name("my_data", "My data"), shown_name("my_data")
    ('My data', 'my_data')
    """
    return _titles().get(name, otherwise or name)


@per_project
def _titles() -> dict[str, str]:
    file = project().configuration / "titles.yaml"
    return dict(yaml.safe_load(file.read_text(encoding="utf-8"))) if file.is_file() else {}
