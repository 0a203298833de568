"""A pytest plugin that runs all graphs by Dask's own `dask.multiprocessing.get`, over one pool of forked processes.

Many of Dask's tests ask for the synchronous scheduler by name, so setting Dask's configuration would change little: the plugin also replaces
every scheduler in `dask.base.named_schedulers`.

The pool has WORKERS processes. They are forked at the session's first graph and shared by all tests, because one pool per graph would take
hours. If a process dies, the pool is replaced at the next graph. A graph inside a task runs in that task's process: the pool cannot wait for
itself.

Like Mobula's plugin, it writes its counts to the file named by MOBULA_DASK_REPORT when the session ends.
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
    """An executor that counts its tasks. Only the process that has made it may use it."""

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
    """`dask.multiprocessing.get` over the session's pool, or over the pool in the arguments."""
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
