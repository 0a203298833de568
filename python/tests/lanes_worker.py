"""Worker processes for a simulation: the real logic of a worker, one step at a time, as the program at the other end of the pipe says.

Each worker has a main thread, which runs when it is told to and up to the next place at which another thread could have its turn: before
and after the client's lock, where something is sent, where it waits, and in the user's code. Each line in is an order, each line out
what it came to.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from types import SimpleNamespace
from typing import Any, Optional

from mobula import _runtime
from mobula._wire import messages as m
from mobula._worker.executor import Executor
from mobula._worker.handlers import Handlers

now = 0


class Lock:
    """The client's lock: whoever comes to it or leaves it may be overtaken."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._lock = threading.RLock()
        self.depth = 0

    def __enter__(self) -> None:
        if self.depth == 0:
            self._worker.point()
        self._lock.acquire()
        self.depth += 1

    def __exit__(self, *_: Any) -> None:
        self.depth -= 1
        self._lock.release()
        if self.depth == 0:
            self._worker.point()


class Worker:
    """One worker and its main thread."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.at, self.task, self.do = "begin", b"", ""
        self.waits: Any = None
        self.call: Any = None
        self.over = False
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        reader = SimpleNamespace(quiet=False, arm=lambda: None, wake=lambda: None, wait=self._wait)
        self.lock = Lock(self)
        self.client: Any = SimpleNamespace(now=lambda: now, lock=self.lock, send=self.sent.append, out=SimpleNamespace(append=self._out), reader=reader,
                                           flush=self.point, maybe_flush=self.point, wait=self._flush_and_wait, welcome=SimpleNamespace(job_dir=""), worker=None, inline=1 << 20,
                                           root=SimpleNamespace(task=(1).to_bytes(4, "big") + bytes(12)), fallback=None, spans=SimpleNamespace(waiting=False), objects=SimpleNamespace(handles={}, pins={}))
        self.executor = Executor(self.client)
        self.executor._functions = {"f": self._user, "g": self._user}
        self.executor.interrupts.interrupt = lambda call: None  # type: ignore[method-assign]
        self.handlers = Handlers(self.executor)
        self.main = threading.Thread(target=self._run, daemon=True)
        self.main.start()

    # ---- in the main thread

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self.over:
                self.executor.run()
        except SystemExit:
            pass
        except BaseException:
            traceback.print_exc()
            os._exit(1)  # the program at the other end must not wait for this thread
        self.at = "off"
        self._stopped.release()

    def _park(self, at: str, waits: Any = None) -> str:
        """Stops until it is told to go on; gives what to do."""
        self.at, self.waits = at, waits
        self._stopped.release()
        self._go.acquire()
        if self.over:
            raise SystemExit
        return self.do

    def point(self) -> None:
        if threading.current_thread() is self.main and self.lock.depth == 0:
            self._park("point")

    def _out(self, chunk: bytes) -> None:
        self.sent.append(chunk)
        self.point()

    def _wait(self, w: Any, until: Any, tc: Any, work: Any = None) -> bool:
        while w.left > 0:
            if tc is not None:
                tc.check()
            self.call = tc
            self._park("wait", w)
        return True

    def _flush_and_wait(self, w: Any, until: Any, tc: Any, work: Any) -> bool:
        self.point()
        return w.left <= 0 or self._wait(w, until, tc, work)

    def _user(self) -> None:
        """Every task's function."""
        call = _runtime.current.get()
        self.task = call.work.id
        try:
            self._code(call)
        finally:
            self.task = b""

    def _code(self, call: Any) -> None:
        while True:
            self.call = call
            do = self._park("user")
            call.check()
            if do == "end":
                return
            call.block()
            try:
                while True:
                    self.call = call
                    do = self._park("get")
                    call.check()
                    if do == "got":
                        break
            finally:
                call.unblock()

    # ---- in the program's

    def step(self, do: str) -> None:
        self.do = do
        self._go.release()
        self._stopped.acquire()

    def ready(self) -> bool:
        """Whether the main thread can go on by itself."""
        if self.at == "wait":
            return bool(self.waits.left <= 0 or (self.call is not None and self.call.error is not None))
        return self.at in ("begin", "point")

    def end(self) -> None:
        self.over = True
        while self.at != "off":
            self.step("")
        self.main.join()

    def state(self) -> dict[str, Any]:
        sent, self.sent[:] = b"".join(self.sent).hex(), []
        cancelled = self.at in ("user", "get") and self.call.error is not None
        return {"at": self.at, "task": self.task.hex(), "ready": self.ready(), "cancelled": cancelled, "sent": sent}


def obey(workers: dict[int, Worker], o: dict[str, Any]) -> Optional[dict[str, Any]]:
    global now
    now = o["now"]
    op, id = o["op"], o["worker"]
    if op == "start":
        workers[id] = Worker()
    w = workers[id]
    if op == "step":
        w.step(o.get("do", ""))
    elif op == "hear":
        body = bytes.fromhex(o.get("body", ""))
        handler = w.client.worker.handlers.get(o["kind"])
        if o["kind"] == m.KIND_OF[m.Exec]:
            w.client.worker.tasks(body, 0, len(body))
        elif handler is not None:
            with w.lock:
                handler(body, 0, len(body))
    elif op == "tick":
        w.executor.tick()
    elif op == "has":
        h = m.Holdings(m.OWNER, 0)
        with w.lock:
            w.client.worker.declare(h)
        return {"has": [[t.task.hex(), t.attempt, t.lease] for t in h.tasks]}
    elif op == "end":
        workers.pop(id).end()
        return {}
    return w.state()


def main() -> None:
    workers: dict[int, Worker] = {}
    for line in sys.stdin:
        print(json.dumps(obey(workers, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
