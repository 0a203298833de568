"""get: Dask's scheduler interface, on the cluster."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Optional, Sequence

import dask

from . import _payload
from ._annotations import notes_of
from ._delayed import culled
from ._observe import observed, submitted, there
from ._plan import flat_keys, nested, normal, plan
from ._rerun import failures_here, rerunning
from ._ship import collect, fusing, ship
from ._sync import get_sync
from .callbacks import given, taken


class Scheduler:
    """Dask's scheduler function. It also answers dask.persist, which asks a scheduler that can for references."""

    __name__ = "mobula.dask.get"

    def __call__(self, dsk: Any, keys: Any, **kwargs: Any) -> Any:
        """Computes keys of a graph: a key, or nested lists of keys. Of kwargs, callbacks are Dask's, mobula_callbacks (or ray_callbacks) those
        of mobula.dask.callbacks, both instead of those that are active; remote_args (or ray_remote_args) are options of the tasks, retries and
        priority as in annotations; without optimize_graph each runs by itself (compute keeps this argument to itself: there it is
        optimization.fuse.active, of Dask's configuration); with rerun_exceptions_locally one that fails runs again in this process. Others
        are for other schedulers."""
        dsk = culled(dsk)
        notes = notes_of(dsk, kwargs)
        watching, result = observed(dsk, keys, kwargs, there(kwargs, notes))
        if watching:
            return result
        p = plan(dsk, keys)
        wanted = flat_keys(keys)
        again = rerunning(kwargs)
        s = ship(p, wanted, fuse=fusing(kwargs) and not again, notes=notes)
        with failures_here(again, s, dsk):
            return nested(keys, collect(s, wanted))

    def persist(self, collections: Sequence[Any], optimize_graph: bool = True, **kwargs: Any) -> Any:
        """Starts what collections need and gives collections whose graphs hold references to the results."""
        return dask.persist(*collections, scheduler=functools.partial(references, optimize_graph=optimize_graph),
                            optimize_graph=optimize_graph, **kwargs)

    def __repr__(self) -> str:
        return "<mobula.dask.get>"

    def __reduce__(self) -> str:
        return "get"


get = Scheduler()
_payload.scheduler = get


def references(dsk: Any, keys: Any, **kwargs: Any) -> Any:
    """A scheduler that does not wait: results are references, of literals the literals. The six hooks are called as get calls them, finish with the
    references; Dask's own five, which tell of tasks that end, are not."""
    dsk = culled(dsk)
    graph = normal(dsk)
    wanted = flat_keys(keys)
    with taken(given(kwargs)) as ours:
        s = submitted(plan(graph, keys), graph, wanted, ours, fuse=fusing(kwargs), notes=notes_of(dsk, kwargs))
        result = nested(keys, {k: s.result(k) for k in wanted})
        for f in ours.of("finish"):
            f(result)
        return result


_enabled: list[_Enabled] = []


def enable(shuffle: Optional[str] = "tasks", use_shuffle_optimization: bool = True) -> contextlib.AbstractContextManager[None]:
    """Makes the cluster Dask's scheduler, until disable or, in a with statement, until its end.

    shuffle is the method of dataframes' shuffles; None leaves it. use_shuffle_optimization: a partition is split into the parts of its
    destinations at once, one task with as many results.
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
        """Settings are undone in the order opposite to theirs: later ones are made anew."""
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
    """Ends the latest enable."""
    if _enabled:
        _enabled[-1].end()


__all__ = ["Scheduler", "disable", "enable", "get", "get_sync", "references"]
