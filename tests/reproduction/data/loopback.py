"""A server on 127.0.0.1 that answers like OpenML (and like a plain file host), with faults on demand."""

import gzip
import hashlib
import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd

DATASET_ID = 40
ARFF_PATH = f"/data/v1/download/{DATASET_ID}/toy.arff"
PARQUET_PATH = f"/datasets/0000/{DATASET_ID:04d}/dataset_{DATASET_ID}.pq"
FILE_PATH = "/plain/table.csv"
FILE_BODY = b"a,b,label\n1,x,yes\n2,y,no\n"

# An identifier, columns that the server wants ignored, and labels that are not in alphabetical order.
ARFF = """@relation toy
@attribute row INTEGER
@attribute size REAL
@attribute colour {red,green,blue}
@attribute flag {TRUE,FALSE}
@attribute note {a,b}
@attribute selector {2,1}
@data
1,0.5,red,TRUE,a,1
2,1.5,?,FALSE,a,2
3,?,blue,TRUE,b,2
4,-2.25,green,FALSE,b,1
"""

_FEATURES = [
    (name, "nominal" if "{" in kind else "numeric", kind.strip("{}").split(",") if "{" in kind else ())
    for name, kind in re.findall(r"@attribute (\w+) (\S+)", ARFF)
]


def parquet_bytes() -> bytes:
    """The table of `ARFF` as another writer might have stored it: other widths, labels as plain text."""
    table = pd.DataFrame(
        {
            "row": pd.array([1, 2, 3, 4], dtype="int16"),
            "size": pd.array([0.5, 1.5, float("nan"), -2.25], dtype="float32"),
            "colour": pd.Categorical(["red", None, "blue", "green"], categories=["blue", "green", "red"]),
            "flag": [True, False, True, False],
            "note": ["a", "a", "b", "b"],
            "selector": pd.array([1, 2, 2, 1], dtype="uint8"),
        }
    )
    stream = io.BytesIO()
    table.to_parquet(stream, index=False)
    return stream.getvalue()


def _features_xml() -> str:
    parts = []
    for index, (name, kind, values) in enumerate(_FEATURES):
        nominal = "".join(f"<oml:nominal_value>{value}</oml:nominal_value>" for value in values)
        parts.append(
            f"<oml:feature><oml:index>{index}</oml:index><oml:name>{name}</oml:name>"
            f"<oml:data_type>{kind}</oml:data_type>{nominal}</oml:feature>"
        )
    return f'<oml:data_features xmlns:oml="http://openml.org/openml">{"".join(parts)}</oml:data_features>'


@dataclass
class Loopback:
    """What the server offers and which paths are broken in which way.

    Faults: "500" and "404" (an error page), "truncated" (half of the promised bytes), "wrong" (other bytes).
    """

    address: str
    parquet: bool = False
    checksum: bool = True
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    @property
    def api(self) -> str:
        return f"{self.address}/api/v1/xml"

    def url(self, path: str) -> str:
        return self.address + path

    def body(self, name: str) -> bytes | None:
        if name == f"/api/v1/xml/data/{DATASET_ID}":
            return self._description().encode()
        if name == f"/api/v1/xml/data/features/{DATASET_ID}":
            return _features_xml().encode()
        if name == ARFF_PATH:
            return ARFF.encode()
        if name == PARQUET_PATH and self.parquet:
            return parquet_bytes()
        return FILE_BODY if name == FILE_PATH else self.files.get(name)

    def _description(self) -> str:
        parquet = f"<oml:parquet_url>{self.url(PARQUET_PATH)}</oml:parquet_url>" if self.parquet else ""
        md5 = hashlib.md5(ARFF.encode()).hexdigest()
        checksum = f"<oml:md5_checksum>{md5}</oml:md5_checksum>" if self.checksum else ""
        return (
            '<oml:data_set_description xmlns:oml="http://openml.org/openml">'
            f"<oml:id>{DATASET_ID}</oml:id><oml:name>toy</oml:name><oml:version>3</oml:version>"
            "<oml:description>A table for tests</oml:description><oml:format>ARFF</oml:format>"
            f"<oml:url>{self.url(ARFF_PATH)}</oml:url>{parquet}{checksum}"
            "<oml:default_target_attribute>size</oml:default_target_attribute>"
            "<oml:row_id_attribute>row</oml:row_id_attribute>"
            "<oml:ignore_attribute>note</oml:ignore_attribute>"
            "<oml:ignore_attribute>selector</oml:ignore_attribute></oml:data_set_description>"
        )


def _handler(loopback: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            """Keep the output of the tests clean."""

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            loopback.requests.append(f"{self.command} {path}")
            loopback.queries.append(query)
            fault = loopback.faults.get(path)
            body = loopback.body(path)
            if fault in ("500", "404") or body is None:
                self.send_error(int(fault or 404))
                return
            if fault == "wrong":
                body = body.replace(b"1.5", b"1.6").replace(b"PAR1", b"XXXX").replace(b"yes", b"noo")
            api = path.startswith("/api/")
            body = gzip.compress(body) if api else body
            self.send_response(200)
            kind = "text/html" if path.startswith("/simple/") else "text/plain; charset=utf-8"
            self.send_header("Content-Type", "text/xml" if api else kind)
            if api:
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            # A client may have given up waiting.
            with suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(body[: len(body) // 2] if fault == "truncated" else body)

    return Handler


@contextmanager
def serve() -> Iterator[Loopback]:
    """Run the server in a thread."""
    loopback = Loopback(address="")
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(loopback)) as server:
        loopback.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield loopback
        finally:
            server.shutdown()
            thread.join()
