"""The mean anomaly of a climatology: each step minus the mean of its day of the cycle, which needs all steps of that day."""

from __future__ import annotations

from typing import Any

from ..collection import queuing
from ..measure import expect
from ..workload import Params


def _build(p: Params) -> tuple[Any, Any]:
    import dask.array as da
    import numpy as np
    import xarray as xr

    n, days, x = p["steps"], p["days"], p["x"]
    data = da.random.random((n, x), chunks=(1, x))
    steps = xr.DataArray(data, dims=["time", "x"], coords={"day": ("time", np.arange(n) % days)})
    with xr.set_options(use_flox=False):
        anomaly = steps.groupby("day") - steps.groupby("day").mean(dim="time")
    return anomaly.mean(dim="time").data, lambda result: expect((result.shape, bool(np.abs(result).max() < 1e-9)), ((x,), True))


WORKLOADS = [queuing("anom-mean", "the mean anomaly of 780 steps of 4 MiB, 39 days in the cycle", _build,
                     {"steps": 780, "days": 39, "x": 1 << 19}, {"steps": 60, "days": 6, "x": 1 << 14})]
