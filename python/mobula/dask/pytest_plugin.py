"""Runs a test session's Dask computations on Mobula: pytest -p mobula.dask.pytest_plugin

The plugin replaces every scheduler that Dask knows by name, and the configured one. As with those, persist keeps values and not references.
The session fails if there was no computation, or if the tasks that the node's scheduler reports and those that worker processes recorded
do not match.

MOBULA_DASK_CPUS: how many tasks run at once (2). MOBULA_DASK_STORE: the size of the object store in bytes (4 GiB). MOBULA_DASK_REPORT: a file
to which the session's counts are written as JSON. Such a session may be one of several: then the reader of the files has to check that there
was a computation.
"""

from __future__ import annotations

import json
import os
from typing import Any, Optional

import dask
import pytest

import mobula
from mobula import _ids, _runtime

from . import _record, _ship
from ._get import get

_NAMES = ("sync", "synchronous", "single-threaded", "threads", "threading", "processes", "multiprocessing")


def computed(dsk: Any, keys: Any, **kwargs: Any) -> Any:
    """get as a plain function, without the method persist."""
    return get(dsk, keys, **kwargs)


class Tally:
    """Counts the shipped graphs and checks what became of them."""

    def __init__(self) -> None:
        self.gets = 0
        self.graphs: list[Any] = []

    def shipped(self, s: _ship.Shipped) -> None:
        self.gets += 1
        if s.graph is not None:
            self.graphs.append((s.graph, len(s.numbers)))

    def check(self, job_dir: str) -> tuple[dict[str, int], list[str]]:
        """Returns the counts, and a list of errors."""
        done: dict[bytes, bytes] = {}
        in_driver = 0
        for pid, task, how in _record.records(job_dir):
            in_driver += pid == os.getpid()
            if done.get(task) != _record.OK:
                done[task] = how
        ran = executed = unfinished = 0
        wrong = []
        known: set[bytes] = set()
        for graph, n in self.graphs:
            derive = _ids.deriver(graph.task)
            mine = [derive(i + 1) for i in range(n)]
            known.update(mine)
            summary = graph.summary()
            if summary is None:
                unfinished += 1
                if not graph.stopped:
                    wrong.append(f"graph {graph.task.hex()}: the scheduler says nothing of its {n} tasks, and nobody stopped it")
                continue
            recorded = sum(t in done for t in mine)  # even if a task's result could not be pickled
            ran += summary["ran"]
            executed += min(recorded, summary["ran"]) if summary["failed"] else recorded  # a failed graph's tasks may run on in vain
            if recorded < summary["ran"] or (recorded > summary["ran"] and not summary["failed"]):
                wrong.append(f"graph {graph.task.hex()}: the scheduler says {summary['ran']} tasks ran and {summary['failed']} failed, "
                             f"workers wrote down {recorded}")
        # A computation inside a task is another graph of this job, which is not in the list.
        counts = {"gets": self.gets, "graphs": len(self.graphs), "tasks": ran, "executed": executed, "recorded": len(done), "nested": len(done.keys() - known),
                  "stopped": unfinished, "in_driver": in_driver}
        if in_driver:
            wrong.append(f"{in_driver} tasks ran in the process of the tests")
        return counts, wrong


class Plugin:
    def __init__(self) -> None:
        self.tally = Tally()
        self.client: Any = None
        self.report: Optional[str] = None
        self.before: Optional[dict[str, Any]] = None

    def begin(self) -> None:
        cpus, store = os.environ.pop("MOBULA_DASK_CPUS", "2"), os.environ.pop("MOBULA_DASK_STORE", str(4 << 30))
        self.report = os.environ.pop("MOBULA_DASK_REPORT", None)  # the node would refuse it as an unknown setting
        mobula.init(num_cpus=int(cpus), object_store_memory=int(store))
        self.client = _runtime.client()
        os.makedirs(os.path.join(self.client.welcome.job_dir, _record.FOLDER), exist_ok=True)
        schedulers: Any = dask.base.named_schedulers
        self.before = dict(schedulers)
        for name in _NAMES:
            schedulers[name] = computed
        dask.config.set(scheduler=computed)
        _ship.observers.append(self.tally.shipped)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.client is None:
            return
        _ship.observers.remove(self.tally.shipped)
        schedulers: Any = dask.base.named_schedulers
        schedulers.update(self.before or {})
        dask.config.set(scheduler=None)
        counts, wrong = self.tally.check(self.client.welcome.job_dir)
        if self.report:
            with open(self.report, "w") as f:
                json.dump({**counts, "wrong": wrong}, f)
        elif not counts["gets"]:
            wrong.append("no computation came to mobula.dask.get: the session says nothing about it")
        self.counts, self.wrong = counts, wrong
        if wrong:
            session.exitstatus = 1
        mobula.shutdown()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.client is None:
            return
        c = self.counts
        terminalreporter.write_line(f"mobula: {c['gets']} computations, {c['executed']} tasks in worker processes, {c['nested']} nested")
        for line in self.wrong[:10]:
            terminalreporter.write_line("mobula: " + line, red=True)


def pytest_configure(config: pytest.Config) -> None:
    plugin = Plugin()
    config.pluginmanager.register(plugin, "mobula-dask")
    if not config.option.collectonly:
        plugin.begin()
