"""The figures as a part of a Markdown page: what is between two marks is written anew, all else stays."""

from __future__ import annotations

import pathlib
from typing import Mapping, Sequence

from .bench import Comparison
from .table import HEAD, cells

BEGIN = "<!-- figures: written by make bench-peers -->"
END = "<!-- end of figures -->"
COLUMNS = 7  # of the table: what is wanted of a figure is for who works on it


def write(path: pathlib.Path, machine: Mapping[str, object], comparisons: Sequence[Comparison]) -> None:
    """Puts the figures between the page's marks."""
    path.write_text(placed(path.read_text(), text(machine, comparisons)))


def check(path: pathlib.Path) -> None:
    """ValueError if the page has no place for figures: said before hours of runs, not after them."""
    placed(path.read_text(), "")


def placed(page: str, figures: str) -> str:
    """The page with the figures between its marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for figures: want a line {BEGIN!r}, and {END!r} behind it")
    return f"{head}{begin}\n\n{figures}\n{end}{tail}"


def text(machine: Mapping[str, object], comparisons: Sequence[Comparison]) -> str:
    """What they were measured on, and a row each; below, why runs failed."""
    lines = [f"- {name.replace('_', ' ')}: {_plain(str(value))}" for name, value in machine.items()]
    lines += ["", _row(HEAD[:COLUMNS]), _row(["---"] * COLUMNS), *(_row(cells(c)[:COLUMNS]) for c in comparisons)]
    errors = dict.fromkeys(f"- {c.row.workload} {c.row.system}: {_plain(e)}" for c in comparisons for e in c.row.errors)
    if errors:
        lines += ["", *errors]
    return "\n".join(lines) + "\n"


def _row(of: Sequence[str]) -> str:
    return "| " + " | ".join(_plain(x) for x in of) + " |"


def _plain(x: str) -> str:
    """Text that Markdown does not take for more, on one line."""
    out = " ".join(x.split())
    for special in "\\|*_<`[":
        out = out.replace(special, "\\" + special)
    return out
