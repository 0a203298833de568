"""Functions and actor classes: how a worker finds the code of a task.

The process that defines a function pickles it with cloudpickle and writes it once to <JobDir>/functions/<sha256 hex>, before
the first Submit that names it. The node's Welcome has JobDir. On another node than the job's the directory is another one: a worker that does not
find a function there asks its node for it, and one that defines a function has its node pass it on. The name of a task's function (TaskOptions.func) is

    py:<module.qualname>:<sha256>            a function, or a class whose instance is to be an actor
    py:<module.qualname>:<sha256>+           the same, and it is no file: it is the value of the call's last argument, which is not passed on
    py:<module.qualname>.<method>:<sha256>   a method of an actor
    py:<module.qualname>                     the same for callers in other languages: the worker imports the name
    py:<module.qualname>.<method>            (_resolve), and the results are plain data
    <anything else>                          a function, actor type or method that a Go program registered

The name may have any characters, also colons: what follows the last colon is the hash.

A worker reads a function once and keeps it. Functions that refer to objects, large ones, and those beyond MOST_FILES are values in the store
(_stored).

A list of types in retry_exceptions is published as a function is: TaskOptions.retry_only is its hash, or <sha256>+ if the list is in the store. Then
it is the call's last argument, or the last but one if the function is in the store too.

A call has its positional arguments first, then its keyword arguments in any order. If there are keyword arguments, one more
argument of layout META_KWARGS follows: their names, each ended by a zero byte. An argument that is a reference is passed as
its value.

A process that finds an actor by name needs the table of its methods (method_table). The process that makes a named actor first
writes that table as JSON to <sha256 hex>.methods beside the class; the node's answer to a look-up names the class and the
directory. An actor that was made from another language has no such file. Its callers call METHODS, a method that
every actor has, which returns the table; it waits its turn among the actor's calls.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
import pickle
import tempfile
import threading
from types import CodeType
from typing import Any, Callable, NamedTuple, Optional, Protocol, Sequence, TypeVar

import cbor2

from . import _callables, _ids, _runtime
from ._client import Client
from ._refs import ObjectRef
from ._stored import LARGE, put_function
from ._value import pickler_for_functions
from ._wire import messages as m
from .exceptions import InvalidError, RuntimeSetupError, UnknownFunctionError

# Functions of this package that only call the user's code. A cancelled task may be interrupted inside them.
USER_CODE_CALLERS: set[CodeType] = set()

F = TypeVar("F", bound=Callable[..., Any])


def calls_user_code(f: F) -> F:
    """Marks a function as one that only calls the user's code, and its comprehensions, which before Python 3.12 run in frames of their own."""
    USER_CODE_CALLERS.add(f.__code__)
    USER_CODE_CALLERS.update(c for c in f.__code__.co_consts if isinstance(c, CodeType))
    return f


class Connected(Protocol):
    """The connection to a node."""

    welcome: m.Welcome

    def request(self, method: str, body: bytes, timeout: Optional[float] = None) -> bytes: ...


def _is_away(c: Connected) -> bool:
    """Whether this is a worker on another node than its job's."""
    return _ids.home(c.welcome.client) != _ids.home(c.welcome.job)


def _ask(c: Connected, method: str, sha: str) -> None:
    c.request(method, cbor2.dumps({"job": c.welcome.job, "hash": bytes.fromhex(sha)}))


class _Pickle(NamedTuple):
    """A function's pickle for one connection. data is empty once the function is put for good."""

    of: Client
    data: bytes
    sha: str
    refs: Sequence[Any]  # the references in it, which live at least until it is put
    stored: bool  # it is a value in the store, and no file


