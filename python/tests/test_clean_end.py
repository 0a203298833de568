"""A program that ends while calls are under way prints no output of the runtime, and loses none of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE

from mobula import _node

WORK = """
import mobula, sys, threading, time
mobula.init(sys.argv[1] if len(sys.argv) > 1 else None, **({} if len(sys.argv) > 1 else dict(num_cpus=8, object_store_memory=64 << 20)))

@mobula.remote
def one(x): return x

@mobula.remote
def slow(): time.sleep(600)

@mobula.remote
def nested(): return mobula.get(slow.remote())

@mobula.remote
def items():
    while True:
        yield b"x" * 200_000
        time.sleep(0.05)

@mobula.remote
class A:
    def one(self): return 1
    def slow(self): time.sleep(600)

a = A.remote()
assert mobula.get([one.remote(1), a.one.remote()]) == [1, 1]
"""

UNDER_WAY = WORK + """
rs = [slow.remote(), nested.remote(), a.slow.remote(), mobula.put(b"x" * 1_000_000)]
s = items.options(num_returns="streaming").remote()
array = mobula.get(next(iter(s)))
"""

DAEMONS = WORK + """
begun = threading.Semaphore(0)

def again(f):
    f()
    begun.release()
    while True:
        f()

def stream():
    for i, r in enumerate(items.options(num_returns="streaming").remote()):
        mobula.get(r)
        if i == 0:
            begun.release()

def told(f):
    begun.release()
    f()

r = slow.remote()
for f in (lambda: mobula.get(one.remote(1)), lambda: mobula.get(a.one.remote()), lambda: mobula.get(mobula.put(b"x" * 200_000)), lambda: mobula.wait([r], timeout=0.05)):
    threading.Thread(target=again, args=(f,), daemon=True).start()
for g in (lambda: mobula.get(r), lambda: r.future().result(), lambda: list(mobula.watch(a))):
    threading.Thread(target=told, args=(g,), daemon=True).start()
threading.Thread(target=stream, daemon=True).start()
for _ in range(8):
    begun.acquire()
"""


def _run(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script, *args], capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture(params=["own", "joined"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    if request.param == "own":
        return []
    node = _node.Node({"dir": str(tmp_path / "n"), "cpus": 8, "store_size": "64MiB", "store_dir": str(tmp_path)})
    request.addfinalizer(node.stop)
    return [node.dir]


@pytest.mark.parametrize("end", ["", "mobula.shutdown()", "sys.exit(0)"])
def test_with_work_under_way(address: list[str], end: str) -> None:
    p = _run(UNDER_WAY + "print('leaving')\n" + end, *address)
    assert (p.returncode, p.stdout, p.stderr) == (0, "leaving\n", "")


def test_with_daemon_threads(address: list[str]) -> None:
    """They wait, call and put when the interpreter ends: no traceback of theirs, and none of them begins a node anew."""
    p = _run(DAEMONS + "print('leaving')", *address)
    assert (p.returncode, p.stdout, p.stderr) == (0, "leaving\n", "")


def test_a_daemon_thread_hears_of_a_shutdown_before_the_end(address: list[str]) -> None:
    """Only the interpreter's end is without a word: a program that goes on is told."""
    p = _run(WORK + """
r = slow.remote()
def wait():
    try:
        mobula.get(r)
    except mobula.exceptions.ShutdownError:
        print("told")
t = threading.Thread(target=wait, daemon=True)
t.start()
mobula.shutdown()
t.join()
""", *address)
    assert (p.returncode, p.stdout, p.stderr) == (0, "told\n", "")


def test_an_error_of_the_program_is_all_there_is(address: list[str]) -> None:
    p = _run(UNDER_WAY + "raise ValueError('mine')", *address)
    assert p.returncode == 1 and p.stderr.startswith("Traceback") and p.stderr.endswith("ValueError: mine\n"), p.stderr
    assert p.stderr.count("Traceback") == 1


def test_ctrl_c(address: list[str]) -> None:
    """A terminal signals the program and all in its group. The program hears KeyboardInterrupt; the node and its workers are in no terminal's
    group, and end in order."""
    script = UNDER_WAY + """
try:
    print("waiting", flush=True)
    mobula.get(rs[:3])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    p = subprocess.Popen([sys.executable, "-c", script, *address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert p.stdout is not None and p.stdout.readline() == "waiting\n"
        os.killpg(p.pid, signal.SIGINT)
        out, err = p.communicate(timeout=PATIENCE)
    finally:
        p.kill()
        p.wait()
    assert (p.returncode, out, err) == (0, "interrupted\n", "")


@pytest.mark.parametrize("forward", [True, False])
def test_a_program_that_makes_errors_of_warnings(binary: str, forward: bool) -> None:
    script = f"""
import mobula
with mobula.init(num_cpus=1, object_store_memory=64 << 20, log_to_driver={forward}):
    assert mobula.get(mobula.remote(abs).remote(-1)) == 1
try:
    mobula.init(settings={{"memory-limit": "none"}})
except mobula.exceptions.RuntimeSetupError:
    print("refused")
"""
    p = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert (p.returncode, p.stdout, p.stderr) == (0, "refused\n", "")  # a pipe that is left open is a ResourceWarning
