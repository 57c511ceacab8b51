"""Jobs, the store of their records, and the executors that run them."""

from trimbench.papers.execution.code_hash import code_version, job_function
from trimbench.papers.execution.here import ProcessExecutor
from trimbench.papers.execution.job import Job, generator_for, run_job_function, seed_for
from trimbench.papers.execution.run import CACHE_MODES, run_jobs
from trimbench.papers.execution.store import JobStore, Record
from trimbench.papers.execution.workers import Executor, SerialExecutor

__all__ = [
    "CACHE_MODES",
    "Executor",
    "Job",
    "JobStore",
    "ProcessExecutor",
    "Record",
    "SerialExecutor",
    "code_version",
    "generator_for",
    "job_function",
    "run_job_function",
    "run_jobs",
    "seed_for",
]
