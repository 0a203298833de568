"""The sum of a matrix times its own transpose. Many tasks need each block, and there are many intermediate blocks."""

from __future__ import annotations

from typing import Any

from .. import collection, sessions
from ..measure import expect
from ..workload import Metric, Params, Workload


def _build(p: Params) -> tuple[Any, Any]:
    import dask.array as da

    n = p["rows"]
    a = da.random.random((n, n), chunks=(p["block"], p["block"]))

    def check(result: float) -> None:  # n*n sums of n products of two uniform numbers; the diagonal is neglected
        expect(abs(result / (n ** 3 / 4) - 1) < 0.05, True)

    return (a @ a.T).sum(), check


SMALL: Params = {"rows": 1000, "block": 250}

WORKLOADS = [Workload(
    "dot", "(A @ A.T).sum() of 8,000 x 8,000 in blocks of 1,000 x 1,000", (Metric("time", "s"),),
    {"mobula": collection.on_mobula(_build), "dask": collection.on_dask(_build), "ray-dask": collection.on_ray(_build)},
    {"rows": 8000, "block": 1000, "store": 6 * sessions.GIB, "warm": SMALL}, SMALL, peak=Metric("", "MiB"))]
