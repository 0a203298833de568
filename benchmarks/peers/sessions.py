"""Starts each system in the child process, with the same CPUs, and ends it.

Mobula has Ray's names, so a workload for both is written once and gets the module, ray or mobula.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from typing import Any, Callable, ContextManager, Iterator, Mapping

GIB = 1 << 30
MIB = 1 << 20
CPUS = 2
STORE = 4 * GIB  # size of the store for small operations, which need less

Api = Callable[..., ContextManager[Any]]


@contextlib.contextmanager
def mobula(store: int = STORE, memory_limit: int = 0) -> Iterator[Any]:
    """Yields module mobula, connected to a node of its own. memory_limit: bytes of all processes and the store together; 0: none."""
    import mobula as module

    with module.init(num_cpus=CPUS, object_store_memory=store, settings={"memory-limit": memory_limit}):
        yield module


@contextlib.contextmanager
def ray(store: int = STORE) -> Iterator[Any]:
    """Yields module ray, connected to a cluster of one node."""
    import ray as module

    module.init(num_cpus=CPUS, object_store_memory=store, include_dashboard=False, log_to_driver=False,
                logging_level=logging.ERROR, _node_ip_address="127.0.0.1", _temp_dir=os.path.join(tempfile.gettempdir(), "ray"))
    try:
        yield module
    finally:
        module.shutdown()


@contextlib.contextmanager
def dask(memory_limit: int = 0, config: Mapping[str, Any] = {}) -> Iterator[Any]:
    """Yields a client of a local cluster with one single-threaded process per CPU. memory_limit: bytes of all together; 0: none."""
    import dask as module
    from distributed import Client, LocalCluster

    module.config.set({"distributed.admin.tick.limit": "60s", **config})  # not undone: workers are started with it
    with LocalCluster(n_workers=CPUS, threads_per_worker=1, processes=True, memory_limit=memory_limit // CPUS,
                      dashboard_address=":0", host="127.0.0.1", silence_logs=logging.CRITICAL,
                      local_directory=tempfile.gettempdir()) as cluster, Client(cluster) as client:
        yield client


@contextlib.contextmanager
def dask_on_mobula(store: int, memory_limit: int = 0, config: Mapping[str, Any] = {}) -> Iterator[Any]:
    """Makes Mobula compute Dask's collections, and yields the function that computes graphs."""
    import dask as module
    from mobula.dask import get

    with mobula(store, memory_limit), module.config.set({"scheduler": get, **config}):
        yield get


@contextlib.contextmanager
def dask_on_ray(store: int, config: Mapping[str, Any] = {}) -> Iterator[Any]:
    """Makes Ray compute Dask's collections, and yields the function that computes graphs."""
    import dask as module

    with ray(store):
        from ray.util.dask import ray_dask_get

        with module.config.set({"scheduler": ray_dask_get, **config}):
            yield ray_dask_get
