"""Eight workloads in one session, as in a notebook: three TPC-H queries on generated tables, a stencil by map_overlap, a resampling by
xarray, an array written to Zarr and read back, many small delayed calls, many futures.

Memory that one workload leaves behind counts in the peak of the next. Times and peaks are measured in separate runs, since sampling
slows the systems down unequally.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import threading
import time
from typing import Any, Callable, Mapping

from .. import collection, memory, sessions
from ..measure import expect
from ..workload import Metric, Params, Workload

SAMPLE = 0.1  # seconds
EPOCH = "1992-01-01"
DAYS = 2406  # rows of the table orders
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
LINES = 4  # items of one order
DISLIKED = 17  # query 13 leaves out every so many orders by their comment

# Columns follow from the keys by formulas, so that a check needs no join.


def _orders(keys: Any, customers: int) -> Mapping[str, Any]:
    return {"custkey": keys * 7919 % customers, "day": keys * 104_729 % DAYS}


def orders(part: int, rows: int, customers: int) -> Any:
    import numpy as np
    import pandas as pd

    keys = np.arange(part * rows, (part + 1) * rows)
    o = _orders(keys, customers)
    comments = np.where(keys % DISLIKED == 0, "the special packages make requests above the deposits", "furiously ironic accounts sleep among the deposits")
    return pd.DataFrame({"orderkey": keys, "custkey": o["custkey"], "orderdate": np.datetime64(EPOCH, "s") + o["day"] * np.timedelta64(86400, "s"),
                         "shippriority": 0, "comment": comments})


def _lines(keys: Any) -> Mapping[str, Any]:
    i = keys // LINES * 31 + keys
    return {"quantity": 1.0 + i % 50, "price": 900.0 + i % 10_007, "discount": i % 11 / 100, "tax": i % 9 / 100, "flag": i % 3, "status": i % 2,
            "ship": keys // LINES * 104_729 % DAYS + 1 + i % 121}


def lines(part: int, rows: int) -> Any:
    import numpy as np
    import pandas as pd

    keys = np.arange(part * rows, (part + 1) * rows)
    v = _lines(keys)
    return pd.DataFrame({"orderkey": keys // LINES, "quantity": v["quantity"], "extendedprice": v["price"], "discount": v["discount"],
                         "tax": v["tax"], "returnflag": np.array(["A", "N", "R"])[v["flag"]], "linestatus": np.array(["F", "O"])[v["status"]],
                         "shipdate": np.datetime64(EPOCH, "s") + v["ship"] * np.timedelta64(86400, "s")})


def customers(part: int, rows: int) -> Any:
    import numpy as np
    import pandas as pd

    keys = np.arange(part * rows, (part + 1) * rows)
    return pd.DataFrame({"custkey": keys, "mktsegment": np.array(SEGMENTS)[keys % len(SEGMENTS)]})


def _table(make: Any, p: Params, rows: int, **kwargs: int) -> Any:
    import dask.dataframe as dd

    parts = p["partitions"]
    return dd.from_map(make, list(range(parts)), rows=rows // parts, **kwargs, meta=make(0, 0, **kwargs), enforce_metadata=False)


def _day(n: int) -> Any:
    import numpy as np

    return np.datetime64(EPOCH, "s") + n * np.timedelta64(86400, "s")


def q1(p: Params, client: Any) -> Any:
    frame = _table(lines, p, p["orders"] * LINES)
    frame = frame[frame.shipdate <= _day(2400)]
    frame["paid"] = frame.extendedprice * (1 - frame.discount)
    frame["charge"] = frame.paid * (1 + frame.tax)
    by = frame.groupby(["returnflag", "linestatus"])
    return by.agg({"quantity": ["sum", "mean"], "extendedprice": ["sum", "mean"], "paid": "sum", "charge": "sum", "discount": "mean",
                   "orderkey": "count"}).compute()


def check_q1(p: Params, got: Any) -> None:
    import numpy as np

    n = quantity = 0
    for keys in np.array_split(np.arange(p["orders"] * LINES), 16):
        v = _lines(keys)
        n += int((v["ship"] <= 2400).sum())
        quantity += int(v["quantity"][v["ship"] <= 2400].sum())
    expect((len(got), int(got["orderkey"]["count"].sum()), int(got["quantity"]["sum"].sum())), (6, n, quantity))


def q3(p: Params, client: Any) -> Any:
    c = _table(customers, p, p["customers"])
    o = _table(orders, p, p["orders"], customers=p["customers"])[["orderkey", "custkey", "orderdate", "shippriority"]]
    li = _table(lines, p, p["orders"] * LINES)[["orderkey", "extendedprice", "discount", "shipdate"]]
    joined = o[o.orderdate < _day(1170)].merge(c[c.mktsegment == "BUILDING"], on="custkey").merge(li[li.shipdate > _day(1170)], on="orderkey")
    joined["revenue"] = joined.extendedprice * (1 - joined.discount)
    return joined.groupby(["orderkey", "orderdate", "shippriority"]).revenue.sum().reset_index().nlargest(10, ["revenue", "orderkey"]).compute()


def check_q3(p: Params, got: Any) -> None:
    import numpy as np

    keys = np.arange(p["orders"] * LINES)
    v, o = _lines(keys), _orders(keys // LINES, p["customers"])
    keep = (v["ship"] > 1170) & (o["day"] < 1170) & (o["custkey"] % len(SEGMENTS) == SEGMENTS.index("BUILDING"))
    revenue = np.bincount(keys[keep] // LINES, v["price"][keep] * (1 - v["discount"][keep]), p["orders"])
    expect([round(x, 2) for x in got.revenue], [round(x, 2) for x in np.sort(revenue)[::-1][:10]])


def q13(p: Params, client: Any) -> Any:
    c = _table(customers, p, p["customers"])[["custkey"]]
    o = _table(orders, p, p["orders"], customers=p["customers"])[["orderkey", "custkey", "comment"]]
    o = o[~o.comment.str.contains("special.*requests", regex=True)]
    counts = c.merge(o, on="custkey", how="left").groupby("custkey").orderkey.count()
    return counts.value_counts().compute()


def check_q13(p: Params, got: Any) -> None:
    import numpy as np

    keys = np.arange(p["orders"])
    counts = np.bincount(_orders(keys, p["customers"])["custkey"][keys % DISLIKED != 0], minlength=p["customers"])
    values, times = np.unique(counts, return_counts=True)
    expect({int(k): int(n) for k, n in got.items()}, dict(zip(values.tolist(), times.tolist())))


def overlap(p: Params, client: Any) -> Any:
    import dask.array as da

    n = p["side"]
    rows, columns = (da.arange(n, chunks=p["chunk"])[axis] for axis in ((slice(None), None), (None, slice(None))))
    x = (rows * rows + columns * columns).astype("f8")
    return x.map_overlap(_laplacian, depth=1, boundary="reflect").sum().compute()


def _laplacian(x: Any) -> Any:
    """The stencil on a block with its neighbours' edges. The result has the same shape; map_overlap trims it."""
    import numpy as np

    return np.pad(x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1], 1)


