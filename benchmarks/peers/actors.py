"""The actors that workloads call: one with plain methods, one with coroutines."""

from __future__ import annotations

from typing import Any


class Actor:
    def nothing(self) -> None:
        pass

    def take(self, x: Any) -> None:
        pass


class Coroutines:
    async def nothing(self) -> None:
        pass

    async def take(self, x: Any) -> None:
        pass
