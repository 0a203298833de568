"""Adaptive spinning: a waiting thread polls for a moment before it sleeps, if its last waits were short.

A sleeping CPU takes some 50 us to wake on a virtual machine, which is a large part of a short round trip. A thread that polls, and yields to
other threads in between, keeps its CPU awake. It polls only while most answers come soon, and otherwise sleeps at once.
"""

from __future__ import annotations

SOON = 500e-6  # seconds to poll; a round trip to a worker takes half of it
_ENOUGH, _MOST, _LONG = 8, 16, 4


class Spin:
    """Remembers how long the last waits took: those of a client for answers, or those of a worker for work. It has no lock: a race between
    threads costs one wait that sleeps or polls in vain."""

    __slots__ = ("_score",)

    def __init__(self) -> None:
        self._score = 0

    def until(self, now: float) -> float:
        """The time until which a wait that begins now polls; 0: it sleeps at once."""
        return now + SOON if self._score >= _ENOUGH else 0.0

    def missed(self) -> None:
        """Counts a long wait."""
        self._score = max(0, self._score - _LONG)

    def ended(self, took: float) -> None:
        """Counts a wait of so many seconds. A long wait weighs as much as four short ones."""
        if took > SOON:
            self.missed()
        elif self._score < _MOST:
            self._score += 1
