"""The process that supervises a run: it starts the run's child, and at the run's end kills all its descendants.

    python -m peers.guard

The first line of its input is the run's specification in JSON: argv, env, cwd, stdout and stderr (files), timeout (seconds),
sample (seconds between memory samples; 0: none). It prints one JSON object, Outcome, when no process of the run is left.

The guard is the subreaper of its descendants (PR_SET_CHILD_SUBREAPER): processes of the run stay below it even if they detach, and are
found by descent, never by name. The run is over when the child ends, at the deadline, or when the guard's input closes, so that it also
ends when the program that started the guard is killed. Shared memory files that the run has made and still has open are removed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Mapping

from . import memory

PR_SET_CHILD_SUBREAPER = 36
STARTED = "PEERS_STARTED"  # variable of the child: time of its start, seconds by the monotonic clock
GUARD = "PEERS_GUARD"  # variable of the child: the guard's pid
END_TIMEOUT = 30.0


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: str  # "done", "timeout", "interrupted", or "failed" with the exit code
    code: int
    seconds: float
    peak: int  # bytes; 0 if memory was not sampled
    ended: int  # processes that outlived the child
    left: int  # processes that could not be killed


def run(spec: Mapping[str, Any]) -> Outcome:
    """Runs the child to its end."""
    _become_reaper()
    before = memory.shared_files()
    begun = time.monotonic()
    env = {**spec["env"], STARTED: repr(time.monotonic()), GUARD: str(os.getpid())}
    with open(spec["stdout"], "wb") as out, open(spec["stderr"], "wb") as err:
        child = subprocess.Popen(spec["argv"], env=env, cwd=spec["cwd"], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    status, peak = _watch(child, begun + spec["timeout"], spec["sample"])
    seconds = time.monotonic() - begun
    files = memory.open_files(os.getpid()) - before
    ended, left = end_all()
    for path in files:  # a killed process has not removed them
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    code = child.returncode if child.returncode is not None else -signal.SIGKILL
    if status == "ended":
        status = "done" if code == 0 else "failed"
    return Outcome(status, code, seconds, peak, ended, left)


def _become_reaper() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def _watch(child: subprocess.Popen[bytes], until: float, sample: float) -> tuple[str, int]:
    """Waits for the child's end, the deadline or the end of the input. Returns which came first, and the peak memory."""
    peak = 0
    fd = os.pidfd_open(child.pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
        while True:
            now = time.monotonic()
            if sample:
                peak = max(peak, memory.usage(os.getpid(), without=os.getpid()).total)
            wait = max(0.0, until - now)
            ready = {f for f, _ in poll.poll(1000 * (min(wait, sample) if sample else wait))}
            if fd in ready:
                child.wait()
                return "ended", peak
            if ready:
                return "interrupted", peak
            if time.monotonic() >= until:
                return "timeout", peak
    finally:
        os.close(fd)


def end_all() -> tuple[int, int]:
    """Kills all descendants of this process until none is left. Returns how many there were, and how many did not end."""
    until = time.monotonic() + END_TIMEOUT
    killed: set[int] = set()
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return len(killed), 0
        below = memory.family(os.getpid())[1:]
        if time.monotonic() > until:
            return len(killed), len(below)
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def main() -> None:
    print(json.dumps(asdict(run(json.loads(sys.stdin.buffer.readline())))), flush=True)


if __name__ == "__main__":
    main()
