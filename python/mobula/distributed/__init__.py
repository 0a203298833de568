"""A client by the names of Dask's distributed, for programs that submit functions and pass futures around.

    from mobula.distributed import Client, as_completed

    with Client() as client:
        xs = client.map(load, names)
        total = client.submit(sum, xs)          # futures are passed as their values, also inside lists and dicts
        for future, x in as_completed(xs, with_results=True):
            print(future.key, x)
        print(total.result())

It is a part of distributed's client: submit, map, gather, scatter, as_completed, wait, cancel, and in tasks secede, rejoin and
worker_client. Graphs are for mobula.dask. With
asynchronous=True it is for coroutines: what would wait is awaited, and as_completed is for async for.

    _client        the client
    _future        futures, and what those of one key share
    _as_completed  as_completed, wait and progress
    _secede        secede, rejoin and worker_client: tasks that give their place up
    _nested        futures inside lists, tuples, sets and dicts
    _keys          the keys of calls and data
"""

from ._as_completed import DoneAndNotDone, as_completed, progress, wait
from ._client import Client, get_client
from ._future import Future
from ._secede import rejoin, secede, worker_client

__all__ = ["Client", "DoneAndNotDone", "Future", "as_completed", "get_client", "progress", "rejoin", "secede", "wait", "worker_client"]
