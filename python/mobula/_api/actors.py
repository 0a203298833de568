"""Actor classes, handles of actors, and their methods."""

from __future__ import annotations

from functools import partialmethod, singledispatchmethod
from typing import TYPE_CHECKING, Any, Callable, Generic, Iterable, Mapping, NoReturn, Optional, Sequence, TypeVar, Union

from .. import _callables, _functions, _html, _ids, _options, _runtime, _trace, _value
from .._callsites import CallSites, callsite
from .._client import Client, Handle, answer_error
from .._functions import Exported, count_returns
from .._refs import ObjectRef, bound, made
from .._wire import codec, hot
from .._wire import messages as m
from ..exceptions import InvalidError, NotFoundError, UnknownFunctionError
from .calls import Encoder, deadline, pack, results, submit
from .objects import get
from .pending_calls import PendingCalls, pending_calls_of
from .signatures import P, Remote
from .state import request

_current = _runtime.current
LEARN_TIMEOUT = 60.0
_ASKED = ("_repr_", "_ipython_")  # notebooks ask any object for methods of such names

T_co = TypeVar("T_co", covariant=True)
M = TypeVar("M", bound=Union[Callable[..., Any], "partialmethod[Any]", "singledispatchmethod[Any]"])


def method(*, num_returns: Union[int, str, None] = None,
           concurrency_group: str = "") -> Callable[[M], M]:
    """Decorates a method of an actor class with options for its calls.

        @mobula.method(num_returns=2, concurrency_group="io")
        def split(self, path): ...

    num_returns: the number of results, each with a reference of its own, or "streaming". concurrency_group: a group that the
    actor's option concurrency_groups defines. InvalidError if num_returns is neither.
    """

    def mark(f: M) -> M:
        if num_returns is not None:
            count_returns(num_returns)
        setattr(f, _functions.MARK, {"num_returns": num_returns, "concurrency_group": concurrency_group})
        return f

    return mark


def create(c: Client, o: m.TaskOptions, args: Sequence[Any], kwargs: Mapping[str, Any], timeout: Optional[float],
           encode: Encoder = _value.encode, stored: Iterable[Exported] = ()) -> tuple[ObjectRef[Any], int]:
    """Makes an actor, or with get_if_exists finds the one that has the name. Returns the reference to its creation, and the limit
    of its pending calls, -1 if it has none. stored: the actor's class, if it is in the store."""
    tc = _runtime.context(c)
    task = tc.next_task()
    if not o.actor_name and tc.attempt > 1:  # the actor that an earlier attempt has made may be ending or dead
        task = _ids.derive(task, tc.attempt)
    if o.actor_name:
        c.flush()  # a handle that was dropped may be the last one of an actor of that name
    field = hot.spec_options(m.ACTOR_CREATE, codec.encode(o))
    ref: ObjectRef[Any] = submit(c, tc, task, field, args, kwargs, 1, hot.spec_tail(task, 0, deadline(c, timeout)), encode, callsite(), stored)
    if o.actor_name:
        res, _ = c.getter.fetch_one(ref._h, None, tc)
        if res.kind == m.ERROR:
            raise answer_error(res)
        found = bound(c, _ids.return_id(res.data, 0))
        if found != ref:  # get_if_exists has found an existing actor
            return found, _limit(o, found)
    return ref, o.max_pending_calls


def _limit(o: m.TaskOptions, actor: ObjectRef[Any]) -> int:
    """The limit of pending calls of an existing actor; -1 if it has none."""
    try:
        named, _, most = look_up(o.actor_name, o.namespace)
    except NotFoundError:  # the actor has died meanwhile
        return -1
    return most if named == actor else -1


