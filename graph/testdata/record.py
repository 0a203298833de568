"""Records the graphs of Dask's queuing benchmarks as Dask makes them.

    python3.11 -m venv v
    v/bin/pip install dask[array,dataframe]==2026.8.0 xarray==2026.9.0 numpy==2.4.6 pandas==3.1.1 pyarrow==26.0.1
    v/bin/python record.py [directory]

What is recorded beside this file was made with these versions. Keys hold random tokens, by which dask.order breaks ties: a
recording made again is the same graph, in an order that may differ a little.

The five computations are those of tests/benchmarks/test_array.py and test_dataframe.py of the repository
coiled/benchmarks, by which withholding of root tasks was judged. Of each task it keeps: key, dependencies, group
(distributed's key_split_group), data_producer, the place dask.order gives, bytes of the result, microseconds.

Bytes: the graph is executed once with chunks that are smaller along the long axes by a known factor, and every
result's shape is scaled back. Durations are a model, so that a recording does not depend on the machine: a
producer makes `rate` bytes a second, any other task reads and writes 2 GB/s, and each takes a millisecond on top.
A result that is a view of its only input takes the millisecond alone. Data frames are read at 100 MB/s, arrays at 1 GB/s.
"""

import gzip
import json
import os
import re
import sys

import dask
import dask.array as da
import numpy as np
import pandas as pd
from dask._task_spec import DataNode, convert_legacy_graph
from dask.base import collections_to_expr
from dask.order import order
from dask.utils import key_split

GB = 1e9


class DevNull:
    def __setitem__(self, key, value):
        pass


def to_devnull(arr):
    return da.store(arr, DevNull(), lock=False, compute=False)


def anom_mean():
    """1560 steps of 10 MiB in 39 groups of 40; the benchmark has 39 of 100. Scaled along x by 1000."""
    import xarray as xr

    n, groups = 1560, 39
    data = da.random.random((n, 1310), chunks=(1, 1310))
    arr = xr.DataArray(data, dims=["time", "x"], coords={"day": ("time", np.arange(n) % groups)})
    with xr.set_options(use_flox=False):
        clim = arr.groupby("day").mean(dim="time")
        anom = arr.groupby("day") - clim
        return [anom.mean(dim="time")], lambda shape: [d * 1000 if d == 1310 else d for d in shape], GB


def basic_sum():
    """4096 thin chunks of 100 MiB, as the benchmark; scaled along the column by 10000."""
    data = da.zeros((1310, 4096), chunks=(1310, 1))
    return [da.sum(data, axis=1)], lambda shape: [d * 10000 if d == 1310 else d for d in shape], GB


def double_diff():
    """22 x 22 chunks of 20 MiB, twice; scaled by 10 along both axes."""
    n = 22 * 162
    a = da.random.random((n, n), chunks=(162, 162))
    b = da.random.random((n, n), chunks=(162, 162))
    return [to_devnull(a[1:, 1:] - b[:-1, :-1])], lambda shape: [d * 10 if d > 16 else d for d in shape], GB


def vorticity():
    """350 chunks of 5000 x 5000, twice, as the benchmark; scaled by 100 along both axes."""
    shape = (50, 50, 350)
    u = da.random.random(shape, chunks=(50, 50, 1))
    v = da.random.random(shape, chunks=(50, 50, 1))
    dx = da.random.random((51, 50), chunks=(51, 50))
    dy = da.random.random((51, 50), chunks=(51, 50))

    def pad_rechunk(arr):
        padded = da.pad(arr, pad_width=[(0, 1), (0, 0), (0, 0)], mode="wrap")
        chunks = list(padded.chunks)
        chunks[0] = 51
        return da.rechunk(padded, chunks=chunks)

    result = dx[..., None] * pad_rechunk(u) - dy[..., None] * pad_rechunk(v)
    return [to_devnull(result)], lambda shape: [d * 100 if d >= 50 else d for d in shape], GB


