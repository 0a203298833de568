"""How each system is started in the child, with the same CPUs, and ended.

Ray and Mobula have the same names for the same things: what both can run is written once, for a module that is either.
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
STORE = 4 * GIB  # of the small operations: more than any of them needs

Api = Callable[..., ContextManager[Any]]


@contextlib.contextmanager
def mobula(store: int = STORE, memory_limit: int = 0) -> Iterator[Any]:
    """The module, connected to a node of its own; memory_limit is of all processes and the store together, 0 for none."""
    import mobula as module

    with module.init(num_cpus=CPUS, object_store_memory=store, settings={"memory-limit": memory_limit}):
        yield module


@contextlib.contextmanager
def ray(store: int = STORE) -> Iterator[Any]:
    """The module, connected to a cluster of one node."""
    import ray as module

    module.init(num_cpus=CPUS, object_store_memory=store, include_dashboard=False, log_to_driver=False,
                logging_level=logging.ERROR, _node_ip_address="127.0.0.1", _temp_dir=os.path.join(tempfile.gettempdir(), "ray"))
    try:
        yield module
    finally:
        module.shutdown()


@contextlib.contextmanager
def dask(memory_limit: int = 0, config: Mapping[str, Any] = {}) -> Iterator[Any]:
    """A client of a local cluster, a process with one thread for each CPU; memory_limit is of all together, 0 for none."""
    import dask as module
    from distributed import Client, LocalCluster

    module.config.set({"distributed.admin.tick.limit": "60s", **config})  # for good: workers are started with it
    with LocalCluster(n_workers=CPUS, threads_per_worker=1, processes=True, memory_limit=memory_limit // CPUS,
                      dashboard_address=":0", host="127.0.0.1", silence_logs=logging.CRITICAL,
                      local_directory=tempfile.gettempdir()) as cluster, Client(cluster) as client:
        yield client


@contextlib.contextmanager
def dask_on_mobula(store: int, memory_limit: int = 0, config: Mapping[str, Any] = {}) -> Iterator[Any]:
    """Dask's collections are computed by Mobula; gives the function that computes graphs."""
    import dask as module
    from mobula.dask import get

    with mobula(store, memory_limit), module.config.set({"scheduler": get, **config}):
        yield get


@contextlib.contextmanager
def dask_on_ray(store: int, config: Mapping[str, Any] = {}) -> Iterator[Any]:
    """Dask's collections are computed by Ray; gives the function that computes graphs."""
    import dask as module

    with ray(store):
        from ray.util.dask import ray_dask_get

        with module.config.set({"scheduler": ray_dask_get, **config}):
            yield ray_dask_get
