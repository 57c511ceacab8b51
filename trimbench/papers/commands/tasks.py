"""The tasks of the command line by name. Importing this module loads numpy and pandas, which `--help` does without."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trimbench.papers.commands.comparing import compare
from trimbench.papers.commands.fetching import fetch
from trimbench.papers.commands.invocation import Invocation, Task
from trimbench.papers.commands.listing import list_experiments
from trimbench.papers.commands.plotting import plot
from trimbench.papers.commands.publishing import publish
from trimbench.papers.commands.running import report, run
from trimbench.papers.commands.studying import study

PERFORM: Mapping[Task, Callable[[Invocation], int]] = {
    "run": run,
    "report": report,
    "publish": publish,
    "list": list_experiments,
    "fetch": fetch,
    "compare": compare,
    "plot": plot,
    "study": study,
}
