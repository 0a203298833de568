"""Records of package logging say where they come from: trace_id, span_id, task_id, actor_id, each empty where there is none."""

from __future__ import annotations

import logging
from typing import Any

from . import _runtime, _trace

FIELDS = ("trace_id", "span_id", "task_id", "actor_id")


def fields() -> tuple[str, str, str, str]:
    """What a record that is made here has in FIELDS."""
    c = _runtime.state.client
    if c is None:
        p = _trace.here.get()
        return (p.trace.hex(), p.span.hex(), "", "") if p is not None else ("", "", "", "")
    tc = _runtime.context(c)
    p = _trace.current(tc)
    task = tc.task.hex() if tc is not c.root else ""
    return p.trace.hex() if p is not None else "", p.span.hex() if p is not None else "", task, tc.actor.hex()


class _Factory:
    """Makes records as the factory before it does, with the fields."""

    def __init__(self, before: Any) -> None:
        self._before = before

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        r: logging.LogRecord = self._before(*args, **kwargs)
        r.__dict__.update(zip(FIELDS, fields()))
        return r


def install() -> None:
    """Has every record of this process made from now on say it."""
    if not isinstance(logging.getLogRecordFactory(), _Factory):
        logging.setLogRecordFactory(_Factory(logging.getLogRecordFactory()))


class _Shown(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        said = ((k, getattr(record, k, "")) for k in FIELDS)
        return super().formatMessage(record) + "".join(f" {k}={v}" for k, v in said if v)


def in_worker() -> None:
    """Records say it, and where the program has configured no logging, so do the lines: a task's are found by its id in what its process
    wrote."""
    install()
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Shown())


__all__ = ["FIELDS", "fields", "in_worker", "install"]
