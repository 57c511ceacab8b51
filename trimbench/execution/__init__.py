"""Jobs, the store of their records, and the executors that run them."""

from trimbench.execution.executors import (
    EXECUTOR_KINDS,
    Executor,
    ProcessExecutor,
    SerialExecutor,
    make_executor,
)
from trimbench.execution.functions import code_version, job_function
from trimbench.execution.job import Job, run_job_function
from trimbench.execution.run import CACHE_MODES, run_jobs
from trimbench.execution.seeds import generator_for, seed_for
from trimbench.execution.store import JobStore, Record

__all__ = [
    "CACHE_MODES",
    "EXECUTOR_KINDS",
    "Executor",
    "Job",
    "JobStore",
    "ProcessExecutor",
    "Record",
    "SerialExecutor",
    "code_version",
    "generator_for",
    "job_function",
    "make_executor",
    "run_job_function",
    "run_jobs",
    "seed_for",
]
