"""The state file of a run: one line of JSON per event, in order.

    {"about": {"mode": "baseline", "versions": {...}}}           the first line
    {"id": ..., "outcome": ..., "seconds": ...}                  one run of a test
    {"session": {"report": {...} or null, "tests": [...], "seconds": 61.2}}

A run that is started again appends. If a run was killed, its last line may be cut off; it is dropped.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dask_suite.outcome import SEVERITY, Outcome
from dask_suite.plan import differences
from dask_suite.session import Session


class OtherVersionsError(Exception):
    """The file's outcomes are of other versions than the installed ones."""

    def __init__(self, what: str, lines: list[str], remedy: str) -> None:
        super().__init__(f"{what} is of other versions than those installed: {'; '.join(lines)}. {remedy}")


@dataclass(frozen=True)
class Verdict:
    """The final outcome of a test: the best of its runs."""

    outcome: str
    seconds: float
    text: str = ""
    worst: str = ""  # the worst outcome, if its runs differ

    @property
    def flaky(self) -> bool:
        return self.worst != ""


@dataclass
class Counts:
    """Sums over the sessions' reports, and the errors in them."""

    gets: int = 0
    tasks: int = 0
    executed: int = 0
    in_driver: int = 0
    stopped: int = 0  # stopped graphs, which are not in the sums
    sessions: int = 0
    silent: int = 0  # sessions that died before their report, whose tasks are not in the sums
    faults: list[str] = field(default_factory=list)

    def add(self, report: dict[str, Any] | None) -> None:
        self.sessions += 1
        if report is None:
            self.silent += 1
            return
        for name in ("gets", "tasks", "executed", "in_driver"):
            setattr(self, name, getattr(self, name) + report[name])
        self.stopped += report.get("stopped", 0)
        self.faults += report.get("wrong", [])
        if report["tasks"] != report["executed"]:
            self.faults.append(f"a session had {report['tasks']} tasks and workers ran {report['executed']}")
        if report["in_driver"]:
            self.faults.append(f"a session ran {report['in_driver']} tasks in the driver")


class State:
    """An open state file. Several threads may use it."""

    def __init__(self, path: Path, mode: str, versions: dict[str, str]) -> None:
        """Opens or creates the file. Raises OtherVersionsError if it is of other versions."""
        self.path = path
        self.counts = Counts()
        self.runs: dict[str, list[Outcome]] = {}
        self._reported: set[str] = set()  # tests that ran in a session which reported where its tasks ran
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = self._read(mode, versions) if path.exists() else 0
        self._file = open(path, "ab")
        self._file.truncate(whole)
        if not whole:
            self._append({"about": {"mode": mode, "versions": versions}})

    def _read(self, mode: str, versions: dict[str, str]) -> int:
        """Reads the file, and returns the length of its complete lines."""
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        for n, line in enumerate(data[:whole].splitlines()):
            entry = json.loads(line)
            if n == 0:
                about = entry["about"]
                if lines := differences(about["versions"] | {"mode": about["mode"]}, versions | {"mode": mode}):
                    raise OtherVersionsError(str(self.path), lines, "Begin anew with --fresh.")
            elif "session" in entry:
                self._ended(entry["session"]["report"], entry["session"]["tests"])
            else:
                self._keep(Outcome.from_json(entry))
        return whole

    def _keep(self, outcome: Outcome) -> None:
        self.runs.setdefault(outcome.id, []).append(outcome)

    def _append(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry).encode() + b"\n")
        self._file.flush()

    def add(self, outcome: Outcome) -> None:
        with self._lock:
            self._keep(outcome)
            self._append(outcome.to_json())

    def ended(self, session: Session) -> None:
        tests = [o.id for o in session.outcomes]
        with self._lock:
            self._ended(session.report, tests)
            self._append({"session": {"report": session.report, "tests": tests, "seconds": round(session.seconds, 1)}})

    def _ended(self, report: dict[str, Any] | None, tests: list[str]) -> None:
        self.counts.add(report)
        if report is not None:
            self._reported.update(tests)

    def unreported(self, id: str) -> bool:
        """Whether the test passed, but never in a session that reported where its tasks ran."""
        runs = self.runs.get(id, [])
        return any(SEVERITY[r.outcome] < SEVERITY["failed"] for r in runs) and id not in self._reported

    def wants_retry(self, id: str) -> bool:
        """Whether the test failed beside other tests and has not run alone."""
        runs = self.runs.get(id, [])
        return bool(runs) and runs[-1].bad and not any(r.alone for r in runs)

    def verdicts(self) -> dict[str, Verdict]:
        return {id: _verdict(runs) for id, runs in self.runs.items()}

    def close(self) -> None:
        self._file.close()


def _verdict(runs: list[Outcome]) -> Verdict:
    best = min(runs, key=lambda r: SEVERITY[r.outcome])
    worst = max(runs, key=lambda r: SEVERITY[r.outcome])
    return Verdict(best.outcome, best.seconds, best.text, worst.outcome if worst.outcome != best.outcome else "")
