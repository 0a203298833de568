"""Encodes one task of a Dask graph, and runs it in a worker.

A payload is, in order: the numbers of large buffers and of embedded references (two little-endian uint32), the ids of these references, and
a pickle of (nodes, keys, literals, indices). The nodes run one after another; each comes with the names under which it takes the result of
the one before. keys are those of the task's inputs; literals are small values by key; indices select items of the value as results. The worker
gets the inputs' values, then the buffers, then the values of the embedded references as arguments.

If every node only calls a function with plain values and other tasks' results, as in most large graphs, the pickle has the nodes' parts in
place of Dask's node objects, which is five times as fast. Functions that workers cannot import are files of the job, loaded once per worker; or
embedded references, if they are in the store.
Large arrays are objects of the store, shipped once for all tasks that have them.
"""

from __future__ import annotations

import io
import pickle
import struct
import types
from typing import Any, Collection, Hashable, Optional, Sequence

import dask
from dask.task_spec import GraphNode, Task, TaskRef

from .. import _functions, _ids, _refs, _runtime, _value
from .._client import Handle
from .._graphs import Builder
from .._refs import ObjectRef, bound
from .._worker.second_run import after_a_crash, private_inputs, second_run
from ..exceptions import MobulaError, NotEncodableError
from . import _record

Nodes = Sequence[tuple[GraphNode, tuple[Hashable, ...]]]
_HEAD = struct.Struct("<II")
_NOTHING_ELSE = _HEAD.pack(0, 0)
LARGE = 64 << 10  # bytes of a buffer that is an object of its own
META_BUFFER = _value.header(_value.ARRAY, 6, (), "ndarray")
AROUND = "mobula.dask: callbacks around a task"  # the key of the input that has pretask and posttask hooks
_SMALL = (int, float, complex, bool, type(None), str, bytes)
_PLAIN = frozenset((*_SMALL, TaskRef, slice))


def is_small(x: Any) -> bool:
    """Whether a literal is small enough to go into the payload of each task that takes it."""
    if isinstance(x, (str, bytes)):
        return len(x) <= 1024
    if type(x) is tuple:
        return len(x) <= 8 and all(map(is_small, x))
    return isinstance(x, _SMALL)


def _are_plain(args: Collection[Any]) -> bool:
    kinds = set(map(type, args))
    if slice in kinds and not all(_PLAIN.issuperset(map(type, (a.start, a.stop, a.step))) for a in args if type(a) is slice):
        return False
    return _PLAIN.issuperset(kinds)


class Writer:
    """Writes the payloads of one graph."""

    def __init__(self, builder: Builder, client: Any) -> None:
        self._builder = builder
        self._client = client
        self._buffers: dict[tuple[int, int], int] = {}  # address and size -> outer object
        self._keep: list[Any] = []
        self._functions: dict[int, _functions.Exported] = {}  # by the function's id(), which is unique while its Exported keeps it
        self._called: dict[int, Any] = {}

    def payload(self, nodes: Nodes, keys: tuple[Hashable, ...], literals: Optional[dict[Hashable, Any]],
                indices: Optional[list[Any]] = None) -> tuple[bytes, list[int]]:
        """The payload of a task, and the numbers of the outer objects that it needs. indices: the results are these items of the value."""
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
        """The payload with the nodes' parts, or None if a node is no plain call."""
        parts = []
        for node, link in nodes:
            if type(node) is not Task:
                return None
            f, args, named = node.func, node.args, node.kwargs
            if not _are_plain(args) or (named and not _are_plain(named.values())):
                return None
            known = self._called.get(id(f))
            if known is None:
                known = self._called[id(f)] = (f, self._named(f))  # keeping f keeps its id() unique
            if known[1] is None:
                return None
            parts.append((node.key, known[1], args, named, link))
        try:
            data = pickle.dumps((tuple(parts), keys, literals, indices), 5)
        except Exception:
            return None
        return _NOTHING_ELSE + data if _value.by_name(data) else None

    def _named(self, f: Any) -> Any:
        """How a payload names a function: itself if workers can import it, else the hash of its file. None for any other callable."""
        if type(f) is types.BuiltinFunctionType and isinstance(f.__self__, types.ModuleType):
            return f
        if not isinstance(f, (types.FunctionType, type)):
            return None
        if _value.importable(f):
            return f
        try:
            named = self.function(f) if type(f) is types.FunctionType else None
            return named if type(named) is str else None
        except Exception:
            return None  # _dump raises the error, with the task's name

    def _dump(self, x: Any, buffers: list[int], refs: list[bytes]) -> bytes:
        out = io.BytesIO()
        _value.refresh()
        try:
            _Pickler(out, self, buffers).dump(x)
            data = out.getvalue()
            if _value.by_name(data):
                return data
        except MobulaError:
            raise
        except Exception:
            pass  # cloudpickle can pickle more
        buffers.clear()
        refs.clear()
        out = io.BytesIO()
        try:
            _ByValue(out, self, buffers).dump(x)
            data = out.getvalue()
        except MobulaError:
            raise
        except Exception as why:
            node = x[0][-1][0]
            raise NotEncodableError(f"the task {node.key!r} cannot be pickled: {why}: {node!r}"[:2000]) from why
        return data

    def buffer(self, b: pickle.PickleBuffer, buffers: list[int]) -> bool:
        """Makes a large buffer an object of the store. True: the buffer is small and stays in the pickle."""
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
            self._keep.append(flat)  # keeping it keeps its address unique
            tc = _runtime.context(self._client)
            id = tc.next_put()
            ref: ObjectRef[Any] = ObjectRef(self._client, Handle(id))
            task = tc.task if tc is not self._client.root else b""
            self._client.putter.put_large(id, tc.attempt, task, META_BUFFER, flat.nbytes, [(0, raw)], [], ref, tc)
            n = self._buffers[where] = self._builder.outer(ref)
        buffers.append(n)
        return False

    def function(self, f: Any) -> Any:
        """The hash of a function's file, or the reference to the function if it is in the store."""
        e = self._exported(f)
        return e.argument(self._client) if e.stored(self._client) else e.write(self._client)

    def _exported(self, f: Any) -> _functions.Exported:
        e = self._functions.get(id(f))
        if e is None:
            e = self._functions[id(f)] = _functions.Exported(f)
        return e

    def reduced(self, x: Any, files: bool) -> Any:
        """How a pickle has a function that workers cannot import: the worker loads its file, or has it in place of the reference to it. With
        files false, only those in the store."""
        if type(x) is not types.FunctionType or _value.importable(x) or (not files and not self._exported(x).stored(self._client)):
            return NotImplemented
        how = self.function(x)
        return (load_function, (how,)) if type(how) is str else how.__reduce__()


