"""The function that Ray calls and sends as code, so that a machine without this package can say so by name."""

from __future__ import annotations

from typing import Any


def run(jobs: bytes, terms: bytes, contents: list[Any]) -> bytes:
    """Run a task on a machine, and return its answer as bytes that can be read without trusting them."""
    import importlib
    import json
    import pickle
    import sys

    import ray

    machine = ray.get_runtime_context().get_node_id()
    # A spawned process would first run the file of its parent's __main__, which takes seconds here.
    vars(sys.modules["__main__"]).pop("__file__", None)
    try:
        # By name, because the module on that machine runs the task.
        there = importlib.import_module("trimbench.reproduction.execution.cluster_task")
        given = pickle.loads(jobs), pickle.loads(terms)
        return bytes(there.run_task(*given, machine, lambda sha256: ray.get(ray.get(contents[0])[sha256])))
    except Exception as error:  # noqa: BLE001  (another version may raise anything)
        return json.dumps({"machine": machine, "error": f"{type(error).__name__}: {error}"[:300]}).encode()
