"""What a trace is: its ids, where they go in a spec, and which tasks are sampled. Package telemetry in Go is its twin.

The decision to record a trace is made where the call that begins it is made, once, and travels with it.
"""

from __future__ import annotations

import logging
import math
from typing import Mapping, NamedTuple, Optional

from ._wire import codec
from ._wire import messages as m

log = logging.getLogger("mobula")

DEFAULT_RATIO = 0.01  # the share of root tasks that are traced where nothing is said
_RUN = 8  # telemetry.PhaseRun
_MASK = 0xFFFFFFFFFFFFFFFF
SAMPLED = b"\x18\x01"  # the flags of a trace's field


class Place(NamedTuple):
    """The span that code runs in."""

    trace: bytes
    span: bytes  # empty: the trace has none yet
    flags: int
    task: Optional[object] = None  # the context of the task whose code that is; None: the process' own, before it had a node

    @property
    def sampled(self) -> bool:
        return bool(self.flags & 1)

    def field(self) -> bytes:
        """As a field of a spec."""
        body = codec.encode(m.TraceContext(self.trace, self.span, self.flags))
        return b"\x4a" + codec.varint(len(body)) + body


class Sampler:
    """Decides which tasks are traced."""

    def __init__(self, ratio: float, alone: bool = False) -> None:
        self.alone = alone  # decides anew where the parent has decided
        self.bound = b"\xff" * 9 if ratio >= 1 else b""  # the second halves of the traces that are sampled are below it
        if 0 < ratio < 1:
            self.bound = (int(ratio * (1 << 63)) * 2).to_bytes(8, "big")

    def flags(self, trace: bytes) -> int:
        """Compares as OpenTelemetry's SDK does, so that both decide alike on one trace."""
        return 1 if trace[8:] < self.bound else 0

    def decide(self, p: Place) -> Place:
        return p._replace(flags=p.flags & ~1 | self.flags(p.trace)) if self.alone else p


def sampler(env: Mapping[str, str], millionths: int = 0) -> Sampler:
    """What the OTEL_ variables say, else the node in its welcome."""
    ratio = millionths / 1e6 if millionths else DEFAULT_RATIO
    name = env.get("OTEL_TRACES_SAMPLER", "").strip().lower()
    if not name:
        return Sampler(ratio)
    kind = name.removeprefix("parentbased_")
    alone = kind == name
    if kind == "always_on":
        return Sampler(1, alone)
    if kind == "always_off":
        return Sampler(0, alone)
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
    return Sampler(said, alone)


def run_span(task: bytes, attempt: int) -> bytes:
    """The id of the span of an attempt's run, as telemetry.SpanOf gives it."""
    x = int.from_bytes(task[12:], "little") ^ int.from_bytes(task[4:12], "little")
    x = (x + (attempt << 8 | _RUN) * 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & _MASK
    return ((x ^ x >> 31) | 1).to_bytes(8, "little")


def of_task(task: bytes, attempt: int, raw: bytes) -> Optional[Place]:
    """Where a task's code runs; raw is its trace as the spec has it, empty without one."""
    if not raw:
        return None
    if len(raw) in (20, 30) and raw.startswith(b"\x0a\x10") and raw.endswith(SAMPLED):  # an id, and maybe the parent's span
        return Place(raw[2:18], run_span(task, attempt), 1)
    t: m.TraceContext = codec.decode(m.TraceContext, raw)
    if t.flags & 1:
        return Place(t.trace_id, run_span(task, attempt), t.flags)
    return Place(t.trace_id, t.span_id, t.flags)
