"""Data sets and networks that YAML declares: their checks, how they are loaded, and whether their files are here."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast
from urllib.parse import urlsplit

import numpy as np
from pydantic import Field

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.formats.ace import read_problem
from trimbench.networks.formats.parsing import MAX_PLAIN, MAX_UNPACKED
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.values import listed, normalised
from trimbench.papers.data.cache import ROADS, Cache, Positive, Share, Text
from trimbench.papers.data.dataset import Dataset, Facts, without_source
from trimbench.papers.data.downloads import FileDeclaration, check_one_of, copies_of, existing, fetch_file, find_file
from trimbench.papers.data.sources import (
    BundledSource,
    CsvSource,
    OpenMLSource,
    PackageSource,
    RSource,
    SimulatedSource,
    Source,
)
from trimbench.papers.files import NotDataError, opened, read_bytes
from trimbench.papers.validation import (
    ConfigurationError,
    DataUnavailable,
    DeclarationError,
    FactsMismatch,
    must_be,
    settings,
    some,
    validated,
    ways_out,
)

_log = logging.getLogger(__name__)
# A new kind of source is a module with its class, and its name here.
_AnySource = Annotated[
    OpenMLSource | BundledSource | CsvSource | PackageSource | RSource | SimulatedSource, Field(discriminator="kind")
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
        """Return where this machine got the rows from; empty if it does not have them."""
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
        if found := {"facts", "path", "roads"} & set(road):
            way = "put a file of your own in path of the data set itself" if "path" in found else "leave it out"
            raise ConfigurationError(f"{what}: roads.{place} must not have the key {min(found)}; {way}")
        values = {**road, "facts": mapping["facts"]}
        others.append(validated(cast("type[Source]", _AnySource), values, f"{what}, roads.{place}"))
    return DatasetDeclaration(name, source, tuple(others))


# Networks from the files that are declared for them, or as figures.

# Published networks of 200 kB expand to 35 MB.
_LONGEST = 2**26
_State = Annotated[str, must_be("one state, a text that is not empty (put it in quotes)", bool)]


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
class AceProblem:
    """A network and a classification problem in the files of ACE."""

    format: Literal["ace"]
    files: _AceFiles
    target: Text
    positive: _State
    facts: _Facts
    path: ClassVar[None] = None

    def load(self, what: str, paths: Mapping[str, Path]) -> DeclaredNetwork:
        """Read the files; ValueError if they do not hold what was declared."""
        return _load_ace(what, paths, self.target, self.positive, self.facts.features)


@settings
class Figures:
    """A naive Bayes network as figures, which are rounded: each distribution is normalised.

    `likelihoods` has, for each feature, a row P(state | class) for each state of the class; one number in place of a
    row holds for every state. `states` has the names of states that are not ``"0", "1", ...``. The figures were read
    from `files`, if there are any.
    """

    format: Literal["tables"]
    target: Text
    positive: _State
    prior: Annotated[list[Share], Field(min_length=2)]
    likelihoods: Annotated[dict[Text, list[Share | list[Share]]], Field(min_length=1)]
    states: dict[Text, list[Text]] = field(default_factory=dict)
    features: list[Text] | None = None
    files: _AceFiles | None = None
    facts: _Facts | None = None
    path: ClassVar[None] = None

    def load(self, what: str, _: Mapping[str, Path]) -> DeclaredNetwork:
        """Make the network; ValueError if the figures do not fit each other."""
        if strange := self.states.keys() - {self.target, *self.likelihoods}:
            known = some([self.target, *self.likelihoods], 20)
            raise ValueError(f"{what}: states must name the target or features, {known}, got {min(strange)!r}")
        names = {self.target: self.states.get(self.target) or _numbered(len(self.prior))}
        if len(names[self.target]) != len(self.prior):
            allowed = f"a number for each of the states {some(names[self.target], 20)}"
            raise ValueError(f"{what}: prior must have {allowed}, got {self.prior}")
        if self.positive not in names[self.target]:
            states = some(names[self.target], 20)
            raise ValueError(f"{what}: positive must be a state of {self.target!r}, {states}, got {self.positive!r}")
        tables = {}
        for name, rows in self.likelihoods.items():
            width = max((len(row) for row in rows if isinstance(row, list)), default=len(self.states.get(name, "01")))
            names[name] = self.states.get(name) or _numbered(width)
            table = [row if isinstance(row, list) else [row] * width for row in rows]
            if len(table) != len(self.prior) or any(len(row) != len(names[name]) for row in table):
                allowed = f"a row for each of the {len(self.prior)} numbers of prior, each with"
                allowed += f" {len(names[name])} numbers or one that holds for every state"
                raise ValueError(f"{what}: likelihoods.{name} must have {allowed}, got {rows}")
            tables[name] = np.array(table, dtype=np.float64)
        model = NaiveBayes(**normalised(what, self.target, np.array(self.prior, dtype=np.float64), tables, names))
        if self.facts is not None:
            _check(what, "number of features", self.facts.features, model.n_features, "figures")
        features = tuple(self.features or model.feature_names)
        _check(what, "features", sorted(features), sorted(model.feature_names), "figures")
        return DeclaredNetwork(model, self.target, self.positive, features)


def _numbered(count: int) -> list[str]:
    return [str(place) for place in range(count)]


def _load_ace(what: str, paths: Mapping[str, Path], target: str, positive: str, n_features: int) -> DeclaredNetwork:
    model = NaiveBayes.read_ace(paths["cnf"], paths["lmap"])
    problem = read_problem(paths["search"])
    for part, declared, found in (
        ("target", target, problem.target),
        ("target", target, model.class_variable),
        ("number of features", n_features, model.n_features),
        ("features", sorted(model.feature_names), sorted(problem.costs)),
    ):
        _check(what, part, declared, found)
    return DeclaredNetwork(model, target, positive, tuple(problem.costs))


@settings
class WholeNetwork:
    """A network in one file: of the user's own (`path`), or fetched, with evidence in a file beside it if there is one.

    Its features are those that are declared, or the leaves; `facts` has the number of leaves.
    """

    format: Literal["bif", "erg", "uai", "xmlbif"]
    files: _WholeFile | None = None
    path: Text | None = None
    target: Text | None = None
    positive: _State | None = None
    features: list[Text] | None = None
    evidence: dict[str, Text] = field(default_factory=dict)
    facts: _Facts | None = None

    def __post_init__(self) -> None:
        check_one_of("path", self.path, "files", self.files)
        if (self.target is None) != (self.positive is None):
            raise ValueError("give both target and positive, or neither")
        for name in self.features or ():
            if name in (self.target, *self.evidence):
                raise ValueError(f"features must be neither the target nor in evidence, got {name!r}")
        if self.target in self.evidence:
            raise ValueError(f"evidence must not be on the target, got {self.target!r}")
        if self.evidence and self.files is not None and self.files.evidence is not None:
            raise ValueError("give either evidence or files.evidence, not both")

    def load(self, what: str, paths: Mapping[str, Path]) -> DeclaredNetwork:
        """Read the file; ValueError if it does not hold what was declared."""
        path = paths["network"]
        endings = {f".{self.format}", *({".xml"} if self.format == "xmlbif" else ())}
        if Path(path.name.lower().removesuffix(".gz")).suffix not in endings:
            raise ValueError(
                f"{what}: a file of format {self.format!r} must end in {' or '.join(sorted(endings))} (and .gz), "
                f"got {path.name!r}"
            )
        # A file that is declared with its hash may become larger.
        model = BayesianNetwork.read(path, max_unpacked=MAX_UNPACKED if self.path else _LONGEST)
        target = [] if self.target is None else [self.target]
        for part, names in (("target", target), ("features", self.features or ()), ("evidence", self.evidence)):
            for name in names:
                if name not in model.nodes:
                    raise ValueError(f"{what}: {part} must be one of its nodes, {some(model.nodes, 20)}, got {name!r}")
        leaves = tuple(node for node in model.nodes if not model.children(node) and node != self.target)
        if self.facts is not None:
            _check(what, "number of features (leaves)", self.facts.features, len(leaves))
        evidence = model.read_evidence(paths["evidence"]) if "evidence" in paths else self.evidence
        for node, state in self.evidence.items():
            if state not in model.states(node):
                states = listed(model.states(node))
                raise ValueError(f"{what}: evidence on {node!r} must be one of its states, {states}, got {state!r}")
        features = self.features or (node for node in leaves if node not in self.evidence)
        return DeclaredNetwork(model, self.target, self.positive, tuple(features), evidence)


def _check(what: str, part: str, declared: object, found: object, where: str = "files") -> None:
    if declared != found:
        raise FactsMismatch(f"{what}: {part} must be {declared!r}, got {found!r} in its {where}")


_AnyNetwork = Annotated[AceProblem | Figures | WholeNetwork, Field(discriminator="format")]


@dataclass(frozen=True)
class NetworkDeclaration:
    """A named Bayesian network in files or as figures, with the class that is stated for it: its `source`."""

    name: str
    source: AceProblem | Figures | WholeNetwork

    @cached_property
    def sha256(self) -> str:
        """SHA-256 over the figures, or over the roles and hashes of the files; reads the user's own file."""
        if isinstance(self.source, Figures):
            stated = [self.source.target, self.source.prior, self.source.likelihoods, self.source.states]
            return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()
        hashes = {role: file.sha256 for role, file in self.files.items()}
        if self.source.path is not None:
            hashes["network"] = self._own_hash()
        lines = (f"{role} {sha256}\n" for role, sha256 in sorted(hashes.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def files(self) -> dict[str, FileDeclaration]:
        """The declared files, by their roles; of figures, those that they were read from."""
        files = self.source.files
        return {} if files is None else {role: file for role, file in vars(files).items() if file is not None}

    @property
    def needed(self) -> dict[str, FileDeclaration]:
        """The files without which the network cannot be read."""
        return {} if isinstance(self.source, Figures) else self.files

    @property
    def where(self) -> str:
        """Where the network comes from, in a few words."""
        if isinstance(self.source, Figures):
            return "given in its declaration"
        path = self.source.path
        return Path(path).name if path else urlsplit(next(iter(self.files.values())).url).netloc

    def road(self, cache: Cache) -> str:
        """Return where this machine got the network from; empty if it does not have it."""
        return self.where if is_here(self, cache) else ""

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return, for each file that is needed, where copies of it may be."""
        own = [] if self.source.path is None else [[Path(self.source.path)]]
        return own + [copies_of(file, cache) for file in self.needed.values()]

    def paths(self, cache: Cache) -> dict[str, Path]:
        """Return the files that are needed by their roles, fetched where necessary."""
        own = {} if self.source.path is None else {"network": self._own_file()}
        return own | {role: fetch_file(file, cache) for role, file in self.needed.items()}

    def _own_hash(self) -> str:
        try:
            return hashlib.sha256(read_bytes(self._own_file(), MAX_PLAIN)).hexdigest()
        except NotDataError as error:
            raise DeclarationError(f"network {self.name!r}: {error}") from error

    def _own_file(self) -> Path:
        return existing(f"network {self.name!r}", str(self.source.path))


def declare_network(name: str, mapping: Mapping[str, object]) -> NetworkDeclaration:
    """Check the declaration of a network: ``format`` and the keys of that format (the fields of its class).

    Raises `ConfigurationError`, which names the network and the key, if a key or its value is wrong.
    """
    return NetworkDeclaration(name, validated(cast("type[WholeNetwork]", _AnyNetwork), mapping, f"network {name!r}"))


def load_network(declaration: NetworkDeclaration, cache: Cache) -> DeclaredNetwork:
    """Fetch and read a declared network; raises ValueError if the files do not hold what was declared."""
    return declaration.source.load(f"network {declaration.name!r}", declaration.paths(cache))


def compare_with_files(declaration: NetworkDeclaration, cache: Cache) -> bool:
    """Compare a network whose probabilities are declared with its files, to the last bit.

    Returns whether there are files to compare with: those in the cache, or fetched unless it is offline. Raises
    `FactsMismatch` if anything differs.
    """
    source, what = declaration.source, f"network {declaration.name!r}"
    fetched = find_file if cache.offline else fetch_file
    paths = {role: path for role, file in declaration.files.items() if (path := fetched(file, cache)) is not None}
    if not isinstance(source, Figures) or not paths or len(paths) < len(declaration.files):
        return False
    loaded = source.load(what, {})
    found = _parts(_load_ace(what, paths, source.target, source.positive, len(loaded.features)))
    for part, stated in _parts(loaded).items():
        _check(what, part, stated, found.get(part))
    return True


def _parts(loaded: DeclaredNetwork) -> dict[str, object]:
    model = cast("NaiveBayes", loaded.model)
    tables = zip(model.feature_names, model.likelihoods, strict=True)
    return {
        "the order of features": loaded.features,
        "the prior": model.prior.tolist(),
        **{f"P({name} | {model.class_variable})": table.tolist() for name, table in tables},
    }


# From the declaration of a data set to its table.

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
    if not (cache.offline and tries):
        order = ["", *cache.roads, *ROADS]  # those that are switched off say so
        tries += [(one, cache) for one in sorted(sources, key=lambda one: order.index(one.road))]
    failures: dict[str, Exception] = {}
    for source, where in tries:
        try:
            return without_source(source.load(declaration.name, where), source.where)
        except (DataUnavailable, DeclarationError, FactsMismatch, OSError) as error:
            level = logging.INFO if isinstance(error, DataUnavailable) else logging.WARNING
            _log.log(level, "data set %s not from %s: %s", declaration.name, source.where, error)
            failures[source.where] = error
    wrong = [error for error in failures.values() if not isinstance(error, DataUnavailable | OSError)]
    if wrong:
        raise wrong[0]
    texts = [str(error) for error in failures.values()]
    whys = [text.removesuffix(f"; {ways_out([text])}") for text in texts]
    raise DataUnavailable("; ".join([*whys, ways_out(texts)]), whole=True)


# Which data is on this machine and can be read, and what stands in the way of the rest.

_ABSENT = (errno.ENOENT, errno.ENOTDIR)


def is_here(declaration: Declaration, cache: Cache) -> bool:
    """Tell whether the data is on this machine and can be read; what has a declared hash is verified."""
    return _is_readable(declaration.copies(cache))


def _is_readable(needed: list[list[Path]]) -> bool:
    return all(None in map(_unreadable, copies) for copies in needed)


def obstacle(declaration: Declaration, cache: Cache) -> str:
    """Return which file of the data exists but cannot be read, and what to do; empty if there is none.

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
        with opened(path):
            return None
    except OSError as error:
        if error.errno not in _ABSENT:
            return f"{path} cannot be read ({error.strerror})" if error.strerror else str(error)
        return f"{path} is a link to a file that does not exist" if path.is_symlink() else ""
