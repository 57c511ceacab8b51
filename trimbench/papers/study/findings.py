"""What one run of an experiment yields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.store import Record
from trimbench.papers.study.numbers import Number
from trimbench.papers.study.outcome import Outcome

if TYPE_CHECKING:
    import pandas as pd

NO_DATA = "data not available"


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that one run of an experiment yields.

    Attributes
    ----------
    settings : mapping
        The resolved configuration.
    rows : DataFrame
        One row for each cell.
    records : sequence of Record
        Of the cells whose data is available.
    missing : mapping from the name of a data set or network to the reason why it is not available
    altered : tuple of str
        Keys of the experiment that the user has set; its numbers are then not compared with the reported ones.
    labels : tuple of str
        Columns of `rows` that distinguish the cells.
    stem : str
        What the names of its files begin with: the name, and after it the altered settings with their values.
    """

    name: str
    settings: Mapping[str, Json]
    rows: pd.DataFrame
    outcome: Outcome
    records: Sequence[Record]
    missing: Mapping[str, str]
    altered: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    stem: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stem", self.stem or self.name)

    @property
    def numbers(self) -> Sequence[Number]:
        """What can be compared with the reported numbers: nothing if the experiment's settings were changed."""
        return () if self.altered else self.outcome.numbers

    @property
    def failures(self) -> int:
        """Number of jobs that failed."""
        return len(self._errors)

    @property
    def first_failure(self) -> str:
        """The last line of the first error; empty without failures."""
        return self._errors[0].strip().splitlines()[-1] if self._errors else ""

    @property
    def _errors(self) -> list[str]:
        return [str(record.error) for record in self.records if record.status not in ("ok", "missing")]
