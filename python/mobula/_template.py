"""The template: a process that has imported what the program has, and forks a worker for each request.

The node starts one per job, with a Unix SOCK_SEQPACKET socket at the descriptor MOBULA_TEMPLATE_FD. A request is one JSON datagram,
with the descriptors of the worker's stdout and stderr:

    {"op": "fork", "id": N, "env": {"MOBULA_WORKER_...": "..."}}

The template answers {"op": "forked", "id": N, "pid": P} or {"op": "failed", "id": N, "error": "..."}. When the worker has ended it
sends {"op": "exited", "id": N, "pid": P, "status": S, "signal": "KILL" or ""} and kills the rest of the worker's process group.
When the socket closes the template ends, and its workers with it. It has a single thread, since a fork would copy no other.
"""

from __future__ import annotations

import array
import ctypes
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
from typing import Any, Mapping, Optional

from . import _worker
from .exceptions import MobulaError

_PR_SET_PDEATHSIG = 1


def main(config: Mapping[str, Any]) -> None:
    """Serves requests until the socket closes."""
    try:
        _worker.check_version(config)
        fd = int(os.environ.pop("MOBULA_TEMPLATE_FD"))
    except (MobulaError, KeyError, ValueError) as x:
        print(f"mobula template: {x!r}", file=sys.stderr, flush=True)
        os._exit(1)
    # A task has one CPU by default: numeric libraries use a single thread unless the environment says otherwise.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if config.get("cwd"):
        try:
            os.chdir(config["cwd"])
        except OSError:
            pass  # the directory is gone
    for name in config.get("preload", ()):
        try:
            importlib.import_module(name)
        except ImportError as x:
            print(f"mobula template: {name} cannot be imported: {x}", file=sys.stderr, flush=True)
    gc.collect()
    gc.freeze()  # collections in workers do not touch these objects, so their pages stay shared
    Template(socket.socket(fileno=fd)).serve()


_TICK_MS = 100  # how often children without a pidfd are checked


class Template:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.children: dict[int, tuple[int, int]] = {}  # pidfd -> (request's id, pid)
        self.unseen: dict[int, int] = {}  # pid -> request's id, of children for which pidfd_open failed
        self.poll = select.poll()
        self.poll.register(sock, select.POLLIN)
        self.libc = ctypes.CDLL(None)

    def serve(self) -> None:
        while True:
            for pid in list(self.unseen):
                if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                    self.ended(self.unseen.pop(pid), pid)
            for fd, _ in self.poll.poll(_TICK_MS if self.unseen else None):
                if fd != self.sock.fileno():
                    self.reap(fd)
                elif not self.request():
                    self.end()
                    return

    def end(self) -> None:
        for pid in [*(pid for _, pid in self.children.values()), *self.unseen]:
            _kill_group(pid)
        os._exit(0)

    def answer(self, **what: Any) -> None:
        try:
            self.sock.send(json.dumps(what).encode())
        except OSError:
            pass  # the node is gone: the next poll says so

    def request(self) -> bool:
        """Serves one request. False once the socket is closed."""
        try:
            data, anc, _, _ = self.sock.recvmsg(1 << 20, socket.CMSG_SPACE(8 * 4), socket.MSG_CMSG_CLOEXEC)
        except OSError:
            return False
        fds = array.array("i")
        for level, kind, raw in anc:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(raw[: len(raw) - len(raw) % fds.itemsize])
        if not data:
            return False
        id: Optional[int] = None
        try:
            ask = json.loads(data)
            id = ask["id"]
            if ask["op"] != "fork" or len(fds) != 2:
                raise ValueError(f"op {ask['op']!r} with {len(fds)} descriptors: want \"fork\" with two")
            self.fork(ask["id"], {str(k): str(v) for k, v in ask["env"].items()}, fds[0], fds[1])
        except Exception as x:
            self.answer(op="failed", id=id, error=f"{type(x).__name__}: {x}")
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def fork(self, id: int, env: Mapping[str, str], out: int, err: int) -> None:
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = self.child(parent, env, out, err)
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(code)
        try:
            os.setpgid(pid, pid)  # parent and child both do it, whichever is first
        except OSError:
            pass
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:  # no descriptor is left, or the sandbox has no pidfd_open; the child runs all the same
            self.unseen[pid] = id
        else:
            self.children[pidfd] = (id, pid)
            self.poll.register(pidfd, select.POLLIN)
        self.answer(op="forked", id=id, pid=pid)

    def child(self, parent: int, env: Mapping[str, str], out: int, err: int) -> int:
        os.setpgid(0, 0)
        self.libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            return 1  # the parent ended before prctl took effect
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        for fd in (null, out, err):
            if fd > 2:
                os.close(fd)
        self.sock.close()
        for fd in self.children:
            os.close(fd)
        os.environ.update(env)
        random.seed()
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed()
        return _worker.serve()

    def reap(self, pidfd: int) -> None:
        id, pid = self.children.pop(pidfd)
        self.poll.unregister(pidfd)
        os.close(pidfd)
        self.ended(id, pid)

    def ended(self, id: int, pid: int) -> None:
        _kill_group(pid)  # before waitpid frees the pid
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        name = ""
        if code < 0:
            try:
                name = signal.Signals(-code).name.removeprefix("SIG")
            except ValueError:
                name = str(-code)
        self.answer(op="exited", id=id, pid=pid, status=max(code, 0), signal=name)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
