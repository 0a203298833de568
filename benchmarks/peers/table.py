"""Formats the figures as a table, or as one JSON object per row."""

from __future__ import annotations

import json
from typing import Sequence

from .bench import Comparison
from .workload import OURS

HEAD = ("workload", "metric", "system", "median", "range", "runs", "ours is better", "wanted", "met")


def number(x: float) -> str:
    """A number with three significant digits."""
    if abs(x) >= 999.5:
        return f"{float(f'{x:.3g}'):,.0f}"
    return f"{x:.3g}"


def text(comparisons: Sequence[Comparison]) -> str:
    """The table, without repeated cells, and below it the errors of failed runs."""
    lines = [HEAD, *(cells(c) for c in comparisons)]
    for i in range(len(lines) - 1, 1, -1):
        same = lines[i][0] == lines[i - 1][0]
        lines[i] = ("" if same else lines[i][0], "" if same and lines[i][1] == lines[i - 1][1] else lines[i][1], *lines[i][2:])
    width = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    left = (0, 1, 2, 4, 7)
    padded = [[c.ljust(n) if i in left else c.rjust(n) for i, (c, n) in enumerate(zip(line, width))] for line in lines]
    out = ["  ".join(line).rstrip() for line in padded]
    seen = set()
    for c in comparisons:
        for e in c.row.errors:
            if (c.row.workload, c.row.system, e) not in seen:
                seen.add((c.row.workload, c.row.system, e))
                out.append(f"{c.row.workload} {c.row.system}: {e}")
    return "\n".join(out)


def cells(c: Comparison) -> tuple[str, ...]:
    """The cells of a row, in the order of HEAD."""
    r = c.row
    of = f"{len(r.samples)} of {len(r.samples) + len(r.errors)}" if r.errors else str(len(r.samples))
    unit = f" {r.metric.unit}" if r.metric.unit else ""
    if r.median is not None:
        median = number(r.median) + unit
    elif r.at_least is not None:
        median = f"> {number(r.at_least)}{unit}"
    else:
        median = "failed" if r.errors else "-"
    span = f"[{number(min(r.samples))}-{number(max(r.samples))}]" if len(r.samples) > 1 else ""
    ratio = "" if c.ratio is None else f"{'>= ' if c.at_least else ''}{number(c.ratio)}x"
    wanted = "" if c.wanted is None else f"<= {number(c.wanted)}{unit}" if r.system == OURS else f">= {number(c.wanted)}x"
    met = "" if c.met is None else "yes" if c.met else "no"
    return r.workload, r.metric.name, r.system, median, span, of, ratio, wanted, met


def lines(comparisons: Sequence[Comparison]) -> str:
    """One JSON object per row."""
    return "\n".join(json.dumps(_object(c)) for c in comparisons)


def _object(c: Comparison) -> dict[str, object]:
    r = c.row
    return {"workload": r.workload, "metric": r.metric.name, "system": r.system, "unit": r.metric.unit,
            "more_is_better": r.metric.more_is_better, "median": r.median, "samples": r.samples, "errors": r.errors,
            "at_least": r.at_least, "ours_is_better": c.ratio, "ratio_is_at_least": c.at_least, "wanted": c.wanted, "met": c.met}
