"""Messages encoded by hand have the same bytes as those of the general codec."""

from __future__ import annotations

from typing import Any

import pytest

from mobula._sampling import SpanContext
from mobula._wire import codec, hot
from mobula._wire import messages as m

T, P, A = b"t" * 20, b"p" * 20, b"a" * 20
IDS = [bytes([i]) * 24 for i in range(1, 4)]


def body(b: bytes) -> tuple[int, int]:
    _, i = codec.read_varint(b, 0)
    n, i = codec.read_varint(b, i)
    assert i + n == len(b)
    return i, len(b)


def test_encoders() -> None:
    for data in (b"", b"d", b"x" * 200, b"y" * 40_000):
        for refs in ([], IDS):
            assert hot.put_value(IDS[0], b"meta", data, refs) == codec.message(m.PutValue(IDS[0], m.Value(b"meta", data, list(refs))))
            opts = m.TaskOptions("f", 1, [m.Resource("CPU", 500)], 3)
            spec = m.TaskSpec(T, P, 2, opts, [m.Arg(IDS[1]), m.Arg(b"", m.Value(b"meta", data, list(refs)))], A, 300, -5, m.TraceContext(T, b"s" * 8, 1), "f.py:1")
            got = hot.submit(T, hot.spec_head(P), hot.spec_options(2, codec.encode(opts)), hot.arg_ref(IDS[1]) + hot.arg_value(b"meta", data, refs),
                             hot.spec_tail(A, 300, -5, SpanContext(T, b"s" * 8, 1).field() + hot.callsite_field("f.py:1")))
            assert got == codec.message(m.Submit(spec))
            r = m.Result(1, m.Value(b"meta", data, list(refs)), len(data))
            e = m.Error(1, "msg")
            want = m.Done(T, 2, 900, [r, m.Result(2, m.Value(b"meta", b"", list(refs)), 70_000)], 3, e, m.Times(1, 2, 3))
            got = hot.done(T, 2, 900, hot.result_inline(b"meta", data, refs) + hot.result_stored(b"meta", 70_000, refs), 1, 2, 3, 3, codec.encode(e))
            assert got == codec.message(want)
    assert hot.submit(T, hot.spec_head(P), hot.spec_options(0, b"\x0a\x01f"), b"") == codec.message(m.Submit(m.TaskSpec(T, P, 0, m.TaskOptions("f"))))
    for fetch in (False, True):
        assert hot.get(IDS[0], fetch) == codec.message(m.Get(IDS[0], fetch))
    assert hot.unget(IDS[0]) == codec.message(m.Unget(IDS[0]))
    assert hot.add_ref(IDS[0]) == codec.message(m.AddRef(IDS[0]))
    for n in (1, 3):
        assert hot.release(IDS[:n]) == codec.message(m.Release(IDS[:n]))
    for k in (1, 200):
        assert hot.unpin(IDS[0], k) == codec.message(m.Unpin(IDS[0], k))


def check_answer(got: hot.Answer, want: m.Result) -> None:
    v = want.value or m.Value()
    assert got == (want.kind, v.meta, v.data, tuple(v.refs), want.size, want.err)


def test_resolved() -> None:
    cases: list[Any] = [
        m.Resolved(IDS[0], False, m.Result(1, m.Value(b"meta", b"data" * 100, IDS), 400)),
        m.Resolved(IDS[0], True, m.Result(2, m.Value(b"meta", b"", IDS[:1]), 1 << 33), m.Extent(1, 1 << 34, 1 << 33)),
        m.Resolved(IDS[0], True, m.Result(3, None, 0, m.Error(1, "x", cause=[m.Error(2)]))),
        m.Resolved(IDS[0], False, m.Result()),
        m.Resolved(IDS[0], False, m.Result(2, m.Value(b"meta", b"", IDS[:1]), 1 << 33), elsewhere=True),
    ]
    for want in cases:
        b = codec.message(want)
        obj, fetch, answer, extent, elsewhere = hot.resolved(b, *body(b))
        assert (obj, fetch, extent, elsewhere) == (want.id, want.fetch, want.extent, want.elsewhere)
        check_answer(answer, want.result)


