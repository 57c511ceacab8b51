"""Jobs, the store of their records, and the executors that run them."""

from trimbench.papers.execution.executors import Executor, SerialExecutor
from trimbench.papers.execution.functions import code_version, job_function
from trimbench.papers.execution.job import Job, run_job_function
from trimbench.papers.execution.process_pool import ProcessExecutor
from trimbench.papers.execution.run import CACHE_MODES, run_jobs
from trimbench.papers.execution.seeds import generator_for, seed_for
from trimbench.papers.execution.store import JobStore, Record

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
