"""Exceptions of tasks, as errors on the wire and back."""

from __future__ import annotations

import base64
import io
import pickle
from typing import Any, Optional

import cloudpickle

from .. import _exception_parts
from .._wire.codec import from_wire, to_wire
from .._wire.messages import Error
from ..exceptions import MobulaError, PythonError, TaskError, task_error
from .pickled import class_name, dumps, local


def encode_exception(x: BaseException) -> tuple[bytes, list[Any]]:
    """A task's exception as text for the way back, nothing if it cannot travel, and the references in it."""
    before = local.refs
    try:
        for way in _WAYS:
            held = local.refs = []
            try:
                raw = way(x)
                if len(raw) < _MAX_EXCEPTION:
                    back = pickle.loads(raw)  # many a class of exception pickles and does not come back, or not as it was
                    if way is not _ordinary or str(back) == str(x):
                        return base64.b85encode(raw), held
            except Exception:
                continue
    finally:
        local.refs = before
    return b"", []


_MAX_EXCEPTION = 40_000  # bytes


def _ordinary(x: BaseException) -> bytes:
    return dumps(x, None, [] if local.refs is None else local.refs)


def _by_parts(x: BaseException) -> bytes:
    """Of classes whose constructors cannot be called with the exception's arguments; what hangs on it too."""
    return _PartsPickler.dumps(x)


def _bare(x: BaseException) -> bytes:
    """Without the fields that do not travel."""
    return _PartsPickler.dumps(_Bare(x, x.args, _light(x)))


def _text(x: BaseException) -> bytes:
    """With its text in place of its arguments."""
    return _PartsPickler.dumps(_Bare(x, (str(x)[:8000],), _light(x)))


_WAYS = (_ordinary, _by_parts, _bare, _text)


class _Bare:
    """Is pickled as an exception of the class, with these arguments and fields."""

    def __init__(self, x: BaseException, args: tuple[Any, ...], fields: dict[str, Any]) -> None:
        self._parts = type(x), args, fields

    def __reduce__(self) -> Any:
        return _exception_parts.remade, self._parts


class _PartsPickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Takes every exception in a value to its parts. A TaskError's own pickle does."""

    @classmethod
    def dumps(cls, x: Any) -> bytes:
        buf = io.BytesIO()
        cls(buf, 5).dump(x)
        return buf.getvalue()

    def reducer_override(self, x: Any) -> Any:
        if isinstance(x, BaseException) and not isinstance(x, TaskError):
            return _exception_parts.remade, (type(x), x.args, _exception_parts.fields(x))
        return super().reducer_override(x)


def _light(x: BaseException) -> dict[str, Any]:
    """The fields of an exception that travel, together with its text."""
    out: dict[str, Any] = {}
    left = _MAX_EXCEPTION // 2
    before, local.refs = local.refs, None  # a trial: what it finds is found again
    try:
        for k, v in _exception_parts.fields(x).items():
            try:
                raw = _PartsPickler.dumps(v)
                if len(raw) < left:
                    pickle.loads(raw)
                    left -= len(raw)
                    out[k] = v
            except Exception:
                continue
    finally:
        local.refs = before
    return out


def failure(name: str, task: str, x: BaseException, traceback: str, held: list[Any]) -> Error:
    """The error that a task is reported with when its function raised x. The references in it, which are added to held, the
    owner does not know of before the report.

    Its cause names the exception's classes, for programs of other languages, and has the exception itself, pickled, for a stack.
    """
    text = f"{type(x).__name__}: {x}" if str(x) else type(x).__name__
    e = Error(code=TaskError.code, name=name[:900], task=task, msg=f"{name}: {text}"[:8000])
    raw = traceback.encode("utf-8", "replace")
    if len(raw) > _MAX_TRACEBACK:
        traceback = "...\n" + raw[-_MAX_TRACEBACK:].decode("utf-8", "ignore")
    e.stack = traceback
    raised = Error(code=PythonError.code, name=",".join(_classes(type(x)))[:900], msg=text[:8000])
    text_of, refs = encode_exception(x)
    raised.stack, raised.refs = text_of.decode(), [ref._h.id for ref in refs]
    held += refs
    if isinstance(x, MobulaError):
        raised.cause = [to_wire(x)]
        held += refs_of(x)
    e.cause = [raised]
    return e


def refs_of(x: MobulaError) -> list[Any]:
    """The references that keep an error of the runtime, and what it wraps, as they are."""
    out = list(x._mobula_refs)
    for c in x.causes:
        out += refs_of(c)
    return out


_MAX_TRACEBACK = 60 << 10


def _classes(cls: type[BaseException]) -> list[str]:
    """A class of exception and those it derives from, nearest first; the built-in ones without their module."""
    return [class_name(c) for c in cls.__mro__ if c not in (object, BaseException)]


def task_failure(e: Optional[Error]) -> MobulaError:
    """The exception that a failed object's error stands for. Those that it wraps are what tasks raised, too."""
    if e is None or e.code != TaskError.code:
        x = from_wire(e)
        if e is not None and e.code != PythonError.code:
            x.causes = tuple(map(task_failure, e.cause))
        return x
    return task_error(_origin(e), e.stack, e.msg, e.name, e.task, tuple(task_failure(c) for c in e.cause))


def _origin(e: Error) -> Optional[BaseException]:
    """What a task failed of: the first error below it that says more than that a task failed."""
    for c in e.cause:
        if c.code == PythonError.code:
            return _exception(c)
        found = from_wire(c) if c.code not in (0, TaskError.code) else _origin(c)
        if found is not None:
            return found
    return None


def _exception(e: Error) -> BaseException:
    """The exception that a Python function raised, or what is known of it where it cannot be read here."""
    why = "it did not travel"
    if e.stack:
        try:
            x = pickle.loads(base64.b85decode(e.stack))
            if isinstance(x, BaseException):
                return x
        except Exception as x:
            why = f"it cannot be read here: {type(x).__name__}: {x}"
    causes = tuple(from_wire(c) for c in e.cause)
    return PythonError(f"{e.msg} (the exception itself is not here: {why})", name=e.name, causes=causes)
