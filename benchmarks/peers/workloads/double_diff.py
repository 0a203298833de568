"""The difference of two arrays, one of them shifted. A block of the result needs four blocks of each."""

from __future__ import annotations

from typing import Any

from ..collection import queuing, stored
from ..workload import Params


def _build(p: Params) -> tuple[Any, Any]:
    import dask.array as da

    n, block = p["blocks"] * p["block"], p["block"]
    a = da.random.random((n, n), chunks=(block, block))
    b = da.random.random((n, n), chunks=(block, block))
    return stored(a[1:, 1:] - b[:-1, :-1])


WORKLOADS = [queuing("double-diff", "the shifted difference of two arrays of 12 x 12 blocks of 8 MB", _build,
                     {"blocks": 12, "block": 1000}, {"blocks": 4, "block": 100})]
