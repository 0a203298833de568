"""A client with the names of Dask's distributed, for programs that submit functions and pass futures around.

    from mobula.distributed import Client, as_completed

    with Client() as client:
        xs = client.map(load, names)
        total = client.submit(sum, xs)          # futures are passed as their values, also inside containers
        for future, x in as_completed(xs, with_results=True):
            print(future.key, x)
        print(total.result())

It has a part of distributed's client: submit, map, gather, scatter, as_completed, wait, cancel, and in tasks secede, rejoin and
worker_client. Dask graphs run by mobula.dask. With asynchronous=True the client is for coroutines: calls that would block are awaited, and
as_completed is used with async for.

    _client        Client, get_client
    _future        Future, and the state that futures of one key share
    _as_completed  as_completed, wait and progress
    _secede        secede, rejoin and worker_client
    _nested        futures in arguments, also inside containers
    _keys          keys of calls and data
"""

from ._as_completed import DoneAndNotDone, as_completed, progress, wait
from ._client import Client, get_client
from ._future import Future
from ._secede import rejoin, secede, worker_client

__all__ = ["Client", "DoneAndNotDone", "Future", "as_completed", "get_client", "progress", "rejoin", "secede", "wait", "worker_client"]
