"""What the parts of a worker need of the executor."""

from __future__ import annotations

from typing import Any, Optional, Protocol

from .._client import Client, Waiter
from .._wire import messages as m
from .._wire.hot import Work
from ..exceptions import MobulaError
from .arguments import Holds
from .call import Call
from .lane import Back, Lane


class Runs(Protocol):
    """Begins calls, runs them and reports them."""

    @property
    def client(self) -> Client: ...

    @property
    def lane(self) -> Lane: ...

    @property
    def calls(self) -> dict[bytes, Call]:
        """The running calls."""

    @property
    def idle(self) -> Waiter:
        """The main thread's waiter when it has nothing to run."""

    def begun(self, work: Work) -> Call: ...

    def begin(self, call: Call, holds: Holds) -> tuple[Any, list[Any], dict[str, Any]]: ...

    def execute(self, call: Call) -> None: ...

    def report(self, call: Call, done: bytes, err: Optional[m.Error], holds: Holds) -> int: ...

    def refuse(self, w: Work, why: MobulaError) -> None: ...

    def send_back(self, back: Back, waits: Optional[Work] = None) -> None: ...

    def ends(self) -> bool: ...
