"""A task that is cancelled is interrupted, whatever of this package calls the user's code in it. The stub node kills no worker that does not end."""

from __future__ import annotations

import sys
from typing import Any, Callable

import cloudpickle
import pytest
from mininode import MiniNode
from notes import noted, stay
from waiting import PATIENCE, until

import mobula
from mobula import _call, _executor, _runtime
from mobula import exceptions as x
from mobula._graphs import Builder
from mobula.distributed import _nested

pytest.importorskip("dask")

from dask.task_spec import Task, TaskRef

from mobula.dask import _payload, _ship, get_sync

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def graph_task(*nodes: tuple[Task, tuple[str, ...]], around: Any = None) -> Any:
    """A task of a Dask graph, with its hooks if there are any."""
    client = _runtime.client()
    keys, values = ((_payload.AROUND,), (around,)) if around else ((), ())
    payload, _ = _payload.Writer(Builder(client, _ship._runner), client).payload(list(nodes), keys, None)
    return mobula.remote(_payload.run).remote(payload, *values)


def named(dir: str) -> str:
    return dir


def computes(dir: str) -> Any:
    return get_sync({"key": (stay, dir, "t")}, "key")


class Called:
    """No function, so a payload has the node as it is."""

    def __call__(self, dir: str) -> str:
        return stay(dir, "t")


def stays(dir: str) -> Callable[..., Any]:
    return lambda key, *what: stay(dir, "t")


CALLS: dict[str, Callable[[str], Any]] = {
    "task": lambda dir: mobula.remote(stay).remote(dir, "t"),
    "any function": lambda dir: mobula.remote(_call.call).remote(stay, dir, "t"),
    "chunk of an executor": lambda dir: mobula.remote(_executor._chunk).remote(stay, [(dir, "t")]),
    "call with futures": lambda dir: mobula.remote(_nested.call_with).remote(stay, (dir, "t"), {}),
    "graph": lambda dir: graph_task((Task("t", stay, dir, "t"), ())),
    "graph, a node": lambda dir: graph_task((Task("t", Called(), dir), ())),
    "graph, a chain": lambda dir: graph_task((Task("d", named, dir), ()), (Task("t", stay, TaskRef("d"), "t"), ("d",))),
    "graph, watched": lambda dir: graph_task((Task("t", stay, dir, "t"), ()), around=[(None, lambda *what: None)]),
    "graph, before": lambda dir: graph_task((Task("n", named, dir), ()), around=[(stays(dir), None)]),
    "graph, after": lambda dir: graph_task((Task("n", named, dir), ()), around=[(None, stays(dir))]),
    "graph in a task": lambda dir: mobula.remote(computes).remote(dir),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_cancelled_task_is_interrupted(mini: MiniNode, tmp_path: Any, call: str) -> None:
    dir = str(tmp_path)
    ref = CALLS[call](dir)
    until(lambda: noted(dir, "began"))
    mobula.cancel(ref)
    with pytest.raises(x.TaskCancelledError):
        mobula.get(ref, timeout=PATIENCE)
    assert noted(dir, "cancelled") == {"t"}
