"""get: a Dask scheduler function that runs graphs on the node."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Optional, Sequence

import dask

from . import _payload
from ._annotations import notes_of
from ._delayed import culled
from ._observe import observed, on_node, submitted
from ._persisted import nodes, shown
from ._plan import flat_keys, nested, normal, plan
from ._rerun import failures_rerun_locally, rerunning
from ._ship import collect, fusing, ship
from ._sync import get_sync
from .callbacks import given, taken


class Scheduler:
    """Dask's scheduler function, with the method persist, which dask.persist calls to get references."""

    __name__ = "mobula.dask.get"

    def __call__(self, dsk: Any, keys: Any, **kwargs: Any) -> Any:
        """Computes keys of a graph. keys: one key, or nested lists of keys; the results have the same shape, with tuples for lists.

        callbacks: Dask's callbacks; mobula_callbacks (or ray_callbacks): those of mobula.dask.callbacks. Each replaces the active ones.
        remote_args (or ray_remote_args): options of all tasks, as of mobula.remote. retries, priority: as in annotations.
        optimize_graph=False: runs each task by itself. (compute does not pass this argument on; set optimization.fuse.active in Dask's
        configuration instead.) rerun_exceptions_locally: runs a task that fails once more in this process. Other arguments are ignored.

        Raises the exception of a task that fails.
        """
        dsk = culled(dsk)
        notes = notes_of(dsk, kwargs)
        watching, result = observed(dsk, keys, kwargs, on_node(kwargs, notes))
        if watching:
            return result
        p = plan(dsk, keys)
        wanted = flat_keys(keys)
        again = rerunning(kwargs)
        s = ship(p, wanted, fuse=fusing(kwargs) and not again, notes=notes)
        with failures_rerun_locally(again, s, dsk):
            return nested(keys, collect(s, wanted))

    def persist(self, collections: Sequence[Any], optimize_graph: bool = True, **kwargs: Any) -> Any:
        """Starts computing collections, and returns collections whose graphs hold references to the results. Any scheduler can compute
        with them."""
        return shown(dask.persist(*collections, scheduler=functools.partial(_begun, optimize_graph=optimize_graph),
                                  optimize_graph=optimize_graph, **kwargs))

    def __repr__(self) -> str:
        return "<mobula.dask.get>"

    def __reduce__(self) -> str:
        return "get"


get = Scheduler()
_payload.scheduler = get


def references(dsk: Any, keys: Any, **kwargs: Any) -> Any:
    """A scheduler function that does not wait: its results are references, or the values of literals. The six hooks are called as by get,
    finish with the references. Dask's own five callbacks are not called, since they report tasks that end."""
    dsk = culled(dsk)
    graph = normal(dsk)
    wanted = flat_keys(keys)
    with taken(given(kwargs)) as ours:
        s = submitted(plan(graph, keys), graph, wanted, ours, fuse=fusing(kwargs), notes=notes_of(dsk, kwargs))
        result = nested(keys, {k: s.result(k) for k in wanted})
        for f in ours.of("finish"):
            f(result)
        return result


def _begun(dsk: Any, keys: Any, **kwargs: Any) -> Any:
    """A scheduler function that gives what references gives, in nodes that any scheduler can run."""
    return nodes(keys, references(dsk, keys, **kwargs))


_enabled: list[_Enabled] = []


def enable(shuffle: Optional[str] = "tasks", use_shuffle_optimization: bool = True) -> contextlib.AbstractContextManager[None]:
    """Makes get Dask's default scheduler, until disable, or until the end of a with statement.

    shuffle: the method for shuffles of dataframes; None leaves Dask's setting. use_shuffle_optimization: splits a partition for all its
    destinations in one task with several results, instead of one task per destination.
    """
    settings: dict[str, Any] = {"scheduler": get, "mobula.shuffle-optimization": use_shuffle_optimization}
    if shuffle is not None:
        settings["dataframe.shuffle.method"] = shuffle
    e = _Enabled(settings)
    e.begin()
    return e


class _Enabled(contextlib.AbstractContextManager[None]):
    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings

    def begin(self) -> None:
        self._set = dask.config.set(self._settings)
        _enabled.append(self)

    def end(self) -> None:
        """Undoes its settings. Dask's settings nest, so later ones are undone first and then set again."""
        if self not in _enabled:
            return
        later = _enabled[_enabled.index(self) + 1:]
        for e in reversed((self, *later)):
            e._set.__exit__(None, None, None)
            _enabled.remove(e)
        for e in later:
            e.begin()

    def __exit__(self, *_: Any) -> None:
        self.end()


def disable() -> None:
    """Ends the latest enable that is active. Without one it does nothing."""
    if _enabled:
        _enabled[-1].end()


__all__ = ["Scheduler", "disable", "enable", "get", "get_sync", "references"]
