"""Functions and actor types that a Go program has registered. init(go_program=...) names the program.

Arguments and results are plain data: None, bool, numbers, str, bytes, lists and dicts of these, references, and arrays of numbers
and Arrow record batches, which are read in place. Any other argument raises NotEncodableError, which names it. A reference as an
argument is passed as its value; if that is a pickled Python object, the Go function fails with NotDecodableError.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .. import _options, _runtime, _value
from .._callsites import CallSites
from .._refs import ObjectRef, bound
from .._wire import codec, hot
from .._wire import messages as m
from ..exceptions import InvalidError, NotEncodableError
from .actors import ActorHandle, ActorMethod, create, look_up
from .calls import Encoder, deadline, submit


def go_function(name: str, **options: Any) -> GoFunction:
    """Returns the function that a Go program has registered under a name.

        clean = mobula.go_function("spectrum/despike").remote(samples)

    options: those of a task. num_returns is the number of its results, 1 by default, or "streaming". InvalidError for a name that no Go
    program can register.
    """
    return GoFunction(name, options)


def go_actor(name: str, **options: Any) -> GoActorClass:
    """Returns the actor type that a Go program has registered under a name.

        counter = mobula.go_actor("app/counter", max_restarts=3).remote(10)
        mobula.get(counter.Inc.remote(1))

    options: those of an actor. InvalidError for a name that no Go program can register.
    """
    return GoActorClass(name, options)


def _check(name: str) -> None:
    if not isinstance(name, str) or not name or name.startswith(("py:", "mobula:")):
        raise InvalidError(f"{name!r} is no name that a Go program registers")


def _positional(name: str, kwargs: Mapping[str, Any]) -> None:
    if kwargs:
        raise TypeError(f"{name} is a function of Go: its arguments have no names, got {', '.join(kwargs)}")


def _plain(name: str) -> Encoder:
    """Returns the encoder for arguments of the function or method with this name."""

    def encode(x: Any, inline: int) -> _value.Encoded:
        try:
            return _value.encode_plain(x, inline)
        except NotEncodableError as why:
            raise NotEncodableError(f"an argument of {name}: {why.message}") from None

    return encode


class GoFunction:
    """A function of a Go program. Its calls are tasks in that program's workers."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        _check(name)
        _options.check(options, _options.TASK, f"task {name}")
        self.name = name
        self._options = dict(options)
        self._encode = _plain(name)
        o = _options.task(name, self._options)
        if isinstance(options.get("retry_exceptions"), (list, tuple)):
            raise InvalidError(f"task {name}: retry_exceptions={options['retry_exceptions']!r}: errors of Go have no Python types, want True or False")
        self._returns = o.num_returns
        self._field = hot.spec_options(m.TASK, codec.encode(o))
        self._callsites = CallSites()

    def options(self, **options: Any) -> GoFunction:
        """Returns the same function with other options."""
        return GoFunction(self.name, {**self._options, **options})

    def remote(self, /, *args: Any, **kwargs: Any) -> Any:
        """Submits a task and returns the reference to its result. With several results it returns a list of references, with a stream an
        ObjectRefGenerator, with none None."""
        _positional(self.name, kwargs)
        c = _runtime.client()
        tc = _runtime.context(c)
        tail = hot.spec_tail(deadline=deadline(c, _options.timeout(self._options)))
        return submit(c, tc, tc.next_task(), self._field, args, {}, self._returns, tail, self._encode, self._callsites.next())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.name} is a function of a Go program: call .remote()")

    def __repr__(self) -> str:
        return f"GoFunction({self.name})"

    def __reduce__(self) -> Any:
        return GoFunction, (self.name, self._options)


class GoActorClass:
    """An actor type of a Go program."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        _check(name)
        _options.check(options, _options.ACTOR, f"actor {name}")
        _options.actor(name, options, "", 1)
        self.name = name
        self._options = dict(options)

    def options(self, **options: Any) -> GoActorClass:
        """Returns the same actor type with other options."""
        return GoActorClass(self.name, {**self._options, **options})

    def remote(self, /, *args: Any, **kwargs: Any) -> GoActorHandle:
        """Makes an actor and returns its handle. It does not wait for the actor, unless the actor has a name: then it raises the
        constructor's error, or NameTakenError if another actor has the name."""
        _positional(self.name, kwargs)
        c = _runtime.client()
        o = _options.actor(self.name, self._options, c.welcome.namespace, 1)
        made, most = create(c, o, args, {}, _options.timeout(self._options), _plain(self.name))
        return GoActorHandle(made, self.name, most)

    def get(self, name: str, namespace: Optional[str] = None) -> GoActorHandle:
        """Returns a handle of the actor of this type with a name. NotFoundError if there is none."""
        found, _, most = look_up(name, namespace)
        return GoActorHandle(found, self.name, most)

    def bind(self, actor: ActorHandle[Any]) -> GoActorHandle:
        """Converts an ActorHandle that came inside a value into a handle of this type: values do not carry an actor's type."""
        return GoActorHandle(bound(actor._ref._c, actor._ref._h.id), self.name)

    def __repr__(self) -> str:
        return f"GoActorClass({self.name})"

    def __reduce__(self) -> Any:
        return GoActorClass, (self.name, self._options)


class GoActorHandle(ActorHandle[Any]):
    """A handle of an actor of a Go program. Its attributes are the methods registered for its type. Each has one result, unless
    .options(num_returns=...) says otherwise."""

    def __init__(self, ref: ObjectRef[Any], name: str, max_pending_calls: int = -1) -> None:
        super().__init__(ref, name, "", {}, max_pending_calls)

    def __getattr__(self, name: str) -> ActorMethod:
        if name.startswith("_"):
            raise AttributeError(name)
        made = GoMethod(self._ref, f"{self._name}.{name}", name, 1, "", {}, _plain(f"{self._name}.{name}"), self._pending_calls)
        self.__dict__[name] = made
        return made

    def __repr__(self) -> str:
        return f"GoActorHandle({self._name}, {self._id().hex()})"

    def __reduce__(self) -> Any:
        if not _value.found(self):
            self._ref._c.announcer.announce()
        made = self._h.id, self._name
        return _restore, made if self._pending_calls is None else (*made, self._pending_calls.most)


def _restore(id: bytes, name: str, max_pending_calls: int = -1) -> GoActorHandle:
    """Unpickles a handle; pickles name this function."""
    return GoActorHandle(bound(_runtime.client(), id), name, max_pending_calls)


class GoMethod(ActorMethod):
    """A method of an actor of a Go program."""

    __slots__ = ()

    def remote(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the method, as ActorMethod.remote does."""
        _positional(self._func, kwargs)
        return super().remote(*args)
