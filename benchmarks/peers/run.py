"""One run: a workload on a system, in a child process under a guard."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Callable, Mapping

from . import environment, guard
from .workload import Workload, project

SAMPLE = 0.1  # seconds between memory samples
PROGRESS = 30.0  # seconds between progress lines of a long run
GRACE = guard.END_TIMEOUT + 30.0  # seconds that the guard has after the run's deadline
TAIL = 800  # characters of a failed run's output to keep


@dataclass(frozen=True)
class Result:
    """The figures of a run, or the reason why there are none."""

    figures: Mapping[str, float]
    peak: float = 0.0  # MiB; 0 if memory was not sampled
    timeout: bool = False
    error: str = ""
    seconds: float = 0.0


def run(w: Workload, system: str, *, quick: bool, sampled: bool, scratch: str | None, log: Callable[[str], None]) -> Result:
    """Does a run in a temporary directory."""
    folder = tempfile.mkdtemp(prefix="peers-", dir=scratch)
    try:
        return _run(w, system, quick, sampled, folder, log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(w: Workload, system: str, quick: bool, sampled: bool, folder: str, log: Callable[[str], None]) -> Result:
    interpreter = sys.executable if w.native else environment.python(project(system))
    argv = [interpreter, "-m", f"{__package__}.child", w.name, system] + ["--quick"] * quick
    stdout, stderr = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
    outcome = guarded({"argv": argv, "env": environment.variables(project(system), folder), "cwd": folder, "stdout": stdout,
                       "stderr": stderr, "timeout": w.timeout, "sample": SAMPLE if sampled else 0}, log)
    return result(outcome, _read(stdout), _read(stderr), w.timeout)


def result(outcome: guard.Outcome, said: str, complained: str, timeout: float) -> Result:
    """Makes a Result of a run's outcome and output."""
    if outcome.left:
        return Result({}, error=f"{outcome.left} processes of the run would not end", seconds=outcome.seconds)
    if outcome.status == "timeout":
        return Result({}, timeout=True, error=f"not done in {timeout:.0f} s", seconds=outcome.seconds)
    if outcome.status != "done":
        why = f"{outcome.status}, exit code {outcome.code}: {complained[-TAIL:].strip()}"
        return Result({}, error=why, seconds=outcome.seconds)
    try:
        figures = json.loads(said)
        return Result({str(k): float(v) for k, v in figures.items()}, peak=outcome.peak / (1 << 20), seconds=outcome.seconds)
    except (ValueError, TypeError, AttributeError):
        return Result({}, error=f"its output is no JSON object of figures: {said[:TAIL]!r}", seconds=outcome.seconds)


def guarded(spec: Mapping[str, object], log: Callable[[str], None]) -> guard.Outcome:
    """Runs a specification under a guard.

    The guard has a session of its own: Ctrl-C interrupts this process alone, which then ends the run.
    """
    timeout = float(str(spec["timeout"]))
    begun = time.monotonic()
    package_root = str(environment.HERE.parent)
    p = subprocess.Popen([sys.executable, "-m", guard.__name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         env={**os.environ, "PYTHONPATH": package_root}, start_new_session=True)
    assert p.stdin is not None and p.stdout is not None
    try:
        p.stdin.write(json.dumps(spec).encode() + b"\n")
        p.stdin.flush()
        while not select.select([p.stdout], [], [], PROGRESS)[0]:
            passed = time.monotonic() - begun
            log(f"still running after {passed:.0f} s of at most {timeout:.0f} s")
            if passed > timeout + GRACE:
                raise RuntimeError(f"the guard, process {p.pid}, does not end")
        line = p.stdout.readline()
        p.wait(GRACE)
    finally:
        with contextlib.suppress(OSError):
            p.stdin.close()  # the guard ends the run when its input closes
        with contextlib.suppress(subprocess.TimeoutExpired):
            p.wait(GRACE)
        p.stdout.close()
    if not line:
        raise RuntimeError(f"the guard ended with code {p.returncode} and said nothing")
    return guard.Outcome(**json.loads(line))


def _read(path: str) -> str:
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""
