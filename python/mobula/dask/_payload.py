"""One task of a Dask graph as bytes, and how a worker runs it.

The payload of a task is, in order: how many large buffers and how many references from inside it follow the results it depends on
(two uint32, little endian), then the pickle of (nodes, keys of what they depend on, literals they take along, items): nodes that
run one after another, each with the names under which it takes the one before. Where all call a function with plain values and results of
others, as most tasks of large graphs do, they are their parts and no nodes, which is five times as fast to pickle. Functions that cannot
be found by name are files of the job and loaded once a worker; large arrays are objects of the store, shipped once however many tasks
have them.
"""

from __future__ import annotations

import io
import pickle
import re
import struct
import types
from typing import Any, Hashable, Optional, Sequence

import cloudpickle
import dask
from dask.task_spec import GraphNode, Task, TaskRef

from .. import _functions, _ids, _refs, _runtime, _value
from .._graphs import Builder
from .._refs import ObjectRef, bound
from .._worker.call import Call
from ..exceptions import MobulaError, NotEncodableError
from . import _record

Nodes = Sequence[tuple[GraphNode, tuple[Hashable, ...]]]
_HEAD = struct.Struct("<II")
_NOTHING_ELSE = _HEAD.pack(0, 0)
LARGE = 64 << 10  # bytes of a buffer that is an object of its own
META_BUFFER = _value.header(_value.ARRAY, 6, (), "ndarray")
AROUND = "mobula.dask: callbacks around a task"  # the key under which a task that is watched takes them
_SMALL = (int, float, complex, bool, type(None), str, bytes)
_PLAIN = frozenset((*_SMALL, TaskRef, slice))


def is_small(x: Any) -> bool:
    """Whether a literal goes into the payloads of the tasks that take it."""
    if isinstance(x, (str, bytes)):
        return len(x) <= 1024
    if type(x) is tuple:
        return len(x) <= 8 and all(map(is_small, x))
    return isinstance(x, _SMALL)


