"""Job functions that the tests run, importable by spawned workers."""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from trimbench.reproduction.execution import store
from trimbench.reproduction.execution.code_hash import job_function
from trimbench.reproduction.execution.job import COUNT, NOTHING, SHARE, fields, generator_for, job, list_of
from trimbench.reproduction.execution.store import remember


class UnpicklableError(Exception):
    """Cannot be pickled, and could not be unpickled either."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")
        self.lock = threading.Lock()


class RudeError(BaseException):
    """Passes every ``except Exception``."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


@job_function
def square(x: float) -> dict[str, Any]:
    return {"x": x, "square": x * x}


@job_function
def draw(repetition: int, seconds: float = 0.0) -> dict[str, Any]:
    time.sleep(seconds)
    return {"draws": generator_for(repetition=repetition).normal(size=3).tolist(), "name": "naïve 朴素"}


@job_function
def numpy_result(n: int) -> dict[str, Any]:
    return {"n": np.int64(n), "half": np.float32(n / 2), "big": np.bool_(n > 3), "pair": (n, n)}


@job_function
def bad_result(kind: str) -> Any:
    values = {"huge": {"n": 2**63}, "longer": {"n": 10**5000}, "surrogate": {"text": ["a\udcff"]}}
    return {"list": [1], "low": {"n": -(2**63) - 1}, "nan": {"a": {"b": float("nan")}}, **values}[kind]


@job_function
def fail(kind: str) -> dict[str, Any]:
    if kind == "unpicklable":
        raise UnpicklableError("one", "two")
    if kind == "rude":
        raise RudeError("one", "two")
    if kind == "exit":
        raise SystemExit(3)
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "timeout":
        raise TimeoutError("the solver's own limit")
    if kind == "long":
        raise ValueError("x" * 100_000)
    raise ValueError(f"unlucky {kind}")


@job_function
def die(how: str, token: int = 0) -> dict[str, Any]:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(int(how))


@job_function
def sleep(seconds: float, token: int = 0) -> dict[str, Any]:
    time.sleep(seconds)
    return {"pid": os.getpid()}


@job_function
def meet(folder: str, token: int, n: int) -> dict[str, Any]:
    """Wait until n of these jobs run at the same time."""
    Path(folder, f"met-{token}").touch()
    limit = time.monotonic() + 60
    while len(list(Path(folder).glob("met-*"))) < n:
        if time.monotonic() > limit:
            raise TimeoutError("nobody came")
        time.sleep(0.01)
    return {"pid": os.getpid()}


@job_function
def announce(folder: str, token: int) -> dict[str, Any]:
    Path(folder, f"{token}.{os.getpid()}").touch()
    time.sleep(60)
    return {}


@job_function
def leave_a_mark(folder: str, token: int) -> dict[str, Any]:
    Path(folder, f"{token}.{os.getpid()}.{time.monotonic_ns()}").touch()
    while Path(folder).with_name("hold").exists():
        time.sleep(0.01)
    time.sleep(0.1)
    return {"token": token}


@job_function
def linear_algebra_threads() -> dict[str, Any]:
    import threadpoolctl

    matrix = np.ones((50, 50))
    return {
        "trace": float(np.trace(matrix @ matrix)),
        "threads": [library["num_threads"] for library in threadpoolctl.threadpool_info()],
    }


def unmarked(x: float) -> dict[str, Any]:
    return {"x": x}


@job_function
def end_the_task(folder: str, times: int) -> dict[str, Any]:
    """End the process that runs the task, and this one with it, the first few times."""
    marks = Path(folder) / f"ended-{times}"
    marks.mkdir(exist_ok=True)
    if len(list(marks.iterdir())) < times:
        (marks / str(os.getpid())).touch()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return {"times": times}


@job_function
def speak(end: str, token: int = 0, deep: bool = True) -> dict[str, Any]:
    """Write in every way there is, then end in one of several."""
    sys.stdout.write(f"printed {token}; ")
    sys.stderr.write("to stderr\n")
    warnings.warn("a warning", stacklevel=1)
    logging.getLogger("sample").warning("a log message")
    if deep:
        os.write(1, b"from C\n")
        subprocess.run([sys.executable, "-c", "print('a child')"], check=True)
    sys.stdout.write("half a line \ud800")
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if end == "rude":
        raise RudeError("one", "two")
    if end == "failed":
        raise ValueError("then it failed")
    if end == "timeout":
        time.sleep(60)
    return {}


