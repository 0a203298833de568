"""How a trace begins and is passed on; e2e/languages/python_trace_test.go follows it through processes."""

from __future__ import annotations

import logging
import sys
import threading
from itertools import count
from typing import Any, Iterator

import cbor2
import pytest

from mobula import _ids, _runtime, _sampling, _trace
from mobula._client import TaskContext
from mobula._client.pending import Pending
from mobula._client.spans import Spans
from mobula._wire import codec
from mobula._wire import messages as m
from mobula._worker.tracing import wanted
from mobula.exceptions import InvalidError
from mobula.util import tracing

TASK = bytes(4) + bytes(range(16))


class Node:
    """What a task's context needs of a client."""

    def __init__(self, sampler: _sampling.Sampler) -> None:
        self.sampler = sampler

    def now(self) -> int:
        return 99


def context(ratio: float, raw: bytes = b"", ignores_parent: bool = False) -> Any:
    return TaskContext(Node(_sampling.Sampler(ratio, ignores_parent)), b"c" * 20, 3, raw)  # type: ignore[arg-type]


def spec(tc: Any, task: bytes = TASK, site: bytes = b"") -> Any:
    return codec.decode(m.TaskSpec, _trace.field(tc, task, site))


def raw(flags: int, span: bytes = b"s" * 8) -> bytes:
    return codec.encode(m.TraceContext(b"t" * 16, span, flags))


@pytest.fixture(autouse=True)
def outside() -> Iterator[None]:
    token = _trace.user_span.set(None)
    yield
    _trace.user_span.reset(token)


def test_a_call_begins_a_trace_or_goes_on_with_its_callers() -> None:
    assert spec(context(0)).trace == m.TraceContext(_ids.trace_of(TASK))
    assert spec(context(0)).submitted == 0
    assert spec(context(1)).trace == m.TraceContext(_ids.trace_of(TASK), b"", 1)
    assert spec(context(1)).submitted == 99
    # Of a sampled task the parent is its run, of another one what its own parent is; the ratio does not count.
    run = _sampling.run_span(b"c" * 20, 3)
    assert spec(context(0, raw(1))).trace == m.TraceContext(b"t" * 16, run, 1)
    assert spec(context(0, raw(1))).submitted == 99
    assert spec(context(1, raw(0))).trace == m.TraceContext(b"t" * 16, b"s" * 8, 0)
    # Without parentbased_ each call is decided anew.
    assert spec(context(1, raw(0), ignores_parent=True)).trace.flags == 1
    assert spec(context(0, raw(1), ignores_parent=True)).trace.flags == 0
    with_site = spec(context(1), site=b"\x52\x03f:1")
    assert (with_site.callsite, with_site.submitted, with_site.trace.flags) == ("f:1", 99, 1)


def test_a_span_is_the_parent_while_its_task_runs() -> None:
    tc, other = context(0), context(0)
    _trace.user_span.set(_sampling.SpanContext(b"u" * 16, b"v" * 8, 1, tc))
    assert spec(tc).trace == m.TraceContext(b"u" * 16, b"v" * 8, 1)
    assert spec(other).trace == m.TraceContext(_ids.trace_of(TASK)), "a task that left its span open is not the parent of another's calls"


def test_the_share_that_is_sampled() -> None:
    # As Go's: the second half, big endian, without its last bit, below the ratio of 2^63.
    for ratio, low, want in ((0.5, 0x7FFFFFFFFFFFFFFF, 1), (0.5, 0x8000000000000000, 0), (1, 0xFFFFFFFFFFFFFFFF, 1), (0, 0, 0),
                             (0.25, 0x3FFFFFFFFFFFFFFF, 1), (0.25, 0x4000000000000000, 0)):
        assert _sampling.Sampler(ratio).flags(b"\0" * 8 + low.to_bytes(8, "big")) == want, (ratio, hex(low))


