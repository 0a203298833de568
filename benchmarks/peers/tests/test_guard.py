"""A run ends with all it started, however it ends."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from waiting import PATIENCE, until

from peers import guard, run

MIB = 1 << 20

# Starts a process that leaves its session and its parent, and ignores what can be ignored. It writes its pid, whole or not.
DETACHED = """
import os, signal, sys, time
def detach(path):
    r, w = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(s, signal.SIG_IGN)
            open(path + ".new", "w").write(str(os.getpid()))
            os.rename(path + ".new", path)
            os.write(w, b"x")
            time.sleep(3600)
        os._exit(0)
    os.read(r, 1)
detach(sys.argv[1])
"""


def spec(tmp_path: pathlib.Path, program: str, *args: str, timeout: float = PATIENCE, sample: float = 0) -> dict[str, Any]:
    return {"argv": [sys.executable, "-c", program, *args], "env": dict(os.environ), "cwd": str(tmp_path),
            "stdout": str(tmp_path / "out"), "stderr": str(tmp_path / "err"), "timeout": timeout, "sample": sample}


def quiet(line: str) -> None:
    pass


def gone(pid: int) -> bool:
    return not os.path.exists(f"/proc/{pid}")


def test_what_a_run_left_behind_is_ended(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pid"
    outcome = run.guarded(spec(tmp_path, DETACHED, str(path)), quiet)
    assert (outcome.status, outcome.code, outcome.left) == ("done", 0, 0)
    assert outcome.ended == 1
    assert gone(int(path.read_text()))


def test_a_run_ends_at_its_deadline(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pid"
    program = DETACHED + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(3600)"
    outcome = run.guarded(spec(tmp_path, program, str(path), timeout=1.5), quiet)
    assert (outcome.status, outcome.left) == ("timeout", 0)
    assert outcome.seconds >= 1.5
    assert gone(int(path.read_text()))


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_run_ends_with_who_started_it(tmp_path: pathlib.Path, how: str) -> None:
    """The program that started the guard closes its input, or is killed and so has it closed."""
    path = tmp_path / "pid"
    s = json.dumps(spec(tmp_path, DETACHED + "time.sleep(3600)", str(path)))
    starter = f"""
import subprocess, sys, time
p = subprocess.Popen([sys.executable, "-m", "{guard.__name__}"], stdin=subprocess.PIPE)
p.stdin.write(sys.stdin.buffer.readline())
p.stdin.flush()
print(p.pid, flush=True)
sys.stdin.read()
p.stdin.close()
p.wait()
"""
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(guard.__file__).parents[1])}
    p = subprocess.Popen([sys.executable, "-c", starter], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdin is not None and p.stdout is not None
    with p:
        p.stdin.write(s.encode() + b"\n")
        p.stdin.flush()
        guards_pid = int(p.stdout.readline())
        fd = os.pidfd_open(guards_pid)
        until(path.exists)
        if how == "killed":
            p.kill()
        else:
            p.stdin.close()
        assert wait_end(fd)
        assert gone(int(path.read_text()))


def test_shared_memory_files_go_with_the_run(tmp_path: pathlib.Path) -> None:
    path = f"/dev/shm/peers-test-{os.getpid()}"
    program = f"import time; f = open({path!r}, 'w'); f.write('x'); f.flush(); print('written', flush=True); time.sleep(3600)"
    outcome = run.guarded(spec(tmp_path, program, timeout=1.5), quiet)
    assert (outcome.status, (tmp_path / "out").read_text()) == ("timeout", "written\n")
    assert not os.path.exists(path)


def test_a_failed_run_says_so(tmp_path: pathlib.Path) -> None:
    outcome = run.guarded(spec(tmp_path, "import sys; sys.exit('it does not work')"), quiet)
    assert (outcome.status, outcome.code) == ("failed", 1)
    assert (tmp_path / "err").read_text() == "it does not work\n"


def test_memory_is_what_all_processes_hold(tmp_path: pathlib.Path) -> None:
    """64 MiB of its own, 64 MiB in a file that two processes have open and nobody has mapped, 64 MiB that both have mapped."""
    program = f"""
import mmap, os, time
own = bytearray(os.urandom(64 * {MIB}))
unmapped, mapped = os.memfd_create("a"), os.memfd_create("b")
for fd in (unmapped, mapped):
    os.posix_fallocate(fd, 0, 64 * {MIB})
view = mmap.mmap(mapped, 64 * {MIB})
r, w = os.pipe()
child = os.fork()
sum(view[i] for i in range(0, len(view), 4096))
if child == 0:
    os.write(w, b"x")
    time.sleep(3600)
os.read(r, 1)
time.sleep(1.0)  # several samples
"""
    outcome = run.guarded(spec(tmp_path, program, sample=0.05), quiet)
    assert outcome.status == "done"
    assert 3 * 64 * MIB <= outcome.peak < 4 * 64 * MIB, outcome.peak / MIB


def wait_end(fd: int) -> bool:
    """Waits for a process' end."""
    import select

    try:
        return bool(select.select([fd], [], [], PATIENCE)[0])
    finally:
        os.close(fd)
