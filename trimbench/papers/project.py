"""The project of the three papers, as the framework takes it."""

from __future__ import annotations

from pathlib import Path

from trimbench.reproduction.project import Project, typed

_PACKAGE = Path(__file__).resolve().parent
_TREE = _PACKAGE.parents[1]
# Methods that are compared are in one group, in slots of their own; names that share a slot are one method, or are
# never in one figure.
_COLOURS = (
    (  # predictions where features are missing
        ("NaCL",),
        ("mean",),
        ("median",),
        ("min",),
        ("max",),
        ("naive Bayes", "EM, mixture"),
        ("NaCL, categorical", "MICE", "NaCL, mixture (beyond the paper)", "mixture of NaCL"),
        ("nearest neighbours",),
        ("EM as the authors ran it",),
    ),
    (  # selections of features
        ("trimming", "ECA-trim", "MAA", "highest ECA", "expected agreement (ECA)"),
        ("information gain", "information gain, same T", "FS-SDD", "MPA"),
        ("greedy accuracy", "greedy accuracy, best T'", "highest accuracy", "accuracy on test rows"),
        ("joint information gain, best T'", "agreement on test rows"),
        ("information gain, best T'",),
        ("Pareto frontier",),
        ("no feature",),
    ),
    (  # selection bias
        ("corrected",),
        ("uncorrected",),
        ("subset of features",),
    ),
)

PROJECT = Project(
    reference="trimbench.papers.project:PROJECT",
    name="trimbench",
    command=typed(),
    title="trimbench reruns three papers on classifiers with missing or selected features.",
    usage=(f"{typed()} task=study data=t.csv target=y   what to keep of your own table",),
    first="trimming/table6",
    example="experiment=trimming/table6",
    folder=_TREE,
    # In an installed package, inside; in a source tree, at its root.
    configuration=next((one for one in (_PACKAGE / "conf",) if one.is_dir()), _TREE / "conf"),
    code=("trimbench.papers",),
    skipped=("trimbench._current_folder", "trimbench._extras", "trimbench.papers.project"),
    cache_variable="TRIMBENCH_CACHE",
    deciding=("cvxpy", "gpkit", "numpy", "pandas", "pysdd", "scikit-learn", "scipy"),
    inputs={"network": "trimbench.papers.networks:declare_network"},
    sources={
        "csv": "trimbench.papers.own_table.sources:CsvSource",
        "package": "trimbench.papers.own_table.sources:PackageSource",
    },
    tasks={"study": "trimbench.papers.own_table.task:study"},
    open_keys={"study": ("types",)},
    colours=_COLOURS,
    pages=_PACKAGE / "page",
)