class ActorHandle(Generic[T_co]):
    """A handle of an actor: its attributes are the actor's methods.

        counter = Counter.remote()
        mobula.get(counter.add.remote(1))

    Handles can be passed to tasks and actors. An actor ends when its last handle is gone; a detached actor lives until it is killed or
    stopped. An unknown method raises AttributeError.
    """

    _ref: ObjectRef[Any]  # to the result of the actor's creation
    _h: Handle  # of _ref; code that holds the references found in a value needs it
    _name: str
    _sha: str
    _methods: Optional[dict[str, tuple[int, str]]]
    _pending_calls: Optional[PendingCalls]

    def __init__(self, ref: ObjectRef[Any], name: str, sha: str, methods: Optional[dict[str, tuple[int, str]]],
                 max_pending_calls: int = -1) -> None:
        d = self.__dict__
        d["_ref"] = ref
        d["_h"] = ref._h
        d["_name"] = name
        d["_sha"] = sha
        d["_methods"] = methods
        d["_pending_calls"] = pending_calls_of(ref._c, self._id(), max_pending_calls)

    def __getattr__(self, name: str) -> ActorMethod:
        if name.startswith(("__", *_ASKED)) and name != "__call__":
            raise AttributeError(name)  # do not ask the actor
        methods = self._methods
        if methods is None:
            methods = self._learn()
        said = methods.get(name)
        if said is None:
            raise AttributeError(f"actor {self._name} has no method {name!r}")
        made = self._method(name, said[0], said[1])
        self.__dict__[name] = made
        return made

    def _method(self, name: str, returns: int, group: str) -> ActorMethod:
        return ActorMethod(self._ref, f"py:{self._name}.{name}:{self._sha}", name, returns, group, {}, _value.encode, self._pending_calls)

    def _learn(self) -> dict[str, tuple[int, str]]:
        """Asks the actor for its methods, since no table of them was written. The answer waits its turn among the actor's calls."""
        ask = self._method(_functions.METHODS, 1, "").options(wait_for_room=True)
        try:
            found: dict[str, tuple[int, str]] = get(ask.remote(), timeout=LEARN_TIMEOUT)
        except UnknownFunctionError:
            raise InvalidError(f"{self!r} is an actor of a Go program: use go_actor(type).bind(handle), or "
                               "go_actor(type).get(name)") from None
        self.__dict__["_methods"] = found
        return found

    def _id(self) -> bytes:
        return self._h.id[:_ids.TASK]

    @property
    def _actor_id(self) -> str:
        return self._id().hex()

    @property
    def _mobula_ref(self) -> tuple[bytes, int]:
        return self._h.id, _value.TAG_ACTOR

    def __repr__(self) -> str:
        return f"ActorHandle({self._name}, {self._id().hex()})"

    def _repr_html_(self) -> str:
        shown = {"class": self._name, "id": self._id().hex()}
        if self._methods is not None:
            shown["methods"] = ", ".join(sorted(self._methods))
        return _html.table("ActorHandle", shown)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActorHandle) and other._ref == self._ref

    def __hash__(self) -> int:
        return hash(self._ref)

    def __reduce__(self) -> Any:
        if not _value.found(self):
            self._ref._c.announcer.announce()
        made = self._h.id, self._name, self._sha, self._methods
        return restore_actor, made if self._pending_calls is None else (*made, self._pending_calls.most)


