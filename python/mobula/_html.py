"""HTML for notebooks."""

from __future__ import annotations

import html
from typing import Any, Mapping


def table(title: str, rows: Mapping[str, Any]) -> str:
    """A small table: a title, and a row for each name and value."""
    left = "style='text-align:left'"
    body = "".join(f"<tr><th {left}>{html.escape(str(k))}</th><td {left}>{html.escape(str(v))}</td></tr>"
                   for k, v in rows.items())
    return f"<div><b>{html.escape(title)}</b><table>{body}</table></div>"


def size(n: float) -> str:
    """A number of bytes as text, such as "1.5 GiB"."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= factor:
            return f"{n / factor:.1f} {unit}"
    return f"{n:.0f} B"
