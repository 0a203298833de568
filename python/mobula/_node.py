"""A node of the program's own: a child process `mobula start` that ends with its parent."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, Any, Mapping

from . import _safefs
from .exceptions import MobulaError, NodeRunningError, NoNodeError, RuntimeSetupError

START_TIMEOUT = 30.0
_RUNNING = 6  # the exit code of `mobula start` if a node runs there already
STOP_TIMEOUT = 10.0
_LAST_WORDS = 1.0  # seconds to copy the rest of the node's output once it has ended


def binary() -> str:
    """The path of the mobula executable: MOBULA_BINARY, else inside the package, else on PATH. NoNodeError if there is none."""
    said = os.environ.get("MOBULA_BINARY")
    if said:
        if not os.access(said, os.X_OK):
            raise NoNodeError(f"MOBULA_BINARY={said}: there is no executable file")
        return said
    here = os.path.dirname(os.path.abspath(__file__))
    for path in (os.path.join(here, "bin", "mobula"), shutil.which("mobula") or ""):
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise NoNodeError("the mobula executable was not found beside the package or on PATH: say where it is in MOBULA_BINARY, "
                      "or join a node by its address")


def default_address() -> str:
    """The socket of the node that `mobula start` starts by default for this user."""
    return os.path.join(tempfile.gettempdir(), f"mobula-{os.getuid()}", "default", "node.sock")


def socket_of(address: str) -> str:
    """The path of the socket that an address means. An address is a socket, a node's directory, or "auto": MOBULA_ADDRESS, else the
    node in MOBULA_DIR, else the user's default node."""
    if address == "auto":
        address = os.environ.get("MOBULA_ADDRESS") or "auto"
        if address == "auto":
            said = os.environ.get("MOBULA_DIR")
            return os.path.join(said, "node.sock") if said else default_address()
    if os.path.isdir(address):
        return os.path.join(address, "node.sock")
    return address


def is_network(address: str) -> bool:
    """Whether an address is HOST:PORT of a cluster, and not the path of a node on this machine."""
    return ":" in address and "/" not in address and not os.path.exists(address)


def _gone(pid: int) -> bool:
    """Whether the kernel knows no process with this pid. Any other error, such as a denied permission, means that there may be one."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _clean_dead(root: str) -> None:
    """Removes the directories that killed programs' nodes have left: the program's process is gone, and nobody holds the lock."""
    for entry in os.scandir(root):
        pid = entry.name.removeprefix("node-").partition("-")[0]
        if not entry.name.startswith("node-") or not pid.isdigit() or not _gone(int(pid)):
            continue
        try:
            with os.fdopen(_safefs.open_file(os.path.join(entry.path, "node.lock"), os.O_RDWR | os.O_CREAT)) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
        except (OSError, MobulaError):
            pass  # the node lives, or another process cleans up


class Node:
    """The node's process. forward: the output of its workers goes to this program's standard error too."""

    def __init__(self, settings: Mapping[str, Any], forward: bool = False) -> None:
        self.pid = os.getpid()
        self._forward = forward
        self._readers: list[threading.Thread] = []
        root = os.path.join(tempfile.gettempdir(), f"mobula-{os.getuid()}")
        _safefs.make_dir(root)
        self._temporary = "dir" not in settings
        if self._temporary:
            _clean_dead(root)
        self.dir: str = settings.get("dir") or tempfile.mkdtemp(prefix=f"node-{self.pid}-", dir=root)
        self.binary = binary()
        args = [self.binary, "start", "--json", "--until-stdin-closes", f"--dir={self.dir}"]
        if forward:
            args.append("--worker-output")
        args += [f"--{k.replace('_', '-')}={v}" for k, v in settings.items() if k != "dir"]
        # The node gets a session of its own: Ctrl-C interrupts the program alone, which then closes the node.
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        start_new_session=True)
        try:
            self.address = self._started()
        except BaseException:
            self.stop()
            raise

    def _started(self) -> str:
        out = self.process.stdout
        assert out is not None and self.process.stderr is not None
        until = time.monotonic() + START_TIMEOUT
        line = b""
        output = select.poll()  # select() takes no descriptor above 1023
        output.register(out, select.POLLIN)
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if not output.poll(1000 * max(0, left)):
                raise RuntimeSetupError(f"the node was not up in {START_TIMEOUT:.0f} s")
            part = os.read(out.fileno(), 4096)
            if not part:
                said = self.process.stderr.read().decode("utf-8", "replace").strip()
                try:
                    said = json.loads(said.splitlines()[-1])["error"]
                except (ValueError, KeyError, IndexError):
                    pass
                code = self.process.wait()
                if code == _RUNNING:
                    raise NodeRunningError(said)
                raise RuntimeSetupError(f"the node did not start ({self.binary}, exit {code}): {said}")
            line += part
        address: str = json.loads(line)["address"]
        self._read(out, _forward if self._forward else _drain)
        self._read(self.process.stderr, _drain)  # if the node keeps a log, it is a file
        return address

    def _read(self, f: IO[bytes], reader: Any) -> None:
        t = threading.Thread(target=reader, args=(f,), daemon=True, name="mobula-node-output")
        self._readers.append(t)
        t.start()

    def forked(self) -> None:
        """In a forked child: replaces the pipes by /dev/null, so that the node ends with the parent alone."""
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None and not pipe.closed:  # do not call close(): a thread of the parent may have held the pipe's lock
                os.dup2(null, pipe.fileno(), inheritable=False)
        os.close(null)

    def stop(self) -> None:
        """Ends the node. Kills it after STOP_TIMEOUT seconds."""
        if os.getpid() != self.pid:
            return  # a forked child: the node belongs to the parent
        p = self.process
        assert p.stdin is not None
        try:
            p.stdin.close()
        except OSError:
            pass
        try:
            p.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
        for t in self._readers:
            t.join(_LAST_WORDS)
        if not self._readers:  # it did not start: nobody else closes the pipes
            for pipe in (p.stdout, p.stderr):
                assert pipe is not None
                pipe.close()
        if self._temporary:
            shutil.rmtree(self.dir, ignore_errors=True)


def _drain(f: Any) -> None:
    """Reads the node's output and drops it. Closes f."""
    try:
        with f:
            while f.read1(65536):
                pass
    except (OSError, ValueError):
        pass  # it was closed


def _forward(f: Any) -> None:
    """Copies the lines of the node's workers to sys.stderr. The node does not wait for a slow reader: it leaves out lines that are not
    read in time. Closes f."""
    part = b""
    try:
        with f:
            while block := f.read1(65536):
                lines, end, part = (part + block).rpartition(b"\n")
                if not end:
                    continue
                try:
                    sys.stderr.write(lines.decode("utf-8", "replace") + "\n")
                    sys.stderr.flush()
                except Exception:
                    pass  # stderr is missing or closed; the workers' logs have the lines
    except (OSError, ValueError):
        pass  # it was closed
