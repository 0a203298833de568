"""The sum of an array of very many thin blocks along its rows. Root tasks' results can be reduced as soon as a few are there."""

from __future__ import annotations

from typing import Any

from ..collection import queuing
from ..measure import expect
from ..workload import Params


def _build(p: Params) -> tuple[Any, Any]:
    import dask.array as da

    zeros = da.zeros((p["rows"], p["columns"]), chunks=(p["rows"], 1))
    return da.sum(zeros, axis=1), lambda result: expect((result.shape, float(result.sum())), ((p["rows"],), 0.0))


WORKLOADS = [queuing("basic-sum", "the sum of 1,024 thin blocks of 16 MiB", _build,
                     {"rows": 1 << 21, "columns": 1024}, {"rows": 1 << 16, "columns": 64})]
