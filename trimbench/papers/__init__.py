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
    """Study a table: which features to keep, what missing values cost, and whether stated confidence can be trusted.

    The command ``trimbench task=study`` does the same. Needs the extra ``papers``.

    Parameters
    ----------
    table : DataFrame or path
        Rows with features and a class: a pandas, polars or pyarrow frame, a file (CSV, Parquet, Arrow), or a folder of
        Parquet files of any size, from which 100,000 rows are drawn at random.
    target : str
        The column of the classes.
    costs : mapping from column to cost, optional
        The cost of each feature, 0 or more. Default: 1 each.
    budget : float, optional
        What the kept features may cost in total; by default, the cheapest set within one standard error of the best
        accuracy.
    folder : path, optional
        Where the page and its files are written: a new folder, or that of an earlier study. Finished jobs are kept in
        the folder ``jobs`` beside it (without a folder, in the user's cache) and are not run again.
    n_jobs : int
        Number of processes. With more than one, a script needs ``if __name__ == "__main__":``.
    **settings
        The other settings of the command: how the table is read (``drop``, ``id``, ``types``, ``positive``, ...) and
        what is tried (``budgets``, ``shares``, ``mechanisms``, ``splits``, ``rows``, ``seed``, ...).

    Returns
    -------
    Study

    Raises
    ------
    ValueError
        If the table cannot be read or a setting is not allowed; the message is a single line.
    MissingExtraError
        Without the extra ``papers``.
    """
    check_installed(*_NEEDED, extra="papers", what="trimbench.papers.study")
    from trimbench.papers.own_table.study import study_table
    from trimbench.papers.project import PROJECT
    from trimbench.reproduction.project import use

    use(PROJECT)
    return study_table(table, target, costs, budget, folder, n_jobs, settings)
