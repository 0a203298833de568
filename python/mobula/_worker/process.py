"""The worker process, from its environment to its exit code."""

from __future__ import annotations

import atexit
import binascii
import os
import signal
import sys
import traceback
from types import FrameType
from typing import Any, Mapping, Optional

from .. import _ids, _logging, _runtime, _trace
from .._client import Client
from .._interrupts import interrupts
from .._wire import messages as m
from ..exceptions import DisconnectedError, InvalidError, MobulaError, NoNodeError, OwnerDiedError, RuntimeSetupError, ShutdownError
from . import forked
from .executor import Executor
from .handlers import Handlers
from .tracing import flush, provide

_VARIABLES = ("SOCKET", "TOKEN", "ID", "JOB", "KIND", "FUNC", "MEMORY", "VERSION", "CHAOS")


def check_version(config: Mapping[str, Any]) -> None:
    """Refuses to run under another Python version than the driver's, whose pickled functions it could not load."""
    want, have = config.get("version"), "%d.%d" % sys.version_info[:2]
    if want and want != have:
        raise RuntimeSetupError(f"the driver runs Python {want}, this worker {have} ({sys.executable}): both must be the same")


def _connect() -> Executor:
    """Connects to the node that the environment names."""
    env = {k: os.environ.pop("MOBULA_WORKER_" + k, "") for k in _VARIABLES}
    check_version({"version": env["VERSION"]})
    try:
        token = binascii.unhexlify(env["TOKEN"])
        job = _ids.parse_number(env["JOB"])
    except ValueError:
        raise InvalidError(f"this is no worker's environment: MOBULA_WORKER_JOB={env['JOB']!r}") from None
    program = m.Program("python", "%d.%d" % sys.version_info[:2])
    hello = m.Hello(role=m.WORKER, pid=os.getpid(), job=job, token=token, program=program)
    executor = Executor(Client(env["SOCKET"], hello, False))
    Handlers(executor)
    return executor


def _interrupted(signum: int, frame: Optional[FrameType]) -> None:
    """Ctrl-C is for the driver. A worker has a handler, since a signal that is ignored stays so in the programs that a task starts."""


def _forked() -> None:
    """In a process that a task has forked: Ctrl-C does what it does in any Python process, and its end is not the call's."""
    forked.entered()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def serve() -> int:
    """Runs a worker until the node drains it. Returns the exit code."""
    try:
        executor = _connect()
    except (DisconnectedError, NoNodeError, ShutdownError):
        return 1  # the node is gone or shutting down; its log says why
    except MobulaError as x:
        print(f"mobula worker: {x}", file=sys.stderr, flush=True)
        return 1
    _runtime.state.client = executor.client
    _runtime.state.worker = executor
    _trace.opentelemetry.provide = provide
    _logging.in_worker()
    for out in (sys.stdout, sys.stderr):
        if hasattr(out, "reconfigure"):
            out.reconfigure(line_buffering=True)
    executor.interrupts.install()
    interrupts.harmless(_interrupted)
    signal.signal(signal.SIGINT, _interrupted)
    os.register_at_fork(after_in_child=_forked)
    executor.client.start()
    try:
        executor.run()
    except MobulaError as x:
        if isinstance(x, ShutdownError):
            executor.leave()
        # If the node is gone or shutting down, its log says why.
        if executor.client.dead is None or not isinstance(x, (OwnerDiedError, ShutdownError)):
            traceback.print_exc()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends: the node kills it after its grace
    atexit._run_exitfuncs()  # what the program's modules and tasks have registered
    try:
        flush(executor.client)
        executor.client.close()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def main(config: Optional[Mapping[str, Any]] = None) -> None:
    """Runs a worker in a fresh interpreter, not forked from a template."""
    config = config or {}
    try:
        check_version(config)
    except MobulaError as x:
        print(f"mobula worker: {x}", file=sys.stderr, flush=True)
        os._exit(1)
    if config.get("cwd"):
        try:
            os.chdir(config["cwd"])
        except OSError:
            pass  # the directory is gone
    os._exit(serve())
