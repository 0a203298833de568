"""A pytest plugin for every session: runs the selected tests, and reports when each begins and how it ends.

    --suite-ids FILE     the ids to run, one per line, in the order of collection; by default all tests run
    --suite-events FD    a pipe for the events, one line of JSON each: {"begin": id, "at": monotonic seconds}, then {"end": outcome}

If the reader of the pipe has gone, the session ends at its next event.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from dask_suite.outcome import Outcome

TEXT = 2000  # last characters of a failure's text to keep


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite")
    group.addoption("--suite-ids", type=Path, help="file with the ids of the tests to run")
    group.addoption("--suite-events", type=int, help="descriptor of the pipe for the events")


def pytest_configure(config: pytest.Config) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests send interrupts, which a process in a shell's background ignores
    fd = config.getoption("--suite-events")
    if fd is not None:
        config.pluginmanager.register(_Reporter(fd), "suite-reporter")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    path = config.getoption("--suite-ids")
    if path is not None:
        wanted = set(path.read_text().splitlines())
        dropped = [item for item in items if item.nodeid not in wanted]
        items[:] = [item for item in items if item.nodeid in wanted]
        config.hook.pytest_deselected(items=dropped)


class _Reporter:
    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.pid = os.getpid()
        self.phases: list[pytest.TestReport] = []

    def send(self, event: dict[str, Any]) -> None:
        if os.getpid() != self.pid:
            return  # a child that a test has forked has returned into pytest
        data = json.dumps(event).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self.fd, data) :]
        except BrokenPipeError:
            os._exit(1)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.phases = []
        self.send({"begin": nodeid, "at": time.monotonic()})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.phases.append(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        outcome, text = classify(self.phases)
        seconds = round(sum(p.duration for p in self.phases), 3)
        self.send({"end": Outcome(nodeid, outcome, seconds, text[-TEXT:]).to_json()})


def classify(phases: list[pytest.TestReport]) -> tuple[str, str]:
    """The outcome and its reason, from the reports of set-up, call and tear-down."""
    outcome, text = "passed", ""
    for p in phases:
        if p.failed:
            return "failed" if p.when == "call" else "error", p.longreprtext
        expected = hasattr(p, "wasxfail")
        if p.skipped:
            outcome = "xfailed" if expected else "skipped"
            text = p.wasxfail if expected else _reason(p)
        elif expected and p.when == "call":
            outcome, text = "xpassed", p.wasxfail
    return outcome, text


def _reason(report: pytest.TestReport) -> str:
    """The reason for a skip, which pytest reports together with the location."""
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else report.longreprtext
