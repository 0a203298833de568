"""Computes a climatology on chunked data: the mean by day of the year over all years, and each day's difference from it.

    python climatology.py --years 10 --grid 48

The data is generated on a grid: a yearly cycle that depends on the place, and noise of one degree. Without the mean by day of the year only the
noise is left, which the program checks.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr

import memory
import mobula
import mobula.dask

WARMEST = 200  # day of the year


def cycle(day: Any, lat: Any) -> Any:
    """The temperature of a day at a latitude, without noise. The yearly cycle grows with the distance from the equator."""
    return 15 + np.abs(lat) / 6 * np.cos(2 * np.pi * (day - WARMEST) / 365.25)


def observed(years: int, grid: int, chunk: int) -> xr.DataArray:
    """Temperatures by day, latitude and longitude, in chunks of so many days."""
    time = pd.date_range("2000-01-01", f"{1999 + years}-12-31")
    lat, lon = np.linspace(-80, 80, grid), np.linspace(0, 360, grid, endpoint=False)
    noise = da.random.default_rng(1).normal(size=(len(time), grid, grid), chunks=(chunk, grid, grid))
    temperature = xr.DataArray(noise, coords={"time": time, "lat": lat, "lon": lon}, dims=("time", "lat", "lon"), name="temperature")
    warm: xr.DataArray = temperature + cycle(temperature.time.dt.dayofyear, temperature.lat)
    return warm


def tolerance(n: int) -> float:
    """The allowed error of the standard deviation of n values of noise: five standard errors, and a little for leap years."""
    return 0.005 + 5 / math.sqrt(2 * n)


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--years", type=memory.at_least(1), default=10, help="of data (%(default)s)")
    flags.add_argument("--grid", type=memory.at_least(1), default=32, help="points in each direction (%(default)s)")
    flags.add_argument("--chunk", type=memory.at_least(1), default=100, help="days in a chunk (%(default)s)")
    flags.add_argument("--workers", type=memory.at_least(1), default=2, help="processes, one task each at a time (%(default)s)")
    flags.add_argument("--store", type=memory.parsed, default="256MiB", help="of the object store, in shared memory (%(default)s)")
    a = flags.parse_args()
    with mobula.init(num_cpus=a.workers, object_store_memory=a.store), mobula.dask.enable():
        begun = time.perf_counter()
        temperature = observed(a.years, a.grid, a.chunk).persist()
        by_day = temperature.groupby("time.dayofyear")
        climatology = by_day.mean().persist()
        anomaly = by_day - climatology
        spread, worst = da.compute(anomaly.std().data, np.abs(anomaly.groupby("time.month").mean()).max().data)
        error = climatology - cycle(climatology.dayofyear, climatology.lat)
        off = float(error.isel(dayofyear=slice(0, 365)).std().compute())  # without the 366th day, which is rare
        took = time.perf_counter() - begun
    # The mean is made of the same n values, which lowers the variance by 1/n.
    want, noise = (1 - 1 / a.years) ** 0.5, (1 / a.years) ** 0.5
    if not abs(spread - want) < tolerance(temperature.size) or not abs(off - noise) < tolerance(365 * a.grid**2) or worst > 0.5:
        raise SystemExit(f"the anomaly's spread is {spread:.3f}, want {want:.3f}; the climatology is off by {off:.3f}, want {noise:.3f}; "
                         f"a month by {worst:.3f}")
    print(f"{a.years} years on a grid of {a.grid} x {a.grid}, {memory.size(temperature.nbytes)} in {temperature.data.npartitions} chunks: {took:.1f} s")
    print(f"the anomaly's spread is {spread:.3f} degrees ({want:.3f} is right), the climatology's error {off:.3f} ({noise:.3f})")


if __name__ == "__main__":
    main()
