"""Fixtures of the core tests: for each module a node with four CPUs and a GPU that does not exist, and functions to inspect it."""

from __future__ import annotations

import sys
from typing import Any, Iterator

import cloudpickle
import pytest
from waiting import PATIENCE, until

import mobula
from mobula import _api
from mobula._api import connecting

cloudpickle.register_pickle_by_value(sys.modules[__name__])

STORE = 64 << 20


@pytest.fixture(scope="module")
def cluster(binary: str) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connecting, "_PRELOAD", ("numpy",))  # see conftest
        with mobula.init(num_cpus=4, num_gpus=1, object_store_memory=STORE, resources={"seat": 2}) as c:
            yield c


@pytest.fixture
def node(cluster: Any) -> Iterator[Any]:
    """The module's node. After the test it waits until the node is idle."""
    yield cluster
    until(lambda: free() == 4)


@pytest.fixture
def dir(tmp_path: Any) -> str:
    """The directory in which tasks leave notes."""
    return str(tmp_path)


def get(refs: Any) -> Any:
    return mobula.get(refs, timeout=PATIENCE)


def free() -> float:
    return mobula.available_resources()["CPU"]


def objects() -> dict[str, Any]:
    return {o["id"]: o for o in _api.request("list.objects", {"limit": 10_000})["rows"]}
