"""Dask on Mobula: real Dask graphs, scheduled by the node.

    import dask, mobula, mobula.dask

    mobula.init()
    with mobula.dask.enable():                # or dask.config.set(scheduler=mobula.dask.get)
        x.compute()
        y = x.persist()                       # the graph of y holds references

A graph is shipped once; from then on the node's scheduler decides, in Go, and the tasks run in worker processes. Collections need
nothing but a scheduler function, and that is what get is.
"""

from __future__ import annotations

from ._get import disable, enable, get, get_sync
from .callbacks import Callback, MobulaDaskCallback, ProgressBar, RayDaskCallback

__all__ = ["Callback", "MobulaDaskCallback", "ProgressBar", "RayDaskCallback", "disable", "enable", "get", "get_sync"]
