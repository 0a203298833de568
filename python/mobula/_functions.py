"""Functions and actor classes: how a worker finds the code of a task.

Whoever defines a function writes its cloudpickle once to <JobDir>/functions/<sha256 hex>, before the first Submit that
names it; the node says JobDir in its Welcome. The name of a task's function (TaskOptions.func) is

    py:<module.qualname>:<sha256>            a function, or the creation of an actor (its class)
    py:<module.qualname>.<method>:<sha256>   a call of an actor's method
    py:<module.qualname>                     the same by name, as programs of other languages call it: the worker imports
    py:<module.qualname>.<method>            it (_named), and its results are plain data
    <anything else>                          a function, actor type or method that a Go program registered

A worker reads a function once and keeps it.

The arguments of a Python function are its positional ones, then its keyword ones in any order; if there are keyword ones, a last
argument of the layout META_KWARGS holds their names, each ended by a zero byte. A reference as an argument is passed as its
value.

Who has found an actor by its name does not know how its methods are called. Their table (method_table) is in the file
<sha256 hex>.methods beside the class, as JSON, which who makes a named actor writes first; the node tells with the name which class it is, and
where. An actor whose maker is no Python program has none: there the method METHODS, which every actor has, gives the table, in
its turn among the actor's calls.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import pickle
import tempfile
import threading
from types import CodeType
from typing import Any, Callable, Optional, TypeVar

from ._value import pickler_for_functions
from .exceptions import InvalidError, RuntimeSetupError, UnknownFunctionError

# Code of ours that does nothing but call the user's: a task that is cancelled is interrupted there.
CALLS_USERS: set[CodeType] = set()

F = TypeVar("F", bound=Callable[..., Any])


def calls_users(f: F) -> F:
    """Says so of a function."""
    CALLS_USERS.add(f.__code__)
    return f


class Exported:
    """A function or class and its pickled form, made when it is first needed."""

    __slots__ = ("target", "name", "_data", "sha", "_dirs", "_lock")

    def __init__(self, target: Any) -> None:
        self.target = target
        self.name = f"{getattr(target, '__module__', '?')}.{getattr(target, '__qualname__', repr(target))}"
        self._data: Optional[bytes] = None
        self.sha = ""
        self._dirs: set[str] = set()
        self._lock = threading.RLock()

    def publish(self, job_dir: str) -> str:
        """Makes sure that the job's workers can find it; gives its hash."""
        if job_dir in self._dirs:
            return self.sha
        if not job_dir:
            raise RuntimeSetupError("the node names no directory for functions: it is too old to run Python tasks")
        with self._lock:
            if self._data is None:
                self._data = pickler_for_functions(self.target)
                self.sha = hashlib.sha256(self._data).hexdigest()
            write(job_dir, self.sha, self._data)
            self._dirs.add(job_dir)
        return self.sha

    def publish_methods(self, job_dir: str, methods: dict[str, tuple[int, str]]) -> None:
        """Makes sure that who finds an actor of this class by its name can call it at once."""
        write(job_dir, self.publish(job_dir) + _METHODS_FILE, json.dumps(methods).encode())

    def __reduce__(self) -> Any:  # one that travels keeps only what it stands for
        return Exported, (self.target,)


_METHODS_FILE = ".methods"


def write(job_dir: str, name: str, data: bytes) -> None:
    """Writes a function's file, whole or not at all."""
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


def load(job_dir: str, sha: str) -> Any:
    """The function or class with a hash."""
    f = _loaded.get(sha)
    if f is None:
        try:
            with open(os.path.join(job_dir, "functions", sha), "rb") as file:
                data = file.read()
        except OSError as x:
            raise UnknownFunctionError(f"function {sha[:12]} of the job is not in {job_dir}: {x.strerror}") from None
        if hashlib.sha256(data).hexdigest() != sha:
            raise UnknownFunctionError(f"function {sha[:12]}: its file in {job_dir} is damaged")
        f = _loaded[sha] = pickle.loads(data)
    return f


def split_name(func: str) -> tuple[str, str]:
    """Name and hash in a task's function; no hash in one that is called by name."""
    kind, name, sha = (func.split(":", 2) + ["", ""])[:3]
    if kind != "py" or not name:
        raise UnknownFunctionError(f"{func!r} is no Python function")
    return name, sha


def by_name(func: str) -> bool:
    """Whether a Python function is called by its name alone."""
    return ":" not in func[3:]


# What @method says of a method; None: nothing.
MARK = "__mobula_method__"

METHODS = "__mobula_methods__"


def method_table(cls: type[Any]) -> dict[str, tuple[int, str]]:
    """The methods of an actor's class: how many results each has by default, -1 for a stream, and its concurrency group."""
    out: dict[str, tuple[int, str]] = {}
    for name in dir(cls):
        if name.startswith("__") and name not in ("__call__", "__enter__", "__exit__"):
            continue
        f = inspect.getattr_static(cls, name, None)
        if isinstance(f, (staticmethod, classmethod)):
            f = f.__func__
        if not callable(f):
            continue
        said: dict[str, Any] = getattr(f, MARK, {})
        n = said.get("num_returns")
        if n is None:
            n = -1 if inspect.isgeneratorfunction(f) or inspect.isasyncgenfunction(f) else 1
        out[name] = (count_returns(n), said.get("concurrency_group", ""))
    return out


def published_methods(job_dir: str, func: str) -> Optional[dict[str, tuple[int, str]]]:
    """The methods of the actor that func made, as its maker wrote them; None where it did not."""
    kind, _, sha = (func.split(":", 2) + ["", ""])[:3]
    if kind != "py" or not sha or not job_dir:
        return None
    try:
        with open(os.path.join(job_dir, "functions", sha + _METHODS_FILE), "rb") as file:
            return {name: (returns, group) for name, (returns, group) in json.load(file).items()}
    except OSError:
        return None


def count_returns(n: Any) -> int:
    """num_returns as the wire has it."""
    if n in ("streaming", "dynamic", -1):
        return -1
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= 1 << 20:
        raise InvalidError(f"num_returns={n!r}: want a number, or \"streaming\"")
    return n


def is_async(cls: type[Any]) -> bool:
    """Whether an actor runs in an event loop: one of its methods is a coroutine."""
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f)
               for _, f in inspect.getmembers(cls, predicate=inspect.isfunction))
