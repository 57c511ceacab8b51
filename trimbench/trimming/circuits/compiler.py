"""Compilation of a network in a separate process, and its result.

The SDD library terminates the process on bad input and when memory runs out, and its objects cannot be passed on. So a
new interpreter compiles each network (`child`) and returns plain arrays.
"""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trimbench.trimming.circuits.diagram import Diagram
from trimbench.trimming.circuits.encoding import Encoding

GIB = 2**30
DEFAULT_MEMORY = 8 * GIB
# Exit code of a child that ran out of memory.
OUT_OF_MEMORY = 77
_WHAT_TO_DO = "use engine='auto', or give the classifier fewer features"


class CircuitError(ValueError):
    """The network could not be compiled."""


@dataclass(frozen=True, eq=False)
class Compilation:
    """A compiled network.

    Attributes
    ----------
    joint : Diagram
        Pr(c, f) and Pr(not c, f), one column each.
    n_nodes, n_elements : int
        Size of the SDD.
    seconds : tuple of float
        For compiling, reading out, and evaluating.
    peak_bytes : int
        Peak memory of the child.
    """

    joint: Diagram
    n_nodes: int
    n_elements: int
    seconds: tuple[float, float, float]
    peak_bytes: int


def compile_network(encoding: Encoding, *, timeout: float | None = None, memory: int = DEFAULT_MEMORY) -> Compilation:
    """Compile a network in a child process.

    Raises ValueError if `timeout` or `memory` is not positive, and CircuitError if time or memory runs out or the child
    dies.

    Parameters
    ----------
    timeout : float, optional
        Seconds; None sets no limit.
    memory : int
        Bytes of address space that the child may have.
    """
    if timeout is not None and not 0 < timeout < math.inf:
        raise ValueError(f"timeout must be positive seconds or None, got {timeout!r}; None sets no limit")
    if not memory >= 1:
        raise ValueError(f"memory must be a positive number of bytes, got {memory!r}")
    try:
        child = subprocess.run(
            [sys.executable, "-m", "trimbench.trimming.circuits.child", str(os.getpid()), str(int(memory))],
            input=pickle.dumps(encoding),
            capture_output=True,
            timeout=timeout,
            check=False,
            env=_child_environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise CircuitError(
            f"the circuit of the network is not compiled after timeout={timeout:g} seconds; allow more, {_WHAT_TO_DO}"
        ) from error
    said = child.stderr.decode(errors="replace").strip()
    if child.returncode == OUT_OF_MEMORY or (child.returncode and "alloc" in said.lower()):
        raise CircuitError(
            f"the circuit of the network needs more than memory={memory} bytes ({memory / GIB:.1f} GiB); allow more, "
            f"{_WHAT_TO_DO}"
        )
    if child.returncode:
        raise CircuitError(
            f"the process that compiles the network ended with exit code {child.returncode} "
            f"({said.splitlines()[-1] if said else 'it said nothing'}); {_WHAT_TO_DO}"
        )
    compilation: Compilation = pickle.loads(child.stdout)
    return compilation


def _child_environment() -> Mapping[str, str]:
    """Return an environment in which the child finds this package where the parent did."""
    package = str(Path(__file__).resolve().parents[3])
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join([package, *filter(None, sys.path)])}
