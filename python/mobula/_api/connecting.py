"""Connects this process to a node, and disconnects it."""

from __future__ import annotations

import atexit
import json
import os
import site
import sys
import sysconfig
import threading
from typing import Any, Mapping, Optional, Sequence, Union

from .. import _node, _options, _runtime
from .._client import Client
from .._wire import messages as m
from ..exceptions import InvalidError, VersionError
from .state import html

_state = _runtime.state
_starting = threading.RLock()
_LAST_SPANS = 2.0  # seconds to send the last spans


def init(address: Optional[str] = None, *, num_cpus: Optional[int] = None, num_gpus: Optional[float] = None,
         object_store_memory: Optional[int] = None, resources: Optional[Mapping[str, float]] = None, namespace: Optional[str] = None,
         ignore_reinit_error: bool = False,
         settings: Optional[Mapping[str, Any]] = None, worker_processes: str = "template",
         go_program: Union[str, Sequence[str], None] = None, log_to_driver: bool = True) -> Context:
    """Connects this process to a node, and starts one if there is no address.

        with mobula.init(num_cpus=4, object_store_memory=2 << 30):
            ...

    address: a node's socket or directory; or "auto": the node at MOBULA_ADDRESS, else the one in MOBULA_DIR, else the one that
    `mobula start` started for this user. By default MOBULA_ADDRESS. If that is not set either, init starts a node that ends with this process.
    HOST:PORT is a cluster on other machines: init starts a node that ends with this process, joins the cluster with the token in MOBULA_TOKEN
    (mobula token create --role driver prints one), and runs no work of others unless num_cpus says so. The cluster's nodes must reach this machine.

    num_cpus, num_gpus, object_store_memory (bytes), resources (amounts by name): of a node that init starts. settings: other
    settings of that node, by the names of the flags of `mobula start`. All of these are refused together with the address of a node.

    namespace: of actor names. ignore_reinit_error: returns the existing connection if there is one, where init otherwise raises InvalidError.

    worker_processes: "template" forks workers from a process that has imported the same large packages as this one; "fresh"
    starts a new interpreter for each worker.

    go_program: the executable whose functions go_function and go_actor call, or a list of it and its arguments. It uses Mobula's Go
    package and begins with mobula.Main or mobula.WorkerMain. Its workers start with the first call.

    log_to_driver: copies the output of the workers of a node that init starts to this process' standard error. Each line begins with its
    worker, "(worker/3) ". `mobula logs worker/3` shows all that a worker wrote, of any node.

    Raises NoNodeError if no node runs at the address or the mobula executable is missing, VersionError if package and node are of different
    releases, RuntimeSetupError if the node does not start, and InvalidError for invalid arguments.
    """
    with _starting:
        if _state.client is not None:
            if ignore_reinit_error or _state.worker is not None:
                return Context(_state.client)
            raise InvalidError("mobula.init() was called before: call mobula.shutdown() first, or say ignore_reinit_error=True")
        address = address or os.environ.get("MOBULA_ADDRESS") or None
        node = None
        joins = address is not None and _node.is_network(address)
        if joins and not os.environ.get("MOBULA_TOKEN"):
            raise InvalidError(f"{address!r} is the host and port of a cluster: to join it, MOBULA_TOKEN must have a token, as mobula token create "
                               "--role driver prints it; a node on this machine is named by its socket or directory, as mobula start prints them")
        if address is None or joins:
            all_settings = dict(settings or {})
            if joins:
                all_settings.update(join=address, role="driver")
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
            hello = m.Hello(role=m.DRIVER, pid=os.getpid(), environ=_environ(), namespace=_options.sendable("namespace", namespace or ""),
                            program=program(worker_processes), others=_others(go_program))
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
    """This process' environment. The workers get it, and not the node's."""
    return b"".join(k + b"=" + v + b"\0" for k, v in os.environb.items())


def _amounts(resources: Optional[Mapping[str, float]], num_gpus: Optional[float]) -> dict[str, float]:
    """The resources of a new node besides CPUs and memory."""
    named = dict(resources or {})
    if num_gpus is not None:
        if num_gpus < 0:
            raise InvalidError(f"num_gpus={num_gpus}: want 0 or more")
        if "GPU" in named:
            raise InvalidError(f"num_gpus={num_gpus} and resources={named!r}: GPUs are named twice")
        if num_gpus:
            named["GPU"] = num_gpus
    return named


# Where packages are installed. It is asked at once: a program that becomes another user may not read the answer's file later.
_INSTALLED = tuple(sysconfig.get_paths().values())

# Modules that take long to import and start no threads, which a fork would lose.
_PRELOAD = ("numpy", "pandas", "pyarrow", "dask", "dask.array", "dask.dataframe", "xarray", "mobula.dask")


def program(how: str) -> m.Program:
    """The command by which the node starts this driver's workers."""
    if how not in ("template", "fresh"):
        raise InvalidError(f"worker_processes={how!r}: want \"template\" or \"fresh\"")
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""  # the directory is gone
    path = [os.path.normpath(os.path.join(cwd, p)) for p in sys.path if cwd or os.path.isabs(p)]
    config = {"path": path, "version": "%d.%d" % sys.version_info[:2],
              "preload": [name for name in _PRELOAD if name in sys.modules], "cwd": cwd}
    module = "_template" if how == "template" else "_worker"
    # With the driver's sys.path a worker finds this package and the program's modules, installed or not. On another node it finds copies of
    # the driver's own directories, by MOBULA_MODULES.
    start = ("import os,sys,json;c=json.loads(sys.argv[1]);at=json.loads(os.environ.pop('MOBULA_MODULES','{}'));"
             f"sys.path[:]=[at.get(p,p) for p in c['path']];from mobula.{module} import main;main(c)")
    argv = [sys.executable, "-c", start, json.dumps(config)]
    return m.Program("python", "%d.%d" % sys.version_info[:2], argv, True, how == "template", own_directories(path))


def own_directories(path: Sequence[str]) -> list[str]:
    """The directories of a path that are neither the interpreter's nor of installed packages. Nodes that lack them get what can be imported
    from there; the rest every node must have."""
    installed = [*_INSTALLED, *site.getsitepackages(), site.getusersitepackages()]
    own: list[str] = []
    for p in path:
        if p not in own and os.path.isdir(p) and not any(p == d or p.startswith(d + os.sep) for d in installed if d):
            own.append(p)
    return own


def _others(go_program: Union[str, Sequence[str], None]) -> list[m.Program]:
    """The commands for workers in other languages."""
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


_state.auto_init = _begin


def shutdown() -> None:
    """Disconnects from the node. The job ends, with its objects and all actors that are not detached. A node that init started ends too.
    Without a connection it does nothing."""
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
    """Shuts down if c is still the process' connection."""
    with _starting:
        if _state.client is c:
            shutdown()


def _exit() -> None:
    """At interpreter exit: only daemon threads are left. They must not begin anything new, nor print tracebacks."""
    if _state.worker is not None:
        return  # a worker ends its connection itself
    _state.exiting = True
    c = _state.client
    if c is not None:
        c.exiting = True
    shutdown()


atexit.register(_exit)


def is_initialized() -> bool:
    """Whether this process is connected to a node."""
    return _state.client is not None


class Context:
    """Describes the connection that init made: address, node, namespace, job_id. As a context manager it calls shutdown at the end."""

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
