"""A shard: tests for one session. If a test ends the session's process, further sessions run the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from dask_suite import session
from dask_suite.outcome import Outcome
from dask_suite.plan import Plan
from dask_suite.session import Session, Stop

TRIES = 2  # sessions in a row that may end before any of their tests


class FutileError(Exception):
    """Sessions of these tests end before any test does, so the error is not in a test."""

    def __init__(self, ids: list[str], log: str) -> None:
        super().__init__(f"sessions of {len(ids)} tests end before any of them does; the end of the last one's output:\n{log}")
        self.ids, self.log = ids, log


def cut(ids: Sequence[str], size: int) -> list[list[str]]:
    """Cuts tests into shards of almost equal size, in order: tests of one file share its set-up."""
    shards = max(1, -(-len(ids) // size))
    short, longer = divmod(len(ids), shards)
    rest = iter(ids)
    return [s for n in range(shards) if (s := list(islice(rest, short + (n < longer))))]


def run(
    plan: Plan, ids: Sequence[str], stop: Stop, done: Callable[[Outcome], None], ended: Callable[[Session], None]
) -> None:
    """Runs the tests. A test that ends its process gets that as its outcome, and the tests behind it run in another session.

    Raises FutileError if TRIES sessions in a row end before any test does, and session.Stopped.
    """
    left = list(ids)
    futile = 0
    while left:
        result = session.run(plan, left, done, stop)
        ended(result)
        had = {o.id for o in result.outcomes}
        if result.culprit is not None:
            had.add(result.culprit.id)
        left = [i for i in left if i not in had]
        futile = 0 if had else futile + 1
        if result.complete:
            for i in left:
                done(Outcome(i, "missing", 0.0, f"not collected\n{result.log}"))
            return
        if futile == TRIES:
            raise FutileError(left, result.log)
