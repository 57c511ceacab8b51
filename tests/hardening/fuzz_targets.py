"""Every reader of a file: small sound files to begin with, and what it must do with whatever they become."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa

import trimbench as tb
from tests.estimators.test_saved import small
from tests.networks import lawn_files
from tests.networks.ace_encoder import encode_ace, encode_problem, example
from tests.reproduction.data import loopback, offers
from tests.reproduction.execution import sample_jobs
from tests.reproduction.reporting import builders
from trimbench.estimators import TrimmedClassifier
from trimbench.networks.formats.ace import AceProblem, read_problem
from trimbench.papers.networks import declare_network
from trimbench.papers.own_table.table_reading import read_table
from trimbench.reproduction.commands.common_settings import SHARED_KEYS
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.declarations import declare_dataset, load_dataset
from trimbench.reproduction.data.errors import DataUnavailable
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import JobStore, KeptArrays, Record, remember
from trimbench.reproduction.files import sealed
from trimbench.reproduction.project import project
from trimbench.reproduction.reporting.figures.drawing import StoredFigure, draw, read_points
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.page import render_pages
from trimbench.reproduction.reporting.runs import check_run, described_in, read_about, read_run, write_findings
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.planning import make_experiment
from trimbench.reproduction.vocabulary.reported import Literature

CORPUS = Path(__file__).with_name("corpus")
Reader = Callable[[bytes], object]
_PROBLEM = encode_problem(AceProblem("C", 0.5, 2.5, {"A": 1.0, "B": 0.25}))


class Wrong(Exception):  # noqa: N818 - named after what was found
    """A reader took something that it must refuse."""


@dataclass(frozen=True)
class Target:
    """A reader, by a function that makes it in a folder of its own, and the errors that it may raise."""

    name: str
    sound: Callable[[], Sequence[bytes]]
    prepare: Callable[[Path], Reader]
    allowed: tuple[type[Exception], ...] = (ValueError,)

    def seeds(self) -> list[bytes]:
        """Return the sound files and those in the folder of the corpus, among them all that were findings."""
        return [*self.sound(), *(path.read_bytes() for path in sorted((CORPUS / self.name).glob("*")))]


def _file(name: str, read: Callable[[Path], object], folder: Path) -> Reader:
    path = folder / name

    def reader(content: bytes) -> object:
        path.write_bytes(content)
        return read(path)

    return reader


def _check_distributions(*tables: Any) -> None:
    for table in tables:
        if not (np.isfinite(table).all() and (table >= 0).all() and np.abs(table.sum(axis=-1) - 1).max() < 1e-9):
            raise Wrong(f"rows that sum to {table.sum(axis=-1).ravel()[:5]}")


def _check_model(model: Any) -> None:
    if isinstance(model, tb.BayesianNetwork):
        _check_distributions(*(model.table(node) for node in model.nodes))
    elif isinstance(model, tb.NaiveBayesMixture):
        _check_model(model.components)
    elif isinstance(model, tb.NaiveBayes):
        _check_distributions(model.prior, *model.likelihoods)
    else:
        _check_model(model.model)


def _network(path: Path) -> None:
    _check_model(tb.BayesianNetwork.read(path))


def _lawn(folder: Path) -> tb.BayesianNetwork:
    return tb.BayesianNetwork.read(lawn_files.write(folder, "bif", lawn_files.BIF))


def _evidence(folder: Path) -> Reader:
    network = _lawn(folder)
    return _file("lawn.evid", lambda path: network.read_evidence(path), folder)


def _ace(changed: str, folder: Path) -> Reader:
    paths = {"cnf": folder / "n.cnf", "lmap": folder / "n.lmap"}
    for path, text in zip(paths.values(), encode_ace(example()), strict=True):
        path.write_text(text)
    return _file(paths[changed].name, lambda _: _check_model(tb.NaiveBayes.read_ace(*paths.values())), folder)


def _saved(model: Any) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.json")
        model.save(path)
        return [path.read_bytes(), json.dumps(json.loads(path.read_text())).encode()]


def _naive_bayes() -> tb.NaiveBayes:
    return tb.NaiveBayes([0.25, 0.75], [[[0.5, 0.5], [0.125, 0.875]], [[1, 0, 0], [0, 0.5, 0.5]]])


def _trimmed() -> TrimmedClassifier:
    X = pd.DataFrame({"a": [0, 1, 0, 1] * 5, "b": ["x", "y", "y", "x"] * 5, "c": np.arange(20) / 7})
    return TrimmedClassifier(budget=2).fit(X, [0, 1, 1, 1] * 5)


def _models() -> list[Target]:
    classes = [
        ("naive_bayes", _naive_bayes, tb.NaiveBayes.load),
        (
            "mixture",
            lambda: tb.NaiveBayesMixture(_naive_bayes(), ["u", "v"], class_variable="k"),
            tb.NaiveBayesMixture.load,
        ),
        ("classifier", lambda: tb.BayesianClassifier(_naive_bayes(), positive="1"), tb.BayesianClassifier.load),
        ("arg_max", lambda: tb.BayesianClassifier(_naive_bayes()), tb.BayesianClassifier.load),
    ]
    found = [
        Target(f"{name}.json", lambda make=make: _saved(make()), partial(_file, "m.json", _checked(load)))  # type: ignore[misc]
        for name, make, load in classes
    ]
    network = Target(
        "network.json", lambda: _saved(_lawn(Path(tempfile.mkdtemp()))), partial(_file, "m.json", _network)
    )
    trimmed = Target("trimmed.json", lambda: _saved(_trimmed()), partial(_file, "m.json", TrimmedClassifier.load))
    return [*found, network, trimmed, *(_saved_model(place, name) for place, name in enumerate(_SAVED))]


# In the order of `small`.
_SAVED = (
    *("conformant", "conformant_covariance", "conformant_pipeline", "corrected", "corrected_gaussian", "posterior"),
    *("expected_products", "expected_gaussian", "expected_neighbours"),
)


def _saved_model(place: int, name: str) -> Target:
    def sound() -> list[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            tb.save(small()[place].model, path := Path(folder, "m.json"))
            return [path.read_bytes()]

    return Target(f"{name}.json", sound, partial(_file, "m.json", lambda path: small()[place].load(path)))


def _checked(load: Callable[[Path], Any]) -> Callable[[Path], None]:
    return lambda path: _check_model(load(path))


def _table(folder: Path) -> Reader:
    path = folder / "t.csv"
    declaration = declare_dataset("t", {"kind": "csv", "path": str(path), "target": "label"})
    cache = Cache((), folder / "cache", offline=True)
    return _file("t.csv", lambda _: load_dataset(declaration, cache), folder)


def _own_tables() -> list[bytes]:
    rows = range(12)
    frame = pd.DataFrame(
        {
            "dose": [row / 7 for row in rows],
            "ward": pd.Categorical(list("xyz") * 4),
            "day": pd.date_range("2020-01-01", periods=12),
            "n": pd.array([None, *rows[1:]], dtype="Int64"),
            "label": list("aab") * 4,
        }
    )
    written: list[bytes] = [
        frame.to_csv(index=False).encode(),
        gzip.compress(frame.to_csv(sep=";", decimal=",").encode()),
    ]
    for write in (pd.DataFrame.to_parquet, pd.DataFrame.to_feather):
        write(frame, stream := io.BytesIO())  # type: ignore[operator]
        written.append(stream.getvalue())
    texts = pa.array(["a text of its own", None, "short", "another one of them"] * 3)
    views = pa.array(texts.to_pylist(), pa.string_view())
    codes = {"code": texts.dictionary_encode(), "bytes": texts.cast(pa.binary()).dictionary_encode()}
    coded_views = pa.DictionaryArray.from_arrays(pa.array([*range(4)] * 3, pa.int8()), views[:4])
    columns = {
        "a, b": views,
        "view": pa.array([one and one.encode() for one in texts.to_pylist()], pa.binary_view()),
        **codes,
        "both": coded_views,
        "label": frame["label"],
    }
    # What is not packed shows where everything is, and can be changed there.
    for options in (pa.ipc.IpcWriteOptions(), pa.ipc.IpcWriteOptions(compression="zstd")):
        with pa.ipc.new_file(stream := io.BytesIO(), pa.table(columns).schema, options=options) as file:
            file.write_table(pa.table(columns))
        written.append(stream.getvalue())
    return written


def _r_file(folder: Path) -> Reader:
    declaration = offers.tissues(loopback.Loopback("http://127.0.0.1:1"))
    cache = Cache((), folder, offline=True)
    (folder / "files/t").mkdir(parents=True)
    return _file("files/t/tissues.rda", lambda _: load_dataset(declaration, cache), folder)


def _r_objects() -> list[bytes]:
    objects = {"tissues": {"X": offers.X, "y": offers.Y}}
    with tempfile.TemporaryDirectory() as folder:
        return [
            offers.r_file(Path(folder), objects, compression=compression, file_format=kind)
            for compression, kind in ((None, "xdr"), (None, "ascii"), ("gzip", "xdr"))
        ]


_OPENML = {
    "description.xml": offers.DESCRIPTION_PATH,
    "features.xml": offers.FEATURES_PATH,
    "dataset.arff": loopback.ARFF_PATH,
}


def _offered(name: str) -> bytes:
    if name == "dataset.pq":
        return loopback.parquet_bytes()
    return loopback.Loopback("http://127.0.0.1:1").body(_OPENML[name]) or b""


def _openml(name: str, folder: Path) -> Reader:
    place = folder / offers.FOLDER
    place.mkdir(parents=True)
    for other in _OPENML.keys() - ({"dataset.arff"} if name == "dataset.pq" else set()):
        (place / other).write_bytes(_offered(other))
    cache = Cache((folder,), folder, offline=True)
    own = f"dataset_{loopback.DATASET_ID}.pq" if name == "dataset.pq" else name
    return _file(f"{offers.FOLDER}/{own}", lambda _: load_dataset(offers.TOY, cache), folder)


def _declared(group: str, folder: Path) -> Reader:
    catalogue = Catalogue((folder,))
    (folder / group).mkdir()

    def read(path: Path) -> object:
        os.utime(path, ns=(0, next(times)))  # what was read before is known by its time
        match group:
            case "dataset":
                return declare_dataset("one", catalogue.declared("dataset", "one"))
            case "network":
                return declare_network("one", catalogue.declared("network", "one"))
            case _:
                return make_experiment("one", catalogue.mapping(group, "one"), SHARED_KEYS)

    times = iter(range(10**18))
    return _file(f"{group}/one.yaml", read, folder)


def _declarations(group: str) -> list[bytes]:
    named = b"kind: csv\npath: '${a,b}${oc.select:c d}'\na,b: x\nc d: ['${oc.select:''e[f,g]'', 1}', '${.-1}']\n"
    return [named, *(path.read_bytes() for path in sorted((project().configuration / group).rglob("*.yaml"))[:12])]


def _job() -> Job:
    return Job.create(sample_jobs.square, {"x": 3.0})


def _record() -> bytes:
    record = Record(_job(), "ok", {"x": 3.0, "square": 9.0}, None, 0.25, {"python": "3"})
    return record.to_json().encode() + b"\n"


def _store(resealed: bool, folder: Path) -> Reader:
    """A record that differs is not used; one that states the right hash all the same is used or refused."""
    store, job, whole = JobStore(folder), _job(), _record()
    store.path(job).parent.mkdir()

    def read(path: Path) -> object:
        store.glance(job)
        found = store.get(job)
        if not resealed and (found is not None) != (path.read_bytes() == whole):
            raise Wrong("a record that was changed is used" if found else "a sound record is not used")
        return found

    reader = _file(str(store.path(job).relative_to(folder)), read, folder)
    return (lambda body: reader(_sealed(body))) if resealed else reader


def _sealed(body: bytes) -> bytes:
    return b'{"sha256":"%s",' % hashlib.sha256(body.removesuffix(b"\n")).hexdigest().encode() + body


def _arrays(resealed: bool, folder: Path) -> Reader:
    """Arrays in a file that differs are computed again; so are those that no reader can take, whatever their hash."""
    values = {"values": np.arange(4.0)}

    def read(path: Path) -> None:
        os.environ["XDG_CACHE_HOME"] = str(folder)
        given, calls = path.read_bytes(), []
        found = remember("fuzzed", {}, lambda: calls.append(1) or dict(values))  # type: ignore[func-returns-value]
        if not resealed and (bool(calls) != (given != whole) or not np.array_equal(found["values"], values["values"])):
            what = "changed" if given != whole else "sound"
            raise Wrong(f"arrays that are {what} were {'computed again' if calls else 'used'}")

    path = _kept(folder)
    whole = path.read_bytes()
    reader = _file(str(path.relative_to(folder)), read, folder)
    if not resealed:
        return reader
    return lambda body: reader(sealed(body + b"-" * 16, *KeptArrays.of("fuzzed", {})))


def _kept(folder: Path) -> Path:
    """Return the file in which the arrays are kept."""
    os.environ["XDG_CACHE_HOME"] = str(folder)
    remember("fuzzed", {}, lambda: {"values": np.arange(4.0)})
    (path,) = folder.rglob("fuzzed-*.npz")
    return path


def _array_files(resealed: bool) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ):
        content = _kept(Path(folder)).read_bytes()
    return [content[: -len(b"-" * 16 + hashlib.sha256().digest())] if resealed else content]


def _write_report(folder: Path) -> dict[str, Any]:
    """Write the files of an experiment without pictures, and return what they say of it, with a picture on its page."""
    found = builders.findings(values={"a": 1.0, "b": 3.0})
    judged = builders.judged([builders.reported(row, "1") for row in "abc"], {"a": 1.0, "b": 3.0})
    write_findings(found, judged, folder, FigureSettings(), drawn=False)
    about = read_about(folder, found.stem)
    about["page"]["numbers"][0] |= {"n_jobs": 2, "jobs": "0-1"}
    picture = {"title": "A title", "picture": f"{found.stem}.png", "size": [640, 480], "points": f"{found.stem}.csv"}
    about["page"]["figures"] = [picture]
    return about


def _said(part: str = "") -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        about = _write_report(Path(folder))
        return [json.dumps(about[part] if part else about).encode()]


def _page(whole: bool, folder: Path) -> Reader:
    """What a run says of an experiment is shown and drawn again, or refused; of other folders, nothing is."""
    run = folder / "run"
    about = _write_report(run)
    (folder / "other.csv").write_text("status,job,cell\nsecret,secret,secret\n")
    rest = json.dumps({key: value for key, value in about.items() if key != "page"}).encode()

    def read(_: Path) -> None:
        for path, content in described_in(run) if whole else ():
            for one in (StoredFigure(figure, path.parent) for figure in content.get("figures", ())):
                draw(one.figure(), one.pictures[:1], one.settings)
        read_run("run", run)
        part = read_about(run, about["experiment"])["page"]
        pages = render_pages([part], Literature({}, {}), run="run", profile="paper", folder=run)
        if re.search(r"secret|(href|src)=.(\w*:|/)", "".join(text.partition("<main")[2] for text in pages.values())):
            raise Wrong("a page that shows or links to what is outside of its run")

    reader = _file(f"run/{about['experiment']}.json", read, folder)
    return reader if whole else lambda content: reader(b'%s, "page": %s}' % (rest.removesuffix(b"}"), content))


def _all() -> Mapping[str, Target]:
    texts = lawn_files.TEXTS
    targets = [
        *(
            Target(f"lawn.{end}", lambda end=end: [texts[end].encode()], partial(_file, f"n.{end}", _network))  # type: ignore[misc]
            for end in texts
        ),
        Target("lawn.bif.gz", lambda: [gzip.compress(texts["bif"].encode())], partial(_file, "n.bif.gz", _network)),
        Target("lawn.evid", lambda: [b"2 0 1 2 0\n", b"2\n1 0 1\n2 0 1 2 0\n"], _evidence),
        Target("ace.cnf", lambda: [encode_ace(example())[0].encode()], partial(_ace, "cnf")),
        Target("ace.lmap", lambda: [encode_ace(example())[1].encode()], partial(_ace, "lmap")),
        Target("ace.search", lambda: [_PROBLEM.encode()], partial(_file, "n.search", read_problem)),
        *_models(),
        Target("table.csv", lambda: [loopback.FILE_BODY, b'"a;";b;label\n 1,5;"";x\n'], _table),
        Target("own_table", _own_tables, partial(_file, "own", lambda path: read_table(path, "label"))),
        Target("tissues.rda", _r_objects, _r_file, (ValueError, DataUnavailable)),
        *(
            Target(name, lambda name=name: [_offered(name)], partial(_openml, name), (ValueError, DataUnavailable))  # type: ignore[misc]
            for name in (*_OPENML, "dataset.pq")
        ),
        *(
            Target(f"{group}.yaml", partial(_declarations, group), partial(_declared, group))
            for group in ("dataset", "network", "experiment")
        ),
        Target("record", lambda: [_record()], partial(_store, False), ()),
        Target("record.sealed", lambda: [_record().partition(b",")[2]], partial(_store, True), ()),
        Target("arrays", lambda: _array_files(resealed=False), partial(_arrays, False), ()),
        Target("arrays.sealed", lambda: _array_files(resealed=True), partial(_arrays, True), ()),
        Target(
            "points.csv",
            lambda: [b"line,x,y\na,1,2.5\nb,,nan\n", b"line,x,y,x,y,x\n", b'"a, b",line,x,y\n"c, d",a,1,2\n'],
            partial(_file, "p.csv", partial(read_points, texts=["line"])),
        ),
        Target("page.json", partial(_said, "page"), partial(_page, False), (ConfigurationError,)),
        Target("about.json", _said, partial(_page, True), (ConfigurationError, OSError)),
        Target(
            "run.json",
            lambda: [b'{"profile": "quick"}'],
            partial(_file, "run.json", lambda path: check_run(path.parent, "quick")),
        ),
    ]
    return {target.name: target for target in targets}


TARGETS = _all()
