"""The exceptions of Mobula: a tree under MobulaError, with one class for each error code of the protocol.

    try:
        mobula.get(parse.remote("x"))
    except ValueError as e:          # a TaskError that is a ValueError too
        print(e.cause, e.remote_traceback)

If a task raises, get raises a TaskError that is also an instance of the exception's own type. The exception itself is the attribute
``cause``. Types that are no subclass of Exception, such as SystemExit, and StopIteration and StopAsyncIteration are left out, since they
would end or steer the caller's code: then the error is a TaskError only.

A TaskError has the attributes of the task's exception too. Its own attributes ``message``, ``name``, ``task``, ``stack``, ``causes``,
``cause`` and ``remote_traceback`` hide attributes of the same name, which ``cause`` still has. But if the class of the task's exception
defines ``message`` or ``name``, as ImportError and NameError define ``name`` and ExceptionGroup ``message``, this attribute is the
task's exception's.

``causes`` has the errors that an error wraps.
"""

from __future__ import annotations

import concurrent.futures
from typing import Any, Callable, ClassVar, Optional

import cbor2

from . import _exception_parts


class MobulaError(Exception):
    """Base class of all errors that Mobula raises."""

    code: ClassVar[int] = 0
    text: ClassVar[str] = ""

    task: str = ""
    stack: str = ""
    causes: tuple[MobulaError, ...] = ()
    _mobula_refs: tuple[Any, ...] = ()  # references that the error carries: they live as long as it does

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
        """The error's own message and name, even if a task's exception hides them."""
        own = self.__dict__
        return own.get("message", ""), own.get("name", "")

    def again(self) -> MobulaError:
        """A copy to raise. Raising a stored error again and again would gather tracebacks, which keep frames and their values alive."""
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
    """The task raised an exception. ``cause`` is that exception, ``remote_traceback`` the text of its traceback."""

    code = 1
    text = "task failed"

    cause: Optional[BaseException] = None
    remote_traceback: str = ""

    def __str__(self) -> str:
        if self.remote_traceback:
            return f"{self._said()[0]}\n{self.remote_traceback.rstrip()}"
        return super().__str__()

    def again(self) -> MobulaError:
        err = task_error(self.cause, self.remote_traceback, *self._said(), self.task, self.causes)
        if self._mobula_refs:
            err._mobula_refs = self._mobula_refs
        return err

    __copy__ = again  # the pickle has the cause in parts, which copy.copy does not put together

    def __reduce__(self) -> Any:
        return _remake_task, (_exception_parts.portable(self.cause), self.remote_traceback, *self._said(), self.task)


class WorkerCrashedError(MobulaError):
    """The worker process died, and the task has no retries left."""

    code = 2
    text = "worker process died"


class ActorError(MobulaError):
    """Base class of errors about the actor itself, not its code."""


class ActorDiedError(ActorError):
    """The actor is dead and will not restart."""

    code = 3
    text = "actor died"


class ActorUnavailableError(ActorError):
    """The actor is restarting. The call failed, and may be made again."""

    code = 4
    text = "actor unavailable"


class ObjectTooLargeError(MobulaError):
    """The object is larger than the whole object store."""

    code = 5
    text = "object larger than the store"


class StoreFullError(MobulaError):
    """The object store is full: nothing can be spilled, and the disk budget is used up."""

    code = 6
    text = "object store full"


class OutOfDiskError(MobulaError):
    """Every spill target is full, missing or failing."""

    code = 7
    text = "spill storage full"


class OutOfMemoryError(MobulaError):
    """The memory monitor killed the task's worker because memory was short."""

    code = 8
    text = "task killed by the memory monitor"


class ObjectLostError(MobulaError):
    """No copy of the object is left, and it cannot be made again."""

    code = 9
    text = "object lost"


class ObjectFreedError(ObjectLostError):
    """The object was freed: its last reference had been released."""

    code = 10
    text = "object freed"


class ReconstructionFailedError(ObjectLostError):
    """The object was lost, and the attempt to make it again failed."""

    code = 11
    text = "object could not be made again"


