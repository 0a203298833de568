"""Whether a thread that waits looks for its answer for a moment before it sleeps.

Where answers come at once, a CPU that falls asleep between two of them is most of their time: on a virtual machine it takes some 50 us
to wake one. A thread that looks again and again, and lets any other run in between, keeps its CPU awake. It does so only while most answers
come soon: who waits for work that takes longer sleeps.
"""

from __future__ import annotations

SOON = 500e-6  # seconds; a trip to a worker and back takes half of it
_ENOUGH, _MOST, _LONG = 8, 16, 4


class Spin:
    """The waits of one client for answers, or of a worker for work, of which one at a time reads. A lost update between threads makes one
    wait sleep, or look in vain."""

    __slots__ = ("_score",)

    def __init__(self) -> None:
        self._score = 0

    def until(self, now: float) -> float:
        """Till when a wait that begins now looks; 0: not at all."""
        return now + SOON if self._score >= _ENOUGH else 0.0

    def missed(self) -> None:
        """Counts a wait that was long."""
        self._score = max(0, self._score - _LONG)

    def ended(self, took: float) -> None:
        """Learns how long a wait took, in seconds. One that was long weighs as four that were short."""
        if took > SOON:
            self.missed()
        elif self._score < _MOST:
            self._score += 1
