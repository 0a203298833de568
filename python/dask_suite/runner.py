"""Runs shards in parallel and records the outcomes. Each test that fails is retried once, in a session of its own.

A test may fail by chance, or because of the tests before it; the retry tells. A test that passed in a session which died before its report is
run again too, since nobody knows where its tasks ran.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import replace

from dask_suite import shard
from dask_suite.outcome import Outcome
from dask_suite.plan import Plan
from dask_suite.session import Stop
from dask_suite.state import State

Tell = Callable[[Outcome], None]


def run(
    plan: Plan, ids: Sequence[str], state: State, *, jobs: int, size: int, matters: Callable[[Outcome], bool], tell: Tell
) -> None:
    """Runs the tests that have no outcome in the state. Then runs those again whose sessions did not report, and, each alone, those
    that failed, if `matters` says so.

    `tell` is called with each outcome after the state has it, from one thread at a time. Ctrl-C ends the sessions and is
    raised again; outcomes so far are kept. Raises shard.FutileError if not even the first tests can be run.
    """
    _all(plan, shard.cut([i for i in ids if i not in state.runs], size), state, jobs, tell)
    _all(plan, shard.cut([i for i in ids if state.unreported(i)], size), state, jobs, tell)
    again = [[i] for i in ids if state.wants_retry(i) and matters(state.runs[i][-1])]
    _all(plan, again, state, jobs, tell, alone=True)


def _all(plan: Plan, shards: list[list[str]], state: State, jobs: int, tell: Tell, alone: bool = False) -> None:
    stop = Stop()
    lock = threading.Lock()

    def done(outcome: Outcome) -> None:
        kept = replace(outcome, alone=alone)
        with lock:
            state.add(kept)
            tell(kept)

    def one(ids: list[str]) -> None:
        try:
            shard.run(plan, ids, stop, done, state.ended)
        except shard.FutileError as e:
            if not state.runs:
                raise
            for i in e.ids:
                done(Outcome(i, "error", 0.0, str(e)))

    with closing(stop), ThreadPoolExecutor(jobs) as threads:
        futures = [threads.submit(one, ids) for ids in shards]
        try:
            for f in as_completed(futures):
                f.result()
        except BaseException:
            stop.set()
            threads.shutdown(cancel_futures=True)
            raise