class OwnerDiedError(ObjectLostError):
    """The object's job, or the node, is gone."""

    code = 12
    text = "owner died"


class FetchTimedOutError(ObjectLostError, TimeoutError):
    """The object is stored, but its bytes did not come in time."""

    code = 13
    text = "object fetch timed out"


class GetTimeoutError(MobulaError, TimeoutError):
    """A get or another wait timed out. The references stay valid."""

    code = 14
    text = "get timed out"


class TaskCancelledError(MobulaError, concurrent.futures.CancelledError):
    """The task was cancelled."""

    code = 15
    text = "task cancelled"


class UnschedulableError(MobulaError):
    """The node does not have the resources that the task asks for, and never will."""

    code = 16
    text = "task can never be scheduled"


class PendingCallsLimitError(MobulaError):
    """The actor has as many calls under way as max_pending_calls allows."""

    code = 17
    text = "too many pending calls"


class RuntimeSetupError(MobulaError):
    """A node, worker or thread could not be started."""

    code = 18
    text = "process could not be started"


class UnknownFunctionError(MobulaError):
    """The worker does not know the function, class or method."""

    code = 19
    text = "function not registered"


class RegistryMismatchError(MobulaError):
    """A Go worker has registered other functions than its driver."""

    code = 20
    text = "driver and worker registries differ"


class NotEncodableError(MobulaError, TypeError):
    """A value cannot be encoded, for instance because it cannot be pickled."""

    code = 21
    text = "value cannot be encoded"


class NotDecodableError(MobulaError, TypeError):
    """A value cannot be decoded here."""

    code = 22
    text = "value cannot be decoded"


class NameTakenError(MobulaError, ValueError):
    """Another actor in the namespace has the name."""

    code = 23
    text = "actor name taken"


class NotFoundError(MobulaError, ValueError):
    """There is no actor, task or other thing with this name or id."""

    code = 24
    text = "not found"


class ShutdownError(MobulaError):
    """This process has no connection to a node any more, or the node is shutting down."""

    code = 25
    text = "runtime shut down"


class ViewClosedError(MobulaError):
    """A Go program used a view after closing it."""

    code = 26
    text = "view used after close"


class ProtocolError(MobulaError):
    """The other side of a connection sent something that the protocol does not allow."""

    code = 27
    text = "protocol violation"


class PermissionDeniedError(MobulaError, PermissionError):
    """A file, directory or node belongs to another user, or others can write to it."""

    code = 28
    text = "permission denied"


class InvalidError(MobulaError, ValueError):
    """An argument, option or setting is invalid."""

    code = 29
    text = "invalid argument"


class DeadlineError(MobulaError, TimeoutError):
    """The task did not end within the option timeout."""

    code = 30
    text = "deadline passed"


class PanicError(MobulaError):
    """A Go function panicked; ``stack`` has the Go stack."""

    code = 31
    text = "function panicked"


class ReturnMismatchError(MobulaError):
    """A task returned another number of results than num_returns, or a retry streamed another number of items."""

    code = 32
    text = "attempts differ in what they returned"


class SegmentUnavailableError(MobulaError):
    """Shared memory could not be mapped, reserved or written."""

    code = 33
    text = "shared memory cannot be reserved"


class ComponentFailedError(MobulaError):
    """A component of the node failed more often than its restart policy allows."""

    code = 34
    text = "component failed beyond its restart policy"


class UserError(MobulaError):
    """An error that a Go program registered, as a sentinel or as a type; ``name`` is its registered name.

    ``fields`` has the data of an error of a registered type, as plain data and references; None for a sentinel.
    """

    code = 35
    data: bytes = b""  # the CBOR of an error of a registered type

    @property
    def fields(self) -> Any:
        return _read_fields(self.data) if self.data else None

    def again(self) -> MobulaError:
        return _remake_user(self.data, *self._said(), self.task, self.stack, self.causes, self._mobula_refs)

    def __reduce__(self) -> Any:
        return _remake_user, (self.data, *self._said(), self.task, self.stack, self.causes, self._mobula_refs)