def test_exec() -> None:
    opts = m.TaskOptions("py:f:00", 2, [], 3, max_concurrency=4)
    spec = m.TaskSpec(T, P, 2, opts, [m.Arg(IDS[1]), m.Arg(b"", m.Value(b"meta", b"d" * 300, IDS)), m.Arg(IDS[2])], A, 130, 1 << 60, m.TraceContext(T, b"s" * 8, 1), "here")
    args = [m.ArgValue(0, m.Result(1, m.Value(b"x", b"y"), 1)), m.ArgValue(2, m.Result(2, m.Value(b"m"), 1 << 20), m.Extent(0, 64, 1 << 20))]
    want = m.Exec(1 << 40, [m.ExecTask(spec, 3, args), m.ExecTask(m.TaskSpec(P, T, 0, opts), 0)])
    b = codec.message(want)
    first, second = hot.exec_tasks(b, *body(b), received=9)
    assert first[:6] == (T, 3, 1 << 40, P, 2, opts) and first[7:10] == (A, 130, 1 << 60) and first.received == 9
    assert first.trace == codec.encode(spec.trace)
    assert [a.ref for a in first.args] == [IDS[1], b"", IDS[2]]
    assert args[0].result and args[1].result
    check_answer(first.args[0].answer, args[0].result)
    check_answer(first.args[2].answer, args[1].result)
    assert first.args[2].extent == args[1].extent
    assert first.args[1].answer == (1, b"meta", b"d" * 300, tuple(IDS), 300, None)
    assert second.id == P and second.options is first.options and second.args == []


def test_tasks_with_one_head_and_with_another() -> None:
    """What two specs have in common is decoded once; where they differ, even late, it is not taken for the same."""
    one, two = m.TaskOptions("py:f:00"), m.TaskOptions("py:f:01")
    looks = b"\x0a\x10" + T + codec.encode(m.TaskSpec(b"", P, 0, one))
    specs = [m.TaskSpec(T, P, 0, one), m.TaskSpec(P, P, 0, one), m.TaskSpec(A, P, 0, one, [m.Arg(b"", m.Value(b"meta", looks))]), m.TaskSpec(T, P, 2, one, [], A, 7),
             m.TaskSpec(P, P, 2, one, [], A, 8), m.TaskSpec(T, A, 2, one, [], A, 9), m.TaskSpec(T, A, 2, two, [], A, 10, 5, m.TraceContext(T)), m.TaskSpec(P, A, 2, two),
             m.TaskSpec(b"", A, 2, two), m.TaskSpec(T, b"", 0, one), m.TaskSpec(P, b"", 0, None), m.TaskSpec(T, P, 0, one)]
    b = codec.message(m.Exec(3, [m.ExecTask(s, 0) for s in specs]))
    for got, want in zip(hot.exec_tasks(b, *body(b), received=1), specs, strict=True):
        assert (got.id, got.parent, got.kind, got.options, got.actor, got.seq, got.deadline) == (
            want.id, want.parent, want.kind, want.opts or m.TaskOptions(), want.actor, want.seq, want.deadline)
        assert got.trace == (codec.encode(want.trace) if want.trace else b"") and [a.answer.data for a in got.args] == [a.value.data for a in want.args if a.value]


def test_options_that_a_worker_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some, and no long ones: a task may have a name of its own, of any length."""
    monkeypatch.setattr(hot, "_options", kept := {})
    for i in range(2000):
        options = m.TaskOptions("f", 1, [], 3, label=f"{i}")
        raw = codec.encode(options)
        assert hot.options_of(raw) is hot.options_of(raw)
    assert len(kept) <= 512
    for i in range(20):
        assert hot.options_of(codec.encode(m.TaskOptions("f", 1, [], 3, label="x" * 2000 + str(i)))).label.endswith(f"x{i}")
    assert sum(map(len, kept)) < 512 << 10
