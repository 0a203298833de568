"""A program's own spans, in one tree with those of its tasks, and the ids of where code runs.

    from mobula.util import tracing

    with tracing.span("load", path=path) as s:
        rows = mobula.get(read.remote(path))     # the task's span is below
        s.set_attribute("rows", len(rows))

The node exports these spans with those of its tasks, where the OTEL_ variables of the node ask for it: the program needs no exporter.
What a program does with OpenTelemetry's own API is in the same tree; in a worker whose environment asks for an exporter
(OTEL_EXPORTER_OTLP_ENDPOINT, or OTEL_TRACES_EXPORTER=otlp) it too goes to the node, unless the program has set a tracer provider.
"""

from __future__ import annotations

import functools
import re
from types import TracebackType
from typing import Any, Callable, Mapping, Optional, TypeVar

from .. import _logging, _runtime, _trace
from .._recording import Recording, failure
from .._sampling import Place
from ..exceptions import InvalidError

_F = TypeVar("_F", bound=Callable[..., Any])
_W3C = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def _place() -> Optional[Place]:
    c = _runtime.state.client
    if c is not None:
        return _trace.current(_runtime.context(c))
    return _trace.here.get()


def _parse(traceparent: str) -> Place:
    m = _W3C.fullmatch(traceparent.strip())
    if m is None or int(m[1], 16) == 0 or int(m[2], 16) == 0:
        raise InvalidError(f"traceparent {traceparent!r}: want 00-TRACE-SPAN-FLAGS, as W3C has it")
    return Place(bytes.fromhex(m[1]), bytes.fromhex(m[2]), int(m[3], 16))


class span:
    """A span around a block, or as a decorator around each call of a function. An exception that leaves it is noted and goes on.

    traceparent: what it is below, where that comes from elsewhere, such as a request's header of that name; else it is below the span
    or the task that the code runs in.
    """

    def __init__(self, name: str, /, *, traceparent: str = "", **attributes: Any) -> None:
        self._name = name
        self._from = _parse(traceparent) if traceparent else None
        self._attributes = attributes
        self._recording: Optional[Recording] = None
        self._token: Any = None
        self._otel: Any = None

    def __enter__(self) -> span:
        r = self._recording = Recording(self._name, self._from or _place(), self._attributes)
        self._token = _trace.here.set(r.place)
        self._otel = _trace.opentelemetry.enter(r.place) if _trace.OpenTelemetry.loaded() is not None else None
        return self

    def __exit__(self, kind: Optional[type[BaseException]], x: Optional[BaseException], tb: Optional[TracebackType]) -> None:
        r = self._recording
        assert r is not None
        _trace.opentelemetry.leave(self._otel)
        _trace.here.reset(self._token)
        if x is not None:
            r.error = failure(x)
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
        """A text, a number or a boolean; another value is noted as text."""
        if self._recording is not None:
            self._recording.set(key, value)

    def add_event(self, name: str, attributes: Optional[Mapping[str, Any]] = None) -> None:
        """Something that happens now."""
        if self._recording is not None:
            self._recording.event(name, attributes)


def traceparent() -> str:
    """Where this code runs, as W3C's header of that name: for requests to others. Empty where it is in no span yet."""
    p = _place()
    return f"00-{p.trace.hex()}-{p.span.hex()}-{p.flags:02x}" if p is not None and p.span else ""


def dropped() -> int:
    """How many spans of this process found no room on their way to the exporter."""
    c = _runtime.state.client
    return c.spans.dropped if c is not None else 0


def flush(timeout: float = 5.0) -> bool:
    """Waits until the node has the spans that have ended here; false if it had them not in time."""
    c = _runtime.state.client
    return c is None or c.spans.flush(timeout)


def log_fields() -> None:
    """Has every record of package logging in this process carry trace_id, span_id, task_id and actor_id, for formats and filters: texts,
    empty where there is none. Records in workers carry them anyway."""
    _logging.install()


__all__ = ["dropped", "flush", "log_fields", "span", "traceparent"]
