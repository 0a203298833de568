"""Culls graphs of delayed calls in one pass.

Each delayed call is a layer of its graph. Dask culls layer by layer and copies the set of wanted keys for each, so its time grows with the
square of the number of calls: minutes for 50,000. This module walks once from the wanted keys over all layers.
"""

from __future__ import annotations

from typing import Any, Iterable

import dask
from dask.core import flatten
from dask.delayed import optimize
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.task_spec import GraphNode


def culled(dsk: Any) -> Any:
    """Culls the delayed calls in a graph from compute. Any other graph is returned as it is."""
    parts = [dsk] if _is_graph(dsk) else list(getattr(dsk, "operands", ()))
    if not all(map(_is_graph, parts)):
        return dsk
    of_calls = [_of_calls(p) for p in parts]
    if not any(of_calls):
        return dsk
    return HighLevelGraph.merge(*(_cull(p) if calls else _optimized(p) for p, calls in zip(parts, of_calls)))


def _is_graph(part: Any) -> bool:
    """Whether a part is a graph with its collection's optimizer, and not an expression, such as a dataframe's."""
    return all(hasattr(part, name) for name in ("hlg", "low_level_optimizer", "__dask_keys__"))


def _of_calls(part: Any) -> bool:
    """Whether Dask would only cull a part, and not optimize it further."""
    return (part.low_level_optimizer is optimize and isinstance(part.hlg, HighLevelGraph) and not dask.config.get("optimization.fuse.delayed")
            and not any(layer.has_legacy_tasks for layer in part.hlg.layers.values()))


def _optimized(part: Any) -> Any:
    return part.hlg if part.low_level_optimizer is None else part.low_level_optimizer(part.hlg, part.__dask_keys__())


def _cull(part: Any) -> HighLevelGraph:
    """Keeps the same tasks and annotations as Dask's optimizer, in as few layers as possible."""
    needed = _needed(part.hlg.to_dict(), flatten(part.__dask_keys__()))
    layers, rest = {}, dict(needed)
    for name, layer in part.hlg.layers.items():
        if layer.annotations:
            layers[name] = MaterializedLayer({k: rest.pop(k) for k in layer if k in needed}, annotations=layer.annotations)
    layers[f"calls-{id(part)}"] = MaterializedLayer(rest)
    return HighLevelGraph(layers, {name: set() for name in layers})


def _needed(tasks: dict[Any, GraphNode], wanted: Iterable[Any]) -> dict[Any, GraphNode]:
    out: dict[Any, GraphNode] = {}
    todo = list(wanted)
    while todo:
        k = todo.pop()
        if k in tasks and k not in out:
            out[k] = tasks[k]
            todo.extend(tasks[k].dependencies)
    return out