def test_run_spans_are_those_of_the_node() -> None:
    # As telemetry.SpanOf gives them (telemetry_test.go has the same).
    assert _sampling.run_span(TASK, 1).hex() == "a3cbc4c4e89b5c1a"
    assert _sampling.run_span(TASK, 70_000).hex() == "c54ba4228f7e0eb0"


@pytest.mark.parametrize("env, ratio, ignores_parent", [
    ({}, 0.5, False), ({"OTEL_TRACES_SAMPLER": "always_on"}, 1, True), ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, 0, False),
    ({"OTEL_TRACES_SAMPLER": " ParentBased_TraceIDRatio ", "OTEL_TRACES_SAMPLER_ARG": "0.25"}, 0.25, False),
    ({"OTEL_TRACES_SAMPLER": "traceidratio"}, 1, True),
])
def test_samplers_of_the_environment(env: dict[str, str], ratio: float, ignores_parent: bool) -> None:
    s = _sampling.sampler(env, 500_000)
    assert (s.bound, s.ignores_parent) == (_sampling.Sampler(ratio).bound, ignores_parent)


@pytest.mark.parametrize("env", [{"OTEL_TRACES_SAMPLER": "jaeger"}, {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"},
                                 {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "half"}])
def test_a_sampler_that_is_none_is_said(env: dict[str, str], caplog: Any) -> None:
    with caplog.at_level(logging.WARNING, "mobula"):
        assert _sampling.sampler(env, -1).bound == b""
    assert list(env.values())[-1] in caplog.text


def test_opentelemetrys_span_is_the_parent() -> None:
    trace = pytest.importorskip("opentelemetry.trace")
    from opentelemetry import context as contexts

    tc = context(0, raw(1))
    token = _trace.enter(tc)  # as a worker does
    try:
        got = trace.get_current_span().get_span_context()
        assert (got.trace_id.to_bytes(16, "big"), got.span_id.to_bytes(8, "big"), int(got.trace_flags)) == (b"t" * 16, _sampling.run_span(b"c" * 20, 3), 1)
        inner = trace.SpanContext(7, 8, False, trace.TraceFlags(0))
        inside = contexts.attach(trace.set_span_in_context(trace.NonRecordingSpan(inner)))
        assert spec(tc).trace == m.TraceContext((7).to_bytes(16, "big"), (8).to_bytes(8, "big"), 0)
        contexts.detach(inside)
    finally:
        _trace.opentelemetry.leave(token)
    assert not trace.get_current_span().get_span_context().is_valid
    assert _trace.enter(context(1, raw(0))) is None
    assert {len(raw(0, b"")), len(raw(0))} | {0} == set(_trace.UNSAMPLED) and len(raw(1)) not in _trace.UNSAMPLED
    assert spec(context(1, raw(0))).trace.flags == 0
    assert _trace.OTEL in sys.modules


def test_spans_of_opentelemetry_in_a_task_that_is_not_sampled_are_not_either(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.trace")
    from mobula._otel import Provider

    c = Sender()
    c.fallback = TaskContext(c, b"c" * 20, 1, raw(0))  # type: ignore[arg-type]
    monkeypatch.setattr(_runtime.state, "client", c)
    with Provider().get_tracer("x").start_as_current_span("none") as s:
        assert not s.is_recording() and spec(c.fallback).trace.flags == 0
    assert c.out == []
    c.fallback = TaskContext(c, b"c" * 20, 1, raw(1))  # type: ignore[arg-type]
    with pytest.raises(KeyError), Provider().get_tracer("x").start_as_current_span("one", attributes={"a": 1}):
        raise KeyError("k")
    [one] = c.bodies()[0]["spans"]
    assert one["parent"] == _sampling.run_span(b"c" * 20, 1) and one["trace"] == b"t" * 16 and one["attrs"]["a"] == 1
    assert "KeyError" in one["error"] and one["events"][0]["attrs"]["exception.message"] == "'k'"


class Sender:
    """What spans need of a client; the node answers when it is told to."""

    dead = None

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.out: list[bytes] = []
        self.requests = Pending(self, count(1))  # type: ignore[arg-type]
        self.spans = Spans(self)  # type: ignore[arg-type]
        self.sampler = _sampling.Sampler(1)
        self.fallback = self.root = TaskContext(self, b"r" * 20)  # type: ignore[arg-type]

    def now(self) -> int:
        return 50

    def maybe_flush(self) -> None:
        pass

    def sent(self) -> list[int]:
        """How many spans each request has."""
        return [len(r["spans"]) for r in self.bodies()]

    def bodies(self) -> list[Any]:
        out = []
        for chunk in self.out:
            _, i = codec.read_varint(chunk, 0)
            _, i = codec.read_varint(chunk, i)
            out.append(cbor2.loads(codec.decode(m.Request, chunk, i, len(chunk)).body))
        return out

    def answer(self, req: int, **reply: Any) -> None:
        err = m.Error(code=1) if reply.get("refused") else None
        self.requests.answer(req, m.Reply(req, b"" if err else cbor2.dumps({"exported": True, "dropped": 0, **reply}), err))


def test_a_span_goes_at_once_and_those_after_it_together() -> None:
    c = Sender()
    for _ in range(5):
        c.spans.add({})
    assert c.sent() == [1] and c.spans.waiting
    c.answer(1)
    assert c.sent() == [1, 4] and not c.spans.waiting
    c.spans.add({})
    c.spans.push()  # a task ends
    assert c.sent() == [1, 4, 1]


def test_spans_that_find_no_room_are_counted() -> None:
    c = Sender()
    for _ in range(1 + 4096 + 3):  # a node that does not answer
        c.spans.add({})
    assert c.spans.dropped == 3
    c.answer(1, refused=True)
    assert c.spans.dropped == 4
    c.answer(2, dropped=10)
    assert c.spans.dropped == 14


def test_a_node_that_exports_none_is_sent_none() -> None:
    c = Sender()
    c.spans.add({})
    c.spans.add({})
    c.answer(1, exported=False)
    c.spans.add({})
    assert c.sent() == [1] and not c.spans.waiting and c.spans.dropped == 0


def test_a_span_says_what_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    c = Sender()
    monkeypatch.setattr(_runtime.state, "client", c)
    assert tracing.traceparent() == ""
    with pytest.raises(ZeroDivisionError), tracing.span("outer", n=1, of=[1, 2], big=1 << 70) as s:
        s.set_attribute("late", True)
        s.add_event("half", {"x": 0.5})
        assert tracing.traceparent() == f"00-{spec(c.root).trace.trace_id.hex()}-{spec(c.root).trace.span_id.hex()}-01"
        raise ZeroDivisionError("no")
    [outer] = c.bodies()[0]["spans"]
    assert outer["attrs"] == {"n": 1, "of": "[1, 2]", "big": str(1 << 70), "late": True}
    assert outer["error"] == "ZeroDivisionError: no" and outer["parent"] == b"" and outer["events"] == [{"name": "half", "at": 50, "attrs": {"x": 0.5}}]
    with tracing.span("from elsewhere", traceparent=f"00-{'ab' * 16}-{'cd' * 8}-00"):
        assert spec(c.root).trace.flags == 0
        assert tracing.traceparent().startswith("00-" + "ab" * 16) and tracing.traceparent().endswith("-00")
    assert c.sent() == [1] and not c.spans.waiting, "one that is not sampled is not sent"
    with pytest.raises(InvalidError):
        tracing.span("x", traceparent="00-1-2-3")


@pytest.mark.parametrize("env, want", [
    ({}, False), ({"OTEL_TRACES_EXPORTER": "otlp"}, True), ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h"}, True),
    ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h", "OTEL_TRACES_EXPORTER": "none"}, False),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_SDK_DISABLED": "true"}, False),
])
def test_whether_an_exporter_is_asked_for(env: dict[str, str], want: bool) -> None:
    assert wanted(env) is want
