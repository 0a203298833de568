"""Writes the figures into a Markdown page, between two marks. The rest of the page stays."""

from __future__ import annotations

import pathlib
from typing import Mapping, Sequence

from .bench import Comparison
from .table import HEAD, cells

BEGIN = "<!-- figures: written by make bench-peers -->"
END = "<!-- end of figures -->"
COLUMNS = 7  # columns of the table that go into the page; the column with targets is left out


def write(path: pathlib.Path, machine: Mapping[str, object], comparisons: Sequence[Comparison]) -> None:
    """Replaces the text between the page's marks by the figures."""
    path.write_text(placed(path.read_text(), text(machine, comparisons)))


def check(path: pathlib.Path) -> None:
    """Raises ValueError if the page lacks the marks. Call it before hours of runs."""
    placed(path.read_text(), "")


def placed(page: str, figures: str) -> str:
    """The page with the figures between its marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for figures: want a line {BEGIN!r}, and {END!r} behind it")
    return f"{head}{begin}\n\n{figures}\n{end}{tail}"


def text(machine: Mapping[str, object], comparisons: Sequence[Comparison]) -> str:
    """The machine, one table row per figure, and below them the errors of failed runs."""
    lines = [f"- {name.replace('_', ' ')}: {_plain(str(value))}" for name, value in machine.items()]
    lines += ["", _row(HEAD[:COLUMNS]), _row(["---"] * COLUMNS), *(_row(cells(c)[:COLUMNS]) for c in comparisons)]
    errors = dict.fromkeys(f"- {c.row.workload} {c.row.system}: {_plain(e)}" for c in comparisons for e in c.row.errors)
    if errors:
        lines += ["", *errors]
    return "\n".join(lines) + "\n"


def _row(of: Sequence[str]) -> str:
    return "| " + " | ".join(_plain(x) for x in of) + " |"


def _plain(x: str) -> str:
    """Text on one line, with Markdown's special characters escaped."""
    out = " ".join(x.split())
    for special in "\\|*_<`[":
        out = out.replace(special, "\\" + special)
    return out
