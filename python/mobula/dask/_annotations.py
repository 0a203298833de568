"""What is said of tasks: annotations of layers (dask.annotate), and arguments of compute.

Read are priority, retries and resources, as Dask's distributed scheduler reads them, and ray_remote_args (or remote_args), a dict of a task's options
as mobula.remote takes them. An annotation goes before an argument of compute. workers and allow_other_workers name machines, of which there is
one; anything else is the user's own.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .._graphs import Note
from ..exceptions import InvalidError
from ._plan import Key

_OPTIONS = ("num_cpus", "num_gpus", "memory", "resources", "max_retries", "retry_exceptions")
_REMOTE = ("ray_remote_args", "remote_args")


class Notes:
    """By key, what is said of its task."""

    def __init__(self, general: Optional[Note], by_key: Mapping[Key, Note]) -> None:
        self._general = general
        self._by_key = by_key

    def of(self, key: Key) -> Optional[Note]:
        return self._by_key.get(key, self._general)

    def alike(self, a: Key, b: Key) -> bool:
        """Whether the same is said of two tasks."""
        x, y = self.of(a), self.of(b)
        return x is y or x == y


def notes_of(dsk: Any, kwargs: Mapping[str, Any]) -> Optional[Notes]:
    """What a graph's annotations and the arguments of compute say; None: nothing."""
    if "resources" in kwargs:
        raise ValueError("compute(resources=...) would be said of every task and of none in particular: use dask.annotate(resources=...) around "
                         "what it is for, or compute(remote_args={'resources': ...})")
    general: Optional[Note] = None
    for name in _REMOTE:
        if kwargs.get(name) is not None:
            general = general or Note()
            _options(general, kwargs[name], f"compute({name}=...)")
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
    for kind in (*_REMOTE, "priority", "retries", "resources"):
        for key, value in by_kind.get(kind, {}).items():
            note = notes.get(key)
            if note is None:
                note = notes[key] = Note() if general is None else general.copy()
            where = f"the annotation {kind} of {key!r}"
            if kind in _REMOTE:
                _options(note, value, where)
            elif kind == "resources":
                note.resources = _resources(value, where)
            else:
                setattr(note, kind, int(_number(value, where)))
    return Notes(general, notes) if notes or general is not None else None


def _options(note: Note, given: Any, where: str) -> None:
    if not isinstance(given, Mapping):
        raise InvalidError(f"{where} is {given!r}: give a dict of options")
    for name, value in given.items():
        what = f"{where}: {name}"
        if name == "num_cpus":
            note.cpu = _number(value, what)
        elif name == "num_gpus":
            note.resources = {**note.resources, "GPU": _number(value, what)}
        elif name == "memory":
            note.resources = {**note.resources, "memory": _number(value, what)}
        elif name == "resources":
            note.resources = {**note.resources, **_resources(value, what)}
        elif name == "max_retries":
            note.failures = int(_number(value, what)) + 1
        elif name == "retry_exceptions":
            note.retries = max(note.retries, note.failures - 1) if value else 0
        else:
            raise InvalidError(f"{where} has no option {name!r}; it has {', '.join(_OPTIONS)}")


def _number(x: Any, where: str) -> float:
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise InvalidError(f"{where} is {x!r}: give a number")
    return float(x)


def _resources(value: Any, where: str) -> Mapping[str, float]:
    if not isinstance(value, Mapping):
        raise InvalidError(f"{where} is {value!r}: give a dict of names and amounts")
    return {str(name): _number(n, f"{where}: {name}") for name, n in value.items()}
