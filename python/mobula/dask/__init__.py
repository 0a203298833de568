"""Runs Dask graphs on Mobula.

    import dask, mobula, mobula.dask

    mobula.init()
    with mobula.dask.enable():                # or dask.config.set(scheduler=mobula.dask.get)
        x.compute()
        y = x.persist()                       # the graph of y holds references

A graph is shipped to the node once. From then on the node schedules its tasks, which run in worker processes. Dask needs nothing but a
scheduler function: get.
"""

from __future__ import annotations

from ._get import disable, enable, get, get_sync
from .callbacks import Callback, MobulaDaskCallback, ProgressBar, RayDaskCallback

__all__ = ["Callback", "MobulaDaskCallback", "ProgressBar", "RayDaskCallback", "disable", "enable", "get", "get_sync"]