@job_function
def speak_and_end_the_task(folder: str) -> dict[str, Any]:
    sys.stdout.write("last words")
    return end_the_task(folder, 99)


@job_function
def log_with_a_handler(token: int) -> dict[str, Any]:
    """Log through a handler that the first job of a worker leaves behind."""
    logger = logging.getLogger("sample.handler")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler())
    logger.warning("token %d", token)
    return {}


_kept: list[np.ndarray] = []


@job_function
def hold(megabytes: int, how: str, token: int = 0) -> dict[str, Any]:
    """Hold so much memory: for a moment, until the job is ended, in a child process, or until the worker ends."""
    program = f"import time; x = b'x' * {megabytes}000000; time.sleep(300)"
    if how == "in a child":
        subprocess.run([sys.executable, "-c", program], check=True)
    held = np.ones((megabytes, 125_000))
    if how == "until the job is ended":
        sys.stdout.write("held")
        time.sleep(300)
    if how == "until the worker ends":
        _kept.append(held)
        time.sleep(0.2)
    return {"pid": os.getpid()}


@job_function
def write_much(megabytes: int) -> dict[str, Any]:
    sys.stdout.writelines(["first words\n", *["x" * 1_000_000] * megabytes])
    sys.stdout.flush()
    time.sleep(0.7)  # what is written in the moment in which the file is cut may be lost
    sys.stdout.write("\nlast words")
    return {}


@job_function
def return_much(megabytes: int) -> dict[str, Any]:
    return {"text": "x" * 1_000_000 * megabytes}


@job_function
def miss_a_file(path: str) -> dict[str, Any]:
    sys.stdout.write(f"reading {path}")
    return {"text": Path(path).read_text()}


@job_function
def leave_a_file() -> dict[str, Any]:
    """Make a temporary file and leave it behind."""
    descriptor, path = tempfile.mkstemp()
    os.close(descriptor)
    return {"path": path}


@job(agreement=SHARE, budgets=list_of(COUNT), best=fields(agreement=SHARE) | NOTHING)
def declared(agreement: float) -> dict[str, Any]:
    return {"agreement": agreement, "budgets": [1], "best": None}


@job_function
def remembered(value: float) -> dict[str, Any]:
    return {"value": float(remember("sample", {}, lambda: {"values": np.array([value])})["values"][0])}


@job_function
def impatient(value: float) -> dict[str, Any]:
    """As `remembered`, in a process that soon says that it waits."""
    vars(store)["_PATIENCE_SECONDS"] = 0.2
    return remembered(value)


@job_function
def write_junk(junk: str, first: int, token: int = 0) -> dict[str, Any]:
    """Write to every open file that takes it, as a program that has mixed up its files does."""
    for descriptor in range(first, 200):
        with contextlib.suppress(OSError):
            os.set_blocking(descriptor, False)
            os.write(descriptor, bytes.fromhex(junk))
    return {}


@job_function
def start_children(folder: str, then: str, token: int = 0) -> dict[str, Any]:
    """Start processes that outlive their parents, and end in one of several ways."""
    mark = Path(folder, then)
    program = f"import os, time; open({str(mark)!r} + str(os.getpid()), 'w'); time.sleep(300)"
    again = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {program!r}])"
    subprocess.Popen([sys.executable, "-c", program])
    subprocess.run([sys.executable, "-c", again], check=True)  # its child has lost its parent
    while len(list(Path(folder).glob(f"{then}*"))) < 2:
        time.sleep(0.01)
    if then == "crashed":
        os.kill(os.getpid(), signal.SIGKILL)
    if then == "timeout":
        time.sleep(300)
    return {}


@job_function
def remove_temporary_folder(token: int) -> dict[str, Any]:
    """Remove the folder of temporary files, as a program that tidies up does, and make a file there."""
    if token == 3:
        shutil.rmtree(tempfile.gettempdir())
        return {}
    return leave_a_file()
