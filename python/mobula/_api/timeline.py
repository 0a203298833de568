"""timeline: the task events in Chrome's trace format."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Optional

from .state import missing, request


def timeline(filename: Optional[str] = None) -> list[dict[str, Any]]:
    """Returns the task events that the nodes of the cluster remember, in Chrome's trace format, which Perfetto and chrome://tracing show. Times are in
    microseconds. A node that does not answer is named in a RuntimeWarning.

    filename: writes the events there as JSON too, atomically. InvalidError if the node records no events.
    """
    parts: list[bytes] = []
    asked: dict[str, Any] = {}
    while True:
        part = request("timeline", asked)
        parts.append(part["body"])
        missing(part, 2)
        if not part.get("next"):
            break
        asked = {"token": part["token"], "offset": part["next"]}
    text = b"".join(parts)
    if filename is not None:
        _write(filename, text)
    events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return events


def _write(filename: str, text: bytes) -> None:
    fd, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(filename)))
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(text)
        os.rename(temporary, filename)
    except BaseException:
        os.unlink(temporary)
        raise
