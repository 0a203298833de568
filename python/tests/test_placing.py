"""What options say about nodes: labels, a node, and what is told to whom asks for one that is not there."""

from __future__ import annotations

import platform
import sys
from typing import Any, Iterator

import cloudpickle
import pytest
from cluster import STORE, get

import mobula
from mobula import _options
from mobula import exceptions as x
from mobula._wire.messages import AFFINITY_HARD, AFFINITY_SOFT, LABEL_ABSENT, LABEL_EXISTS, LABEL_IN, LABEL_NOT_IN, LabelMatch

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_conditions_are_read_in_rays_syntax() -> None:
    given = {"zone": "in(b, a,b)", "spot": "!true", "example.com/rack": "3", "ssd": " exists() ", "gpu": "!exists()", "os": "! in( x )"}
    o = _options.task("f", {"label_selector": given, "prefer_labels": {"zone": "a"}, "node": "7", "soft": True})
    assert o.labels == [
        LabelMatch("example.com/rack", LABEL_IN, ["3"]), LabelMatch("gpu", LABEL_ABSENT), LabelMatch("os", LABEL_NOT_IN, ["x"]),
        LabelMatch("spot", LABEL_NOT_IN, ["true"]), LabelMatch("ssd", LABEL_EXISTS), LabelMatch("zone", LABEL_IN, ["a", "b"])]
    assert o.prefer_labels == [LabelMatch("zone", LABEL_IN, ["a"])] and (o.affinity, o.node) == (AFFINITY_SOFT, 7)
    a = _options.actor("A", {"label_selector": {}, "node": "0"}, "ns", 1)
    assert a.labels == [] and (a.affinity, a.node) == (AFFINITY_HARD, 0)
    plain = _options.task("f", {"label_selector": None, "prefer_labels": None, "node": None, "soft": None})
    assert plain == _options.task("f", {})


@pytest.mark.parametrize("given, says", [
    ({"label_selector": {"zone": ""}}, [r"label_selector\['zone'\]", "the value ''", '"in\\(a, b\\)"']),
    ({"label_selector": {"zone": "in(a"}}, ["'in\\(a' is no condition"]),
    ({"label_selector": {"zone": "in()"}}, ["the value ''"]),
    ({"label_selector": {"zone": "near(a)"}}, ["is no condition"]),
    ({"label_selector": {"zone": "!!a"}}, ["the value '!a'"]),
    ({"label_selector": {"zone": "exists(a)"}}, ["exists takes no values"]),
    ({"label_selector": {"zone": ["a"]}}, [r"\['a'\]: want"]),
    ({"label_selector": {"a b": "a"}}, ["'a b' is no name"]),
    ({"label_selector": {"": "a"}}, ["'' is no name"]),
    ({"label_selector": {"Example.com/a": "a"}}, ["no domain"]),
    ({"label_selector": {3: "a"}}, ["want a dict of conditions"]),
    ({"label_selector": "zone=a"}, ["want a dict of conditions"]),
    ({"prefer_labels": {"zone": "a/b"}}, ["prefer_labels", "the value 'a/b'"]),
    ({"node": "host-17"}, ["node='host-17'", "NodeID"]),
    ({"node": 1}, ["node=1"]),
    ({"node": "134217728"}, ["134217728"]),
    ({"node": "9" * 5000}, ["NodeID"]),
    ({"soft": True}, ["soft=True without a node"]),
    ({"node": "1", "soft": 1}, ["soft=1"]),
    ({"node": "1", "scheduling_strategy": "SPREAD"}, ["give one of them"]),
])
def test_what_cannot_be_meant_is_refused(given: dict[str, Any], says: list[str]) -> None:
    for make in (lambda: _options.task("f", given), lambda: _options.actor("A", given, "ns", 1)):
        for text in says:
            with pytest.raises(x.InvalidError, match=text):
                make()


@mobula.remote
def here() -> str:
    return str(mobula.get_runtime_context().get_node_id())


@mobula.remote
class Placed:
    def here(self) -> str:
        return str(mobula.get_runtime_context().get_node_id())


@pytest.fixture(scope="module")
def node(binary: str) -> Iterator[Any]:
    """A node with labels of its own."""
    with mobula.init(num_cpus=2, object_store_memory=STORE, settings={"labels": "zone=a,example.com/rack=3"}) as c:
        yield c


def test_tasks_and_actors_run_where_they_ask(node: Any) -> None:
    [n] = mobula.nodes()
    me, labels = n["NodeID"], n["Labels"]
    assert labels["mobula.io/os"] == platform.system().lower() and labels["zone"] == "a" and labels["example.com/rack"] == "3"
    for options in ({"label_selector": {"mobula.io/node-id": me, "zone": "a"}}, {"label_selector": {"zone": "in(a, b)", "ssd": "!exists()"}},
                    {"prefer_labels": {"zone": "b"}}, {"node": me}, {"node": me, "soft": True}, {"node": "99", "soft": True}):
        assert get(here.options(**options).remote()) == me, options
        a = Placed.options(**options).remote()
        assert get(a.here.remote()) == me, options


def test_who_asks_for_what_is_not_there_is_told(node: Any) -> None:
    for options, text in (({"label_selector": {"zone": "in(b)"}}, r"asks for a node where zone in \(b\), this node has zone=a"),
                          ({"label_selector": {"ssd": "exists()"}}, "this node has no label ssd"),
                          ({"node": "99"}, f"asks for node 99, this is node {node.node}")):
        with pytest.raises(x.UnschedulableError, match=text):
            get(here.options(**options).remote())
        with pytest.raises(x.ActorError, match=text):
            a = Placed.options(**options).remote()
            get(a.here.remote())
