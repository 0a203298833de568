"""Seeds of tests: the same in every run, until MOBULA_TEST_SEED gives all tests others."""

from __future__ import annotations

import hashlib
import os

VARIABLE = "MOBULA_TEST_SEED"


def run() -> int:
    """The number that the environment gives to all tests of this run."""
    said = os.environ.get(VARIABLE) or "0"
    assert said.isdecimal(), f"{VARIABLE} is {said!r}: it takes a whole number from 0"
    return int(said)


def of(name: str) -> int:
    """The seed of a test."""
    return int.from_bytes(hashlib.sha256(f"{name} {run()}".encode()).digest()[:4])  # NumPy's older generators take 32 bits
