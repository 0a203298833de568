"""What a program on a cluster of several nodes sees of it."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from typing import Any, Iterator

import cloudpickle
import numpy as np
import pytest
from local_nodes import STORE, local_nodes
from waiting import PATIENCE, until

import mobula
from mobula import _api
from mobula import exceptions as x
from mobula.util import state

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def nodes(binary: str) -> Iterator[list[dict[str, Any]]]:
    """Two nodes with a CPU each; this process is a driver of the first."""
    with local_nodes(binary, 2) as up:
        yield up


@mobula.remote
def says(text: str) -> str:
    print(text, flush=True)
    return str(mobula.get_runtime_context().get_node_id())


def lacks() -> list[str]:
    """What a list warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state.list_workers()
    return [str(w.message) for w in caught]


@pytest.mark.filterwarnings("ignore:what node n2 has is missing")
def test_a_program_sees_all_nodes(nodes: list[dict[str, Any]]) -> None:
    rows = mobula.nodes()
    assert [n["NodeName"] for n in rows] == ["n1", "n2"] and all(n["Alive"] and n["State"] == "ALIVE" for n in rows)
    assert [n["Role"] for n in rows] == ["control-plane", "data"] and [n["PID"] for n in rows] == [n["pid"] for n in nodes]
    assert all(n["Resources"]["CPU"] == n["Free"]["CPU"] == 1 and n["ObjectStoreMemory"] == n["ObjectStoreFree"] == STORE for n in rows)
    assert mobula.cluster_resources()["CPU"] == mobula.available_resources()["CPU"] == 2
    assert mobula.cluster_resources()["object_store_memory"] == 2 * STORE
    there = rows[1]["NodeID"]
    assert [n["id"] for n in state.list_nodes(filters=[("name", "=", "n2")])] == [there] and state.get_node(there)["free"]["CPU"] == 1

    assert mobula.get(says.options(node=there).remote("said over there"), timeout=PATIENCE) == there
    [w] = [w for w in state.list_workers() if w["node"] == "n2"]
    until(lambda: any("said over there" in log["text"] and log["node"] == "n2" for log in state.get_log(w["id"])))
    assert any(log["node"] == "n2" and log["stream"] == "out" for log in state.list_logs())
    with pytest.raises(x.NotFoundError):
        state.get_log("1-999")

    os.kill(nodes[1]["pid"], signal.SIGKILL)
    until(lambda: any("what node n2 has is missing: nobody listens at 127.0.0.1:" in text for text in lacks()))
    with pytest.warns(RuntimeWarning, match="what node n2 has is missing"):
        mobula.timeline()
    until(lambda: state.get_node(there)["state"] == "DEAD")
    assert not mobula.nodes()[1]["Alive"] and mobula.nodes()[1]["Free"] is None
    assert mobula.cluster_resources()["CPU"] == mobula.available_resources()["CPU"] == 1


@mobula.remote
def large(n: int) -> np.ndarray[Any, Any]:
    return np.ones(n)


def held() -> int:
    """The bytes in the store of this node."""
    return int(_api.request("node.memory", {"limit": 1})["store"]["held"])


def test_a_wait_brings_what_another_node_has_made(nodes: list[dict[str, Any]]) -> None:
    ref = large.options(node=mobula.nodes()[1]["NodeID"]).remote(1 << 20)
    assert mobula.wait([ref], timeout=PATIENCE, fetch_local=False) == ([ref], [])
    assert held() < 8 << 20
    assert mobula.wait([ref], timeout=PATIENCE) == ([ref], [])
    until(lambda: held() >= 8 << 20)
    assert mobula.get(ref, timeout=PATIENCE).sum() == 1 << 20
