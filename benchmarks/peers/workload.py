"""The types that a file in workloads/ uses to declare WORKLOADS, a list of Workload.

A workload's implementations do the same work, check its result, and return its figures. They run in a child process whose
Python has the system's packages, so only their bodies import more than the standard library.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

Params = Mapping[str, Any]
Implementation = Callable[[Params], Mapping[str, float]]

OURS = "mobula"
PEAK = "peak memory"  # the metric of runs whose memory is sampled

# In the order of the table.
FILES = ("task_sync", "task_async", "tasks_100k", "chain", "tree", "actor_sync", "actor_async", "actor_many", "actor_create",
         "many_clients", "put_small", "get_small", "put_large", "get_large", "get_refs", "wait_1000", "cold_start", "idle_memory", "broadcast",
         "dask_tasks", "set_index", "dot", "basic_sum", "anom_mean", "double_diff", "vorticity", "dataframe_align", "session_of_eight",
         "remote_task_sync", "remote_task_async", "transfer", "after_node_kill", "actor_messages")


@dataclass(frozen=True)
class Metric:
    """A figure of a workload."""

    name: str
    unit: str
    more_is_better: bool = False
    wants: Mapping[str, float] = field(default_factory=dict)  # targets by system: how many times better Mobula should be
    at_most: float | None = None  # target: the largest acceptable figure

    def better(self, ours: float, theirs: float) -> float:
        """How many times better Mobula's figure is."""
        good, bad = (ours, theirs) if self.more_is_better else (theirs, ours)
        return good / bad if bad else float("inf")


@dataclass(frozen=True)
class Workload:
    name: str
    what: str
    metrics: tuple[Metric, ...]
    systems: Mapping[str, Implementation]  # by name, PROJECT or PROJECT-VARIANT; not every project has every workload
    full: Params = field(default_factory=dict)
    quick: Params = field(default_factory=dict)  # parameters that differ in a quick run, which only shows that the workload works
    peak: Metric | None = None  # the metric of memory, which is sampled in separate runs
    timeout: float = 300.0  # seconds for one run
    group: str = ""  # a name for several workloads
    native: bool = False  # its systems are parts of a program of Go (native.py): they need no project's environment


def project(system: str) -> str:
    """The project in whose environment a system runs."""
    return system.partition("-")[0]


def load(files: tuple[str, ...] = FILES) -> list[Workload]:
    """The workloads of the files, in order."""
    return [w for f in files for w in importlib.import_module(f"{__package__}.workloads.{f}").WORKLOADS]