def check_overlap(p: Params, got: Any) -> None:
    n = p["side"]
    # Inside, the stencil gives 4; an edge that is reflected on itself adds -1 at 0 and -(2n-1) at n-1, on either axis.
    inside = 4.0 * n * n
    edges = 2 * n * (-1.0 - (2 * n - 1))
    expect(round(float(got)), round(inside + edges))


def resample(p: Params, client: Any) -> Any:
    import dask.array as da
    import pandas as pd
    import xarray as xr

    days, side = p["days"], p["grid"]
    values = da.arange(days, chunks=73, dtype="f8")[:, None, None] + da.zeros((days, side, side), chunks=(73, side, side))
    array = xr.DataArray(values, dims=("time", "y", "x"), coords={"time": pd.date_range("2001-01-01", periods=days)})
    return array.resample(time="MS").mean().compute()


def check_resample(p: Params, got: Any) -> None:
    import pandas as pd

    days = pd.Series(range(p["days"]), pd.date_range("2001-01-01", periods=p["days"]))
    expect(got.values[:, 1, 1].tolist(), days.resample("MS").mean().tolist())


def zarr(p: Params, client: Any) -> Any:
    import dask.array as da

    n, chunk = p["stored"], p["stored"] // 8
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "x.zarr")
        da.arange(n * n, chunks=chunk * n, dtype="f8").reshape(n, n).rechunk((chunk, chunk)).to_zarr(store)
        return da.from_zarr(store).mean().compute()


