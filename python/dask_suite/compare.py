"""Compares a run with the baseline, test by test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dask_suite.outcome import SEVERITY, worse
from dask_suite.state import Counts, Verdict

MISSING = Verdict("missing", 0.0)


@dataclass(frozen=True)
class Worse:
    """A test that ended worse than in the baseline."""

    id: str
    baseline: str
    ours: str
    text: str


@dataclass(frozen=True)
class Comparison:
    baseline: dict[str, int]  # numbers of tests by outcome
    ours: dict[str, int]
    worse: list[Worse]
    new: list[str]  # not known to the baseline
    flaky: list[str]  # ended differently when they ran again alone
    counts: Counts  # sums over Mobula's sessions
    faults: list[str]  # errors of the run as a whole

    @property
    def ok(self) -> bool:
        return not self.worse and not self.faults

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "tests": {"baseline": self.baseline, "ours": self.ours},
            "worse": [vars(w) for w in self.worse],
            "new": self.new,
            "flaky": self.flaky,
            "gets": self.counts.gets,
            "tasks": self.counts.executed,
            "in_driver": self.counts.in_driver,
            "stopped": self.counts.stopped,
            "sessions": {"all": self.counts.sessions, "without a report": self.counts.silent},
            "faults": self.faults,
        }


def compare(baseline: Mapping[str, Verdict], ours: Mapping[str, Verdict], ids: Iterable[str], counts: Counts, unreported: Sequence[str] = ()) -> Comparison:
    """Finds the tests in `ids` that ended worse than they ever did in the baseline, and checks whether the scheduler ran anything at all.
    `unreported` has the tests for which no session reported where their tasks ran."""
    selected = dict.fromkeys(ids)
    found = []
    for i in selected:
        was, got = baseline.get(i), ours.get(i, MISSING)
        if was is not None and worse(got.outcome, than=was.worst or was.outcome):
            found.append(Worse(i, was.outcome, got.outcome, got.text))
    new = [i for i in selected if i not in baseline]
    faults = list(counts.faults)
    if new:
        faults.append(f"the baseline does not know {len(new)} tests, as {new[0]}")
    if unreported:
        faults.append(f"nobody knows where the tasks of {len(unreported)} tests ran, as of {unreported[0]}: their sessions died before they could report")
    if counts.gets == 0:
        faults.append("no session called our get: whatever passed proves nothing")
    return Comparison(
        count(baseline[i] for i in selected if i in baseline),
        count(ours.get(i, MISSING) for i in selected),
        found,
        new,
        [i for i in selected if i in ours and ours[i].flaky],
        counts,
        faults,
    )


def count(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """The number of tests with each outcome, in the order of severity."""
    n = Counter(v.outcome for v in verdicts)
    return {o: n[o] for o in SEVERITY if n[o]}


def text(c: Comparison) -> str:
    """The comparison as text."""
    lines = [f"{w.ours} (baseline: {w.baseline})  {w.id}" for w in c.worse]
    if lines:
        lines.append("")
    lines.append(f"{'':<10}{'baseline':>10}{'ours':>10}")
    for o in SEVERITY:
        if o in c.baseline or o in c.ours:
            lines.append(f"{o:<10}{c.baseline.get(o, 0):>10}{c.ours.get(o, 0):>10}")
    n = c.counts
    lines.append(f"{n.gets} gets; {n.executed} tasks run by workers, {n.in_driver} in the driver; {n.stopped} graphs were stopped")
    lines.append(f"{n.sessions} sessions, {n.silent} of which died before they could report")
    if c.flaky:
        lines.append(f"{len(c.flaky)} ended otherwise when tried again alone")
    lines += [f"fault: {f}" for f in c.faults]
    lines.append(f"{len(c.worse)} did worse than in the baseline")
    return "\n".join(lines)