class _Pickler(_value.Pickler):
    def __init__(self, out: io.BytesIO, writer: Writer, buffers: list[int]) -> None:
        super().__init__(out, 5, buffer_callback=lambda b: writer.buffer(b, buffers))
        self._writer = writer

    def reducer_override(self, x: Any) -> Any:
        return self._writer.reduced(x, True)


class _ByValue(_value.ByValue):
    def __init__(self, out: io.BytesIO, writer: Writer, buffers: list[int]) -> None:
        super().__init__(out, 5, buffer_callback=lambda b: writer.buffer(b, buffers))
        self._writer = writer

    def reducer_override(self, x: Any) -> Any:
        how = self._writer.reduced(x, False)
        return how if how is not NotImplemented else super().reducer_override(x)


def load_function(sha: str) -> Any:
    return _functions.load(_runtime.client(), sha)


# ---- in a worker


def run(payload: bytes, *args: Any) -> Any:
    """Runs one task of a graph. Function files of earlier releases name this function."""
    settle()
    call = after_a_crash()
    if call is None:
        try:
            return _run(payload, args)
        except BaseException as x:
            call = second_run(x)
            if call is None:
                raise
    return _run(payload, private_inputs(call)[1:])


def _run(payload: bytes, values: Sequence[Any]) -> Any:
    nodes, data, indices = load(payload, values)  # once more for a second run, since the first may have changed what it took
    result = _recorded(nodes, data) if _recorder.on else _call(nodes, data)
    return _items(result, indices)


def _items(result: Any, indices: Optional[list[Any]]) -> Any:
    return result if indices is None else tuple([_item(result, i) for i in indices])


def _item(result: Any, i: Any) -> Any:
    """One item of a value. If it is missing, a stand-in that raises the error in the tasks that take this item, and in no others."""
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
        del why  # its traceback has this frame: a cycle


@_functions.calls_user_code
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


@_functions.calls_user_code
def watched(around: Sequence[tuple[Any, Any]], node: GraphNode, data: dict[Hashable, Any]) -> Any:
    """Runs a node with pretask and posttask hooks."""
    taken = [data[d] for d in node.dependencies]
    states = [before(node.key, taken) if before is not None else None for before, _ in around]
    result = node(data)
    for (_, after), state in zip(around, states):
        if after is not None:
            after(node.key, result, state)
    return result


def load(payload: bytes, values: Sequence[Any]) -> tuple[Nodes, dict[Hashable, Any], Optional[list[Any]]]:
    """Decodes a payload: the nodes, their inputs by key, and which items of the value are the results."""
    nbuffers, nrefs = _HEAD.unpack_from(payload)
    size = _ids.OBJECT
    if payload[_HEAD.size + size * nrefs:][:1] != pickle.PROTO:  # releases before 0.5 wrote ids 4 bytes shorter
        size -= 4
    at = _HEAD.size + size * nrefs
    first = len(values) - nbuffers - nrefs
    inner = {payload[at - size * (nrefs - i):at - size * (nrefs - i - 1)]: values[first + nbuffers + i] for i in range(nrefs)}
    with _refs.resolving(inner):
        data, buffers = memoryview(payload)[at:], values[first:first + nbuffers]
        # Small arrays are in the payload. The task has its own of those, also of one that was read-only.
        own = b"_frombuffer" in payload
        nodes, keys, literals, indices = _value.load_own(data, buffers) if own else pickle.loads(data, buffers=buffers)
    if type(nodes) is tuple:
        nodes = [(Task(key, load_function(f) if type(f) is str else f, *args, **named), link) for key, f, args, named, link in nodes]
    inputs = dict(zip(keys, values))
    if literals:
        inputs.update(literals)
    return nodes, inputs, indices


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


scheduler: Any = None  # the default scheduler for Dask computations inside a task; _get sets it
_settled = False
_recorder = _record.Recorder("")


def settle() -> None:
    """Makes Dask computations inside tasks run on the node too, unless the process has configured another scheduler."""
    global _settled, _recorder
    if not _settled:
        _settled = True
        _recorder = _record.Recorder(_runtime.client().welcome.job_dir)
        if dask.config.get("scheduler", None) is None:
            dask.config.set(scheduler=scheduler)


