"""Data sets and networks as they are declared in YAML: checked, loaded, and whether they are at hand."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast
from urllib.parse import urlsplit

import numpy as np
from pydantic import Field

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.formats.ace import normalised, read_problem
from trimbench.networks.formats.parsing import MAX_UNPACKED
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.values import listed
from trimbench.papers.data.cache import Cache, Positive, Share, Text
from trimbench.papers.data.dataset import Dataset, Facts, without_source
from trimbench.papers.data.downloads import FileDeclaration, check_one_of, existing, fetch_file, find_file
from trimbench.papers.data.sources import (
    BundledSource,
    CsvSource,
    OpenMLSource,
    PackageSource,
    RSource,
    SimulatedSource,
    Source,
)
from trimbench.papers.validation import (
    WAY_OUT,
    ConfigurationError,
    DataUnavailable,
    DeclarationError,
    FactsMismatch,
    settings,
    validated,
)

_log = logging.getLogger(__name__)
# A new kind of source is a module with its class, and its name here.
_AnySource = Annotated[
    OpenMLSource | BundledSource | CsvSource | PackageSource | RSource | SimulatedSource,
    Field(discriminator="kind"),
]


@dataclass(frozen=True)
class DatasetDeclaration:
    """A named data set and where it comes from: its `source`, and others from which the same rows come."""

    name: str
    source: Source
    others: tuple[Source, ...] = ()

    @property
    def facts(self) -> Facts:
        """What is known about the data."""
        return self.source.facts

    @property
    def where(self) -> str:
        """Where the rows come from, each possible source in a few words."""
        return " or ".join(one.where for one in (self.source, *self.others))

    def road(self, cache: Cache) -> str:
        """Return where this machine has the rows from; empty if it has not."""
        return next((one.where for one in self.sources_here(cache)), "")

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return, for each file that is needed, where copies of it may be: of the first source whose files are here."""
        return (next(iter(self.sources_here(cache)), None) or self.source).copies(cache)

    def sources_here(self, cache: Cache) -> list[Source]:
        """Return the sources whose files are all in the cache."""
        return [one for one in (self.source, *self.others) if _is_readable(one.copies(cache))]


def declare_dataset(name: str, mapping: Mapping[str, object]) -> DatasetDeclaration:
    """Check the declaration of a data set: ``kind``, the keys of that kind (the fields of its class), and ``facts``.

    Raises `ConfigurationError`, which names the data set and the key, if a key or its value is wrong.
    """
    what = f"data set {name!r}"
    source = validated(cast("type[Source]", _AnySource), mapping, what)
    others = []
    for place, road in enumerate(source.roads):
        if found := {"facts", "roads"} & set(road):
            raise ConfigurationError(f"{what}: roads.{place} must not have the key {min(found)}; leave it out")
        values = {**road, "facts": mapping["facts"]}
        others.append(validated(cast("type[Source]", _AnySource), values, f"{what}, roads.{place}"))
    return DatasetDeclaration(name, source, tuple(others))


# Networks from the files that are declared for them.

# Published networks of 200 kB become 35 MB.
_LONGEST = 2**26


