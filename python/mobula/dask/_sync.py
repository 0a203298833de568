"""get_sync: Dask's scheduler interface, in this process."""

from __future__ import annotations

from typing import Any

from .._api import get as fetch
from ._plan import Key, flat_keys, nested, plan


def get_sync(dsk: Any, keys: Any, **kwargs: Any) -> Any:
    """Computes in this process, one task after the other: for a debugger. References in the graph are fetched."""
    p = plan(dsk, keys)
    wanted = flat_keys(keys)
    uses: dict[Key, int] = {}
    for key in p.tasks:
        for d in {p.find(d) for d in p.nodes[key].dependencies}:
            uses[d] = uses.get(d, 0) + 1
    for k in wanted:
        uses[p.find(k)] = uses.get(p.find(k), 0) + 1
    values: dict[Key, Any] = {}

    def value(key: Key) -> Any:
        t = p.find(key)
        if t in values:
            return values[t]
        return fetch(p.given[t]) if t in p.given else p.literals[t]

    for key in p.tasks:
        node = p.nodes[key]
        values[key] = node({d: value(d) for d in node.dependencies})
        for d in {p.find(d) for d in node.dependencies}:
            uses[d] -= 1
            if not uses[d]:
                values.pop(d, None)
    return nested(keys, {k: value(k) for k in wanted})
