"""Bayesian networks as inputs of experiments: how they are declared, fetched and loaded, and their classifiers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from trimbench.networks.values import names_text, normalised
from trimbench.reproduction.data.cache import Cache, Positive, Share, Text
from trimbench.reproduction.data.declarations import is_here
from trimbench.reproduction.data.downloads import (
    FileDeclaration,
    check_one_given,
    copies_of,
    existing,
    fetch_file,
    find_file,
)
from trimbench.reproduction.data.errors import DeclarationError, FactsMismatch
from trimbench.reproduction.execution.store import note_road
from trimbench.reproduction.files import NotDataError, read_bytes
from trimbench.reproduction.messages import some
from trimbench.reproduction.settings import ConfigurationError, must_be, settings, validated
from trimbench.reproduction.vocabulary.cells import Input, Inputs, check_unchanged
from trimbench.trimming.classifier import BayesianClassifier

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
        check_one_given("path", self.path, "files", self.files)
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
                states = names_text(model.states(node))
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

    def hash(self, cache: Cache) -> str:
        """Return the hash of the figures or files."""
        return self.sha256

    def fetch(self, cache: Cache, *, verify: bool | None) -> str:
        """Fetch the files, and compare figures with those they were read from: with `verify` all, else those here."""
        self.paths(cache)
        if not isinstance(self.source, Figures):
            return "verified"
        load_network(self, cache)
        where = cache if verify else dataclasses.replace(cache, offline=True)
        compared = verify is not None and compare_with_files(self, where)
        return f"{self.where}, equal to its files to the last bit" if compared else self.where

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


# Networks as inputs of jobs.


def network_input(inputs: Inputs, name: str, *, evidence: bool = False) -> Input:
    """Return a network as an input, without its evidence file unless that is asked for.

    With it, the input has a name of its own: an experiment may take both, and only one of them may be available.

    Raises
    ------
    DataUnavailable
        When it is the user's own file and cannot be read.
    ValueError
        When evidence is asked for and none is declared.
    """
    declared = dict(inputs.declared("network", name))
    files = declared.get("files")
    has_evidence = isinstance(files, Mapping) and "evidence" in files
    if evidence and not has_evidence:
        raise ValueError(f"network {name!r} must be declared with an evidence file (files.evidence), got none")
    if isinstance(files, Mapping) and has_evidence and not evidence:
        declared["files"] = {role: file for role, file in files.items() if role != "evidence"}
    if evidence:
        name = f"{name} with evidence"
    return Input("network", name, declared, declare_network(name, declared).sha256)


def classifier_input(inputs: Inputs, name: str) -> Input:
    """Return a network that is declared as a classifier as an input; raise ConfigurationError for any other."""
    network = network_input(inputs, name)
    if not {"target", "positive"} <= network.declared.keys():
        known = ", ".join(inputs.catalogue.choices("with a class, in conf/network"))
        raise ConfigurationError(
            f"networks must have a `target` and a `positive` in their declarations, as {known} do, got {name!r}"
        )
    return network


def network_of(network: Input) -> DeclaredNetwork:
    """Return the network of an input that a job received as a parameter, as `dataset_of` does for a data set."""
    declaration = declare_network(network.name, network.declared)
    loaded = load_network(declaration, Cache.from_environment(offline=True))
    check_unchanged(network, declaration.sha256)  # which is of the file as it is now, after it was read
    note_road(network.sha256, declaration.where)
    return loaded


def classifier_of(
    network: Input, threshold: float, target: str | None = None, positive: str | None = None
) -> BayesianClassifier:
    """Return the classifier of a network input, with its declared class or another one; ValueError if it has none."""
    loaded = network_of(network)
    target, positive = target or loaded.target, positive or loaded.positive
    if target is None or positive is None:
        raise ValueError(
            f"network {network.name!r}: `target` and `positive` must be declared, or set, to make it a "
            f"classifier; its nodes are {', '.join(loaded.nodes[:20])}{', ...' if len(loaded.nodes) > 20 else ''}"
        )
    features = loaded.features_without(target)
    return BayesianClassifier(
        loaded.model, target, positive=positive, features=features, threshold=threshold, evidence=loaded.evidence
    )
