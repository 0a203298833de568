"""One pytest process for some tests: the outcome of each, and, if the process dies, the test that killed it.

Every wait has a limit. If a test takes too long, pytest-timeout writes all stacks and ends the process; if it does not, the process is
killed. The rest of its process group is killed too.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dask_suite.outcome import Outcome
from dask_suite.plan import HERE, Plan

LOG = 4000  # last characters of a session's output to keep


class Stopped(Exception):
    """The run was stopped. Outcomes so far are recorded."""


@dataclass
class Session:
    """The results of a session."""

    outcomes: list[Outcome] = field(default_factory=list)
    complete: bool = False  # pytest ended by itself: a test without an outcome does not exist
    culprit: Outcome | None = None  # the test in which the process died
    report: dict[str, Any] | None = None  # the scheduler's counts, if the session wrote them
    seconds: float = 0.0
    log: str = ""


class Stop:
    """Ends all sessions that watch it. Any thread may set it; it cannot be reset."""

    def __init__(self) -> None:
        self.fd, self._write = os.pipe()

    def set(self) -> None:
        os.write(self._write, b"x")

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._write)

    def __bool__(self) -> bool:
        return bool(select.select([self.fd], [], [], 0)[0])


def run(plan: Plan, ids: Sequence[str], done: Callable[[Outcome], None], stop: Stop) -> Session:
    """Runs the tests in one process. It reports each outcome at once, the culprit's last."""
    result = Session()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="suite-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        reader, writer = os.pipe()
        try:
            process = _start(plan, ids, place, writer)
        finally:
            os.close(writer)
        pidfd = os.pidfd_open(process.pid)
        try:
            _watch(plan, _Pipe(reader, pidfd, stop.fd), result, done)
        finally:
            # Kill the group before waiting for its leader: after the wait the leader's pid could be another process'.
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
            os.close(pidfd)
            os.close(reader)
        result.log = (place / "log").read_text(errors="replace")[-LOG:]
        result.report = _report(place)
    result.seconds = time.monotonic() - begun
    if stop:
        raise Stopped
    result.complete = result.culprit is None and status in (0, 1, 5)
    if result.culprit is not None:
        c = result.culprit
        result.culprit = Outcome(c.id, c.outcome, c.seconds, f"{_died(status)}\n{result.log}")
        done(result.culprit)
    return result


def _start(plan: Plan, ids: Sequence[str], place: Path, writer: int) -> subprocess.Popen[bytes]:
    (place / "ids").write_text("".join(f"{i}\n" for i in ids))
    (place / "tmp").mkdir()
    files = dict.fromkeys(str(plan.root / i.partition("::")[0]) for i in ids)
    args = [
        *arguments(plan),
        *("-p", "pytest_timeout", f"--timeout={plan.timeout}", "--timeout-method=thread"),
        *("-p", "pytest_mock", "-p", plan.plugin),
        *(f"--basetemp={place / 'base'}", "--continue-on-collection-errors", "-q", "--tb=short"),
        *(f"--suite-ids={place / 'ids'}", f"--suite-events={writer}"),
        *files,
    ]
    with open(place / "log", "wb") as log:
        return subprocess.Popen(
            args, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=place, env=environment(place), pass_fds=[writer],
            start_new_session=True,
        )  # fmt: skip


def arguments(plan: Plan) -> list[str]:
    """The arguments of every pytest process here."""
    return [
        *(sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini"), f"--rootdir={plan.root}", f"--confcutdir={plan.root}"),
        *("-p", "no:cacheprovider", "-p", "dask_suite.reporter"),
    ]


def environment(place: Path) -> dict[str, str]:
    """The environment of a session: without the user's plugins and configuration, with temporary files in the session's directory."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DASK_", "PYTEST_"))}
    path = [str(HERE.parent), *filter(None, [env.get("PYTHONPATH")])]
    return env | {
        "DASK_CONFIG": str(place),
        "MOBULA_DASK_REPORT": str(place / "report.json"),
        "OPENBLAS_NUM_THREADS": "1",  # more threads than CPUs only slow each other down, and threads do not survive a fork
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONHASHSEED": "0",  # the outcome of some tests depends on the order of a set
        "PYTHONPATH": os.pathsep.join(path),
        "TMPDIR": str(place / "tmp"),
    }


class _Pipe:
    """Reads the events of a session until it ends or is silent for too long."""

    def __init__(self, reader: int, pidfd: int, stop: int) -> None:
        os.set_blocking(reader, False)
        self.reader, self.pidfd, self.stop = reader, pidfd, stop
        self.rest = b""
        self.sources = [reader, pidfd, stop]
        self.patience = 0.0  # seconds without an event until the reader gives up

    def __iter__(self) -> Iterator[dict[str, Any]]:
        deadline = time.monotonic() + self.patience
        while True:
            left = max(0.0, deadline - time.monotonic())
            ready = select.select(self.sources, [], [], left)[0]
            over = not ready or self.pidfd in ready or self.stop in ready
            lines = self._lines(everything=over)
            for line in lines:
                yield json.loads(line)
            if over:
                return
            if lines:
                deadline = time.monotonic() + self.patience

    def _lines(self, everything: bool) -> list[bytes]:
        """Reads the lines that are in the pipe."""
        while True:
            try:
                data = os.read(self.reader, 1 << 16)
            except BlockingIOError:
                break
            self.rest += data
            if not data:
                self.sources = [self.pidfd, self.stop]  # all writers have ended
            if not data or not everything:
                break
        *lines, self.rest = self.rest.split(b"\n")
        return lines


def _watch(plan: Plan, events: _Pipe, result: Session, done: Callable[[Outcome], None]) -> None:
    running: str | None = None
    since = 0.0
    events.patience = plan.start
    for event in events:
        if "begin" in event:
            running, since = event["begin"], event["at"]
            events.patience = plan.timeout + plan.grace
        else:
            running = None
            events.patience = plan.grace
            result.outcomes.append(Outcome.from_json(event["end"]))
            done(result.outcomes[-1])
    if running is not None:
        seconds = time.monotonic() - since
        # pytest-timeout's clock begins a moment after ours.
        result.culprit = Outcome(running, "timeout" if seconds >= plan.timeout else "crashed", round(seconds, 3))


def _report(place: Path) -> dict[str, Any] | None:
    path = place / "report.json"
    return json.loads(path.read_text()) if path.exists() else None


def _died(status: int) -> str:
    if status >= 0:
        return f"its process ended with status {status}"
    return f"its process was ended by {signal.Signals(-status).name}"
