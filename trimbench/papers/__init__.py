"""The reproduction: configurations in, verdicts out. Needs ``trimbench[papers]``; the library does not know of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench._extras import check_installed

if TYPE_CHECKING:
    from trimbench.papers.own_table.study import Study


_NEEDED = ("hydra", "jinja2", "matplotlib", "pebble", "platformdirs", "pyarrow", "pydantic", "tabulate")


def study(
    table: Any,
    target: str,
    *,
    costs: Mapping[str, float] | None = None,
    budget: float | None = None,
    folder: str | Path | None = None,
    n_jobs: int = 1,
    **settings: Any,
) -> Study:
    """Say of a table which features to keep, what missing values cost, and whether to believe the confidence.

    The command ``trimbench task=study`` does the same. Needs the extra ``papers``.

    Parameters
    ----------
    table : DataFrame or path
        Rows with features and their class, in a frame of pandas, polars or pyarrow, or a file (CSV, Parquet, Arrow).
    target : str
        The column of the classes.
    costs : mapping from column to cost, optional
        0 or more, for each feature. Default: 1.
    budget : float, optional
        What the features to keep may cost; by default the cheapest set within one standard error of the best accuracy.
    folder : path, optional
        Where the page and its files are written. Jobs are kept there, too, else in the user's cache; what is known of
        a table is not computed again.
    n_jobs : int
        Processes that work at the same time. With several, a script needs ``if __name__ == "__main__":``.
    **settings
        The other keys of the command: how the table is read (``drop``, ``id``, ``types``, ``positive``, ...) and what
        is tried (``budgets``, ``shares``, ``mechanisms``, ``splits``, ``rows``, ``seed``, ...).

    Returns
    -------
    Study

    Raises
    ------
    ValueError
        In one line, if the table cannot be read or a setting is not allowed.
    MissingExtraError
        Without the extra ``papers``.
    """
    check_installed(*_NEEDED, extra="papers", what="trimbench.papers.study")
    from trimbench.papers.own_table.study import study_table

    return study_table(table, target, costs, budget, folder, n_jobs, settings)
