"""Waits for other processes."""

from __future__ import annotations

import time
from typing import Any


def until(f: Any, timeout: float = 10.0) -> Any:
    """Calls f until it returns something true, and returns that. Fails after timeout seconds."""
    end = time.monotonic() + timeout
    while True:
        got = f()
        if got:
            return got
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
