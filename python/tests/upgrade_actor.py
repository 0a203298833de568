"""The detached actor that a release leaves in its node's directory. Its file names this module: workers of the next release import it."""

from __future__ import annotations

from typing import Any

import mobula


class Estate:
    """Has references inside an argument of its constructor."""

    def __init__(self, inside: list[Any]) -> None:
        self._inside = inside
        self._calls = 0

    def total(self, more: float) -> tuple[str, float]:
        self._calls += 1
        text, numbers = mobula.get(self._inside)
        return text, float(numbers.sum()) + more

    def calls(self) -> int:
        return self._calls
