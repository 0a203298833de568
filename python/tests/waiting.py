"""The one bound of the tests' waits. It is there against hangs: how fast a thing is, benchmarks measure."""

from __future__ import annotations

import os
import time
from typing import Any

_VARIABLE = "MOBULA_TEST_PATIENCE"


def times(said: str) -> float:
    """What the environment multiplies the bounds by: for a machine that is slow."""
    try:
        n = float(said or 1)
    except ValueError:
        n = 0
    if not 0 < n <= 100:
        raise ValueError(f"{_VARIABLE} is {said!r}: it takes a number above 0, up to 100")
    return n


TIMES = times(os.environ.get(_VARIABLE, ""))

# How many seconds a test waits for what has to come: one that waits so long has found a hang.
PATIENCE = 90 * TIMES


def stretch(config: Any) -> None:
    """Multiplies pytest's own limit, which has room for some waits of a test, as the waits are."""
    if config.option.timeout is None:
        config.option.timeout = TIMES * float(config.getini("timeout"))


def until(f: Any, what: str = "true") -> Any:
    """Calls f until it returns something true, and returns that. Fails where the patience ends first."""
    end = time.monotonic() + PATIENCE
    while True:
        got = f()
        if got:
            return got
        assert time.monotonic() < end, f"within {PATIENCE:g} s: never {what}"
        time.sleep(0.02)