class Writer:
    """Writes the payloads of one graph."""

    def __init__(self, builder: Builder, client: Any) -> None:
        self._builder = builder
        self._client = client
        self._buffers: dict[tuple[int, int], int] = {}  # address and size -> outer object
        self._keep: list[Any] = []
        self._functions: dict[int, Any] = {}
        self._called: dict[int, Any] = {}

    def payload(self, nodes: Nodes, keys: tuple[Hashable, ...], literals: Optional[dict[Hashable, Any]],
                indices: Optional[list[Any]] = None) -> tuple[bytes, list[int]]:
        """The bytes, and the outer objects that go with them. With indices the task's results are these items of its value."""
        plain = self._plain(nodes, keys, literals, indices)
        if plain is not None:
            return plain, []
        buffers: list[int] = []
        found: list[Any] = []
        before, _value.local.refs = _value.local.refs, found
        try:
            data = self._dump((nodes, keys, literals, indices), buffers, found)
        finally:
            _value.local.refs = before
        outer, refs = list(buffers), [ref._h.id for ref in found]
        for id in refs:
            outer.append(self._builder.outer(bound(self._client, id)))
        return _HEAD.pack(len(buffers), len(refs)) + b"".join(refs) + data, outer

    def _plain(self, nodes: Nodes, keys: tuple[Hashable, ...], literals: Optional[dict[Hashable, Any]], indices: Optional[list[Any]]) -> Optional[bytes]:
        """The payload with the parts of the nodes, if these are such tasks."""
        parts = []
        for node, link in nodes:
            if type(node) is not Task:
                return None
            f, args, named = node.func, node.args, node.kwargs
            if not _PLAIN.issuperset(map(type, args)) or (named and not _PLAIN.issuperset(map(type, named.values()))):
                return None
            known = self._called.get(id(f))
            if known is None:
                known = self._called[id(f)] = (f, self._named(f))  # while it is here its id is nobody else's
            if known[1] is None:
                return None
            parts.append((node.key, known[1], args, named, link))
        try:
            data = pickle.dumps((tuple(parts), keys, literals, indices), 5)
        except Exception:
            return None
        return _NOTHING_ELSE + data if _value.by_name(data) else None

    def _named(self, f: Any) -> Any:
        """A function as its parts have it: itself if a worker finds it by name, or its hash. None for what else can be called."""
        if type(f) is types.BuiltinFunctionType and isinstance(f.__self__, types.ModuleType):
            return f
        if not isinstance(f, (types.FunctionType, type)):
            return None
        if _by_name(f):
            return f
        try:
            return self.function(f) if type(f) is types.FunctionType else None
        except Exception:
            return None  # it is told with the task's name

    def _dump(self, x: Any, buffers: list[int], refs: list[bytes]) -> bytes:
        out = io.BytesIO()
        try:
            _Pickler(out, self, buffers).dump(x)
            data = out.getvalue()
            if _value.by_name(data):
                return data
        except MobulaError:
            raise
        except Exception:
            pass  # cloudpickle knows more
        buffers.clear()
        refs.clear()
        try:
            data = cloudpickle.dumps(x, 5, buffer_callback=lambda b: self.buffer(b, buffers))
        except MobulaError:
            raise
        except Exception as why:
            node = x[0][-1][0]
            raise NotEncodableError(f"the task {node.key!r} cannot be pickled: {why}: {node!r}"[:2000]) from why
        return bytes(data)

    def buffer(self, b: pickle.PickleBuffer, buffers: list[int]) -> bool:
        """True: the buffer stays in the pickle."""
        try:
            raw = b.raw()
        except BufferError:
            return True
        if raw.nbytes < LARGE:
            return True
        import numpy as np

        flat = np.frombuffer(raw, dtype=np.uint8)
        where = (flat.ctypes.data, flat.nbytes)
        n = self._buffers.get(where)
        if n is None:
            self._keep.append(flat)  # while it is here its address is nobody else's
            tc = _runtime.context(self._client)
            id = tc.next_put()
            h = self._client.putter.put_large(id, tc.attempt, tc.task if tc is not self._client.root else b"", META_BUFFER, flat.nbytes, [(0, raw)], [], tc=tc)
            n = self._buffers[where] = self._builder.outer(ObjectRef(self._client, h))
        buffers.append(n)
        return False

    def function(self, f: Any) -> str:
        """Makes a function a file of the job; gives its hash."""
        known = self._functions.get(id(f))
        if known is None:
            e = _functions.Exported(f)
            known = self._functions[id(f)] = (e.publish(self._client.welcome.job_dir), f)
        sha: str = known[0]
        return sha


class _Pickler(pickle.Pickler):
    def __init__(self, out: io.BytesIO, writer: Writer, buffers: list[int]) -> None:
        super().__init__(out, 5, buffer_callback=lambda b: writer.buffer(b, buffers))
        self._writer = writer

    def reducer_override(self, x: Any) -> Any:
        if type(x) is types.FunctionType and not _by_name(x):
            return load_function, (self._writer.function(x),)
        return NotImplemented


def _by_name(f: Any) -> bool:
    """Whether a worker finds the function, or class, by its module and name."""
    module: str = f.__module__ or ""
    if module == "__main__" or "<" in f.__qualname__ or _value.by_value(module):
        return False
    import sys

    found: Any = sys.modules.get(module)
    for part in f.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is f


def load_function(sha: str) -> Any:
    return _functions.load(_runtime.client().welcome.job_dir, sha)


# ---- in a worker


