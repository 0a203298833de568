"""Connecting this process to a node, and leaving it."""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from typing import Any, Mapping, Optional, Sequence, Union

from .. import _node, _runtime
from .._client import Client
from .._wire import messages as m
from ..exceptions import InvalidError, VersionError
from .state import html

_state = _runtime.state
_starting = threading.RLock()
_LAST_SPANS = 2.0  # seconds that they have


def init(address: Optional[str] = None, *, num_cpus: Optional[int] = None, num_gpus: Optional[float] = None,
         object_store_memory: Optional[int] = None, resources: Optional[Mapping[str, float]] = None, namespace: Optional[str] = None,
         ignore_reinit_error: bool = False,
         settings: Optional[Mapping[str, Any]] = None, worker_processes: str = "template",
         go_program: Union[str, Sequence[str], None] = None, log_to_driver: bool = True) -> Context:
    """Connects this process to a node.

    Without an address, and without MOBULA_ADDRESS, a node is started that ends with this process: num_cpus, num_gpus,
    object_store_memory (bytes) and resources are its own; settings are others of `mobula start`, by the flag's name. An address is the node's socket
    or its directory, or "auto" for the one that runs: that of MOBULA_ADDRESS, else the node in MOBULA_DIR, else
    the one that `mobula start` started for this user.

    worker_processes: "template" forks workers from a process that has imported what the program has; "fresh" starts an
    interpreter each.

    go_program: the executable whose functions go_function and go_actor call, or a list of it and its arguments: a program
    that uses Mobula's Go package, and begins with mobula.Main or mobula.WorkerMain. Its workers start with the first call.

    log_to_driver: what the workers of a node of init's own write, by print, warnings and loggers, is written to this process'
    standard error too, each line with its worker before it: "(worker/3) ". `mobula logs worker/3` shows all that one wrote,
    whether the node is init's own or not.
    """
    with _starting:
        if _state.client is not None:
            if ignore_reinit_error or _state.worker is not None:
                return Context(_state.client)
            raise InvalidError("mobula.init() was called before: call mobula.shutdown() first, or say ignore_reinit_error=True")
        address = address or os.environ.get("MOBULA_ADDRESS") or None
        node = None
        if address is None:
            all_settings = dict(settings or {})
            if num_cpus is not None:
                if num_cpus <= 0:
                    raise InvalidError(f"num_cpus={num_cpus}: want more than 0; leave it out for all CPUs of the machine")
                all_settings["cpus"] = num_cpus
            if object_store_memory is not None:
                all_settings["store-size"] = object_store_memory
            if named := _amounts(resources, num_gpus):
                all_settings["resources"] = ",".join(f"{k}={v}" for k, v in named.items())
            node = _node.Node(all_settings, log_to_driver)
            address = node.address
        elif num_cpus is not None or num_gpus is not None or object_store_memory is not None or resources or settings:
            raise InvalidError("num_cpus, num_gpus, object_store_memory, resources and settings are a new node's: a node with an address "
                               "has its own")
        try:
            hello = m.Hello(role=m.DRIVER, pid=os.getpid(), environ=_environ(), namespace=namespace or "", program=program(worker_processes),
                            others=_others(go_program))
            c = Client(_node.socket_of(address), hello, True)
        except BaseException as x:
            if node is not None:
                node.stop()
                if isinstance(x, VersionError):
                    raise VersionError(f"{node.binary}: {x.message}") from None
            raise
        c.start()
        _state.client, _state.node = c, node
        return Context(c)


def _environ() -> bytes:
    """This process' environment, as it is now: the workers get it, and nothing of the node's."""
    return b"".join(k + b"=" + v + b"\0" for k, v in os.environb.items())


def _amounts(resources: Optional[Mapping[str, float]], num_gpus: Optional[float]) -> dict[str, float]:
    """What a node has beside CPUs and memory."""
    named = dict(resources or {})
    if num_gpus is not None:
        if num_gpus < 0:
            raise InvalidError(f"num_gpus={num_gpus}: want 0 or more")
        if "GPU" in named:
            raise InvalidError(f"num_gpus={num_gpus} and resources={named!r}: GPUs are named twice")
        if num_gpus:
            named["GPU"] = num_gpus
    return named


# What takes long to import and starts no threads that a fork would lose.
_PRELOAD = ("numpy", "pandas", "pyarrow", "dask", "dask.array", "dask.dataframe", "xarray", "mobula.dask")


def program(how: str) -> m.Program:
    """How the node starts this driver's workers."""
    if how not in ("template", "fresh"):
        raise InvalidError(f"worker_processes={how!r}: want \"template\" or \"fresh\"")
    config = {"path": [os.path.abspath(p or ".") for p in sys.path], "version": "%d.%d" % sys.version_info[:2],
              "preload": [name for name in _PRELOAD if name in sys.modules], "cwd": os.getcwd()}
    module = "_template" if how == "template" else "_worker"
    # The program's own path finds the package and the program's modules, installed or not.
    start = f"import sys,json;c=json.loads(sys.argv[1]);sys.path[:]=c['path'];from mobula.{module} import main;main(c)"
    argv = [sys.executable, "-c", start, json.dumps(config)]
    return m.Program("python", "%d.%d" % sys.version_info[:2], argv, True, how == "template")


def _others(go_program: Union[str, Sequence[str], None]) -> list[m.Program]:
    """What workers of further languages run."""
    if go_program is None:
        return []
    argv = [go_program] if isinstance(go_program, str) else list(go_program)
    path = os.path.abspath(argv[0]) if argv else ""
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        raise InvalidError(f"go_program={go_program!r}: there is no executable file {path!r}")
    return [m.Program("go", "", [path, *argv[1:]])]


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
            if c.spans.waiting:
                c.spans.flush(_LAST_SPANS)
            c.close()
        if node is not None:
            node.stop()


def leave(c: Client) -> None:
    """Shuts down, if this is still the connection."""
    with _starting:
        if _state.client is c:
            shutdown()


def _exit() -> None:
    """The interpreter ends: all that is left are daemon threads, which are to begin nothing and to say nothing."""
    _state.exiting = True
    c = _state.client
    if c is not None:
        c.exiting = True
    shutdown()


atexit.register(_exit)


def is_initialized() -> bool:
    return _state.client is not None


class Context:
    """What init gives; as a context manager it shuts down at the end."""

    def __init__(self, c: Client) -> None:
        self.address = c.address
        self.node = c.welcome.node
        self.namespace = c.welcome.namespace
        self.job_id = c.welcome.job

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exc: object) -> None:
        shutdown()

    def __repr__(self) -> str:
        return f"Context(address={self.address!r}, node={self.node!r}, job_id={self.job_id})"

    def _repr_html_(self) -> str:
        return html()
