"""The errors of Mobula: one tree under MobulaError, one class for each code of the wire.

An error that came from the node or from a worker has the code's class, its message, and in
``cause`` what it wraps. A task that raised gives a TaskError that is also an instance of the
exception's own type, so ``except ValueError`` works across processes. Of what is no Exception, as
SystemExit, and of StopIteration and StopAsyncIteration it is not: these mean something to whom they
are raised in. The exception itself is the TaskError's ``cause`` always.

A TaskError has the exception's fields too. ``message``, ``name``, ``task``, ``stack``, ``causes``, ``cause`` and
``remote_traceback`` are its own and hide fields of these names, which are to be had from ``cause``; but for ``message`` and ``name``
where the exception's class defines them, as ImportError and NameError do with ``name`` and ExceptionGroup with ``message``: then they
are the exception's.
"""

from __future__ import annotations

import concurrent.futures
from typing import Any, Callable, ClassVar, Optional

import cbor2

from . import _exception_parts


class MobulaError(Exception):
    """Any error of the runtime."""

    code: ClassVar[int] = 0
    text: ClassVar[str] = ""

    task: str = ""
    stack: str = ""
    causes: tuple[MobulaError, ...] = ()
    _mobula_refs: tuple[Any, ...] = ()  # the references in what the error carries of its own: they live as long as it

    def __init__(self, message: str = "", *, name: str = "", task: str = "", stack: str = "",
                 causes: tuple[MobulaError, ...] = ()) -> None:
        Exception.__init__(self, message)
        self.message = message
        self.name = name
        self.task = task
        self.stack = stack
        self.causes = causes

    def __str__(self) -> str:
        text = type(self).text
        message, _ = self._said()
        if not message:
            return text or type(self).__name__
        if not text or text in message:
            return message
        return f"{text}: {message}"

    def _said(self) -> tuple[str, str]:
        """The message and the name, also where those of a task's exception hide them."""
        own = self.__dict__
        return own.get("message", ""), own.get("name", "")

    def again(self) -> MobulaError:
        """A copy to raise: an error that is kept must not gather tracebacks, which keep frames and what is in them."""
        return _remake(type(self), *self._said(), self.task, self.stack, self.causes, self._mobula_refs)

    def __reduce__(self) -> Any:
        return _remake, (type(self), *self._said(), self.task, self.stack, self.causes, self._mobula_refs)


def _remake(cls: type[MobulaError], message: str, name: str, task: str, stack: str,
            causes: tuple[MobulaError, ...], refs: tuple[Any, ...] = ()) -> MobulaError:
    out = cls(message, name=name, task=task, stack=stack, causes=causes)
    if refs:
        out._mobula_refs = refs
    return out


class TaskError(MobulaError):
    """The task raised. ``cause`` is the exception itself, ``remote_traceback`` where it was raised."""

    code = 1
    text = "task failed"

    cause: Optional[BaseException] = None
    remote_traceback: str = ""

    def __str__(self) -> str:
        if self.remote_traceback:
            return f"{self._said()[0]}\n{self.remote_traceback.rstrip()}"
        return super().__str__()

    def __reduce__(self) -> Any:
        return _remake_task, (_exception_parts.portable(self.cause), self.remote_traceback, *self._said(), self.task)


class WorkerCrashedError(MobulaError):
    """The worker process died, and the retries are used up."""

    code = 2
    text = "worker process died"


class ActorError(MobulaError):
    """Something is wrong with the actor itself."""


class ActorDiedError(ActorError):
    """The actor is gone and will not come back."""

    code = 3
    text = "actor died"


class ActorUnavailableError(ActorError):
    """The actor is restarting; the call may be made again."""

    code = 4
    text = "actor unavailable"


class ObjectTooLargeError(MobulaError):
    code = 5
    text = "object larger than the store"


class StoreFullError(MobulaError):
    code = 6
    text = "object store full"


class OutOfDiskError(MobulaError):
    code = 7
    text = "spill storage full"


class OutOfMemoryError(MobulaError):
    code = 8
    text = "task killed by the memory monitor"


class ObjectLostError(MobulaError):
    """No copy of the object is left, and it cannot be made again."""

    code = 9
    text = "object lost"


class ObjectFreedError(ObjectLostError):
    code = 10
    text = "object freed"


class ReconstructionFailedError(ObjectLostError):
    code = 11
    text = "object could not be made again"


class OwnerDiedError(ObjectLostError):
    code = 12
    text = "owner died"


class FetchTimedOutError(ObjectLostError, TimeoutError):
    code = 13
    text = "object fetch timed out"


class GetTimeoutError(MobulaError, TimeoutError):
    """The time of a get or wait ran out; the references stay valid."""

    code = 14
    text = "get timed out"


class TaskCancelledError(MobulaError, concurrent.futures.CancelledError):
    """The task was cancelled."""

    code = 15
    text = "task cancelled"


class UnschedulableError(MobulaError):
    code = 16
    text = "task can never be scheduled"


class PendingCallsLimitError(MobulaError):
    code = 17
    text = "too many pending calls"


class RuntimeSetupError(MobulaError):
    code = 18
    text = "process could not be started"


class UnknownFunctionError(MobulaError):
    code = 19
    text = "function not registered"


class RegistryMismatchError(MobulaError):
    code = 20
    text = "driver and worker registries differ"


class NotEncodableError(MobulaError, TypeError):
    code = 21
    text = "value cannot be encoded"


class NotDecodableError(MobulaError, TypeError):
    code = 22
    text = "value cannot be decoded"


class NameTakenError(MobulaError, ValueError):
    code = 23
    text = "actor name taken"


