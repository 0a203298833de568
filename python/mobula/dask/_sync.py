"""get_sync: a Dask scheduler function that runs graphs in this process."""

from __future__ import annotations

from typing import Any

from ._delayed import culled
from ._local import run_local
from ._observe import observed
from ._plan import flat_keys, nested, plan


def get_sync(dsk: Any, keys: Any, **kwargs: Any) -> Any:
    """Computes keys of a graph in this process, one task after the other, for use with a debugger. References in the graph are fetched.

    Callbacks are called as by get. For hooks that take references, results are put into the store. postsubmit_all is called at the end.
    """
    dsk = culled(dsk)
    watching, result = observed(dsk, keys, kwargs, run_local)
    if watching:
        return result
    return nested(keys, run_local(plan(dsk, keys), dsk, flat_keys(keys)))
