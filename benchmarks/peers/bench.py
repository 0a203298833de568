"""Orders the runs, and collects their results."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Callable, Iterator, Sequence

from .run import Result
from .workload import OURS, PEAK, Metric, Workload

GIVE_UP = 2  # if so many runs of a system time out and none has succeeded, its other runs are skipped


@dataclass
class Row:
    """The results of all runs for one metric on one system."""

    workload: str
    metric: Metric
    system: str
    samples: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    timeouts: int = 0  # number of the errors that are timeouts
    timeout: float = 0.0

    @property
    def median(self) -> float | None:
        return statistics.median(self.samples) if self.samples else None

    @property
    def at_least(self) -> float | None:
        """A lower bound of the time, if no run was done in time."""
        return self.timeout if not self.samples and self.timeouts and self.metric.unit == "s" else None


@dataclass(frozen=True)
class Comparison:
    """A row compared with Mobula's."""

    row: Row
    ratio: float | None = None  # how many times better Mobula is
    at_least: bool = False  # the ratio is a lower bound, since the other system timed out
    wanted: float | None = None
    met: bool | None = None


@dataclass
class Plan:
    """The workloads and systems to run. once does one run; log reports progress."""

    workloads: Sequence[Workload]
    systems: Sequence[str]  # empty: all systems of a workload
    repetitions: int
    memory_repetitions: int
    once: Callable[[Workload, str, bool], Result]
    log: Callable[[str], None]
    unfinished: list[Row] = field(default_factory=list)  # rows of the running workload, for the case of an interrupt

    def __post_init__(self) -> None:
        if self.systems:
            known = {s for w in self.workloads for s in w.systems}
            for s in self.systems:
                if s not in known:
                    raise ValueError(f"none of the workloads has a system {s!r}; they have {', '.join(sorted(known))}")

    def systems_of(self, w: Workload) -> list[str]:
        return [s for s in w.systems if not self.systems or s in self.systems]

    def run(self) -> Iterator[list[Comparison]]:
        """Runs all workloads, and yields each one's table when it is done."""
        for w in self.workloads:
            if self.systems_of(w):
                yield self._workload(w)

    def _workload(self, w: Workload) -> list[Comparison]:
        times = {(m.name, s): Row(w.name, m, s) for m in w.metrics for s in self.systems_of(w)}
        peaks = {}
        if w.peak and self.memory_repetitions:
            peaks = {(PEAK, s): Row(w.name, named(w.peak), s) for s in self.systems_of(w)}
        self.unfinished = [*times.values(), *peaks.values()]
        for i in range(max(self.repetitions, self.memory_repetitions if peaks else 0)):
            for rows, repetitions, sampled in ((times, self.repetitions, False), (peaks, self.memory_repetitions, True)):
                if i < repetitions and rows:
                    for s in turn(self.systems_of(w), i):
                        self._run(w, s, i, repetitions, sampled, [r for (_, of), r in rows.items() if of == s])
        done, self.unfinished = compare(self.unfinished), []
        return done

    def _run(self, w: Workload, system: str, i: int, repetitions: int, sampled: bool, rows: list[Row]) -> None:
        what = f"{w.name} {system}: {'memory, ' if sampled else ''}run {i + 1} of {repetitions}"
        if rows[0].timeouts >= GIVE_UP and not rows[0].samples:
            self.log(f"{what}: left out, as {rows[0].timeouts} were not done in time")
            return
        self.log(what)
        r = self.once(w, system, sampled)
        for row in rows:
            row.timeout = w.timeout
            if r.error:
                row.errors.append(r.error)
                row.timeouts += r.timeout
            else:
                row.samples.append(r.peak if sampled else r.figures[row.metric.name])
        said = r.error or ", ".join(f"{row.metric.name} {row.samples[-1]:,.4g} {row.metric.unit}".rstrip() for row in rows)
        self.log(f"{what}: {said} ({r.seconds:.1f} s)")


def named(m: Metric) -> Metric:
    """The metric of runs whose memory is sampled."""
    return Metric(PEAK, m.unit, m.more_is_better, m.wants, m.at_most)


def turn(systems: Sequence[str], i: int) -> list[str]:
    """The order of the systems in a repetition. It rotates, so that none always runs after the same one."""
    k = i % len(systems)
    return [*systems[k:], *systems[:k]]


def compare(rows: Sequence[Row]) -> list[Comparison]:
    """Compares each row with Mobula's row of the same metric."""
    ours = {r.metric.name: r for r in rows if r.system == OURS}
    return [_compare(r, ours.get(r.metric.name)) for r in rows]


def _compare(row: Row, ours: Row | None) -> Comparison:
    m = row.metric
    if row.system == OURS:
        met = None if m.at_most is None or row.median is None else row.median <= m.at_most
        return Comparison(row, wanted=m.at_most, met=met)
    wanted = m.wants.get(row.system)
    theirs = row.median if row.median is not None else row.at_least
    if ours is None or ours.median is None or theirs is None:
        return Comparison(row, wanted=wanted)
    ratio = m.better(ours.median, theirs)
    unfinished = row.median is None
    met = None if wanted is None or (unfinished and ratio < wanted) else ratio >= wanted
    return Comparison(row, ratio, unfinished, wanted, met)
