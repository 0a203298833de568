"""Tasks that secede, and nested tasks, on a node with one CPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Iterator

import dask
import pytest
from waiting import PATIENCE, until

import mobula
import mobula.dask
from mobula import exceptions as x
from mobula.distributed import Client, get_client, rejoin, secede, worker_client


@pytest.fixture(scope="module")
def client(binary: str) -> Iterator[Client]:
    with Client(num_cpus=1, object_store_memory=64 << 20) as c:
        yield c


def meet(path: Path, me: int, n: int) -> int:
    """Waits until n have come."""
    (path / str(me)).touch()
    until(lambda: len(os.listdir(path)) >= n)
    return me


def test_a_task_that_secedes_lets_others_run(client: Client, tmp_path: Path) -> None:
    def first() -> int:
        secede()
        secede()  # it has already
        meet(tmp_path, 1, 2)
        rejoin()
        return 1

    fs = [client.submit(first, pure=False), client.submit(meet, tmp_path, 2, 2)]
    assert client.gather(fs) == [1, 2]


def test_one_that_ends_without_its_place(client: Client) -> None:
    def gone() -> str:
        secede()
        return "gone"

    assert client.gather([client.submit(gone, pure=False) for _ in range(4)]) == ["gone"] * 4
    until(lambda: mobula.available_resources()["CPU"] == 1)


def test_tasks_in_tasks_need_one_cpu(client: Client) -> None:
    def tree(depth: int) -> int:
        if depth == 0:
            return 1
        with worker_client() as c:
            return sum(c.gather([c.submit(tree, depth - 1, pure=False) for _ in range(2)]))

    assert client.submit(tree, 3).result(PATIENCE) == 8

    def chain(depth: int) -> Any:
        return get_client().submit(chain, depth - 1, pure=False).result(PATIENCE) if depth else "end"

    assert client.submit(chain, 10).result(PATIENCE) == "end"


def test_computations_in_computations_need_one_cpu(client: Client) -> None:
    def inner(depth: int) -> int:
        if depth == 0:
            return 1
        return 1 + sum(dask.compute(*[dask.delayed(inner)(depth - 1)] * 2, scheduler=mobula.dask.get)) // 2

    assert dask.delayed(inner)(5).compute(scheduler=mobula.dask.get) == 6


def test_root_tasks_that_wait_for_one_that_is_withheld(client: Client, tmp_path: Path) -> None:
    n = 8  # more than the slots of one CPU, and more than the owner is given at once

    def root(me: int) -> int:
        secede()
        meet(tmp_path, me, n)
        rejoin()
        return me

    assert dask.compute(*[dask.delayed(root)(i) for i in range(n)], scheduler=mobula.dask.get) == tuple(range(n))


def test_who_has_no_place_cannot_give_it_up(client: Client) -> None:
    for f in (secede, rejoin):
        with pytest.raises(x.InvalidError, match="run by no task"):
            f()
    with pytest.raises(x.InvalidError, match="has not seceded"):
        client.submit(rejoin).result(PATIENCE)

    @mobula.remote
    class Loop:
        async def try_it(self) -> None:
            secede()

    with pytest.raises(x.InvalidError, match="a coroutine"):
        mobula.get(Loop.remote().try_it.remote(), timeout=PATIENCE)