class Exported:
    """A function or class, and its pickle, which is made on first use. A file of the job has the pickle; or, if it refers to objects or is
    large, or the job has MOST_FILES of them, an object of the store.
    """

    __slots__ = ("target", "name", "_pickle", "_dirs", "_ref", "_lock")

    def __init__(self, target: Any) -> None:
        self.target = target
        self.name = name_of(target)
        self._pickle: Optional[_Pickle] = None
        self._dirs: set[str] = set()
        self._ref: Optional[ObjectRef[Any]] = None
        self._lock = threading.RLock()

    def publish(self, c: Client) -> str:
        """Returns the function's hash, as TaskOptions.func has it. Writes the function to the job's directory, unless it is there already, or is
        an argument of each call."""
        return self._made(c).sha + STORED if self.stored(c) else self.write(c)

    def write(self, c: Client) -> str:
        """Writes the function to the job's directory, unless it is there, and returns its hash."""
        job_dir = c.welcome.job_dir
        made = self._made(c)
        if job_dir not in self._dirs:
            if not job_dir:
                raise RuntimeSetupError("the node names no directory for functions: it is too old to run Python tasks")
            with self._lock:
                write(job_dir, made.sha, made.data)
                if _is_away(c):
                    _ask(c, "function.offer", made.sha)
                self._dirs.add(job_dir)
        return made.sha

    def stored(self, c: Client) -> bool:
        """Whether the function is a value in the store, which each call has among its last arguments (argument)."""
        return self._made(c).stored

    def argument(self, c: Client) -> ObjectRef[Any]:
        """The reference to the function's object. The function keeps it, and so all that it refers to.

        In a worker a task keeps it: the functions that a worker has loaded would hold one another there, across processes.
        """
        tc = _runtime.context(c)
        made = self._made(c)
        lasting = c.worker is None or not made.refs
        ref = self._ref if lasting else tc.functions.get(made.sha)
        if ref is not None and ref._c is c:
            return ref
        ref = put_function(c, tc, made.sha, made.data, made.refs)
        if lasting:
            self._ref, self._pickle = ref, made._replace(data=b"", refs=())
        else:
            tc.functions[made.sha] = ref
        return ref

    def _made(self, c: Client) -> _Pickle:
        made = self._pickle
        if made is not None and (made.of is c or (not made.refs and made.data)):
            return made
        with self._lock:
            refs: list[Any] = []
            data = pickler_for_functions(self.target, refs)
            sha = hashlib.sha256(data).hexdigest()
            made = self._pickle = _Pickle(c, data, sha, refs, bool(refs) or len(data) > LARGE or not _files.room(c.welcome.job_dir, sha))
        return made

    def publish_methods(self, c: Client, methods: dict[str, tuple[int, str]]) -> None:
        """Writes the table of the class's methods, for processes that find the actor by name. Without room for a file they ask the actor."""
        name = self._made(c).sha + _METHODS_FILE
        if _files.room(c.welcome.job_dir, name):
            write(c.welcome.job_dir, name, json.dumps(methods).encode())

    def __reduce__(self) -> Any:  # a pickle has the target alone
        return Exported, (self.target,)


STORED = "+"  # behind the hash of a function, or of the types in retry_exceptions: it is among the call's last arguments
_MAX_NAME = 500


def described(target: Any) -> tuple[str, str]:
    """The module and the qualified name of a callable: of the function in a functools.partial, of the class for any other object without a
    name. Never its repr, which may have anything in it, in any length."""
    while isinstance(target, functools.partial):
        target = target.func
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if not isinstance(name, str) or not name:
        module, name = type(target).__module__, type(target).__qualname__
    if not isinstance(module, str):
        module = ""
    return _sendable(module), _sendable(name)


def _sendable(name: str) -> str:
    return name[:_MAX_NAME].encode("utf-8", "replace").decode()


def name_of(target: Any) -> str:
    """A callable's name in TaskOptions.func."""
    module, name = described(target)
    return f"{module or '?'}.{name}"


_METHODS_FILE = ".methods"

# A file stays until its job ends, and so does what a worker has loaded of it. A value goes when nobody can call the function any more.
MOST_FILES = 4096  # of a job on a node, and some more: processes that write files at the same time do not count each other's
_RECOUNT = 64  # files


class _Files:
    """The number of files in the job's directory of functions, as far as this process knows."""

    def __init__(self) -> None:
        self._counting = threading.RLock()
        self._dir = ""
        self._count = 0
        self._asked = 0  # since they were counted

    def room(self, job_dir: str, name: str) -> bool:
        """Whether the file is there, or one more may be."""
        folder = os.path.join(job_dir, "functions")
        with self._counting:
            if folder != self._dir or (self._asked >= _RECOUNT and self._count < MOST_FILES):
                self._dir, self._asked = folder, 0
                self._count = len(os.listdir(folder)) if os.path.isdir(folder) else 0
            if self._count < MOST_FILES:
                self._asked += 1
                self._count += 1  # a file that is there already is counted twice, until the next count
                return True
        return os.path.exists(os.path.join(folder, name))


