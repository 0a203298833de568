"""A driver whose traces e2e/languages/python_trace_test.go reads: what it is told to do, on a node that runs, with the functions of a Go program."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from typing import Any, Iterator

import mobula
from mobula.util import tracing


class Teller:
    """An actor that a task of Go makes and calls."""

    def told(self, text: str) -> str:
        with tracing.span("upper", length=len(text)) as s:
            s.add_event("said")
            if text == "hello":
                self.api()
            return text.upper()

    def api(self) -> None:
        """The same with OpenTelemetry's API."""
        from opentelemetry import trace

        with trace.get_tracer("program").start_as_current_span("inner", attributes={"a": 1}) as s:
            s.add_event("now")
            tracing.span("innermost")(lambda: None)()


@mobula.remote
def through_go(text: str) -> Any:
    return mobula.get(mobula.go_function("e2e/tell").remote(text))


@mobula.remote
def items(n: int) -> Iterator[int]:
    yield from range(n)


@mobula.remote
def outer(n: int) -> Any:
    """Calls a stream, and an actor of Python."""
    teller = mobula.remote(Teller).remote()
    return mobula.get(teller.told.remote(str(sum(mobula.get(r) for r in items.options(num_returns="streaming").remote(n)))))


def hops() -> Any:
    """A task of Go on the second node, which calls an actor of Python on the third."""
    with tracing.span("main"):
        return mobula.get(mobula.go_function("e2e/tellOnThird").options(node="2").remote("hello"))


def chain() -> Any:
    with tracing.span("main"):
        return mobula.get(through_go.remote("hello"))


@mobula.remote(max_retries=0)
def killed() -> None:
    with tracing.span("before"):
        pass
    tracing.flush()
    os.kill(os.getpid(), signal.SIGKILL)


@mobula.remote
class Restarted:
    def __init__(self) -> None:
        with tracing.span("made"):
            pass

    def kill(self, path: str) -> str:
        if not os.path.exists(path):
            open(path, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return "restarted"


def ends() -> Any:
    """A worker is killed, one is told to go right after its span has ended, an actor is made anew."""
    with tracing.span("main"):
        try:
            mobula.get(killed.remote())
        except mobula.WorkerCrashedError:
            pass
        with tempfile.TemporaryDirectory() as d:
            a = Restarted.options(max_restarts=1, max_task_retries=1).remote()
            return mobula.get(a.kill.remote(d + "/once"))


def streams() -> Any:
    return mobula.get(outer.remote(4))


def add(a: int, b: int) -> int:
    return a + b


def start(n: int) -> int:
    return n


def graph() -> Any:
    """A graph of 100 tasks: 50 roots, and a chain over them."""
    import mobula.dask

    dsk: dict[Any, Any] = {("start", i): (start, i) for i in range(50)}
    last: Any = ("start", 0)
    for i in range(1, 50):
        dsk[("add", i)] = (add, last, ("start", i))
        last = ("add", i)
    dsk["end"] = (add, last, ("start", 0))
    return mobula.dask.get(dsk, "end")


def everything() -> Any:
    """A driver's span around a task that calls Go, which calls an actor with spans of its own, and around a graph."""
    import mobula.dask  # its import is not the graph's time

    with tracing.span("all"):
        return [mobula.get(through_go.remote("hello")), graph()]


@mobula.remote
def nothing(i: int) -> int:
    with tracing.span("x"):
        return i


def many() -> Any:
    """Work whose spans nobody takes."""
    return sum(mobula.get([nothing.remote(i) for i in range(300)]))


if __name__ == "__main__":
    what, address, program = sys.argv[1:]
    import helpers_of_traces  # by name, as its workers have it

    with mobula.init(address, go_program=[program, "-test.run=^$"]):
        print(json.dumps(getattr(helpers_of_traces, what)()), flush=True)