def run(payload: bytes, *args: Any) -> Any:
    """Runs one task of a graph."""
    values: Sequence[Any] = args
    nodes, data, indices = load(payload, values)
    settle()
    try:
        result = _recorded(nodes, data) if _recorder.on else _call(nodes, data)
    except ValueError as x:
        call = _runtime.current.get()
        if not isinstance(call, Call) or not _READ_ONLY.search(str(x)):
            raise
        # It writes to what it takes, which is the store's memory: it runs once more, on copies of its own, read anew: it may have changed them.
        values = call.taken()[1:]
    else:
        return _items(result, indices)
    nodes, data, indices = load(payload, values)
    return _items(_call(nodes, data), indices)


# What NumPy, pandas and Cython say of an array that cannot be written to.
_READ_ONLY = re.compile(r"(array|destination|operand) is read-only$|^Cannot modify read-only array")


def _items(result: Any, indices: Optional[list[Any]]) -> Any:
    return result if indices is None else tuple([_item(result, i) for i in indices])


def _item(result: Any, i: Any) -> Any:
    """One of the results; if it is not there, what raises the error of that for whoever takes it, and for nobody else."""
    try:
        return result[i]
    except Exception as x:
        return _Absent(x)


class _Absent:
    def __init__(self, why: Exception) -> None:
        self._why = why

    def __reduce__(self) -> Any:
        return _raise, (self._why,)


def _raise(why: Exception) -> None:
    try:
        raise why
    finally:
        del why  # its traceback has this frame


def _call(nodes: Nodes, data: dict[Hashable, Any]) -> Any:
    around = data.pop(AROUND, None)
    result = None
    for node, link in nodes:
        for name in link:
            data[name] = result
        result = node(data) if around is None else watched(around, node, data)
        for name in link:
            del data[name]
    return result


def watched(around: Sequence[tuple[Any, Any]], node: GraphNode, data: dict[Hashable, Any]) -> Any:
    """Runs a node, with callbacks around it."""
    taken = [data[d] for d in node.dependencies]
    states = [before(node.key, taken) if before is not None else None for before, _ in around]
    result = node(data)
    for (_, after), state in zip(around, states):
        if after is not None:
            after(node.key, result, state)
    return result


def load(payload: bytes, values: Sequence[Any]) -> tuple[Nodes, dict[Hashable, Any], Optional[list[Any]]]:
    """The nodes, by key what they take, and which items of the value are the results."""
    nbuffers, nrefs = _HEAD.unpack_from(payload)
    size = _ids.OBJECT
    if payload[_HEAD.size + size * nrefs:][:1] != pickle.PROTO:  # a release before 0.5 wrote it
        size -= 4
    at = _HEAD.size + size * nrefs
    first = len(values) - nbuffers - nrefs
    inner = {payload[at - size * (nrefs - i):at - size * (nrefs - i - 1)]: values[first + nbuffers + i] for i in range(nrefs)}
    with _refs.resolving(inner):
        nodes, keys, literals, indices = pickle.loads(memoryview(payload)[at:], buffers=values[first:first + nbuffers])
    if type(nodes) is tuple:
        nodes = [(Task(key, load_function(f) if type(f) is str else f, *args, **named), link) for key, f, args, named, link in nodes]
    data = dict(zip(keys, values))
    if literals:
        data.update(literals)
    return nodes, data, indices


def _recorded(nodes: Nodes, data: dict[Hashable, Any]) -> Any:
    tc = _runtime.current.get()
    how = _record.FAILED
    try:
        result = _call(nodes, data)
        how = _record.OK
        return result
    finally:
        if tc is not None:
            _recorder.note(tc.task, how)


scheduler: Any = None  # what a task computes with, where nothing else is said; _get says so
_settled = False
_recorder = _record.Recorder("")


def settle() -> None:
    """Lets what a task computes with Dask run on the cluster too, in a process where nothing else was said."""
    global _settled, _recorder
    if not _settled:
        _settled = True
        _recorder = _record.Recorder(_runtime.client().welcome.job_dir)
        if dask.config.get("scheduler", None) is None:
            dask.config.set(scheduler=scheduler)


