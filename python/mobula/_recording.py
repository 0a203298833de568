"""A span that is being recorded. When it ends it goes to the node."""

from __future__ import annotations

import os
import time
from typing import Any, Mapping, Optional

from . import _runtime, _sampling
from ._client import Client, TaskContext
from ._sampling import SpanContext

_MAX_ATTRIBUTES = 128  # OpenTelemetry's defaults
_MAX_EVENTS = 128


def plain(attributes: Optional[Mapping[str, Any]]) -> dict[str, Any]:
    """Attributes as they are sent: text, booleans and numbers as they are, everything else as text."""
    out: dict[str, Any] = {}
    for k, v in (attributes or {}).items():
        if isinstance(v, int) and not isinstance(v, bool) and not -(1 << 63) <= v < 1 << 63:
            v = str(v)
        out[str(k)] = v if isinstance(v, (str, bool, int, float)) else str(v)
    return out


class Recording:
    """A span that has begun. If it is not sampled it records nothing, and neither do the calls inside it."""

    def __init__(self, name: str, parent: Optional[SpanContext], attributes: Optional[Mapping[str, Any]] = None, start: Optional[int] = None,
                 links: tuple[SpanContext, ...] = ()) -> None:
        c = _runtime.state.client
        self.client: Optional[Client] = c
        self.task: Optional[TaskContext] = _runtime.context(c) if c is not None else None
        sampler = c.sampler if c is not None else _sampling.sampler(os.environ)
        if parent is None:
            trace = os.urandom(16)
            self.span_context = SpanContext(trace, os.urandom(8), sampler.flags(trace), self.task)
        else:
            self.span_context = sampler.decide(parent)._replace(span=os.urandom(8), task=self.task)
        self.parent = parent.span if parent is not None else b""
        self.name = name
        self.attributes = plain(attributes)
        self.events: list[dict[str, Any]] = []
        self.links = [{"trace": p.trace, "id": p.span} for p in links]
        self.error = ""
        self.start = self.now() if start is None else start
        self.ended = False

    def now(self) -> int:
        return self.client.now() if self.client is not None else time.time_ns()

    @property
    def recording(self) -> bool:
        return self.span_context.sampled and not self.ended

    def set(self, key: str, value: Any) -> None:
        if self.recording and (key in self.attributes or len(self.attributes) < _MAX_ATTRIBUTES):
            self.attributes.update(plain({key: value}))

    def event(self, name: str, attributes: Optional[Mapping[str, Any]] = None, at: Optional[int] = None) -> None:
        if self.recording and len(self.events) < _MAX_EVENTS:
            self.events.append({"name": name, "at": self.now() if at is None else at, "attrs": plain(attributes)})

    def end(self, at: Optional[int] = None) -> None:
        """Ends the span and sends it to the node, once."""
        if not self.recording:
            return
        self.ended = True
        c = self.client or _runtime.state.client  # the span may have begun before this process had a node
        if c is None:
            return
        if self.task is not None and self.task is not c.root:
            self.attributes.setdefault("mobula.task.id", self.task.task.hex())
        c.spans.add({"trace": self.span_context.trace, "id": self.span_context.span, "parent": self.parent, "name": self.name or "span", "start": self.start,
                     "end": max(self.now() if at is None else at, self.start), "attrs": self.attributes, "error": self.error,
                     "events": self.events, "links": self.links})
