"""Tests that are run by one session if nothing goes wrong, and by as many as it takes if one of them ends its process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from dask_suite import session
from dask_suite.outcome import Outcome
from dask_suite.plan import Plan
from dask_suite.session import Session, Stop

TRIES = 2  # of sessions in a row that end before any test of theirs did


class FutileError(Exception):
    """Sessions of these tests end before any test does: what is wrong is not in a test."""

    def __init__(self, ids: list[str], log: str) -> None:
        super().__init__(f"sessions of {len(ids)} tests end before any of them does; the end of the last one's output:\n{log}")
        self.ids, self.log = ids, log


def cut(ids: Sequence[str], size: int) -> list[list[str]]:
    """In order, and alike in size: tests of a file are best run together, as its set-up is theirs."""
    shards = max(1, -(-len(ids) // size))
    short, longer = divmod(len(ids), shards)
    rest = iter(ids)
    return [s for n in range(shards) if (s := list(islice(rest, short + (n < longer))))]


def run(
    plan: Plan, ids: Sequence[str], stop: Stop, done: Callable[[Outcome], None], ended: Callable[[Session], None]
) -> None:
    """Runs the tests. A test that ends its process is charged with that; those behind it run in another.

    Raises FutileError if that leads nowhere, and session.Stopped.
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
