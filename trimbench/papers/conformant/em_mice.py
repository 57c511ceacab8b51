"""Imputers that look at the observed features (EM, MICE, nearest neighbours) against NaCL: fidelity and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.conformant.em_mice_jobs import evaluate_imputer
from trimbench.papers.conformant.protocol import check_encodings, make_task
from trimbench.papers.conformant.sweep import MEASURES, check_missing, check_repetitions
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.plan import Cell, Outcome, Table, check_axis

if TYPE_CHECKING:
    import pandas as pd

_FITS = ("train", "test")
_NACL = "nacl"
_CONSTANTS = ("mean", "median", "min", "max")
_SETTINGS = ("n_components", "n_neighbours", "n_nearest_features", "max_iterations")
_TITLES = {
    "nacl": "NaCL",
    "mean": "mean",
    "median": "median",
    "min": "min",
    "max": "max",
    "em": "EM, mixture",
    "normal_draw": "EM as the authors ran it",
    "mice": "MICE",
    "knn": "nearest neighbours",
}


@dataclass(frozen=True)
class EmMice:
    """EM, MICE and nearest neighbours against NaCL and the mean (section 5.1).

    Attributes
    ----------
    datasets : list of str
        Protocols.
    missing : list of float
    methods : list of str
        Imputers, and ``nacl``.
    fit_on : list of str
        Of ``train`` and ``test``.
    repetitions : int
    train_rows, test_rows : int
        At most so many: some of these methods take minutes for thousands of rows.
    settings : dict
        Options of the imputers.
    encoding : {"paper", "authors"}
    seed : int
    """

    datasets: list[str]
    missing: list[float]
    methods: list[str]
    fit_on: list[str]
    settings: dict[str, Any]
    repetitions: int = 1
    train_rows: int = 2000
    test_rows: int = 500
    encoding: str = "paper"
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        check_missing(self.missing)
        check_axis("methods", self.methods)
        check_axis("fit_on", self.fit_on)
        check_repetitions(repetitions=self.repetitions, train_rows=self.train_rows, test_rows=self.test_rows)
        for method in self.methods:
            if method not in _TITLES:
                raise ValueError(f"methods must be of {', '.join(_TITLES)}, got {method!r}")
        for part in self.fit_on:
            if part not in _FITS:
                raise ValueError(f"fit_on must be of {', '.join(_FITS)}, got {part!r}")
        check_encodings(encoding=self.encoding)
        _check_settings(self.settings)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each data set, fraction, method, rows to fit to, and repetition."""
        by_dataset: dict[str, list[Cell]] = {}
        for name in self.datasets:
            cells = by_dataset.setdefault(name, [])
            task = make_task(catalogue, cache, name, self.encoding, self.seed)
            for fraction in self.missing:
                for repetition in range(self.repetitions):
                    seed = seed_for(
                        purpose="mask", dataset=name, missing=float(fraction), repetition=repetition, seed=self.seed
                    )
                    for method in self.methods:
                        for part in self.fit_on if method != _NACL else self.fit_on[:1]:
                            parameters = {
                                "task": task.parameters,
                                "missing": float(fraction),
                                "mask_seed": seed,
                                "method": method,
                                "fit_on": part,
                                "train_rows": self.train_rows,
                                "test_rows": self.test_rows,
                                "settings": self.settings,
                            }
                            data = {f"dataset/{task.protocol.dataset}": task.sha256}
                            job = Job.create(evaluate_imputer, parameters, data)
                            labels = {"dataset": name, "missing": fraction, "method": method, "fit_on": part}
                            cells.append(Cell({**labels, "repetition": repetition}, job, (task.declaration,)))
        # The first job of a data set fits its logistic regression, which may take long: the others go on meanwhile.
        first = [cells[0] for cells in by_dataset.values()]
        return [*first, *(cell for cells in reversed(by_dataset.values()) for cell in cells[1:])]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the means over the masks."""
        import pandas as pd

        done = rows[rows["status"] == "ok"]
        lines: list[dict[str, Any]] = []
        if len(done):
            for keys, group in done.groupby(["dataset", "missing", "method", "fit_on"], sort=False):
                name, _, method, part = map(str, keys)
                line: dict[str, Any] = {
                    "data": name,
                    "missing (%)": group["missing_percent"].mean(),
                    "method": _TITLES[method],
                    "fitted to": "training rows" if part == "train" else "incomplete test rows",
                    "masks": len(group),
                }
                means = {title: group[key].mean() for key, title in _COLUMNS.items()}
                lines.append(line | means)
        columns = ["data", "missing (%)", "method", "fitted to", "masks", *_COLUMNS.values()]
        # A hundredth of a dozen features is none of them.
        nothing = sorted({line["data"] for line in lines if line["missing (%)"] == 0})
        frame = pd.DataFrame([line for line in lines if line["missing (%)"] > 0], columns=columns)
        frame = frame.sort_values(["data", "missing (%)", "cross entropy"], kind="stable").reset_index(drop=True)
        formats = {"missing (%)": ".1f", "fit (s)": ".2f", "ms per row": ".3f"}
        formats |= dict.fromkeys(["cross entropy", "accuracy", "weighted F1"], ".4f")
        table = Table("", "Fidelity, accuracy and cost", frame, formats)
        reproduced, jobs = _claims(done)
        return Outcome((table,), (), reproduced, self._notes(nothing), jobs=jobs)

    def _notes(self, nothing: list[str]) -> list[str]:
        """Return the notes that hold for these settings; `nothing` are data sets with a share of no feature."""
        notes = [
            f"On the first {self.test_rows} test rows, with at most {self.train_rows} training rows for imputers; "
            "'ms per row' is the time of filling and predicting a row, 'fit (s)' that of fitting the imputer, or of "
            "the means and the optimisation of NaCL.",
        ]
        if {"em", "normal_draw"} & set(self.methods):
            notes.append(
                "What the authors ran under the name of EM draws each missing value from a normal distribution of its "
                "column. The EM here fits a mixture of independent binary columns."
            )
        few = self.settings.get("n_nearest_features")
        if "mice" in self.methods and few:
            notes.append(f"MICE are chained equations, each column predicted by at most {few} others.")
        if "train" in self.fit_on:
            notes.append(
                "Imputers that see complete training rows can be more accurate than NaCL, at far higher cost for each "
                "prediction; NaCL is deterministic and agrees exactly with the classifier on complete rows."
            )
        if nothing:
            notes.append(
                f"Of {', '.join(nothing)} the smallest share hides no feature (numbers of features are rounded down): "
                "such a share has no lines."
            )
        return notes


def _check_settings(settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if name not in _SETTINGS:
            raise ValueError(f"settings must have the keys {', '.join(_SETTINGS)}, got {name!r}")
        all_columns = name == "n_nearest_features" and value is None
        if not all_columns and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ValueError(f"settings.{name} must be a whole number, 1 or more, got {value!r}")


def _claims(done: pd.DataFrame) -> tuple[dict[str, float | None], dict[str, list[str]]]:
    """Return what section 5.1 says of EM and MICE, fitted to the incomplete test rows as the authors did.

    For each data set and share: the place of EM from the worst cross entropy (1 is the worst), the cross entropy of
    MICE less that of the mean, and how many of EM and MICE have a higher one than NaCL. With them, for each data set
    and share, the keys of the jobs.
    """
    claims: dict[str, float | None] = {}
    jobs: dict[str, list[str]] = {}
    if done.empty:
        return claims, jobs
    shown = done[(done["missing_percent"] > 0) & ((done["fit_on"] == "test") | (done["method"] == _NACL))]
    for (name, missing), group in shown.groupby(["dataset", "missing"]):
        entropies = group.groupby("method")["cross_entropy"].mean()
        row = f"{name} {round(100 * float(str(missing)))} %"
        if {*_CONSTANTS, _NACL, "normal_draw", "mice"} <= set(entropies.index):
            jobs[row] = list(group["job"])
            as_run = entropies[[*_CONSTANTS, _NACL, "normal_draw", "mice"]]
            claims[f"{row}/em_from_worst"] = float((as_run >= as_run["normal_draw"]).sum())
            claims[f"{row}/mice_less_mean"] = float(as_run["mice"] - as_run["mean"])
            claims[f"{row}/outperformed"] = float((as_run[["normal_draw", "mice"]] > as_run[_NACL]).sum())
    return claims, jobs


_COLUMNS = dict(zip(MEASURES, ["cross entropy", "accuracy", "weighted F1"], strict=True)) | {
    "fit_seconds": "fit (s)",
    "ms_per_row": "ms per row",
}
