"""get_sync: Dask's scheduler interface, in this process."""

from __future__ import annotations

from typing import Any

from ._delayed import culled
from ._here import here
from ._observe import observed
from ._plan import flat_keys, nested, plan


def get_sync(dsk: Any, keys: Any, **kwargs: Any) -> Any:
    """Computes in this process, one task after the other: for a debugger. References in the graph are fetched. Callbacks are called as get calls
    them: those that are given references get some of results that are put for that, and postsubmit_all is called in the end."""
    dsk = culled(dsk)
    watching, result = observed(dsk, keys, kwargs, here)
    if watching:
        return result
    return nested(keys, here(plan(dsk, keys), dsk, flat_keys(keys)))
