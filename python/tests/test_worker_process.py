"""What the process of a worker does for the code in it: its end, and what it hands on to the processes that a task starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest
from waiting import PATIENCE, until

import mobula


@pytest.fixture
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


def taken() -> tuple[str, str]:
    """How a program, and a fork, that a task starts takes SIGINT."""
    ask = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    run = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout.strip()
    r, w = os.pipe()
    if os.fork() == 0:
        os.write(w, repr(signal.getsignal(signal.SIGINT) is signal.default_int_handler).encode())
        os._exit(0)
    os.wait()
    return run, os.read(r, 100).decode()


interrupts = mobula.remote(taken)


@mobula.remote
class Threaded:
    """Its methods do not run in the main thread."""

    def interrupts(self) -> tuple[str, str]:
        return taken()


def test_what_a_task_starts_takes_interrupts_as_ever(node: Any) -> None:
    assert mobula.get(interrupts.remote()) == ("True", "True")
    assert mobula.get(Threaded.options(max_concurrency=2).remote().interrupts.remote()) == ("True", "True")


@mobula.remote
def interrupt_me() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    return "went on"


def test_a_worker_is_not_interrupted(node: Any) -> None:
    assert mobula.get(interrupt_me.remote()) == "went on"


def forks(how: str) -> int:
    """The exit code of a fork that leaves the function."""
    pid = os.fork()
    if pid == 0:
        if how == "exit":
            sys.exit(9)
        if how == "text":
            sys.exit("text")
        if how == "raise":
            raise ValueError
        return -1
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Forks:
    def plain(self, how: str) -> int:
        return forks(how)

    def items(self, how: str) -> Iterator[int]:
        yield forks(how)


class AsyncForks(Forks):
    async def coroutine(self, how: str) -> int:
        return forks(how)


@pytest.mark.parametrize(("how", "code"), [("exit", 9), ("text", 1), ("raise", 1), ("return", 0)])
def test_a_fork_that_leaves_its_function_ends_as_a_program_does(node: Any, how: str, code: int) -> None:
    def got(ref: Any) -> Any:
        return mobula.get(ref, timeout=PATIENCE)

    assert got(mobula.remote(forks).remote(how)) == code
    one, threads, loop = mobula.remote(Forks).remote(), mobula.remote(Forks).options(max_concurrency=2).remote(), mobula.remote(AsyncForks).remote()
    for a in (one, threads, loop):
        assert got(a.plain.remote(how)) == code
        if how != "return":  # a stream's item is no end
            assert got(next(a.items.remote(how))) == code
    assert got(loop.coroutine.remote(how)) == code


@mobula.remote
def at_exit(path: str, then: str) -> int:
    import atexit

    def last() -> None:
        with open(path, "a") as f:
            f.write("ended")
        if then == "raise":
            raise RuntimeError("in the handler")
        while then == "stay":
            signal.pause()

    atexit.register(last)
    return os.getpid()


def test_handlers_of_the_exit_run(binary: str, tmp_path: Path) -> None:
    """Also where one raises; one that stays holds up nothing for longer than the grace of the node."""
    for then in ("return", "raise", "stay"):
        path = tmp_path / then
        with mobula.init(num_cpus=1, log_to_driver=False):
            pid = mobula.get(at_exit.remote(str(path), then))
        until(lambda: path.exists() and path.read_text() == "ended", f"the handler that is to {then} has run")
        until(lambda: not os.path.exists(f"/proc/{pid}"), "the worker has ended")
