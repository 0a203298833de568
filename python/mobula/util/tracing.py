"""The program's own spans, in one trace with those of its tasks.

    from mobula.util import tracing

    with tracing.span("load", path=path) as s:
        rows = mobula.get(read.remote(path))     # the task's span is a child
        s.set_attribute("rows", len(rows))

The node exports these spans with those of its tasks if its OTEL_ variables ask for an export. The program needs no exporter. Spans of
OpenTelemetry's own API are in the same trace. In a worker whose environment asks for an exporter (OTEL_EXPORTER_OTLP_ENDPOINT, or
OTEL_TRACES_EXPORTER=otlp) they go to the node too, unless the program has set a tracer provider.
"""

from __future__ import annotations

import functools
import re
from types import TracebackType
from typing import Any, Callable, Mapping, Optional, TypeVar

from .. import _logging, _runtime, _trace
from .._recording import Recording
from .._said import named
from .._sampling import SpanContext
from ..exceptions import InvalidError

_F = TypeVar("_F", bound=Callable[..., Any])
_W3C = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def _current_span() -> Optional[SpanContext]:
    c = _runtime.state.client
    if c is not None:
        return _trace.current(_runtime.context(c))
    return _trace.user_span.get()


def _parse(traceparent: str) -> SpanContext:
    m = _W3C.fullmatch(traceparent.strip())
    if m is None or int(m[1], 16) == 0 or int(m[2], 16) == 0:
        raise InvalidError(f"traceparent {traceparent!r}: want 00-TRACE-SPAN-FLAGS, as W3C has it")
    return SpanContext(bytes.fromhex(m[1]), bytes.fromhex(m[2]), int(m[3], 16))


class span:
    """A span around a with block, or, as a decorator, around each call of a function. It records an exception that leaves it.

        @tracing.span("load")
        def load(path): ...

    traceparent: the parent, as in an HTTP header of that name; by default the span or task that the code runs in. InvalidError if it is
    malformed. attributes: text, numbers or booleans; anything else is recorded as text.
    """

    def __init__(self, name: str, /, *, traceparent: str = "", **attributes: Any) -> None:
        self._name = name
        self._from = _parse(traceparent) if traceparent else None
        self._attributes = attributes
        self._recording: Optional[Recording] = None
        self._token: Any = None
        self._otel: Any = None

    def __enter__(self) -> span:
        r = self._recording = Recording(self._name, self._from or _current_span(), self._attributes)
        self._token = _trace.user_span.set(r.span_context)
        self._otel = _trace.opentelemetry.enter(r.span_context) if _trace.OpenTelemetry.loaded() is not None else None
        return self

    def __exit__(self, kind: Optional[type[BaseException]], x: Optional[BaseException], tb: Optional[TracebackType]) -> None:
        r = self._recording
        assert r is not None
        _trace.opentelemetry.leave(self._otel)
        _trace.user_span.reset(self._token)
        if x is not None:
            r.error = named(x)
        r.end()

    def __call__(self, f: _F) -> _F:
        @functools.wraps(f)
        def inside(*args: Any, **kwargs: Any) -> Any:
            again = span(self._name, **self._attributes)
            again._from = self._from
            with again:
                return f(*args, **kwargs)

        return inside  # type: ignore[return-value]

    def set_attribute(self, key: str, value: Any) -> None:
        """Sets an attribute: text, a number or a boolean. Any other value is recorded as text."""
        if self._recording is not None:
            self._recording.set(key, value)

    def add_event(self, name: str, attributes: Optional[Mapping[str, Any]] = None) -> None:
        """Adds an event at the present time."""
        if self._recording is not None:
            self._recording.event(name, attributes)


def traceparent() -> str:
    """Returns the current span as the value of a W3C traceparent header, for requests to other services. Empty if there is no span."""
    p = _current_span()
    return f"00-{p.trace.hex()}-{p.span.hex()}-{p.flags:02x}" if p is not None and p.span else ""


def dropped() -> int:
    """Returns the number of this process' spans that were dropped on their way to the exporter."""
    c = _runtime.state.client
    return c.spans.dropped if c is not None else 0


def flush(timeout: float = 5.0) -> bool:
    """Waits until the node has all spans that have ended in this process. False if it does not have them after timeout seconds."""
    c = _runtime.state.client
    return c is None or c.spans.flush(timeout)


def log_fields() -> None:
    """Adds the attributes trace_id, span_id, task_id and actor_id to all log records of this process, for formats and filters. They are text,
    empty where there is none. In workers all records have them anyway."""
    _logging.install()


__all__ = ["dropped", "flush", "log_fields", "span", "traceparent"]