class NotFoundError(MobulaError, ValueError):
    code = 24
    text = "not found"


class ShutdownError(MobulaError):
    code = 25
    text = "runtime shut down"


class ViewClosedError(MobulaError):
    code = 26
    text = "view used after close"


class ProtocolError(MobulaError):
    code = 27
    text = "protocol violation"


class PermissionDeniedError(MobulaError, PermissionError):
    code = 28
    text = "permission denied"


class InvalidError(MobulaError, ValueError):
    code = 29
    text = "invalid argument"


class DeadlineError(MobulaError, TimeoutError):
    code = 30
    text = "task ran past its deadline"


class PanicError(MobulaError):
    code = 31
    text = "function panicked"


class ReturnMismatchError(MobulaError):
    code = 32
    text = "attempts differ in what they returned"


class SegmentUnavailableError(MobulaError):
    code = 33
    text = "shared memory cannot be reserved"


class ComponentFailedError(MobulaError):
    code = 34
    text = "component failed beyond its restart policy"


class UserError(MobulaError):
    """A sentinel or an error type that a Go program registered; ``name`` is its name.

    ``fields`` has what an error of a type carries, as plain data and references; None of a sentinel.
    """

    code = 35
    data: bytes = b""  # the value of an error of a type, as CBOR

    @property
    def fields(self) -> Any:
        return _read_fields(self.data) if self.data else None

    def again(self) -> MobulaError:
        return _remake_user(self.data, *self._said(), self.task, self.stack, self.causes, self._mobula_refs)

    def __reduce__(self) -> Any:
        return _remake_user, (self.data, *self._said(), self.task, self.stack, self.causes, self._mobula_refs)


_read_fields: Callable[[bytes], Any] = cbor2.loads


def set_field_reader(f: Callable[[bytes], Any]) -> None:
    """Says how fields with references in them are read."""
    global _read_fields
    _read_fields = f


def _remake_user(data: bytes, message: str, name: str, task: str, stack: str, causes: tuple[MobulaError, ...],
                 refs: tuple[Any, ...] = ()) -> UserError:
    out = UserError(message, name=name, task=task, stack=stack, causes=causes)
    out.data = data
    if refs:
        out._mobula_refs = refs
    return out


class DisconnectedError(MobulaError, ConnectionError):
    code = 36
    text = "connection lost"


class BacklogError(MobulaError):
    code = 37
    text = "the other side reads too slowly"


class NoNodeError(MobulaError, ConnectionError):
    code = 38
    text = "no node is running there"


class NodeRunningError(MobulaError):
    code = 39
    text = "a node is running there already"


class VersionError(ProtocolError):
    code = 40
    text = "versions do not match"


class PythonError(MobulaError):
    """An exception of a task where it cannot be had itself; ``name`` has its class and those it derives from, comma-separated."""

    code = 41
    text = "exception of a Python function"


class DeadlockError(MobulaError):
    """A call of an actor waits for one of the same actor, which cannot begin before it has ended."""

    code = 42
    text = "waits for itself"


def _all(cls: type[MobulaError]) -> list[type[MobulaError]]:
    out = [cls]
    for sub in cls.__subclasses__():
        out += _all(sub)
    return out


BY_CODE: dict[int, type[MobulaError]] = {c.code: c for c in _all(MobulaError) if "code" in c.__dict__}

_combined: dict[type[BaseException], type[TaskError]] = {}


def task_error(cause: Optional[BaseException], traceback: str, message: str, name: str = "",
               task: str = "", causes: tuple[MobulaError, ...] = ()) -> TaskError:
    """Makes a TaskError that is also an instance of the cause's type, where such a class can be. Of a task that let another's error
    through it is the type of what the first one raised."""
    err: Optional[TaskError] = None
    first = cause
    while isinstance(first, TaskError):
        first = first.cause
    if first is not None:
        cls = _class_for(type(first))
        if cls is not TaskError:
            try:
                err = _exception_parts.made(cls, type(first), first.args, _exception_parts.fields(first))
            except Exception:
                pass  # a type that cannot be made like this: the plain error has it as its cause
    if err is None:
        err = TaskError(message)
    vars(err).update(message=message, name=name, task=task, stack="", causes=causes, cause=cause, remote_traceback=traceback)
    if cause is not None:
        BaseException.__setattr__(err, "__cause__", cause)
    return err


def without_cause(x: TaskError) -> TaskError:
    """The error with its traceback, and without the exception that the task raised."""
    message, name = x._said()
    y = TaskError(message, name=name, task=x.task)
    y.remote_traceback = x.remote_traceback
    return y


def original(x: BaseException) -> BaseException:
    """The exception that a task raised, with the TaskError and so the traceback as its cause; any other error as it is."""
    if not isinstance(x, TaskError) or x.cause is None:
        return x
    x.cause.__cause__ = without_cause(x)
    return x.cause


def _class_for(cls: type[BaseException]) -> type[TaskError]:
    """The class of a TaskError that is also a cls.

    What would end this process, interrupt it or end a loop or coroutine of it did so to the task only: here it is a task's error.
    """
    made = _combined.get(cls)
    if made is not None:
        return made
    if not issubclass(cls, Exception) or issubclass(cls, (StopIteration, StopAsyncIteration)):
        return TaskError
    try:
        made = type(f"TaskError({cls.__name__})", (TaskError, cls), {"__module__": TaskError.__module__})
    except Exception:
        made = TaskError  # the layouts conflict, or the type cannot be derived from
    _combined[cls] = made
    return made


def _remake_task(cause: Optional[BaseException], traceback: str, message: str, name: str, task: str) -> TaskError:
    return task_error(cause, traceback, message, name, task)
