"""How a data set is split, encoded and classified in the NaCL experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from trimbench.papers.data.binary import BinaryEncoding, CutRule
from trimbench.papers.data.declaration import DatasetDeclaration
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.inputs import Input, Inputs
from trimbench.papers.validation import ConfigurationError, settings, validated

Encoding = Literal["paper", "authors"]
Solver = Literal["optimum", "lbfgs_2019"]


@settings
class CutRules:
    """How each encoding turns numbers into zeros and ones."""

    paper: CutRule = "mean"
    authors: CutRule = "mean"


@settings
class Protocol:
    """What is done with a data set; a file of the configuration group ``protocol``.

    Attributes
    ----------
    dataset : str
        A declared data set.
    title : str
        Its name in tables; default: that of the protocol.
    drop : list of str
        Columns that are no features.
    labels : list of str
        If given, rows with any other label in a feature are dropped.
    classes : list of str
        If given, rows of other classes are dropped; also the order of the classes.
    merged : dict from feature to prefix
        Indicator columns that together are one feature.
    cut : CutRules
    bins, cuts, distinct
        As in `trimbench.papers.data.binary.BinaryEncoding`.
    image : list of int
        Height and width where the features are pixels.
    last : int
        If positive, this many rows at the end of the whole data set are the test part.
    test_rows : list of int
        If given, the rows of the test part.
    test_rows_file : str
        If given, a CSV in the folder ``conf/protocol`` of trimbench whose column ``row`` has the rows of the test part,
        where they are too many for a list.
    test_rows_sha256 : str
        Of that file.
    test_fraction : float
        Share of randomly chosen test rows where neither of the above is given.
    inverse_penalty : float
        C of the logistic regression.
    solver : {"optimum", "lbfgs_2019"}
        ``"optimum"``: the logistic regression is fitted to the end. ``"lbfgs_2019"``: it is fitted as scikit-learn did
        when the paper was written, after `max_iterations` steps at the latest; see `trimbench.papers.conformant.lbfgs`.
    max_iterations : int
        For ``"lbfgs_2019"``.
    smoothing : float
        Pseudo-count of conformant learning and of naive Bayes.
    """

    dataset: str
    title: str = ""
    drop: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    cut: CutRules = field(default_factory=CutRules)
    bins: Annotated[int, Field(ge=2)] = 5
    cuts: dict[str, list[float]] = field(default_factory=dict)
    distinct: list[str] = field(default_factory=list)
    image: list[int] = field(default_factory=list)
    last: NonNegativeInt = 0
    test_rows: list[NonNegativeInt] = field(default_factory=list)
    test_rows_file: str = ""
    test_rows_sha256: str = ""
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.2
    inverse_penalty: PositiveFloat = 1.0
    solver: Solver = "optimum"
    max_iterations: PositiveInt = 1000
    smoothing: NonNegativeFloat = 1.0

    def encoding(self, name: Encoding) -> BinaryEncoding:
        """Return one of the two encodings."""
        if name == "paper":
            return BinaryEncoding(self.cut.paper, bins=self.bins, merged=self.merged)
        return BinaryEncoding(
            self.cut.authors, bins=self.bins, cuts=self.cuts, distinct=tuple(self.distinct), merged=self.merged
        )


@dataclass(frozen=True)
class Task:
    """A data set with its protocol (called `name`) and encoding: the parameter ``task`` of the jobs."""

    name: str
    protocol: Protocol
    data: Input
    encoding: Encoding
    split_seed: int

    def __hash__(self) -> int:
        return hash((self.name, self.encoding, self.split_seed))

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.protocol.title or self.name

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Task:
        """Return the task that a job got as plain values."""
        protocol = validated(Protocol, fields["protocol"], f"protocol {fields['name']}")
        return cls(**{**fields, "protocol": protocol, "data": Input(**fields["data"])})


def make_task(inputs: Inputs, name: str, encoding: Encoding, seed: int, **changes: object) -> Task:
    """Return the task of a protocol, or of a data set without one (80:20, C = 1).

    The seed is that of the random split, where the protocol does not fix it. The `changes` take the place of what the
    protocol says, as in ``inverse_penalty=1.0``.

    Raises
    ------
    ConfigurationError
        When there is no protocol and no data set of that name, a protocol has a wrong key, or the user's own data has
        a single class.
    """
    known = name in inputs.catalogue.names("protocol")
    values = inputs.catalogue.mapping("protocol", name) if known else {"dataset": name}
    protocol = validated(Protocol, {**values, **changes}, f"protocol {name}")
    data = inputs.dataset(protocol.dataset)
    if isinstance(data.declaration, DatasetDeclaration) and not data.declaration.facts.sha256:
        labels = [str(label) for label in inputs.loaded(data.name).target.cat.categories]
        if len(labels) < 2:
            raise ConfigurationError(f"data set {data.name} must have two classes or more, got {labels}")
    split_seed = seed_for(purpose="split", dataset=protocol.dataset, seed=seed)
    return Task(name, protocol, data, encoding, split_seed)
