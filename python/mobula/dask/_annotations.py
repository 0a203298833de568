"""Options of a graph's tasks: from annotations of layers (dask.annotate) and arguments of compute.

priority, retries and resources mean what they mean in Dask's distributed scheduler. ray_remote_args (or remote_args) is a dict of options as
mobula.remote takes them, those that choose nodes among them: label_selector, prefer_labels, node, soft and scheduling_strategy. An annotation
overrides an argument of compute. workers and allow_other_workers name processes of Dask's, of which there are none: they change nothing. Other
annotations are ignored.

retries is a limit for the task's own errors; workers that die of it are counted apart. It overrides retry_exceptions. With retry_exceptions both
count together, up to max_retries. Without max_retries three of the task's own errors are retried, and the graph's limit for dying
workers applies.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .. import _options, _runtime
from .._graphs import Note, conditions
from .._refs import ObjectRef
from .._wire.messages import AFFINITY_NONE
from ..exceptions import InvalidError
from ._plan import Key

_AMOUNTS = {"num_cpus", "num_gpus", "memory", "resources", "timeout"}
_OTHERS = {"max_retries", "retry_exceptions", "scheduling_strategy", "isolated", "label_selector", "prefer_labels", "node", "soft"}
_REMOTE = ("ray_remote_args", "remote_args")
_ALL = (*_REMOTE, "priority", "retries")  # also arguments of compute, for all tasks
_INT32 = 1 << 31
_Lists = dict[tuple[int, ...], tuple[str, Optional[ObjectRef[Any]]]]  # what is known of lists of types, by the types' id(), which the caller keeps unique


class Notes:
    """The options of tasks, by key."""

    def __init__(self, general: Optional[Note], by_key: Mapping[Key, Note]) -> None:
        self._general = general
        self._by_key = by_key

    def of(self, key: Key) -> Optional[Note]:
        return self._by_key.get(key, self._general)

    def alike(self, a: Key, b: Key) -> bool:
        """Whether two tasks have the same options."""
        x, y = self.of(a), self.of(b)
        return x is y or x == y


def notes_of(dsk: Any, kwargs: Mapping[str, Any]) -> Optional[Notes]:
    """The options in a graph's annotations and in the arguments of compute; None if there are none."""
    if "resources" in kwargs:
        raise ValueError("compute(resources=...) would be said of every task and of none in particular: use dask.annotate(resources=...) around "
                         "what it is for, or compute(remote_args={'resources': ...})")
    general: Optional[Note] = None
    lists: _Lists = {}
    for kind in _ALL:
        if kwargs.get(kind) is not None:
            general = general or Note()
            _say(general, kind, kwargs[kind], f"compute({kind}=...)", lists)
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
    for kind in (*_ALL, "resources"):
        for key, value in by_kind.get(kind, {}).items():
            note = notes.get(key)
            if note is None:
                note = notes[key] = Note() if general is None else general.copy()
            _say(note, kind, value, f"the annotation {kind} of {key!r}", lists)
    return Notes(general, notes) if notes or general is not None else None


def _say(note: Note, kind: str, value: Any, where: str, lists: _Lists) -> None:
    if kind in _REMOTE:
        _task_options(note, value, where, lists)
    elif kind == "resources":
        note.resources = _resources(value, where)
    elif kind == "retries":
        note.retries, note.exceptions, note.only, note.types = int(_number(value, where, most=_INT32)), False, "", None
    else:
        note.priority = int(_number(value, where, -_INT32, _INT32))


def _task_options(note: Note, given: Any, where: str, lists: _Lists) -> None:
    if not isinstance(given, Mapping):
        raise InvalidError(f"{where} is {given!r}: give a dict of options")
    _options.check(given, _AMOUNTS | _OTHERS, where)
    given = {name: value for name, value in given.items() if value is not None}
    o = _options.task("", {name: value for name, value in given.items() if name in _OTHERS})
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
        elif name == "timeout":
            note.timeout = max(int(_number(value, what) * 1e9), 1)
        elif name == "max_retries":
            note.failures = o.max_retries + 1 or -1
        elif name == "retry_exceptions":
            note.retries, note.exceptions = 0, o.retry_exceptions
            note.only, note.types = _retry_only(given, lists)
        elif name == "isolated":
            note.isolated = o.isolate
        elif name == "label_selector":
            note.labels = conditions(o.labels)
        elif name == "prefer_labels":
            note.prefer = conditions(o.prefer_labels)
        elif name == "node":  # soft is said of it
            note.affinity, note.node, note.spread = o.affinity, o.node, False
        elif name == "scheduling_strategy":
            note.spread = o.spread
            if o.affinity == AFFINITY_NONE:
                note.affinity, note.node = AFFINITY_NONE, 0


def _retry_only(given: Mapping[str, Any], lists: _Lists) -> tuple[str, Optional[ObjectRef[Any]]]:
    """Publishes the types in retry_exceptions. The keys of an annotation have the same list."""
    types = _options.retry_only(given)
    if types is None:
        return "", None
    same = tuple(map(id, types.target))
    if same not in lists:
        c = _runtime.client()
        lists[same] = types.publish(c), types.argument(c) if types.stored(c) else None
    return lists[same]


def _number(x: Any, where: str, least: int = 0, most: int = 1 << 50) -> float:
    if isinstance(x, bool) or not isinstance(x, (int, float)) or not least <= x < most:
        raise InvalidError(f"{where} is {x!r}: give a number" + (", 0 or more" if not least else ""))
    return float(x)


def _resources(value: Any, where: str) -> Mapping[str, float]:
    if not isinstance(value, Mapping):
        raise InvalidError(f"{where} is {value!r}: give a dict of names and amounts")
    return {str(name): _number(n, f"{where}: {name}") for name, n in value.items()}