class ActorClass(Remote[P, ActorHandle[T_co]]):
    """What mobula.remote makes of a class: remote(...) makes an actor.

        Counter = mobula.remote(Counts)
        counter = Counter.options(name="c", lifetime="detached").remote()

    Its other attributes are those of the class, in this process: constants, static and class methods, nested classes, but no methods of
    instances. options and remote are always its own; __wrapped__ is the class. isinstance and issubclass take it as the
    class, and so do annotations: Counter | None, Stack[int].
    """

    def __init__(self, target: Exported, options: Mapping[str, Any]) -> None:
        _options.check(options, _options.ACTOR, f"actor {target.name}")
        _options.actor("", options, "", 1)
        cls = target.target
        self.__target = target  # names that no attribute of the class has
        self.__options = dict(options)
        self.__methods = _functions.method_table(cls)
        self.__concurrency = 1000 if _functions.is_async(cls) else 1
        self.__name__ = getattr(cls, "__name__", "actor")
        self.__qualname__ = getattr(cls, "__qualname__", "actor")
        self.__module__ = getattr(cls, "__module__", None) or ""
        self.__doc__ = getattr(cls, "__doc__", None)
        self.__wrapped__ = cls

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> NoReturn:
        raise TypeError(f"{self.__target.name} is an actor: make one with {self.__name__}.remote()")

    def __mro_entries__(self, bases: Any) -> Any:
        name = self.__name__
        raise TypeError(f"{self.__target.name} is an actor: derive from the class itself, {name}.__wrapped__, and make an actor of "
                        "what derives from it")

    def options(self, **options: Any) -> ActorClass[P, T_co]:
        """Returns the same class with other options. InvalidError for an unknown option or a wrong value."""
        return ActorClass(self.__target, {**self.__options, **options})

    def __create(self, /, *args: Any, **kwargs: Any) -> ActorHandle[T_co]:
        """Makes an actor with these constructor arguments and returns its handle.

        It does not wait for the actor, unless the actor has a name: then it waits for the constructor, and raises its error, or
        NameTakenError if another actor has the name.
        """
        c = _runtime.client()
        func = self.__target.publish(c)
        sha = func.removesuffix(_functions.STORED)
        o = _options.actor(f"py:{self.__target.name}:{func}", self.__options, c.welcome.namespace, self.__concurrency)
        if o.actor_name:
            self.__target.publish_methods(c, self.__methods)
        stored = (self.__target,) if self.__target.stored(c) else ()
        made, most = create(c, o, args, kwargs, _options.timeout(self.__options), stored=stored)
        return ActorHandle(made, self.__target.name, sha, self.__methods, most)

    if not TYPE_CHECKING:  # its types are those of Remote, and a type checker knows the attributes of the class itself
        remote = __create

        def __getattr__(self, name: str) -> Any:
            cls = self.__dict__.get("__wrapped__")
            if cls is None or name.startswith(_ASKED):
                raise AttributeError(name)
            try:
                found = getattr(cls, name)
            except AttributeError:
                raise AttributeError(f"actor class {self.__name__} has no attribute {name!r}", name=name, obj=self) from None
            if name.startswith("__") and callable(found):
                raise AttributeError(name)  # pickle, copy, Dask and others would take the instances' methods for those of this object
            if _callables.binds(cls, name):  # nor may pickle find it here: a method by name is one of another class than the actor's
                raise AttributeError(f"{name} is a method of {self.__name__}: make an actor with {self.__name__}.remote(), or take "
                                     f"{self.__name__}.__wrapped__.{name}", name=name, obj=self)
            return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith(("__", "_ActorClass__")):
            self.__dict__[name] = value
        else:
            setattr(self.__wrapped__, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.__wrapped__)})

    def __getitem__(self, parameters: Any) -> ActorClass[P, T_co]:
        """Takes the parameters of a generic class, as in Stack[int], which mean nothing when it runs."""
        self.__wrapped__[parameters]  # an error if it is not generic
        return self

    __iter__ = None  # Python would take __getitem__ for that of a sequence

    def __or__(self, other: Any) -> Any:
        return Union[self, other]

    def __ror__(self, other: Any) -> Any:
        return Union[other, self]

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, self.__wrapped__)

    def __subclasscheck__(self, cls: Any) -> bool:
        return issubclass(cls.__wrapped__ if isinstance(cls, ActorClass) else cls, self.__wrapped__)

    def __reduce__(self) -> Any:
        return ActorClass, (self.__target, self.__options)


def restore_actor(id: bytes, name: str, sha: str, methods: Optional[dict[str, tuple[int, str]]], max_pending_calls: int = -1) -> ActorHandle[Any]:
    """Unpickles a handle; pickles name this function."""
    return ActorHandle(bound(_runtime.client(), id), name, sha, methods, max_pending_calls)


