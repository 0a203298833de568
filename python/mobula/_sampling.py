"""Traces: their ids, their field in a task's spec, and which traces are sampled. It does what package telemetry does in Go.

The process that begins a trace decides whether it is sampled. The decision travels with the trace.
"""

from __future__ import annotations

import logging
import math
from typing import Mapping, NamedTuple, Optional

from ._wire import codec
from ._wire import messages as m

log = logging.getLogger("mobula")

DEFAULT_RATIO = 0.01  # the share of root tasks that are traced by default
_RUN = 8  # telemetry.PhaseRun
_MASK = 0xFFFFFFFFFFFFFFFF
SAMPLED = b"\x18\x01"  # the field flags of an encoded TraceContext, sampled


class SpanContext(NamedTuple):
    """The span that code runs in."""

    trace: bytes
    span: bytes  # empty: the trace has no span yet
    flags: int
    task: Optional[object] = None  # the TaskContext of the code; None: the process had no node yet

    @property
    def sampled(self) -> bool:
        return bool(self.flags & 1)

    def field(self) -> bytes:
        """The encoded field of a task's spec."""
        body = codec.encode(m.TraceContext(self.trace, self.span, self.flags))
        return b"\x4a" + codec.varint(len(body)) + body


class Sampler:
    """Decides which traces are sampled."""

    def __init__(self, ratio: float, ignores_parent: bool = False) -> None:
        self.ignores_parent = ignores_parent  # decides again where the parent has decided
        self.bound = b"\xff" * 9 if ratio >= 1 else b""  # a trace is sampled if the second half of its id is below this
        if 0 < ratio < 1:
            self.bound = (int(ratio * (1 << 63)) * 2).to_bytes(8, "big")

    def flags(self, trace: bytes) -> int:
        """The flags of a trace: 1 if it is sampled. OpenTelemetry's SDK compares in the same way, so both decide alike."""
        return 1 if trace[8:] < self.bound else 0

    def decide(self, p: SpanContext) -> SpanContext:
        return p._replace(flags=p.flags & ~1 | self.flags(p.trace)) if self.ignores_parent else p


def sampler(env: Mapping[str, str], millionths: int = 0) -> Sampler:
    """The sampler that the OTEL_TRACES_SAMPLER variables describe, else one with the ratio in the node's Welcome."""
    ratio = millionths / 1e6 if millionths else DEFAULT_RATIO
    name = env.get("OTEL_TRACES_SAMPLER", "").strip().lower()
    if not name:
        return Sampler(ratio)
    kind = name.removeprefix("parentbased_")
    ignores_parent = kind == name
    if kind == "always_on":
        return Sampler(1, ignores_parent)
    if kind == "always_off":
        return Sampler(0, ignores_parent)
    if kind != "traceidratio":
        log.warning("OTEL_TRACES_SAMPLER: %r: want always_on, always_off or traceidratio, each also after parentbased_; the ratio %g is used",
                    name, ratio)
        return Sampler(ratio)
    arg = env.get("OTEL_TRACES_SAMPLER_ARG", "").strip()
    try:
        said = float(arg) if arg else 1.0  # OpenTelemetry's default
    except ValueError:
        said = math.nan
    if not 0 <= said <= 1:
        log.warning("OTEL_TRACES_SAMPLER_ARG: %r: want a fraction from 0 to 1; %g is used", arg, ratio)
        return Sampler(ratio)
    return Sampler(said, ignores_parent)


def run_span(task: bytes, attempt: int) -> bytes:
    """The id of the span of one attempt's run, computed like telemetry.SpanOf."""
    x = int.from_bytes(task[12:], "little") ^ int.from_bytes(task[4:12], "little")
    x = (x + (attempt << 8 | _RUN) * 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & _MASK
    return ((x ^ x >> 31) | 1).to_bytes(8, "little")


def of_task(task: bytes, attempt: int, raw: bytes) -> Optional[SpanContext]:
    """The span in which a task's code runs. raw is the TraceContext of its spec, empty if there is none."""
    if not raw:
        return None
    if len(raw) in (20, 30) and raw.startswith(b"\x0a\x10") and raw.endswith(SAMPLED):  # the trace's id, with or without the parent's span
        return SpanContext(raw[2:18], run_span(task, attempt), 1)
    t: m.TraceContext = codec.decode(m.TraceContext, raw)
    if t.flags & 1:
        return SpanContext(t.trace_id, run_span(task, attempt), t.flags)
    return SpanContext(t.trace_id, t.span_id, t.flags)