_read_fields: Callable[[bytes], Any] = cbor2.loads


def set_field_reader(f: Callable[[bytes], Any]) -> None:
    """Sets the function that decodes UserError.data, for data with references in it."""
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
    """The connection broke: the process at the other end is gone, or read nothing for too long."""

    code = 36
    text = "connection lost"


class BacklogError(MobulaError):
    """More messages wait for the other side than the limit allows. Nothing was sent."""

    code = 37
    text = "the other side reads too slowly"


class NoNodeError(MobulaError, ConnectionError):
    """No node runs at the address, or the mobula executable was not found."""

    code = 38
    text = "no node is running there"


class NodeRunningError(MobulaError):
    """Another node runs in the directory already."""

    code = 39
    text = "a node is running there already"


class VersionError(ProtocolError):
    """The node is of another release, or speaks other versions of the protocol."""

    code = 40
    text = "versions do not match"


class PythonError(MobulaError):
    """Stands for a task's exception that cannot be unpickled here. ``name`` lists its class and base classes, separated by commas."""

    code = 41
    text = "exception of a Python function"


class DeadlockError(MobulaError):
    """A call of an actor waits for another call of the same actor, which cannot begin before the first ends."""

    code = 42
    text = "waits for itself"


def _all(cls: type[MobulaError]) -> list[type[MobulaError]]:
    out = [cls]
    for sub in cls.__subclasses__():
        out += _all(sub)
    return out


BY_CODE: dict[int, type[MobulaError]] = {c.code: c for c in _all(MobulaError) if "code" in c.__dict__}

_combined: dict[type[BaseException], type[TaskError]] = {}
_MOST_COMBINED = 1000  # a task that defines the class of its exception gives this process a new one each time


def task_error(cause: Optional[BaseException], traceback: str, message: str, name: str = "",
               task: str = "", causes: tuple[MobulaError, ...] = ()) -> TaskError:
    """Makes a TaskError that is also an instance of the cause's type, if Python allows such a class. If the cause is itself a TaskError,
    the type is that of the first task's exception."""
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
                pass  # such an instance cannot be made: a plain TaskError has the exception as its cause
    if err is None:
        err = TaskError(message)
    vars(err).update(message=message, name=name, task=task, stack="", causes=causes, cause=cause, remote_traceback=traceback)
    if cause is not None:
        _exception_parts.stems(err, cause)
    return err


def without_cause(x: TaskError) -> TaskError:
    """A copy of the error with its remote traceback, but without its cause."""
    message, name = x._said()
    y = TaskError(message, name=name, task=x.task)
    y.remote_traceback = x.remote_traceback
    return y


def original(x: BaseException) -> BaseException:
    """The exception that a task raised. Its __cause__ is a TaskError with the remote traceback. Any other error is returned as it is."""
    if not isinstance(x, TaskError) or x.cause is None:
        return x
    _exception_parts.stems(x.cause, without_cause(x))
    return x.cause


def _class_for(cls: type[BaseException]) -> type[TaskError]:
    """A subclass of both TaskError and cls.

    It is plain TaskError for types that would end or interrupt this process, or end a loop or coroutine, if raised here.
    """
    made = _combined.get(cls)
    if made is not None:
        return made
    if not issubclass(cls, Exception) or issubclass(cls, (StopIteration, StopAsyncIteration)):
        return TaskError
    try:
        made = type(f"TaskError({cls.__name__})", (TaskError, cls), {"__module__": TaskError.__module__})
    except Exception:
        made = TaskError  # the instance layouts conflict, or cls cannot be subclassed
    if len(_combined) >= _MOST_COMBINED:
        _combined.clear()
    _combined[cls] = made
    return made


def _remake_task(cause: Optional[BaseException], traceback: str, message: str, name: str, task: str) -> TaskError:
    return task_error(cause, traceback, message, name, task)
