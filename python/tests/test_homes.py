"""Programs on different nodes of one cluster have references to each other's objects. Each is a process of its own, and so is each node."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from typing import Any, Iterator

import pytest
from local_nodes import local_nodes
from waiting import PATIENCE

import mobula
from mobula import exceptions as x

# A driver, which does what it is told, a line each: the name of a function below, and its argument.
DRIVER = """
import json, pickle, sys
import mobula

PATIENCE = float(sys.argv[2])
refs = []

def put(values):
    refs.extend(mobula.put(v) for v in values)
    return [pickle.dumps(r).hex() for r in refs]

def take(pickled):
    refs.extend(pickle.loads(bytes.fromhex(p)) for p in pickled)

def get(i):
    try:
        v = mobula.get(refs[i], timeout=PATIENCE)
        return v if len(v) < 100 else len(v)
    except mobula.exceptions.MobulaError as e:
        return f"{type(e).__name__}: {e}"

def box(i):
    refs.append(mobula.put([refs[i]]))
    return pickle.dumps(refs[-1]).hex()

def drop(_):
    refs.clear()
    mobula.get(mobula.put(0))

@mobula.remote
class Counter:
    def count(self):
        return 1

def actor(_):
    global counter
    counter = Counter.options(num_cpus=0).remote()
    mobula.get(counter.count.remote())
    return pickle.dumps(counter).hex()

with mobula.init(sys.argv[1]):
    for line in sys.stdin:
        what, arg = json.loads(line)
        print(json.dumps(globals()[what](arg)), flush=True)
"""


class Driver:
    """A program on a node."""

    def __init__(self, address: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", DRIVER, address, str(PATIENCE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, what: str, arg: Any = None) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([what, arg]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def nodes(binary: str) -> Iterator[list[dict[str, Any]]]:
    """Three nodes; this process is a driver of the first."""
    with local_nodes(binary, 3) as up:
        yield up


@pytest.fixture
def drivers(nodes: list[dict[str, Any]]) -> Iterator[list[Driver]]:
    """A program on each of the other two."""
    both = [Driver(n["address"]) for n in nodes[1:]]
    try:
        yield both
    finally:
        for d in both:
            d.end()


def loads(pickled: str) -> Any:
    return pickle.loads(bytes.fromhex(pickled))


def test_a_reference_goes_from_home_to_home(nodes: list[dict[str, Any]], drivers: list[Driver]) -> None:
    first, second = drivers
    large = 300_000
    given = first("put", ["small", "l" * large, "unread"])
    second("take", given)
    assert second("get", 0) == "small" and second("get", 1) == large
    boxes = [loads(second("box", i)) for i in range(3)]
    first("drop")  # the second one keeps them alive
    [small], [big], [unread] = mobula.get(boxes, timeout=PATIENCE)
    boxes.clear()
    second("drop")  # and then this one alone, which has them from there
    assert mobula.get(small, timeout=PATIENCE) == "small" and len(mobula.get(big, timeout=PATIENCE)) == large
    kept = mobula.put([small, unread])
    second("take", [pickle.dumps(kept).hex(), pickle.dumps(small).hex(), pickle.dumps(unread).hex()])
    assert second("get", 1) == "small"

    os.kill(nodes[1]["pid"], signal.SIGKILL)
    with pytest.raises(x.OwnerDiedError, match="node n2, its home, is dead"):
        mobula.get(unread, timeout=PATIENCE)
    with pytest.raises(x.OwnerDiedError, match="node n2, its home, is dead"):
        mobula.get(mobula.get(kept, timeout=PATIENCE)[1], timeout=PATIENCE)
    assert "OwnerDiedError" in second("get", 2) and "node n2, its home, is dead" in second("get", 2)


def test_an_actor_of_another_home_is_refused_by_name(nodes: list[dict[str, Any]], drivers: list[Driver]) -> None:
    far = loads(drivers[0]("actor"))
    with pytest.raises(x.ActorUnavailableError, match="is of home 1, which this node, of home 0, does not reach"):
        mobula.get(far.count.remote(), timeout=PATIENCE)
