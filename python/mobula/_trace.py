"""The span that code runs in, and how calls continue its trace.

The spec of a call carries the caller's span, so that a program's own trace goes on in its tasks. A caller without a span begins a new
trace, whose id follows from the task's. The caller decides whether a new trace is sampled, and the decision travels with it. The node makes
the spans of tasks. A worker computes the id of its run span from the task's id.

Code runs in a span of OpenTelemetry's API or of mobula.util.tracing, else in the run of its task.
"""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from typing import Any, Callable, Optional

from . import _ids
from ._client import TaskContext
from ._sampling import SAMPLED, SpanContext

log = logging.getLogger("mobula")

OTEL = "opentelemetry.trace"
_CONTEXT = "opentelemetry.context"  # OTEL imports it

_ROOT = b"\x4a\x12\x0a\x10"  # begins a spec's trace field that has an id alone
_SAMPLED_ROOT = b"\x4a\x14\x0a\x10"
_SUBMITTED = b"\x59"

# The span of mobula.util.tracing that code runs in. A span that a task leaves open ends to count when the task ends.
user_span: ContextVar[Optional[SpanContext]] = ContextVar("mobula_span", default=None)


def user_span_of(tc: TaskContext) -> Optional[SpanContext]:
    """The program's own span that the task's code is in; None if there is none."""
    otel = sys.modules.get(OTEL)
    if otel is not None and hasattr(otel, "get_current_span"):  # otherwise another thread is still importing it
        c = otel.get_current_span().get_span_context()
        if c.is_valid:
            return SpanContext(c.trace_id.to_bytes(16, "big"), c.span_id.to_bytes(8, "big"), int(c.trace_flags))
    p = user_span.get()
    return p if p is not None and p.task in (None, tc) else None


def current(tc: TaskContext) -> Optional[SpanContext]:
    """The span that the task's code is in; None: it is in no trace yet."""
    return user_span_of(tc) or tc.span_context


def field(tc: TaskContext, task: bytes, callsite: bytes = b"") -> bytes:
    """The encoded fields of a new task's spec: the trace, the call site (callsite), and, if it is sampled, the time of the call."""
    if user_span.get() is not None or OTEL in sys.modules:
        p = user_span_of(tc)
        if p is not None:
            p = tc.client.sampler.decide(p)
            return p.field() + callsite + (_submitted(tc) if p.sampled else b"")
    trace = tc.trace
    if trace is not None:
        return trace + callsite + _submitted(tc) if tc.sampled else trace + callsite
    trace = _ids.trace_of(task)
    if trace[8:] < tc.client.sampler.bound:
        return _SAMPLED_ROOT + trace + SAMPLED + callsite + _submitted(tc)
    return _ROOT + trace + callsite


def _submitted(tc: TaskContext) -> bytes:
    return _SUBMITTED + tc.client.now().to_bytes(8, "little", signed=True)


class OpenTelemetry:
    """OpenTelemetry's API, if it is installed."""

    def __init__(self) -> None:
        self._tried = False
        self.provide: Optional[Callable[[], None]] = None  # called once the API is loaded, before code that may use it

    def load(self) -> Any:
        """Imports opentelemetry.trace and returns it; None if it is not installed."""
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
        """The module opentelemetry.trace if this process has imported it already, else None."""
        otel = sys.modules.get(OTEL)
        return otel if hasattr(otel, "set_span_in_context") else None

    def enter(self, p: Optional[SpanContext]) -> Any:
        """Makes p the API's current span. Returns a token for leave."""
        otel = self.load() if p is not None and p.sampled else self.loaded()
        if otel is None or p is None:
            return None
        if self.provide is not None:
            provide, self.provide = self.provide, None
            provide()
        context = sys.modules[_CONTEXT]
        span = p.span or (int.from_bytes(p.trace[8:], "big") | 1).to_bytes(8, "big")  # the API needs some id, also of a trace that is not sampled
        c = otel.SpanContext(int.from_bytes(p.trace, "big"), int.from_bytes(span, "big"), True, otel.TraceFlags(p.flags))
        return context.attach(otel.set_span_in_context(otel.NonRecordingSpan(c)))

    @staticmethod
    def leave(token: Any) -> None:
        if token is not None:
            sys.modules[_CONTEXT].detach(token)


opentelemetry = OpenTelemetry()


UNSAMPLED = (0, 18, 28)  # bytes of a trace without flags


def enter(tc: TaskContext) -> Any:
    """Called before the task's code. Returns a token for opentelemetry.leave. A task that is not sampled costs almost nothing: the API's
    current span is not set, and our tracer (_otel) asks for the parent when it starts a span."""
    if len(tc.raw_trace) in UNSAMPLED:
        return None
    p = tc.span_context
    return opentelemetry.enter(p) if p is not None and p.sampled else None
