"""The public functions, by Ray's names."""

from __future__ import annotations

import atexit
import inspect
import json
import os
import sys
import threading
import time
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union, overload

import cbor2

from . import _functions, _ids, _node, _options, _runtime, _value
from ._client import Client, Handle, TaskContext, answer_error
from ._functions import Exported, count_returns
from ._refs import ObjectRef, ObjectRefGenerator, load
from ._wire import codec, hot
from ._wire import messages as m
from .exceptions import InvalidError, MobulaError, NotFoundError, ShutdownError

_current = _runtime.current
_state = _runtime.state
_ZERO = bytes(4)
LEARN_TIMEOUT = 60.0
_starting = threading.RLock()


# ---- connecting


def init(address: Optional[str] = None, *, num_cpus: Optional[int] = None, object_store_memory: Optional[int] = None,
         resources: Optional[Mapping[str, float]] = None, namespace: Optional[str] = None, ignore_reinit_error: bool = False,
         settings: Optional[Mapping[str, Any]] = None, worker_processes: str = "template") -> "Context":
    """Connects this process to a node.

    Without an address, and without MOBULA_ADDRESS, a node is started that ends with this process: num_cpus, object_store_memory
    (bytes) and resources are its own; settings are others of `mobula start`, by the flag's name. An address is the node's socket or its
    directory, or "auto" for the one that `mobula start` started for this user.

    worker_processes: "template" forks workers from a process that has imported what the program has; "fresh" starts an interpreter each.
    """
    with _starting:
        if _state.client is not None:
            if ignore_reinit_error or _state.worker is not None:
                return Context(_state.client)
            raise InvalidError("mobula.init() was called before: call mobula.shutdown() first, or say ignore_reinit_error=True")
        address = address or os.environ.get("MOBULA_ADDRESS")
        node = None
        if address is None:
            all_settings = dict(settings or {})
            if num_cpus is not None:
                all_settings["cpus"] = num_cpus
            if object_store_memory is not None:
                all_settings["store-size"] = object_store_memory
            if resources:
                all_settings["resources"] = ",".join(f"{k}={v}" for k, v in resources.items())
            node = _node.Node(all_settings)
            address = node.address
        elif num_cpus is not None or object_store_memory is not None or resources or settings:
            raise InvalidError("num_cpus, object_store_memory, resources and settings are a new node's: a node with an address has its own")
        try:
            hello = m.Hello(role=m.DRIVER, pid=os.getpid(), namespace=namespace or "", program=program(worker_processes))
            c = Client(_node.socket_of(address), hello, True)
        except BaseException:
            if node is not None:
                node.stop()
            raise
        c.start()
        _state.client, _state.node = c, node
        return Context(c)


def program(how: str) -> m.Program:
    """How the node starts this driver's workers."""
    if how not in ("template", "fresh"):
        raise InvalidError(f"worker_processes={how!r}: want \"template\" or \"fresh\"")
    config = {"path": [os.path.abspath(p or ".") for p in sys.path], "version": "%d.%d" % sys.version_info[:2],
              "preload": [name for name in ("numpy", "pandas", "pyarrow") if name in sys.modules], "cwd": os.getcwd()}
    module = "_template" if how == "template" else "_worker"
    # The program's own path finds the package and the program's modules, installed or not.
    start = f"import sys,json;c=json.loads(sys.argv[1]);sys.path[:]=c['path'];from mobula.{module} import main;main(c)"
    return m.Program("python", "%d.%d" % sys.version_info[:2], [sys.executable, "-c", start, json.dumps(config)], True, how == "template")


def _begin() -> None:
    with _starting:
        if _state.client is None:
            init()


_state.begin = _begin


def shutdown() -> None:
    """Leaves the node: the job ends, with its objects and its actors that are not detached. A node of init's own ends too."""
    with _starting:
        c, node = _state.client, _state.node
        _state.client = _state.node = None
        if c is not None:
            c.close()
        if node is not None:
            node.stop()


atexit.register(shutdown)


def is_initialized() -> bool:
    return _state.client is not None


class Context:
    """What init gives; as a context manager it shuts down at the end."""

    def __init__(self, c: Client) -> None:
        self.address = c.address
        self.node = c.welcome.node
        self.namespace = c.welcome.namespace
        self.job_id = c.welcome.job

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *exc: object) -> None:
        shutdown()

    def __repr__(self) -> str:
        return f"Context(address={self.address!r}, node={self.node!r}, job_id={self.job_id})"


