"""A tracer provider for OpenTelemetry's API in a worker: it sends the spans to the node. Import it only if opentelemetry is installed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.util import types

from . import _runtime, _trace
from ._recording import Recording, plain
from ._sampling import SpanContext


def span_context(c: api.SpanContext) -> SpanContext:
    return SpanContext(c.trace_id.to_bytes(16, "big"), c.span_id.to_bytes(8, "big"), int(c.trace_flags))


class Span(api.Span):
    def __init__(self, r: Recording) -> None:
        self._r = r
        p = r.span_context
        self._context = api.SpanContext(int.from_bytes(p.trace, "big"), int.from_bytes(p.span, "big"), False, api.TraceFlags(p.flags))

    def end(self, end_time: Optional[int] = None) -> None:
        self._r.end(end_time)

    def get_span_context(self) -> api.SpanContext:
        return self._context

    def set_attributes(self, attributes: Mapping[str, types.AttributeValue]) -> None:
        for k, v in attributes.items():
            self._r.set(k, v)

    def set_attribute(self, key: str, value: types.AttributeValue) -> None:
        self._r.set(key, value)

    def add_event(self, name: str, attributes: types.Attributes = None, timestamp: Optional[int] = None) -> None:
        self._r.event(name, attributes, timestamp)

    def add_link(self, context: api.SpanContext, attributes: types.Attributes = None) -> None:
        if self._r.recording and context.is_valid:
            p = span_context(context)
            self._r.links.append({"trace": p.trace, "id": p.span})

    def update_name(self, name: str) -> None:
        if self._r.recording:
            self._r.name = name

    def is_recording(self) -> bool:
        return self._r.recording

    def set_status(self, status: Union[api.Status, api.StatusCode], description: Optional[str] = None) -> None:
        said = api.Status(status, description) if isinstance(status, api.StatusCode) else status
        if self._r.recording:
            self._r.error = (said.description or "failed") if said.status_code is api.StatusCode.ERROR else ""

    def record_exception(self, exception: BaseException, attributes: types.Attributes = None, timestamp: Optional[int] = None,
                         escaped: bool = False) -> None:
        said = {"exception.type": type(exception).__qualname__, "exception.message": str(exception), **plain(attributes)}
        self._r.event("exception", said, timestamp)


class Tracer(api.Tracer):
    def start_span(self, name: str, context: Optional[Context] = None, kind: api.SpanKind = api.SpanKind.INTERNAL,
                   attributes: types.Attributes = None, links: Optional[Sequence[api.Link]] = None, start_time: Optional[int] = None,
                   record_exception: bool = True, set_status_on_exception: bool = True) -> api.Span:
        c = api.get_current_span(context).get_span_context()
        parent = span_context(c) if c.is_valid else None
        if parent is None and context is None and _runtime.state.client is not None:
            parent = _trace.current(_runtime.context(_runtime.state.client))  # in a thread that the task has started
        return Span(Recording(name, parent, attributes, start_time, tuple(span_context(x.context) for x in links or () if x.context.is_valid)))

    @contextmanager
    def start_as_current_span(  # type: ignore[override]  # the API's own type can also decorate coroutines
            self, name: str, context: Optional[Context] = None, kind: api.SpanKind = api.SpanKind.INTERNAL,
            attributes: types.Attributes = None, links: Optional[Sequence[api.Link]] = None, start_time: Optional[int] = None,
            record_exception: bool = True, set_status_on_exception: bool = True, end_on_exit: bool = True) -> Iterator[api.Span]:
        s = self.start_span(name, context, kind, attributes, links, start_time)
        with api.use_span(s, end_on_exit, record_exception, set_status_on_exception) as current:
            yield current


class Provider(api.TracerProvider):
    def get_tracer(self, *args: Any, **kwargs: Any) -> api.Tracer:
        return Tracer()
