"""Two fields, padded along one axis and weighted by the grid's distances: long independent strands of tasks."""

from __future__ import annotations

from typing import Any

from ..collection import queuing, stored
from ..workload import Params


def _build(p: Params) -> tuple[Any, Any]:
    import dask.array as da

    n, steps = p["n"], p["steps"]
    u = da.random.random((n, n, steps), chunks=(n, n, 1))
    v = da.random.random((n, n, steps), chunks=(n, n, 1))
    dx = da.random.random((n + 1, n), chunks=(n + 1, n))
    dy = da.random.random((n + 1, n), chunks=(n + 1, n))

    def padded(field: Any) -> Any:
        wide = da.pad(field, pad_width=[(0, 1), (0, 0), (0, 0)], mode="wrap")
        return da.rechunk(wide, chunks=[n + 1, *wide.chunks[1:]])

    return stored(dx[..., None] * padded(u) - dy[..., None] * padded(v))


WORKLOADS = [queuing("vorticity", "the vorticity of two fields of 100 steps of 8 MB", _build,
                     {"n": 1000, "steps": 100}, {"n": 100, "steps": 10})]
