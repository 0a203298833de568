"""The baseline's scheduler: one pool of forked processes, under every name of a scheduler."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

pytest.importorskip("dask.base")

from dask_suite import baseline, shard
from dask_suite.collection import collect
from dask_suite.outcome import Outcome
from dask_suite.plan import Plan
from dask_suite.session import Session, Stop

HEAD = """
import os, dask, dask.base, pytest
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dask_suite import baseline
HERE = os.getpid()
pid = dask.delayed(os.getpid, pure=False)
"""


def run(tmp_path: Path, text: str) -> tuple[dict[str, Outcome], Session]:
    (tmp_path / "test_x.py").write_text(HEAD + textwrap.dedent(text))
    plan = Plan(tmp_path, ("test_x.py",), baseline.__name__)
    outcomes: list[Outcome] = []
    sessions: list[Session] = []
    shard.run(plan, collect(plan), Stop(), outcomes.append, sessions.append)
    assert [o.id for o in outcomes if o.outcome != "passed"] == [], [o.text for o in outcomes]
    assert len(sessions) == 1
    return {o.id: o for o in outcomes}, sessions[0]


def test_every_name_and_none_lead_to_the_pool(tmp_path: Path) -> None:
    outcomes, session = run(
        tmp_path,
        """
        NAMES = sorted(dask.base.named_schedulers)
        seen = set()
        @pytest.mark.parametrize("name", NAMES)
        def test_name(name):
            seen.add(pid().compute(scheduler=name))
        @pytest.mark.parametrize("name", NAMES)
        def test_config(name):
            with dask.config.set(scheduler=name):
                seen.add(pid().compute())
        def test_unsaid():
            seen.add(pid().compute())
        def test_shared():
            assert HERE not in seen
            seen.update(dask.compute(*(pid() for _ in range(100))))
            assert HERE not in seen and 1 <= len(seen) <= 2
        """,
    )
    names = len(outcomes) // 2 - 1
    assert names >= 7
    gets = 2 * names + 2
    assert session.report == {"gets": gets, "tasks": gets - 1 + 100, "executed": gets - 1 + 100, "in_driver": 0}


def test_a_pool_that_broke_is_replaced(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        def test_breaks():
            with pytest.raises(BrokenExecutor):
                dask.delayed(os._exit)(1).compute()
        def test_goes_on():
            assert pid().compute() != HERE
        def test_errors_are_not_breaks():
            before = baseline._pool.executor
            with pytest.raises(ZeroDivisionError):
                dask.delayed(lambda: 1 / 0)().compute()
            assert pid().compute() != HERE
            assert baseline._pool.executor is before
        """,
    )


def test_a_graph_inside_a_task(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        def outer():
            inner = pid().compute(), pid().compute(scheduler="sync"), pid().compute(scheduler="processes")
            return os.getpid(), inner
        def test_nested():
            for outside, inside in dask.compute(*(dask.delayed(outer, pure=False)() for _ in range(10))):
                assert outside != HERE and set(inside) == {outside}
        """,
    )


def test_a_pool_that_is_asked_for_is_used(tmp_path: Path) -> None:
    _, session = run(
        tmp_path,
        """
        def test_own():
            with ProcessPoolExecutor(1) as pool:
                theirs = pool.submit(os.getpid).result()
                assert pid().compute(pool=pool) == theirs
                with dask.config.set(pool=pool):
                    assert pid().compute() == theirs
        """,
    )
    assert session.report == {"gets": 2, "tasks": 0, "executed": 0, "in_driver": 0}
