"""How a trace begins and travels: which calls are traced, and the spans that code runs in. Package telemetry in Go is its twin.

Where a call is made its spec gets the caller's span, so that a program's own trace goes on in its tasks, else a new trace, whose id is the
task's. The decision to record it is made there, once, and travels with it. The spans of tasks are made by the node that owns them; a
worker knows the id of its run span, because it follows from the task's.

Code is in a span of mobula.util.tracing, or of the program's own OpenTelemetry, else in the run of its task.
"""

from __future__ import annotations

import logging
import math
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Optional

from . import _ids
from ._wire import codec
from ._wire import messages as m

if TYPE_CHECKING:
    from ._client import TaskContext

log = logging.getLogger("mobula")

DEFAULT_RATIO = 0.01  # the share of root tasks that are traced where nothing is said
OTEL = "opentelemetry.trace"
_CONTEXT = "opentelemetry.context"  # OTEL imports it
_RUN = 8  # telemetry.PhaseRun
_MASK = 0xFFFFFFFFFFFFFFFF

_SAMPLED = b"\x18\x01"
_ROOT = b"\x4a\x12\x0a\x10"  # a trace's field with an id alone
_SAMPLED_ROOT = b"\x4a\x14\x0a\x10"
_SUBMITTED = b"\x59"


class Place(NamedTuple):
    """The span that code runs in."""

    trace: bytes
    span: bytes  # empty: the trace has none yet
    flags: int
    task: "Optional[TaskContext]" = None  # whose code that is; None: the process' own, before it had a node

    @property
    def sampled(self) -> bool:
        return bool(self.flags & 1)

    def field(self) -> bytes:
        """As a field of a spec."""
        body = codec.encode(m.TraceContext(self.trace, self.span, self.flags))
        return b"\x4a" + codec.varint(len(body)) + body


# The span of mobula.util.tracing that code runs in. What a task leaves open counts no longer than the task.
here: ContextVar[Optional[Place]] = ContextVar("mobula_span", default=None)


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
    if len(raw) in (20, 30) and raw.startswith(b"\x0a\x10") and raw.endswith(_SAMPLED):  # an id, and maybe the parent's span
        return Place(raw[2:18], run_span(task, attempt), 1)
    t: m.TraceContext = codec.decode(m.TraceContext, raw)
    if t.flags & 1:
        return Place(t.trace_id, run_span(task, attempt), t.flags)
    return Place(t.trace_id, t.span_id, t.flags)


def users(tc: "TaskContext") -> Optional[Place]:
    """The span of the program's own that code of the task is in."""
    otel = sys.modules.get(OTEL)
    if otel is not None and hasattr(otel, "get_current_span"):  # or another thread is importing it
        c = otel.get_current_span().get_span_context()
        if c.is_valid:
            return Place(c.trace_id.to_bytes(16, "big"), c.span_id.to_bytes(8, "big"), int(c.trace_flags))
    p = here.get()
    return p if p is not None and p.task in (None, tc) else None


def current(tc: "TaskContext") -> Optional[Place]:
    """The span that code of the task is in; None: there is no trace yet."""
    return users(tc) or tc.place


def field(tc: "TaskContext", task: bytes, site: bytes = b"") -> bytes:
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
        return _SAMPLED_ROOT + trace + _SAMPLED + site + _submitted(tc)
    return _ROOT + trace + site


def _submitted(tc: "TaskContext") -> bytes:
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


def enter(tc: "TaskContext") -> Any:
    """The task's code begins; gives what opentelemetry.leave wants. To one that is not sampled it costs next to nothing: OpenTelemetry does
    not know of it, and our tracer (_otel) asks for its place."""
    if len(tc.raw_trace) in UNSAMPLED:
        return None
    p = tc.place
    return opentelemetry.enter(p) if p is not None and p.sampled else None
