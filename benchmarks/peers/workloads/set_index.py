"""Sorts a generated data frame of 2 GiB by a random column. It is larger than the memory budget.

Dask's workers share the whole budget, and so do Mobula's processes and store. Mobula's and Ray's stores have at most half of it.
"""

from __future__ import annotations

import time
from typing import Any, Mapping

from .. import collection, sessions
from ..measure import expect
from ..workload import Metric, Params, Workload

ROW = 32  # bytes: four columns of eight
BUDGET = 3 * sessions.GIB // 2
BATCHES: Mapping[str, Any] = {"batch_format": "pandas", "batch_size": None}  # whole partitions


def _rows(p: Params) -> int:
    """Rows per partition."""
    return int(p["bytes"]) // ROW // int(p["partitions"])


def made(i: int, rows: int) -> Any:
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(i)
    return pd.DataFrame({"key": rng.integers(0, 1 << 62, rows), **{c: rng.random(rows) for c in "abc"}})


def summary(frame: Any) -> Any:
    """A sorted partition's number of rows, whether they are in order, and the first and last key."""
    import pandas as pd

    n = len(frame)
    return pd.DataFrame({"rows": [n], "sorted": [bool(frame.index.is_monotonic_increasing)],
                         "first": [int(frame.index[0]) if n else -1], "last": [int(frame.index[-1]) if n else -1]})


def _check(p: Params, summaries: Any) -> None:
    expect(int(summaries.rows.sum()), _rows(p) * p["partitions"])
    expect(bool(summaries.sorted.all()), True)
    full = summaries[summaries.rows > 0]
    expect(bool((full["first"].values[1:] >= full["last"].values[:-1]).all()), True)


def _build(p: Params) -> tuple[Any, Any]:
    import dask.dataframe as dd

    rows = _rows(p)
    frame = dd.from_map(made, list(range(p["partitions"])), rows=rows, meta=made(0, 0), enforce_metadata=False)
    summaries = frame.set_index("key").map_partitions(summary, meta=summary(made(0, 0).set_index("key")), enforce_metadata=False)
    return summaries, lambda result: _check(p, result)


def _ray_summary(batch: Any) -> Any:
    return summary(batch.set_index("key"))


def _ray_data(p: Params) -> Mapping[str, float]:
    with sessions.ray(p["store"]):
        import pandas as pd
        import ray.data

        ray.data.DataContext.get_current().enable_progress_bars = False
        for params in ({**p, **p["warm"]}, p):
            n, rows = params["partitions"], _rows(params)
            begun = time.perf_counter()
            frame = ray.data.range(n, override_num_blocks=n).map_batches(lambda b: made(int(b["id"].iloc[0]), rows), **BATCHES)  # noqa: B023  # it is called at once
            result = frame.sort("key").map_batches(_ray_summary, **BATCHES).take_all()
            took = time.perf_counter() - begun
            _check(params, pd.DataFrame(result).sort_values("first"))
        return {"time": took}


def _workload(partitions: int) -> Workload:
    method = "dataframe.shuffle.method"
    return Workload(
        f"set-index-{partitions}", f"set_index of 2 GiB in {partitions} partitions, in 1.5 GiB of memory",
        (Metric("time", "s", wants={"dask": 2.5, "dask-p2p": 2.5}),),
        {"mobula": collection.on_mobula(_build, {method: "tasks"}), "dask": collection.on_dask(_build, {method: "tasks"}),
         "dask-p2p": collection.on_dask(_build, {method: "p2p"}), "ray-data": _ray_data},
        {"bytes": 2 * sessions.GIB, "partitions": partitions, "memory_limit": BUDGET, "store": BUDGET // 2,
         "warm": {"bytes": 8 * sessions.MIB, "partitions": 4}},
        {"bytes": 128 * sessions.MIB, "partitions": min(partitions, 20)},
        peak=Metric("", "MiB", at_most=BUDGET / sessions.MIB), timeout=180)


WORKLOADS = [_workload(n) for n in (10, 100, 500)]