@dataclass(frozen=True, eq=False)
class DeclaredNetwork:
    """A network with the classification problem that is stated for it.

    The target is the class, and `positive` the state of it that counts as positive; both are None where the network is
    declared without a class. The features are those that are declared or of the stated problem, in its order, or the
    leaves except the class. `evidence` is what was observed, as declared or in a file: the state of some nodes.
    """

    model: NaiveBayes | BayesianNetwork
    target: str | None
    positive: str | None
    features: tuple[str, ...]
    evidence: Mapping[str, str] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all nodes."""
        model = self.model
        return model.nodes if isinstance(model, BayesianNetwork) else (model.class_variable, *model.feature_names)

    def features_without(self, target: str) -> tuple[str, ...]:
        """Return the features when another node is taken as the class."""
        return tuple(name for name in self.features if name != target)


def load_network(declaration: NetworkDeclaration, cache: Cache) -> DeclaredNetwork:
    """Fetch and read a declared network; raises ValueError if the files do not hold what was declared."""
    if declaration.figures is not None:
        return _load_figures(declaration, declaration.figures)
    paths = network_paths(declaration, cache)
    return _load_ace(declaration, paths) if declaration.format == "ace" else _load_whole(declaration, paths)


def _load_ace(declaration: NetworkDeclaration, paths: dict[str, Path]) -> DeclaredNetwork:
    model = NaiveBayes.read_ace(paths["cnf"], paths["lmap"])
    problem = read_problem(paths["search"])
    for what, declared, found in (
        ("target", declaration.target, problem.target),
        ("target", declaration.target, model.class_variable),
        ("number of features", declaration.features, model.n_features),
        ("features", sorted(model.feature_names), sorted(problem.costs)),
    ):
        _check(declaration, what, declared, found)
    return DeclaredNetwork(model, declaration.target, declaration.positive, tuple(problem.costs))


def _load_figures(declaration: NetworkDeclaration, figures: Figures) -> DeclaredNetwork:
    source = f"network {declaration.name!r}"
    target, states = str(declaration.target), figures.states
    names = {target: states.get(target) or _numbered(len(figures.prior))}
    tables = {}
    for name, rows in figures.likelihoods.items():
        width = max((len(row) for row in rows if isinstance(row, list)), default=len(states.get(name, [0, 1])))
        names[name] = states.get(name) or _numbered(width)
        table = [row if isinstance(row, list) else [row] * width for row in rows]
        if len(table) != len(names[target]) or any(len(row) != len(names[name]) for row in table):
            raise ValueError(
                f"{source}: likelihoods.{name} must have a row for each of the {len(names[target])} states of "
                f"{target!r}, each with {len(names[name])} numbers or one that holds for every state, got {rows}"
            )
        tables[name] = np.array(table, dtype=np.float64)
    model = NaiveBayes(**normalised(source, target, np.array(figures.prior, dtype=np.float64), tables, names))
    if declaration.features is not None:
        _check(declaration, "number of features", declaration.features, model.n_features)
    features = declaration.feature_names or model.feature_names
    _check(declaration, "features", sorted(features), sorted(model.feature_names))
    return DeclaredNetwork(model, target, declaration.positive, features)


def _numbered(count: int) -> list[str]:
    return [str(place) for place in range(count)]


def compare_with_files(declaration: NetworkDeclaration, cache: Cache) -> bool:
    """Compare a network that is declared as figures with its files, to the last bit.

    Returns whether there are files to compare with: those in the cache, or fetched unless it is offline. Raises
    `FactsMismatch` if anything differs.
    """
    if declaration.figures is None or not declaration.files:
        return False
    fetched = find_file if cache.offline else fetch_file
    paths = {role: path for role, file in declaration.files.items() if (path := fetched(file, cache)) is not None}
    if len(paths) < len(declaration.files):
        return False
    loaded = _load_figures(declaration, declaration.figures)
    filed = _load_ace(replace(declaration, features=len(loaded.features)), paths)
    one, other = cast("NaiveBayes", loaded.model), cast("NaiveBayes", filed.model)
    parts = {
        "the order of features": (loaded.features, filed.features),
        "names": ((one.feature_names, one.class_variable), (other.feature_names, other.class_variable)),
        "the prior": (one.prior.tolist(), other.prior.tolist()),
        **{
            f"P({name} | {one.class_variable})": (left.tolist(), right.tolist())
            for name, left, right in zip(one.feature_names, one.likelihoods, other.likelihoods, strict=False)
        },
    }
    for what, (left, right) in parts.items():
        if left != right:
            raise FactsMismatch(f"network {declaration.name!r}: {what} must be as in its files, {right}, got {left}")
    return True


def _load_whole(declaration: NetworkDeclaration, paths: dict[str, Path]) -> DeclaredNetwork:
    path = paths["network"]
    endings = {f".{declaration.format}", *({".xml"} if declaration.format == "xmlbif" else ())}
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending not in endings:
        raise ValueError(
            f"network {declaration.name!r}: a file of format {declaration.format!r} must end in "
            f"{' or '.join(sorted(endings))} (and .gz), got {path.name!r}"
        )
    trusted = declaration.path is None  # its hash is declared
    model = BayesianNetwork.read(path, max_unpacked=_LONGEST if trusted else MAX_UNPACKED)
    target = [] if declaration.target is None else [declaration.target]
    _check_nodes(declaration, model, "target", target)
    _check_nodes(declaration, model, "features", declaration.feature_names or ())
    _check_nodes(declaration, model, "evidence", declaration.evidence)
    leaves = tuple(node for node in model.nodes if not model.children(node) and node != declaration.target)
    if declaration.features is not None:
        _check(declaration, "number of features (leaves)", declaration.features, len(leaves))
    evidence = model.read_evidence(paths["evidence"]) if "evidence" in paths else declaration.evidence
    for node, state in declaration.evidence.items():
        if state not in model.states(node):
            raise ValueError(
                f"network {declaration.name!r}: evidence on {node!r} must be one of its states, "
                f"{listed(model.states(node))}, got {state!r}"
            )
    features = declaration.feature_names or tuple(node for node in leaves if node not in declaration.evidence)
    return DeclaredNetwork(model, declaration.target, declaration.positive, features, evidence)


def _check_nodes(declaration: NetworkDeclaration, model: BayesianNetwork, what: str, names: Iterable[str]) -> None:
    for name in names:
        if name not in model.nodes:
            raise ValueError(
                f"network {declaration.name!r}: {what} must be one of its nodes, {', '.join(model.nodes[:20])}"
                f"{', ...' if len(model.nodes) > 20 else ''}, got {name!r}"
            )


def _check(declaration: NetworkDeclaration, what: str, declared: object, found: object) -> None:
    if declared != found:
        raise ValueError(f"network {declaration.name!r}: {what} must be {declared!r}, got {found!r} in its files")


# Networks as they are declared in YAML, checked and frozen.


@settings
class _Facts:
    features: Positive


@settings
class _AceFiles:
    cnf: FileDeclaration
    lmap: FileDeclaration
    search: FileDeclaration


@settings
class _WholeFile:
    network: FileDeclaration
    evidence: FileDeclaration | None = None


@settings
class _AceProblem:
    format: Literal["ace"]
    files: _AceFiles
    target: Text
    positive: Text
    facts: _Facts
    path: ClassVar[None] = None
    features: ClassVar[None] = None
    evidence: ClassVar[None] = None


@settings
class Figures:
    """A naive Bayes network as figures, which are rounded: each distribution is normalised.

    `likelihoods` has, for each feature, a row P(state | class) for each state of the class; one number in place of a
    row holds for every state. `states` has the names of states that are not ``"0", "1", ...``.
    """

    prior: Annotated[list[Share], Field(min_length=2)]
    likelihoods: Annotated[dict[Text, list[Share | list[Share]]], Field(min_length=1)]
    states: dict[Text, list[Text]] = field(default_factory=dict)


@settings
class _FiguresProblem(Figures):
    format: Literal["tables"]
    target: Text
    positive: Text
    features: list[Text] | None = None
    files: _AceFiles | None = None
    facts: _Facts | None = None
    path: ClassVar[None] = None
    evidence: ClassVar[None] = None


@settings
class _Network:
    format: Literal["bif", "erg", "uai", "xmlbif"]
    files: _WholeFile | None = None
    path: Text | None = None
    target: Text | None = None
    positive: Text | None = None
    features: list[Text] | None = None
    evidence: dict[str, Text] | None = None
    facts: _Facts | None = None

    def __post_init__(self) -> None:
        check_one_of("path", self.path, "files", self.files)
        if (self.target is None) != (self.positive is None):
            raise ValueError("give both target and positive, or neither")
        for name in self.features or ():
            if name in (self.target, *(self.evidence or ())):
                raise ValueError(f"features must be neither the target nor in evidence, got {name!r}")
        if self.target in (self.evidence or ()):
            raise ValueError(f"evidence must not be on the target, got {self.target!r}")
        if self.evidence and self.files is not None and self.files.evidence is not None:
            raise ValueError("give either evidence or files.evidence, not both")


_AnyNetwork = Annotated[_AceProblem | _FiguresProblem | _Network, Field(discriminator="format")]


@dataclass(frozen=True)
class NetworkDeclaration:
    """A named Bayesian network in files or as figures, and the class that is stated for it.

    Attributes
    ----------
    files : mapping from role to FileDeclaration
        Empty where `path` is given. Of `figures`, those that they were read from.
    path : Path, optional
        A file of the user's own that holds the whole network.
    target, positive : str, optional
        Class node, and the state of it that counts as positive; None where the network comes without a class.
    features : int, optional
        Number of feature nodes in an ACE problem, otherwise of leaves.
    feature_names : tuple of str, optional
        The features; None where they are those of the ACE problem, or the leaves.
    evidence : mapping from node to state
        What is observed; empty where it is in a file, or nothing is.
    figures : Figures, optional
        The network itself, which then needs no file.
    """

    name: str
    format: str
    files: Mapping[str, FileDeclaration]
    path: Path | None = None
    target: str | None = None
    positive: str | None = None
    features: int | None = None
    feature_names: tuple[str, ...] | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)
    figures: Figures | None = None

    @cached_property
    def sha256(self) -> str:
        """SHA-256 over the figures, or over the roles and hashes of the files; reads the user's own file."""
        if self.figures is not None:
            stated = [self.target, self.figures.prior, self.figures.likelihoods, self.figures.states]
            return hashlib.sha256(json.dumps(stated).encode()).hexdigest()
        hashes = {role: file.sha256 for role, file in self.files.items()}
        if self.path is not None:
            hashes["network"] = hashlib.sha256(self.own_file().read_bytes()).hexdigest()
        lines = (f"{role} {sha256}\n" for role, sha256 in sorted(hashes.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def where(self) -> str:
        """Where the network comes from, in a few words."""
        if self.figures is not None:
            return "declared as figures"
        return self.path.name if self.path else urlsplit(next(iter(self.files.values())).url).netloc

    def road(self, cache: Cache) -> str:
        """Return where this machine has the network from; empty if it has not."""
        return self.where if is_here(self, cache) else ""

    def own_file(self) -> Path:
        """Return the path of the user's own file; `DataUnavailable` if there is no such file."""
        return existing(f"network {self.name!r}", str(self.path))

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return, for each file that is needed, where copies of it may be."""
        if self.figures is not None:
            return []
        if self.path is not None:
            return [[self.path]]
        return [cache.copies(file.path, file.sha256) for file in self.files.values()]


def declare_network(name: str, mapping: Mapping[str, object]) -> NetworkDeclaration:
    """Check the declaration of a network.

    Its keys are ``format``; ``files`` (with an evidence file if there is one), or ``path`` for a file of the user's
    own; ``target`` and ``positive``; ``features`` and ``evidence``, of a network in one file; ``facts`` with
    ``features``. An ACE problem needs files, a class and facts, and one of format ``tables`` a class and the keys of
    `Figures`; other networks may come without a class and without facts. Raises `ConfigurationError`, which names the
    network and the key, if a key or its value is wrong.
    """
    keys = validated(cast("type[_AceProblem | _FiguresProblem | _Network]", _AnyNetwork), mapping, f"network {name!r}")
    return NetworkDeclaration(
        name=name,
        format=keys.format,
        files={} if keys.files is None else {role: file for role, file in vars(keys.files).items() if file is not None},
        path=None if keys.path is None else Path(keys.path),
        target=keys.target,
        positive=keys.positive,
        features=None if keys.facts is None else keys.facts.features,
        feature_names=None if keys.features is None else tuple(keys.features),
        evidence=keys.evidence or {},
        figures=keys if isinstance(keys, _FiguresProblem) else None,
    )


# From the declaration of a data set to its table, and of a network to its files.

Declaration = DatasetDeclaration | NetworkDeclaration


def load_dataset(declaration: DatasetDeclaration, cache: Cache) -> Dataset:
    """Load a declared data set, downloading it first if necessary, and check its facts.

    Of several sources, those are tried first whose files are in the cache, then the others in the order of the cache's
    `roads`. Which one it came from makes no difference: the same rows are in the same order.

    Raises DataUnavailable if the data is nowhere on this machine and cannot be downloaded, DeclarationError if it is no
    table or has no complete column of the declared name, and FactsMismatch if it differs from the facts.
    """
    sources, here = (declaration.source, *declaration.others), replace(cache, offline=True)
    if len(sources) == 1:
        return replace(declaration.source.load(declaration.name, cache), road=declaration.source.where)
    tries = [(one, here) for one in declaration.sources_here(cache)]
    if not cache.offline:
        order = ["", *cache.roads]
        taken = [one for one in sources if one.road in order]
        tries += [(one, cache) for one in sorted(taken, key=lambda one: order.index(one.road))]
    failures: dict[str, Exception] = {}
    for source, where in tries or [(one, cache) for one in sources]:
        try:
            return without_source(source.load(declaration.name, where), source.where)
        except (DataUnavailable, DeclarationError, FactsMismatch, OSError) as error:
            level = logging.INFO if isinstance(error, DataUnavailable) else logging.WARNING
            _log.log(level, "data set %s not from %s: %s", declaration.name, source.where, error)
            failures[source.where] = error
    wrong = [error for error in failures.values() if not isinstance(error, DataUnavailable | OSError)]
    if wrong:
        raise wrong[0]
    raise DataUnavailable(
        "; ".join(str(error).removesuffix(f"; {WAY_OUT}") for error in failures.values()) + f"; {WAY_OUT}", whole=True
    )


def network_paths(declaration: NetworkDeclaration, cache: Cache) -> dict[str, Path]:
    """Return the files that a declared network needs by their role, fetched where necessary."""
    if declaration.figures is not None:
        return {}
    if declaration.path is not None:
        return {"network": declaration.own_file()}
    return {role: fetch_file(file, cache) for role, file in declaration.files.items()}


# Which data is on this machine and can be read, and what stands in the way of the rest.

_ABSENT = (errno.ENOENT, errno.ENOTDIR)


def is_here(declaration: Declaration, cache: Cache) -> bool:
    """Tell whether the data is on this machine and can be read, without verifying what it holds."""
    return _is_readable(declaration.copies(cache))


def _is_readable(needed: list[list[Path]]) -> bool:
    return all(None in map(_unreadable, copies) for copies in needed)


def obstacle(declaration: Declaration, cache: Cache) -> str:
    """Return which file of the data is there and cannot be read, and what to do; empty if there is none.

    A file of which another folder of the cache has a readable copy is no obstacle.
    """
    for copies in declaration.copies(cache):
        reasons = [_unreadable(path) for path in copies]
        found = [reason for reason in reasons if reason]
        if found and None not in reasons:
            return f"{found[0]}; make it readable, or remove it and run trimbench task=fetch"
    return ""


def _unreadable(path: Path) -> str | None:
    """Return why a file cannot be read: None if it can, an empty text if it is not there."""
    try:
        with path.open("rb"):
            return None
    except OSError as error:
        if error.errno not in _ABSENT:
            return f"{path} cannot be read ({error.strerror})"
        return f"{path} is a link to a file that does not exist" if path.is_symlink() else ""
