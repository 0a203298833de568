"""Converts exceptions of tasks to errors on the wire, and back."""

from __future__ import annotations

import base64
import io
import pickle
import traceback
from types import TracebackType
from typing import Any, Callable, Optional

from .. import _exception_parts
from .._said import named, said
from .._wire.codec import from_wire, to_wire
from .._wire.messages import Error
from ..exceptions import MobulaError, PythonError, TaskError, task_error
from .by_value import ByValue
from .pickled import class_name, dumps, local

Put = Callable[[bytes], Any]  # puts bytes as an object and returns its reference


def encode_exception(x: BaseException, put: Put) -> tuple[bytes, list[Any]]:
    """Pickles a task's exception as ASCII text. Returns it, empty if no way of pickling works, and the references in the exception. The pickle
    of a large one is put as an object, and the text refers to that; if that fails, it is a pickle of less."""
    before = local.refs
    try:
        for way in _WAYS:
            held = local.refs = []
            try:
                raw = way(x)
                if len(raw) >= _MAX_EXCEPTION and way not in _WHOLE:
                    continue
                back = pickle.loads(raw)  # many exception classes can be pickled, but not unpickled, or not to the same text
                if way is _ordinary and (said(back) != said(x) or _forgets(x, back)):
                    continue
                del back
                if len(raw) >= _MAX_EXCEPTION:
                    raw = dumps(_Elsewhere(put(raw)), None, held)
                return base64.b85encode(raw), held
            except BaseException:  # the class's own code may raise anything, and there may be no room
                continue
    finally:
        local.refs = before
    return b"", []


_MAX_EXCEPTION = 40_000  # bytes of a pickle that goes in the error itself


def _ordinary(x: BaseException) -> bytes:
    return dumps(x, None, [] if local.refs is None else local.refs)


def _forgets(x: BaseException, back: BaseException) -> bool:
    """Whether the ordinary pickle has lost or changed a field that x stores outside __dict__, as pickles of BaseException do."""
    if type(x).__reduce__ is not BaseException.__reduce__ or type(x) is not type(back):
        return False
    had, has = ({k: v for k, v in _exception_parts.fields(y).items() if k not in getattr(y, "__dict__", {})} for y in (x, back))
    return had.keys() != has.keys() or not all(v is has[k] or (v == has[k]) is True for k, v in had.items())


def _by_parts(x: BaseException) -> bytes:
    """Pickles x and the exceptions in it as their parts, for classes whose __init__ does not accept the exception's args."""
    return _PartsPickler.dumps(x)


def _bare(x: BaseException) -> bytes:
    """Pickles x, and the exceptions in it, each without what cannot be pickled of it."""
    known: Known = {id(x): None}
    return _BarePickler.of(_Reduced(*_bared(x, known)), known)


def _text(x: BaseException) -> bytes:
    """Pickles x with its text in place of its args."""
    known: Known = {id(x): None}
    return _BarePickler.of(_Reduced(*_made(x, (said(x)[:8000],), _light(x, known))), known)


_WAYS = (_ordinary, _by_parts, _bare, _text)
_WHOLE = (_ordinary, _by_parts)


class _Elsewhere:
    """Pickles as what the pickle in an object is of."""

    def __init__(self, ref: Any) -> None:
        self._ref = ref

    def __reduce__(self) -> Any:
        return fetched, (self._ref,)


def fetched(ref: Any) -> Any:
    """Unpickles what an object has; pickles of large exceptions name this function."""
    return pickle.loads(ref.result())


Reduction = tuple[Callable[..., BaseException], tuple[Any, ...]]  # a function, and the arguments with which it makes an exception
Known = dict[int, Optional[tuple[BaseException, Reduction]]]  # by id; None for one whose reduction is just being found