class ActorMethod:
    """A method of an actor. It refers to the actor's ObjectRef and not to the handle, which has the method in its __dict__: a cycle would
    have to wait for the garbage collector."""

    __slots__ = ("_ref", "_func", "_name", "_returns", "_group", "_options", "_encode", "_pending_calls", "_field", "_timeout", "_callsites")

    def __init__(self, ref: ObjectRef[Any], func: str, name: str, returns: int, group: str, options: Mapping[str, Any],
                 encode: Encoder, pending_calls: Optional[PendingCalls] = None) -> None:
        _options.check(options, _options.CALL, f"method {name}")
        self._ref = ref
        self._func = func
        self._name = name
        self._group = group
        self._options = options
        self._encode = encode
        self._pending_calls = pending_calls
        said: dict[str, Any] = {"num_returns": "streaming" if returns < 0 else returns, "concurrency_group": group, **options}
        o = _options.call(func, said)
        self._returns = o.num_returns
        self._field = hot.spec_options(m.ACTOR_CALL, codec.encode(o))
        self._timeout = _options.timeout(options)
        self._callsites = CallSites()

    def options(self, **options: Any) -> ActorMethod:
        """Returns the same method with other options for its calls: num_returns, name, concurrency_group, timeout, wait_for_room, backpressure."""
        all_options = {**self._options, **options}
        return type(self)(self._ref, self._func, self._name, self._returns, self._group, all_options, self._encode, self._pending_calls)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self._name} is an actor's method: call {self._name}.remote()")

    def remote(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the method and returns a reference to its result. With several results it returns a list of references, with a stream an
        ObjectRefGenerator, with none None.

        Calls of one caller come to the actor in the order in which they were made. PendingCallsLimitError if the actor has as many calls
        under way as max_pending_calls allows, unless the option wait_for_room is set.
        """
        if self._pending_calls is None:
            return self._call(args, kwargs)
        place = self._pending_calls.reserve(self._ref._c, self._name, bool(self._options.get("wait_for_room")))
        known: list[ObjectRef[Any]] = []
        try:
            return self._call(args, kwargs, known)
        finally:
            self._pending_calls.called(place, known[0] if known else None)

    def _call(self, args: Sequence[Any], kwargs: Mapping[str, Any], known: Optional[list[ObjectRef[Any]]] = None) -> Any:
        """Makes the call. If known is given, a reference that is resolved by the end of the call is appended to it."""
        c, h = self._ref._c, self._ref._h
        tc = _current.get()
        if tc is None or tc.client is not c:
            tc = c.fallback
        packed, keep = pack(c, tc, args, kwargs, self._encode)
        actor = h.id[:_ids.TASK]
        task = tc.derive(next(tc.calls))
        result = results(c, task, self._returns)
        until = deadline(c, self._timeout) if self._timeout is not None else 0
        traced = _trace.field(tc, task, self._callsites.next())
        end: Optional[ObjectRef[Any]] = None
        if known is not None:
            if self._returns <= 0:
                end = made(c, _ids.return_id(_ids.derive(task, m.END_OF_CALL), 0))
                traced += hot.promises([m.END_OF_CALL])
            else:
                end = result if self._returns == 1 else result[0]
        order, out = tc.order(actor), c.out
        while True:
            seq = order.seq + 1
            call = iter((hot.submit(task, tc.parent_field, self._field, packed, hot.spec_tail(actor, seq, until, traced)),))
            if seq == order.seq + 1:  # whole: a number that is skipped or used twice blocks all later calls
                order.seq = seq
                out += call
                break
        if known is not None and end is not None:
            known.append(end)
        c.maybe_flush()
        del keep  # not before the submit
        return result


def kill(actor: ActorHandle[Any], *, no_restart: bool = True) -> None:
    """Ends an actor at once. Its running and waiting calls fail.

    no_restart: with False the actor restarts as after a crash, if max_restarts allows it. TypeError if actor is no ActorHandle.
    """
    if not isinstance(actor, ActorHandle):
        raise TypeError(f"kill: want an actor, got {type(actor).__name__}")
    actor._ref._c.kill(actor._id(), not no_restart)


def get_actor(name: str, namespace: Optional[str] = None) -> ActorHandle[Any]:
    """Returns a handle of the actor with a name. namespace: by default the one given to init.

    NotFoundError if there is none, or the one that had it is ending. For an actor of a Go program use go_actor(type).get(name).
    """
    found, methods, most = look_up(name, namespace)
    return ActorHandle(found, name, "0", methods, most)


def look_up(name: str, namespace: Optional[str]) -> tuple[ObjectRef[Any], Optional[dict[str, tuple[int, str]]], int]:
    """Looks an actor up by name. Returns the reference to its creation, the table of its methods if there is one, and the limit of its
    pending calls. NotFoundError if there is none."""
    c = _runtime.client()
    reply = request("actor.get", {"namespace": namespace or c.welcome.namespace, "name": name})
    actor: bytes = reply.get("actor") or b""
    if not actor:
        raise NotFoundError(f"actor {name!r}")
    methods = _functions.published_methods(reply.get("job_dir") or "", reply.get("type") or "")
    return bound(c, _ids.return_id(actor, 0)), methods, reply.get("max_pending_calls", -1)


def _bind_cbor(id: bytes, tag: int) -> Any:
    c = _runtime.client()
    if tag == _value.TAG_ACTOR:
        return ActorHandle(bound(c, id), "actor", "0", None)
    return bound(c, id)


_value.set_binder(_bind_cbor)
