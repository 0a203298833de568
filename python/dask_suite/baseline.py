"""A pytest plugin: Dask's own `dask.multiprocessing.get` over one pool of forked processes, by whatever name Dask is asked.

Much of Dask's suite asks for the synchronous scheduler by name, so the configuration alone changes little: every name of
`dask.base.named_schedulers` is given this `get`, and so is the configuration.

The pool has WORKERS processes, forked at the session's first graph, and is shared by all its tests, as a pool a graph would take
hours. A pool that broke, because a process died, is replaced at the next graph. A graph computed inside a task runs in that
task's process: the pool cannot wait for itself.

Like ours, it writes its counts to the file named by MOBULA_DASK_REPORT when the session ends.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from typing import Any

import dask
import dask.base
import dask.local
import dask.multiprocessing
import pytest

WORKERS = 2


class _Pool:
    """An executor that counts the tasks it is given, and that only the process which made it uses."""

    _max_workers = WORKERS  # where dask.multiprocessing.get looks for it

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.gets = self.tasks = 0
        self.executor: ProcessPoolExecutor | None = None

    def submit(self, run: Callable[..., Any], batch: list[Any]) -> Future[Any]:
        if self.executor is None:
            fork = multiprocessing.get_context("fork")
            self.executor = ProcessPoolExecutor(WORKERS, fork, dask.multiprocessing.initialize_worker_process)
        self.tasks += len(batch)
        return self.executor.submit(run, batch)

    def close(self) -> None:
        if self.executor is not None:
            self.executor.shutdown(wait=False, cancel_futures=True)
            self.executor = None


_pool = _Pool()


def get(dsk: Any, keys: Any, **kwargs: Any) -> Any:
    """`dask.multiprocessing.get` over the session's pool, or the pool that is asked for."""
    if os.getpid() != _pool.pid:
        return dask.local.get_sync(dsk, keys, **kwargs)
    _pool.gets += 1
    kwargs.setdefault("pool", dask.config.get("pool", None) or _pool)
    try:
        return dask.multiprocessing.get(dsk, keys, **kwargs)
    except BrokenExecutor:
        _pool.close()
        raise


def pytest_configure(config: pytest.Config) -> None:
    dask.base.named_schedulers.update(dict.fromkeys(dask.base.named_schedulers, get))
    dask.config.set(scheduler=get)


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = os.environ.get("MOBULA_DASK_REPORT")
    if path and os.getpid() == _pool.pid:
        counts = {"gets": _pool.gets, "tasks": _pool.tasks, "executed": _pool.tasks, "in_driver": 0}
        with open(path, "w") as f:
            json.dump(counts, f)
    _pool.close()