def check_zarr(p: Params, got: Any) -> None:
    expect(float(got), (p["stored"] ** 2 - 1) / 2)


def increment(x: int) -> int:
    return x + 1


def delayed(p: Params, client: Any) -> Any:
    import dask

    call = dask.delayed(increment)
    return sum(dask.compute(*[call(i) for i in range(p["delayed"])]))


def check_delayed(p: Params, got: Any) -> None:
    expect(got, p["delayed"] * (p["delayed"] + 1) // 2)


def futures(p: Params, client: Any) -> Any:
    return sum(client.gather(client.map(increment, range(p["futures"]))))


def check_futures(p: Params, got: Any) -> None:
    expect(got, p["futures"] * (p["futures"] + 1) // 2)


STEPS: Mapping[str, tuple[Callable[[Params, Any], Any], Callable[[Params, Any], None]]] = {
    "tpch 1": (q1, check_q1), "tpch 3": (q3, check_q3), "tpch 13": (q13, check_q13), "map_overlap": (overlap, check_overlap),
    "resample": (resample, check_resample), "zarr": (zarr, check_zarr), "delayed": (delayed, check_delayed), "futures": (futures, check_futures)}


class _Peak:
    """The peak memory of this process and its descendants inside a with block."""

    def __init__(self) -> None:
        self.most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while True:
            self.most = max(self.most, memory.usage(os.getpid()).total)
            if self._over.wait(SAMPLE):
                return

    def __enter__(self) -> _Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def _session(p: Params, client: Any) -> Mapping[str, float]:
    """Runs all eight, and returns the time or the peak of each. Results are checked at the end, because checks take memory too."""
    for step, check in STEPS.values():
        small = {**p, **p["warm"]}
        check(small, step(small, client))
    figures, results = {}, {}
    for name, (step, _) in STEPS.items():
        if p["peaks"]:
            with _Peak() as peak:
                results[name] = step(p, client)
            figures[name] = peak.most / sessions.MIB
        else:
            begun = time.perf_counter()
            results[name] = step(p, client)
            figures[name] = time.perf_counter() - begun
    for name, (_, check) in STEPS.items():
        check(p, results[name])
    return figures


def _imports() -> None:
    collection.imports()
    import xarray  # noqa: F401

    importlib.import_module("zarr")  # missing in the tests' environment


def _mobula(p: Params) -> Mapping[str, float]:
    _imports()
    with sessions.dask_on_mobula(sessions.STORE):
        from mobula.distributed import Client

        with Client() as client:
            return _session(p, client)


def _dask(p: Params) -> Mapping[str, float]:
    _imports()
    with sessions.dask() as client:
        return _session(p, client)


SMALL: Params = {"orders": 4000, "customers": 400, "partitions": 4, "side": 400, "chunk": 200, "days": 365, "grid": 8, "stored": 160,
                 "delayed": 200, "futures": 200}
FULL: Params = {"orders": 750_000, "customers": 75_000, "partitions": 8, "side": 8000, "chunk": 1000, "days": 1460, "grid": 180,
                "stored": 4000, "delayed": 50_000, "futures": 10_000, "warm": SMALL}
WANTED = 1 / 1.05  # times
PEAKS = 1 / 1.1


def _workload(name: str, what: str, peaks: bool) -> Workload:
    metrics = tuple(Metric(s, "MiB" if peaks else "s", wants={"dask": PEAKS if peaks else WANTED}) for s in STEPS)
    return Workload(name, what, metrics, {"mobula": _mobula, "dask": _dask}, {**FULL, "peaks": peaks}, SMALL, timeout=1800)


WORKLOADS = [_workload("session", "eight workloads in a row in one session: the time of each", False),
             _workload("session-memory", "the same, sampled: the peak of each", True)]