_files = _Files()


def write(job_dir: str, name: str, data: bytes) -> None:
    """Writes a file for a function, atomically."""
    folder = os.path.join(job_dir, "functions")
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return
    os.makedirs(folder, 0o700, exist_ok=True)
    fd, temporary = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(data)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


_loaded: dict[str, Any] = {}


def load(c: Connected, sha: str) -> Any:
    """The function or class with a hash. The process keeps it for the next call."""
    f = _loaded.get(sha)
    if f is None:
        job_dir = c.welcome.job_dir
        try:
            if _is_away(c) and not os.path.exists(os.path.join(job_dir, "functions", sha)):
                _ask(c, "function.fetch", sha)
            with open(os.path.join(job_dir, "functions", sha), "rb") as file:
                data = file.read()
        except OSError as x:
            raise UnknownFunctionError(f"function {sha[:12]} of the job is not in {job_dir}: {x.strerror}") from None
        if hashlib.sha256(data).hexdigest() != sha:
            raise UnknownFunctionError(f"function {sha[:12]}: its file in {job_dir} is damaged")
        f = _loaded[sha] = pickle.loads(data)
    return f


def split_name(func: str) -> tuple[str, str]:
    """Splits TaskOptions.func into name and hash. The hash of a function called by name is empty."""
    kind, _, rest = func.partition(":")
    name, colon, sha = rest.rpartition(":")
    if not colon:
        name, sha = rest, ""
    if kind != "py" or not name:
        raise UnknownFunctionError(f"{func!r} is no Python function")
    return name, sha.removesuffix(STORED)


def by_name(func: str) -> bool:
    """Whether TaskOptions.func names a function without a hash."""
    return ":" not in func[3:]


def shown(func: str) -> str:
    """TaskOptions.func as lists and errors show it: without its hash."""
    kind, _, rest = func.partition(":")
    return (rest.rpartition(":")[0] or rest) if kind == "py" else func


# The attribute in which @method keeps its options.
MARK = "__mobula_method__"

METHODS = "__mobula_methods__"


def method_table(cls: type[Any]) -> dict[str, tuple[int, str]]:
    """The methods of an actor's class by name: the default number of results, -1 for a stream, and the concurrency group."""
    out: dict[str, tuple[int, str]] = {}
    for name in dir(cls):
        if name.startswith("__") and name not in ("__call__", "__enter__", "__exit__"):
            continue
        f = inspect.getattr_static(cls, name, None)
        said = _callables.marked(f, MARK)
        if not said and not _callables.is_method(cls, name):
            continue
        n = said.get("num_returns")
        if n is None:
            n = -1 if _callables.is_stream(f) else 1
        out[name] = (count_returns(n), said.get("concurrency_group", ""))
    return out


def published_methods(job_dir: str, func: str) -> Optional[dict[str, tuple[int, str]]]:
    """The table of methods that was written for an actor of class func; None if there is none."""
    sha = split_name(func)[1] if func.startswith("py:") else ""
    if not sha or not job_dir:
        return None
    try:
        with open(os.path.join(job_dir, "functions", sha + _METHODS_FILE), "rb") as file:
            return {name: (returns, group) for name, (returns, group) in json.load(file).items()}
    except OSError:
        return None


def count_returns(n: Any) -> int:
    """num_returns as a number: -1 is a stream."""
    if n in ("streaming", "dynamic", -1):
        return -1
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= 1 << 20:
        raise InvalidError(f"num_returns={n!r}: want a number, or \"streaming\"")
    return n


def is_async(cls: type[Any]) -> bool:
    """Whether an actor of this class runs in an event loop: at least one method is a coroutine."""
    static = (inspect.getattr_static(cls, name, None) for name in dir(cls))
    return any(inspect.isasyncgenfunction(g) or inspect.iscoroutinefunction(g) for f in static for g in _callables.functions_of(f))
