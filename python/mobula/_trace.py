"""The spans that code runs in, and how a trace goes on in the calls that it makes.

Where a call is made its spec gets the caller's span, so that a program's own trace goes on in its tasks, else a new trace, whose id is the
task's. The decision to record it is made there, once, and travels with it. The spans of tasks are made by the node that owns them; a
worker knows the id of its run span, because it follows from the task's.

Code is in a span of mobula.util.tracing, or of the program's own OpenTelemetry, else in the run of its task.
"""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from typing import Any, Callable, Optional

from . import _ids
from ._client import TaskContext
from ._sampling import SAMPLED, Place

log = logging.getLogger("mobula")

OTEL = "opentelemetry.trace"
_CONTEXT = "opentelemetry.context"  # OTEL imports it

_ROOT = b"\x4a\x12\x0a\x10"  # a trace's field with an id alone
_SAMPLED_ROOT = b"\x4a\x14\x0a\x10"
_SUBMITTED = b"\x59"

# The span of mobula.util.tracing that code runs in. What a task leaves open counts no longer than the task.
here: ContextVar[Optional[Place]] = ContextVar("mobula_span", default=None)


def users(tc: TaskContext) -> Optional[Place]:
    """The span of the program's own that code of the task is in."""
    otel = sys.modules.get(OTEL)
    if otel is not None and hasattr(otel, "get_current_span"):  # or another thread is importing it
        c = otel.get_current_span().get_span_context()
        if c.is_valid:
            return Place(c.trace_id.to_bytes(16, "big"), c.span_id.to_bytes(8, "big"), int(c.trace_flags))
    p = here.get()
    return p if p is not None and p.task in (None, tc) else None


def current(tc: TaskContext) -> Optional[Place]:
    """The span that code of the task is in; None: there is no trace yet."""
    return users(tc) or tc.place


def field(tc: TaskContext, task: bytes, site: bytes = b"") -> bytes:
    """The fields of a new task's spec from its trace to the time of the call; site: what call_site gives."""
    if here.get() is not None or OTEL in sys.modules:
        p = users(tc)
        if p is not None:
            p = tc.client.sampler.decide(p)
            return p.field() + site + (_submitted(tc) if p.sampled else b"")
    trace = tc.trace
    if trace is not None:
        return trace + site + _submitted(tc) if tc.sampled else trace + site
    trace = _ids.trace_of(task)
    if trace[8:] < tc.client.sampler.bound:
        return _SAMPLED_ROOT + trace + SAMPLED + site + _submitted(tc)
    return _ROOT + trace + site


def _submitted(tc: TaskContext) -> bytes:
    return _SUBMITTED + tc.client.now().to_bytes(8, "little", signed=True)


class OpenTelemetry:
    """The API of OpenTelemetry, where it is installed."""

    def __init__(self) -> None:
        self._tried = False
        self.provide: Optional[Callable[[], None]] = None  # once it is there, before code that may use it begins

    def load(self) -> Any:
        """The module opentelemetry.trace, or None."""
        if not self._tried:
            self._tried = True
            try:
                import opentelemetry.trace  # noqa: F401
            except ImportError:
                pass
            except Exception:
                log.exception("opentelemetry is installed and cannot be imported; spans of its API are not in the traces of tasks")
        return self.loaded()

    @staticmethod
    def loaded() -> Any:
        """The same, if something in this process uses it."""
        otel = sys.modules.get(OTEL)
        return otel if hasattr(otel, "set_span_in_context") else None

    def enter(self, p: Optional[Place]) -> Any:
        """Makes spans of the API children of p; gives what leave wants."""
        otel = self.load() if p is not None and p.sampled else self.loaded()
        if otel is None or p is None:
            return None
        if self.provide is not None:
            provide, self.provide = self.provide, None
            provide()
        context = sys.modules[_CONTEXT]
        span = p.span or (int.from_bytes(p.trace[8:], "big") | 1).to_bytes(8, "big")  # one that is not sampled is nobody's
        c = otel.SpanContext(int.from_bytes(p.trace, "big"), int.from_bytes(span, "big"), True, otel.TraceFlags(p.flags))
        return context.attach(otel.set_span_in_context(otel.NonRecordingSpan(c)))

    @staticmethod
    def leave(token: Any) -> None:
        if token is not None:
            sys.modules[_CONTEXT].detach(token)


opentelemetry = OpenTelemetry()


UNSAMPLED = (0, 18, 28)  # bytes of a trace without flags


def enter(tc: TaskContext) -> Any:
    """The task's code begins; gives what opentelemetry.leave wants. To one that is not sampled it costs next to nothing: OpenTelemetry does
    not know of it, and our tracer (_otel) asks for its place."""
    if len(tc.raw_trace) in UNSAMPLED:
        return None
    p = tc.place
    return opentelemetry.enter(p) if p is not None and p.sampled else None
