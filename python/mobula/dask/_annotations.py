"""Annotations of layers (dask.annotate): what they say of single tasks.

Read are priority, retries and resources, as Dask's distributed scheduler reads them. workers and allow_other_workers name machines, of which
there is one; anything else is the user's own.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .._graphs import Note
from ..exceptions import InvalidError
from ._plan import Key


def notes_of(dsk: Any) -> Optional[Mapping[Key, Note]]:
    """By key, what a graph's annotations say; None: nothing."""
    find = getattr(dsk, "__dask_annotations__", None)
    by_kind: dict[str, dict[Key, Any]] = {}
    if find is not None:
        by_kind = find()
    elif hasattr(dsk, "layers"):
        for layer in dsk.layers.values():
            for kind, value in (layer.annotations or {}).items():
                for key in layer:
                    by_kind.setdefault(kind, {})[key] = value(key) if callable(value) else value
    notes: dict[Key, Note] = {}
    for kind in ("priority", "retries", "resources"):
        for key, value in by_kind.get(kind, {}).items():
            note = notes.setdefault(key, Note())
            if kind == "resources":
                note.resources = _resources(key, value)
            else:
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    raise InvalidError(f"the annotation {kind} of {key!r} is {value!r}: give a number")
                setattr(note, kind, int(value))
    return notes or None


def _resources(key: Key, value: Any) -> Mapping[str, float]:
    if not isinstance(value, Mapping) or not all(isinstance(n, (int, float)) for n in value.values()):
        raise InvalidError(f"the annotation resources of {key!r} is {value!r}: give a dict of names and amounts")
    return {str(name): float(n) for name, n in value.items()}