def dataframe_align():
    """707 and 354 partitions of 55 MiB, as the benchmark; scaled along the rows by 100."""
    from dask.datasets import timeseries

    def frame(start, parts):
        end = pd.Timestamp(start) + pd.Timedelta("12h") * parts
        return timeseries(start=start, end=str(end), freq="60s", partition_freq="12h",
                          dtypes={str(i): float for i in range(100)}, seed=1)

    df, df2 = frame("2020-01-01", 707), frame("2010-01-01", 354)
    return [(df2 - df).mean()], 100, 0.1 * GB


def group_of(key):
    if isinstance(key, tuple):
        return str(key[0])
    if re.fullmatch("[a-f0-9]{32}", key):
        return "data"
    return key_split(key)


def sizeof(value, scale):
    if isinstance(value, np.ndarray) and callable(scale):
        return int(np.prod(scale(value.shape), dtype=float) * value.dtype.itemsize)
    if isinstance(value, dict):
        return sum(sizeof(v, scale) for v in value.values())
    if isinstance(value, (list, tuple)):
        return sum(sizeof(v, scale) for v in value)
    if isinstance(value, (pd.DataFrame, pd.Series)):
        whole = int(value.memory_usage(deep=True, index=True).sum() if value.ndim == 2 else value.memory_usage(deep=True))
        return whole * (scale if len(value) > 150 else 1)
    return 64


def is_view(value, inputs):
    return len(inputs) == 1 and isinstance(value, np.ndarray) and isinstance(inputs[0], np.ndarray) and np.shares_memory(value, inputs[0])


def record(name, build, out):
    collections, scale, rate = build()
    expr = collections_to_expr(collections).optimize()
    graph = convert_legacy_graph(expr.__dask_graph__())
    wanted = [k for k in dask.core.flatten(expr.__dask_keys__())]
    deps = {k: set(v.dependencies) & set(graph) for k, v in graph.items()}
    keep, todo = set(), list(wanted)
    while todo:
        k = todo.pop()
        if k not in keep:
            keep.add(k)
            todo.extend(deps[k])
    graph = {k: v for k, v in graph.items() if k in keep}
    rank = order(graph)
    keys = sorted(graph, key=rank.__getitem__)
    index = {k: i for i, k in enumerate(keys)}
    users = {k: 0 for k in keys}
    for k in keys:
        for d in deps[k]:
            users[d] += 1

    values, size, micros = {}, {}, {}
    for k in keys:
        node = graph[k]
        inputs = [values[d] for d in deps[k]]
        values[k] = node({d: values[d] for d in deps[k]})
        size[k] = sizeof(values[k], scale)
        if isinstance(node, DataNode):
            t = 1e-4
        elif is_view(values[k], inputs):
            t = 1e-3
        elif not deps[k]:
            t = 1e-3 + size[k] / rate
        else:
            t = 1e-3 + (size[k] + sum(size[d] for d in deps[k])) / (2 * GB)
        micros[k] = int(t * 1e6)
        for d in deps[k]:
            users[d] -= 1
            if users[d] == 0:
                del values[d]

    groups = sorted({group_of(k) for k in keys})
    number = {g: i for i, g in enumerate(groups)}
    data = {
        "name": name,
        "groups": groups,
        "keys": [str(k) for k in keys],
        "group": [number[group_of(k)] for k in keys],
        "deps": [sorted(index[d] for d in deps[k]) for k in keys],
        "producer": [index[k] for k in keys if getattr(graph[k], "data_producer", False)],
        "order": [rank[k] for k in keys],
        "wanted": [index[k] for k in wanted],
        "bytes": [size[k] for k in keys],
        "micros": [micros[k] for k in keys],
    }
    path = os.path.join(out, name + ".json.gz")
    with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as f:
        f.write(json.dumps(data, separators=(",", ":")).encode())
    print(f"{name}: {len(keys)} tasks, {len(data['producer'])} producers, {len(groups)} groups, "
          f"{sum(size.values()) / 2**30:.1f} GiB made, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for build in (anom_mean, basic_sum, double_diff, vorticity, dataframe_align):
        record(build.__name__, build, out)