class _Reduced:
    """Pickles as what a function makes of arguments."""

    def __init__(self, make: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._reduction = make, args

    def __reduce__(self) -> Any:
        return self._reduction


class _PartsPickler(ByValue):
    """Pickles every exception in a value as its parts, except TaskErrors, whose own pickle does so."""

    @classmethod
    def dumps(cls, x: Any) -> bytes:
        buf = io.BytesIO()
        cls(buf, 5).dump(x)
        return buf.getvalue()

    def reducer_override(self, x: Any) -> Any:
        if isinstance(x, BaseException) and not isinstance(x, TaskError):
            return _exception_parts.remade, (type(x), x.args, _exception_parts.fields(x))
        return super().reducer_override(x)


class _BarePickler(ByValue):
    """Pickles every exception in a value without what cannot be pickled of it, except TaskErrors. One of which nothing can be pickled becomes a
    PythonError with its text, so that a group keeps its other exceptions. Each is looked at once: the number of trials is bounded."""

    def __init__(self, out: io.BytesIO, known: Known) -> None:
        super().__init__(out, 5)
        self._known = known

    @classmethod
    def of(cls, x: Any, known: Known) -> bytes:
        buf = io.BytesIO()
        cls(buf, known).dump(x)
        return buf.getvalue()

    def reducer_override(self, x: Any) -> Any:
        if not isinstance(x, BaseException) or isinstance(x, TaskError):
            return super().reducer_override(x)
        known = self._known
        if id(x) not in known:
            known[id(x)] = None
            try:
                found = _bared(x, known)
                if not _travels(_Reduced(*found), known):
                    raise pickle.PicklingError("an exception that cannot be pickled")
            except BaseException:
                found = _lost, (named(x)[:8000],)
            known[id(x)] = x, found
        seen = known[id(x)]
        if seen is None:
            raise pickle.PicklingError("an exception that has itself in it")
        return seen[1]


def _lost(text: str) -> PythonError:
    return PythonError(text)


def _bared(x: BaseException, known: Known) -> Reduction:
    args = x.args
    return _made(x, args if _travels(args, known) else (said(x)[:8000],), _light(x, known))


def _made(x: BaseException, args: tuple[Any, ...], fields: dict[str, Any]) -> Reduction:
    return _exception_parts.remade, (type(x), args, fields)


def _travels(v: Any, known: Known) -> bool:
    return _trial(v, known) is not None


def _trial(v: Any, known: Known) -> Optional[int]:
    """The size of a value's pickle; None if it cannot be pickled and read again."""
    before, local.refs = local.refs, []  # the real run collects the references
    try:
        raw = _BarePickler.of(v, known)
        pickle.loads(raw)
        return len(raw)
    except BaseException:
        return None
    finally:
        local.refs = before


def _light(x: BaseException, known: Known) -> dict[str, Any]:
    """The fields of an exception that can be pickled, up to half of the size limit."""
    out: dict[str, Any] = {}
    left = _MAX_EXCEPTION // 2
    for k, v in _exception_parts.fields(x).items():
        size = _trial(v, known)
        if size is not None and size < left:
            left -= size
            out[k] = v
    return out


def failure(name: str, task: str, x: BaseException, tb: Optional[TracebackType], put: Put, held: list[Any]) -> Error:
    """The error that is reported for a task whose function raised x, with the traceback from tb on. The references in x, and to its pickle if
    that is put, are appended to held: the caller keeps them until the report is queued, since the owner does not know of them before.

    The error's cause has the names of the exception's classes, for programs in other languages, and in its field stack the pickled exception.
    """
    text = named(x)
    e = Error(code=TaskError.code, name=name[:900], task=task, msg=f"{name}: {text}"[:8000])
    lines = _traceback(x, tb)
    raw = lines.encode("utf-8", "replace")
    if len(raw) > _MAX_TRACEBACK:
        lines = "...\n" + raw[-_MAX_TRACEBACK:].decode("utf-8", "ignore")
    e.stack = lines
    raised = Error(code=PythonError.code, name=",".join(_classes(type(x)))[:900], msg=text[:8000])
    text_of, refs = encode_exception(x, put)
    raised.stack, raised.refs = text_of.decode(), [ref._h.id for ref in refs]
    held += refs
    if isinstance(x, MobulaError):
        raised.cause = [to_wire(x)]
        held += refs_of(x)
    e.cause = [raised]
    return e


def undescribed(name: str, task: str) -> Error:
    """The error that is reported where failure raises, since the code of the exception's class does. A call without a report would never end."""
    cause = Error(code=PythonError.code, name="Exception", msg="an exception that cannot be described: its class's own code raised another")
    return Error(code=TaskError.code, name=name[:900], task=task, msg=f"{name}: {cause.msg}"[:8000], cause=[cause])


def _traceback(x: BaseException, tb: Optional[TracebackType]) -> str:
    try:
        return "".join(traceback.format_exception(type(x), x, tb))
    except BaseException:  # of the class, or of an exception that x stems from
        return "".join(["Traceback (most recent call last):\n", *traceback.format_tb(tb), named(x), "\n"])


def refs_of(x: MobulaError) -> list[Any]:
    """The references that an error and its causes carry."""
    out = list(x._mobula_refs)
    for c in x.causes:
        out += refs_of(c)
    return out


_MAX_TRACEBACK = 60 << 10


def _classes(cls: type[BaseException]) -> list[str]:
    """The names of an exception class and its base classes, nearest first; built-in ones without their module."""
    return [class_name(c) for c in cls.__mro__ if c not in (object, BaseException)]


def task_failure(e: Optional[Error]) -> MobulaError:
    """The exception for a failed object's error. Its causes are converted in the same way."""
    if e is None or e.code != TaskError.code:
        x = from_wire(e)
        if e is not None and e.code != PythonError.code:
            x.causes = tuple(map(task_failure, e.cause))
        return x
    return task_error(_origin(e), e.stack, e.msg, e.name, e.task, tuple(task_failure(c) for c in e.cause))


def _origin(e: Error) -> Optional[BaseException]:
    """The exception that a task raised, or the first error below e that is no TaskError itself."""
    for c in e.cause:
        if c.code == PythonError.code:
            return _exception(c)
        found = from_wire(c) if c.code not in (0, TaskError.code) else _origin(c)
        if found is not None:
            return found
    return None


def _exception(e: Error) -> BaseException:
    """Unpickles the exception that a Python function raised. If that fails, it returns a PythonError with the exception's text."""
    why = "it did not travel"
    if e.stack:
        try:
            x = pickle.loads(base64.b85decode(e.stack))
            if isinstance(x, BaseException):
                return x
        except Exception as x:
            why = f"it cannot be read here: {named(x)}"
    causes = tuple(from_wire(c) for c in e.cause)
    return PythonError(f"{e.msg} (the exception itself is not here: {why})", name=e.name, causes=causes)