# ---- arguments


def encode_args(c: Client, tc: TaskContext, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[bytes, int, list[Handle]]:
    """The encoded arguments, what they cost, and handles to give up after the submit."""
    out: list[bytes] = []
    cost = 512
    large: list[Handle] = []
    values: Iterable[Any] = args
    if kwargs:
        values = [*args, *kwargs.values()]
    inline = c.inline
    for x in values:
        if type(x) is ObjectRef:
            if x._h.client is not c:
                raise InvalidError(f"{x!r} is of another connection")
            out.append(hot.arg_ref(x._h.id))
            cost += 64
            continue
        e = _value.encode(x, inline)
        if e.data is None:
            h = c.put_large(tc.next_put(), tc.attempt, tc.task if tc is not c.root else b"", e.meta, e.size, e.parts, e.refs, tc=tc)
            assert h is not None
            large.append(h)
            out.append(hot.arg_ref(h.id))
            cost += 64
        else:
            out.append(hot.arg_value(e.meta, e.data, e.refs))
            cost += 64 + len(e.meta) + e.size
    if kwargs:
        names = "".join(k + "\0" for k in kwargs).encode()
        out.append(hot.arg_value(_value.META_KWARGS, names))
        cost += 80 + len(names)
    return b"".join(out), cost, large


def _pack(c: Client, tc: TaskContext, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[bytes, list[Handle]]:
    """The arguments of a call, which may go out now, and what is to be let go once it has."""
    if c.dead is not None:
        raise c.dead.again()
    packed, cost, large = encode_args(c, tc, args, kwargs)
    if c.credit.left is not None:
        c.credit.admit(cost, tc)
    tc.called = True
    return packed, large


def _results(c: Client, task: bytes, returns: int) -> Any:
    """What stands for the results of a task."""
    if returns == 1:
        return ObjectRef(c.adopt(task + _ZERO))
    if returns < 0:
        return ObjectRefGenerator(c, task)
    if returns == 0:
        return None
    return [ObjectRef(c.adopt(_ids.return_id(task, i))) for i in range(returns)]


def _submit(c: Client, tc: TaskContext, task: bytes, options: bytes, args: Sequence[Any], kwargs: Mapping[str, Any], returns: int,
            tail: bytes) -> Any:
    """Queues a task and gives what stands for its results."""
    packed, large = _pack(c, tc, args, kwargs)
    result = _results(c, task, returns)
    c.out.append(hot.submit(task, tc.parent_field, options, packed, tail + tc.trace if tc.trace else tail))
    c.maybe_flush()
    if large:
        c.dropped.extend(large)
    return result


def _deadline(timeout: Optional[float]) -> int:
    return 0 if timeout is None else time.time_ns() + int(timeout * 1e9)


# ---- functions


class RemoteFunction:
    """A function whose calls are tasks."""

    def __init__(self, target: Exported, options: Mapping[str, Any]) -> None:
        _options.check(options, _options.TASK, f"task {target.name}")
        self._target = target
        self._options = dict(options)
        self._for: Optional[Client] = None
        self._field = b""
        self._returns = 1
        self._timeout: Optional[float] = options.get("timeout")
        if "num_returns" not in self._options and inspect.isgeneratorfunction(target.target):
            self._options["num_returns"] = "streaming"
        _options.task("", self._options)  # what is wrong is said where it is written
        self.__name__ = getattr(target.target, "__name__", "function")
        self.__qualname__ = getattr(target.target, "__qualname__", self.__name__)
        self.__doc__ = getattr(target.target, "__doc__", None)
        self.__module__ = getattr(target.target, "__module__", None) or ""
        self.__wrapped__ = target.target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self._target.name} is remote: call {self.__name__}.remote() for a task, or {self.__name__}.__wrapped__() for the function itself")

    def options(self, **options: Any) -> "RemoteFunction":
        """The same function with other options."""
        return RemoteFunction(self._target, {**self._options, **options})

    def _prepare(self, c: Client) -> None:
        sha = self._target.publish(c.welcome.job_dir)
        o = _options.task(f"py:{self._target.name}:{sha}", self._options)
        self._field = hot.spec_options(m.TASK, codec.encode(o))
        self._returns = o.num_returns
        self._for = c

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        """Submits a task. Gives the reference to its result: a list of several, a generator of a stream, None of none."""
        c = _state.client
        if c is None:
            c = _runtime.client()
        if self._for is not c:
            self._prepare(c)
        tc = _current.get()
        if tc is None or tc.client is not c:
            tc = c.fallback
        task = tc.derive(next(tc.calls))
        tail = hot.spec_tail(deadline=_deadline(self._timeout)) if self._timeout is not None else b""
        return _submit(c, tc, task, self._field, args, kwargs, self._returns, tail)

    def __reduce__(self) -> Any:
        return RemoteFunction, (self._target, self._options)


def method(*, num_returns: Union[int, str, None] = None, concurrency_group: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Says how a method of an actor is called: how many results it has, and in which concurrency group it runs."""

    def mark(f: Callable[..., Any]) -> Callable[..., Any]:
        if num_returns is not None:
            count_returns(num_returns)
        setattr(f, _functions.MARK, {"num_returns": num_returns, "concurrency_group": concurrency_group})
        return f

    return mark


# ---- actors


class ActorClass:
    """A class whose instances are actors."""

    def __init__(self, target: Exported, options: Mapping[str, Any]) -> None:
        _options.check(options, _options.ACTOR, f"actor {target.name}")
        self._target = target
        self._options = dict(options)
        self._methods = _functions.method_table(target.target)
        _options.actor("", self._options, "", 1)
        self.__name__ = getattr(target.target, "__name__", "actor")
        self.__doc__ = getattr(target.target, "__doc__", None)
        self.__wrapped__ = target.target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self._target.name} is an actor: make one with {self.__name__}.remote()")

    def options(self, **options: Any) -> "ActorClass":
        return ActorClass(self._target, {**self._options, **options})

    def remote(self, *args: Any, **kwargs: Any) -> "ActorHandle":
        """Makes an actor. That of an anonymous one is not waited for; that of a named one is, because the name may be taken."""
        c = _runtime.client()
        tc = _runtime.context(c)
        sha = self._target.publish(c.welcome.job_dir)
        concurrency = 1000 if _functions.is_async(self._target.target) else 1
        o = _options.actor(f"py:{self._target.name}:{sha}", self._options, c.welcome.namespace, concurrency)
        task = tc.next_task()
        tail = hot.spec_tail(task, 0, _deadline(self._options.get("timeout")))
        ref: ObjectRef[Any] = _submit(c, tc, task, hot.spec_options(m.ACTOR_CREATE, codec.encode(o)), args, kwargs, 1, tail)
        handle = ActorHandle(c.bind(ref._h.id), self._target.name, sha, self._methods)
        if o.actor_name:
            res, reading = c.fetch_one(ref._h, None, tc)
            if res.kind == m.ERROR:
                raise answer_error(res)
            del reading
            if len(res.data) == 16 and res.data != task:  # with get_if_exists it may be another actor
                return ActorHandle(c.bind(_ids.return_id(res.data, 0)), self._target.name, sha, self._methods)
        return handle

    def __reduce__(self) -> Any:
        return ActorClass, (self._target, self._options)


class ActorHandle:
    """Names an actor; made of a handle on its creation, whose share is then this one's. The actor ends when no handle on it is left; a detached one lives until it is killed."""

    _h: Handle
    _ref: "ObjectRef[Any]"
    _name: str
    _sha: str
    _methods: Optional[dict[str, tuple[int, str]]]

    def __init__(self, handle: Handle, name: str, sha: str, methods: Optional[dict[str, tuple[int, str]]]) -> None:
        d = self.__dict__
        d["_h"] = handle
        d["_ref"] = ObjectRef.__new__(ObjectRef)
        d["_ref"]._h = handle
        d["_name"] = name
        d["_sha"] = sha
        d["_methods"] = methods

    def __getattr__(self, name: str) -> "ActorMethod":
        if name.startswith("__") and name != "__call__":
            raise AttributeError(name)
        methods = self._methods
        if methods is None:
            methods = self._learn()
        said = methods.get(name)
        if said is None:
            raise AttributeError(f"actor {self._name} has no method {name!r}")
        made = ActorMethod(self._ref, self._name, self._sha, name, said[0], said[1], {})
        self.__dict__[name] = made
        return made

    def _learn(self) -> dict[str, tuple[int, str]]:
        """Asks the actor what methods it has, which who found it by name does not know."""
        found: dict[str, tuple[int, str]] = get(ActorMethod(self._ref, self._name, self._sha, _functions.METHODS, 1, "", {}).remote(), timeout=LEARN_TIMEOUT)
        self.__dict__["_methods"] = found
        return found

    def _id(self) -> bytes:
        return self._h.id[:16]

    @property
    def _actor_id(self) -> str:
        return self._id().hex()

    @property
    def _mobula_ref(self) -> tuple[bytes, int]:
        return self._h.id, _value.TAG_ACTOR

    def __repr__(self) -> str:
        return f"ActorHandle({self._name}, {self._id().hex()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActorHandle) and other._h.id == self._h.id

    def __hash__(self) -> int:
        return hash(self._h.id)

    def __reduce__(self) -> Any:
        _value.found(self._h.id)
        return restore_actor, (self._h.id, self._name, self._sha, self._methods)


def restore_actor(id: bytes, name: str, sha: str, methods: Optional[dict[str, tuple[int, str]]]) -> ActorHandle:
    """The handle found in a value."""
    return ActorHandle(_runtime.client().bind(id), name, sha, methods)


class ActorMethod:
    """A method of an actor. It keeps the actor, but not the handle that keeps it: a cycle would need a collection to go."""

    __slots__ = ("_ref", "_class", "_sha", "_name", "_returns", "_group", "_options", "_field", "_timeout")

    def __init__(self, ref: "ObjectRef[Any]", cls: str, sha: str, name: str, returns: int, group: str, options: Mapping[str, Any]) -> None:
        _options.check(options, _options.CALL, f"method {name}")
        self._ref = ref
        self._class = cls
        self._sha = sha
        self._name = name
        self._group = group
        self._options = options
        said: dict[str, Any] = {"num_returns": "streaming" if returns < 0 else returns, "concurrency_group": group, **options}
        o = _options.call(f"py:{cls}.{name}:{sha}", said)
        self._returns = o.num_returns
        self._field = hot.spec_options(m.ACTOR_CALL, codec.encode(o))
        self._timeout: Optional[float] = options.get("timeout")

    def options(self, **options: Any) -> "ActorMethod":
        return ActorMethod(self._ref, self._class, self._sha, self._name, self._returns, self._group, {**self._options, **options})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self._name} is an actor's method: call {self._name}.remote()")

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the method. Calls of one caller run in their order."""
        h = self._ref._h
        c = h.client
        tc = _current.get()
        if tc is None or tc.client is not c:
            tc = c.fallback
        packed, large = _pack(c, tc, args, kwargs)
        actor = h.id[:16]
        task = tc.derive(next(tc.calls))
        result = _results(c, task, self._returns)
        deadline = _deadline(self._timeout) if self._timeout is not None else 0
        order = tc.order(actor)
        with order.lock:  # the order of the numbers is the order on the wire
            order.seq += 1
            c.out.append(hot.submit(task, tc.parent_field, self._field, packed, hot.spec_tail(actor, order.seq, deadline, tc.trace)))
        c.maybe_flush()
        if large:
            c.dropped.extend(large)
        return result


@overload
def remote(target: type[Any], /) -> ActorClass: ...
@overload
def remote(target: Callable[..., Any], /) -> RemoteFunction: ...
@overload
def remote(**options: Any) -> Callable[[Any], Any]: ...


def remote(*args: Any, **options: Any) -> Any:
    """Makes a function's calls tasks, and a class's instances actors: as a decorator, with options or without."""
    if args:
        if len(args) != 1 or options or not callable(args[0]):
            raise InvalidError("use @remote, or @remote(num_cpus=2, ...) with keywords only")
        return _make(args[0], {})

    def decorate(target: Any) -> Any:
        return _make(target, options)

    return decorate


def _make(target: Any, options: Mapping[str, Any]) -> Any:
    if isinstance(target, (RemoteFunction, ActorClass)):
        raise InvalidError(f"{target.__name__} is remote already")
    if inspect.isclass(target):
        return ActorClass(Exported(target), options)
    if not callable(target):
        raise InvalidError(f"{target!r} is neither a function nor a class")
    if inspect.iscoroutinefunction(target):
        raise InvalidError(f"{getattr(target, '__name__', target)} is a coroutine: only methods of actors can be")
    return RemoteFunction(Exported(target), options)


# ---- objects


def put(value: Any, *, portable: bool = False) -> "ObjectRef[Any]":
    """Makes an object of a value, once, to pass to many tasks. portable lays lists and dicts of plain data out as any language reads them."""
    if isinstance(value, ObjectRef):
        raise TypeError("put of an ObjectRef: it names an object already")
    c = _state.client
    if c is None:
        c = _runtime.client()
    tc = _current.get()
    if tc is None or tc.client is not c:
        tc = c.fallback
    e = _value.encode_plain(value, c.inline) if portable else _value.encode(value, c.inline)
    id = tc.next_put()
    if e.data is not None:
        return ObjectRef(c.put_small(id, e.meta, e.data, e.refs))
    h = c.put_large(id, tc.attempt, tc.task if tc is not c.root else b"", e.meta, e.size, e.parts, e.refs, tc=tc)
    assert h is not None
    return ObjectRef(h)


def get(refs: Any, *, timeout: Optional[float] = None) -> Any:
    """Waits for objects and gives their values, in order; a single reference gives a single value.

    Arrays are read in place and are read-only: they are the store's own memory, pinned as long as anything views them.
    The error of an object is raised; GetTimeoutError when the time runs out: the references stay valid.
    """
    if type(refs) is ObjectRef:
        h = refs._h
        c = h.client
        res = h.res
        if res is not None and res.kind == m.INLINE:
            return _value.decode(res.meta, res.data)
        tc = _current.get()
        if tc is None:
            tc = c.fallback
        res, reading = c.fetch_one(h, None if timeout is None else time.monotonic() + timeout, tc)
        return load(c, res, reading)
    if isinstance(refs, ObjectRefGenerator):
        raise TypeError("get of a generator: iterate over it, each item is a reference")
    refs = list(refs)
    if not refs:
        return []
    hs = _handles(refs, "get")
    c = hs[0].client
    return [load(c, res, reading) for res, reading in c.fetch(hs, timeout, _runtime.context(c))]


def _handles(refs: Sequence[Any], what: str) -> list[Handle]:
    hs = []
    for r in refs:
        if type(r) is not ObjectRef:
            raise TypeError(f"{what}: want ObjectRefs, got {r!r} of type {type(r).__name__}")
        hs.append(r._h)
    if any(h.client is not hs[0].client for h in hs):
        raise InvalidError(f"{what}: the references are of different connections")
    return hs


def wait(refs: Sequence["ObjectRef[Any]"], *, num_returns: int = 1, timeout: Optional[float] = None,
         fetch_local: bool = True) -> tuple[list["ObjectRef[Any]"], list["ObjectRef[Any]"]]:
    """Waits until num_returns of the references are ready, with a value or an error, or the time is over; gives those and the rest."""
    if isinstance(refs, ObjectRef):
        raise TypeError("wait: want a list of references")
    refs = list(refs)
    if len(set(refs)) != len(refs):
        raise ValueError("wait: the references must be unique")
    if num_returns <= 0 or num_returns > len(refs):
        if not refs:
            return [], []
        raise ValueError(f"wait: num_returns={num_returns} of {len(refs)} references")
    hs = _handles(refs, "wait")
    hs[0].client.ready(hs, num_returns, timeout, _runtime.context(hs[0].client))
    ready: list[ObjectRef[Any]] = []
    rest: list[ObjectRef[Any]] = []
    for r in refs:
        if len(ready) < num_returns and r._h.res is not None:
            ready.append(r)
        else:
            rest.append(r)
    return ready, rest


def cancel(ref: Union["ObjectRef[Any]", ObjectRefGenerator], *, force: bool = False, recursive: bool = True) -> None:
    """Cancels a task. With force its process is killed; with recursive what it has submitted is cancelled too."""
    if isinstance(ref, ObjectRefGenerator):
        ref._client.cancel(ref._task, force, recursive)
        return
    if not isinstance(ref, ObjectRef):
        raise TypeError(f"cancel: want an ObjectRef, got {type(ref).__name__}")
    if _ids.is_put(ref._h.id):
        raise InvalidError(f"{ref!r} was put: there is no task to cancel")
    ref._h.client.cancel(ref._h.id[:16], force, recursive)


def kill(actor: ActorHandle, *, no_restart: bool = True) -> None:
    """Ends an actor, its running calls too."""
    if not isinstance(actor, ActorHandle):
        raise TypeError(f"kill: want an actor, got {type(actor).__name__}")
    actor._h.client.kill(actor._id(), not no_restart)


def get_actor(name: str, namespace: Optional[str] = None) -> ActorHandle:
    """Finds an actor by its name; NotFoundError where there is none."""
    c = _runtime.client()
    reply = request("actor.get", {"namespace": namespace or c.welcome.namespace, "name": name})
    id = reply.get("actor") or b""
    if len(id) != 16:
        raise NotFoundError(f"actor {name!r}")
    return ActorHandle(c.bind(_ids.return_id(id, 0)), name, "0", None)


# ---- looking around


def request(method: str, body: Any, timeout: float = 30.0) -> Any:
    """Asks the node something that is on no task's path."""
    return cbor2.loads(_runtime.client().request(method, cbor2.dumps(body), timeout))


def _status() -> dict[str, Any]:
    status: dict[str, Any] = request("node.status", None)
    return status


def nodes() -> list[dict[str, Any]]:
    """The nodes: name, whether it lives, address, process and resources."""
    s = _status()
    return [{"NodeID": s["node"], "NodeName": s["node"], "Alive": True, "Address": s["address"], "PID": s["pid"], "Version": s["version"],
             "Resources": {k: r["total"] for k, r in s["resources"].items()}, "ObjectStoreMemory": s["store"]["limit"]}]


def cluster_resources() -> dict[str, float]:
    """What there is of each resource; memory in bytes."""
    s = _status()
    return {**{k: float(r["total"]) for k, r in s["resources"].items()}, "object_store_memory": float(s["store"]["limit"])}


def available_resources() -> dict[str, float]:
    """What is free of each resource now."""
    s = _status()
    return {**{k: float(r["free"]) for k, r in s["resources"].items()}, "object_store_memory": float(s["store"]["limit"] - s["store"]["held"])}


class RuntimeContext:
    """Where this code runs."""

    def __init__(self, c: Client, tc: TaskContext) -> None:
        self._c = c
        self._tc = tc

    @property
    def job_id(self) -> int:
        return self._c.welcome.job

    @property
    def node_id(self) -> str:
        return self._c.welcome.node

    @property
    def namespace(self) -> str:
        return self._c.welcome.namespace

    @property
    def gcs_address(self) -> str:
        return self._c.address

    @property
    def worker_id(self) -> int:
        return self._c.welcome.client

    @property
    def task_id(self) -> Optional[str]:
        """The task's id; None in the driver."""
        return None if self._tc is self._c.root else self._tc.task.hex()

    @property
    def attempt(self) -> int:
        return self._tc.attempt

    @property
    def actor_id(self) -> Optional[str]:
        id: bytes = getattr(self._tc, "actor", b"")
        return id.hex() if id else None

    @property
    def current_actor(self) -> ActorHandle:
        """The handle of the actor that runs this code."""
        handle = getattr(self._tc, "actor_handle", None)
        made = handle() if handle is not None else None
        if made is None:
            raise InvalidError("this code runs in no actor")
        assert isinstance(made, ActorHandle)
        return made

    def get_job_id(self) -> int:
        return self.job_id

    def get_node_id(self) -> str:
        return self.node_id

    def get_task_id(self) -> Optional[str]:
        return self.task_id

    def get_actor_id(self) -> Optional[str]:
        return self.actor_id

    def get_worker_id(self) -> int:
        return self.worker_id

    def get(self) -> dict[str, Any]:
        return {"job_id": self.job_id, "node_id": self.node_id, "namespace": self.namespace, "task_id": self.task_id, "actor_id": self.actor_id,
                "worker_id": self.worker_id, "attempt": self.attempt}


def get_runtime_context() -> RuntimeContext:
    c = _runtime.client()
    return RuntimeContext(c, _runtime.context(c))


def _bind_cbor(id: bytes, tag: int) -> Any:
    c = _runtime.client()
    if tag == _value.TAG_ACTOR:
        return ActorHandle(c.bind(id), "actor", "0", None)
    return ObjectRef(c.bind(id))


_value.set_binder(_bind_cbor)

__all__ = ["ActorClass", "ActorHandle", "ActorMethod", "Context", "MobulaError", "RemoteFunction", "RuntimeContext", "ShutdownError",
           "available_resources", "cancel", "cluster_resources", "get", "get_actor", "get_runtime_context", "init", "is_initialized",
           "kill", "method", "nodes", "put", "remote", "shutdown", "wait"]
