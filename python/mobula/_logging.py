"""Adds trace_id, span_id, task_id and actor_id to log records of package logging; each is empty where there is none."""

from __future__ import annotations

import logging
from typing import Any

from . import _runtime, _trace

FIELDS = ("trace_id", "span_id", "task_id", "actor_id")


def fields() -> tuple[str, str, str, str]:
    """The values of FIELDS for code that runs here and now."""
    c = _runtime.state.client
    if c is None:
        p = _trace.user_span.get()
        return (p.trace.hex(), p.span.hex(), "", "") if p is not None else ("", "", "", "")
    tc = _runtime.context(c)
    p = _trace.current(tc)
    task = tc.task.hex() if tc is not c.root else ""
    return p.trace.hex() if p is not None else "", p.span.hex() if p is not None else "", task, tc.actor.hex()


class _Factory:
    """A log record factory that adds the fields to the records of another factory."""

    def __init__(self, before: Any) -> None:
        self._before = before

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        r: logging.LogRecord = self._before(*args, **kwargs)
        r.__dict__.update(zip(FIELDS, fields()))
        return r


def install() -> None:
    """Adds the fields to every record of this process from now on."""
    if not isinstance(logging.getLogRecordFactory(), _Factory):
        logging.setLogRecordFactory(_Factory(logging.getLogRecordFactory()))


class _Shown(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        said = ((k, getattr(record, k, "")) for k in FIELDS)
        return super().formatMessage(record) + "".join(f" {k}={v}" for k, v in said if v)


def in_worker() -> None:
    """Adds the fields to a worker's records. If the program has not configured logging, the lines show them, so that a task's lines can
    be found by its id."""
    install()
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Shown())


__all__ = ["FIELDS", "fields", "in_worker", "install"]
