"""Queries about the state of the node. They are not on the path of tasks."""

from __future__ import annotations

from typing import Any, Optional

import cbor2

from .. import _html, _runtime
from .._client import Client
from ..exceptions import InvalidError


def request(method: str, body: Any, timeout: Optional[float] = None, client: Optional[Client] = None) -> Any:
    """Sends a request to the node and returns the answer. client: the connection to use. timeout: seconds; by default 30 once
    the node is connected."""
    try:
        asked = cbor2.dumps(body)
    except UnicodeEncodeError as x:
        raise InvalidError(f"{method}: {x.object!r} cannot be encoded in UTF-8") from None
    return cbor2.loads((client or _runtime.client()).request(method, asked, timeout))


def status() -> dict[str, Any]:
    """The node's status, as `mobula status --json` prints it: store (bytes in memory and spilled, now and in total), tasks by state, jobs,
    resources, workers. A component that does not answer within a second is named in "silent". The store's figures are up to two
    seconds old."""
    found: dict[str, Any] = request("node.status", None)
    return found


def nodes() -> list[dict[str, Any]]:
    """One dict per node: NodeID, NodeName, Alive, Address, PID, Version, Resources, Labels, ObjectStoreMemory (bytes)."""
    s = status()
    return [{"NodeID": s["labels"]["mobula.io/node-id"], "NodeName": s["node"], "Alive": True, "Address": s["address"], "PID": s["pid"],
             "Version": s["version"], "Resources": {k: r["total"] for k, r in s["resources"].items()},
             "Labels": s["labels"], "ObjectStoreMemory": s["store"]["limit"]}]


def graphs() -> list[dict[str, Any]]:
    """The running task graphs, as `mobula list graphs --json` prints them. Each has numbers of tasks: waiting for their inputs, queued (root
    tasks that could run and are withheld), processing (in_line of them are not submitted to their owner yet), done and failed. bytes is the
    size of the results that the graph holds."""
    found: list[dict[str, Any]] = status()["graphs"]
    return found


def cluster_resources() -> dict[str, float]:
    """The total amount of each resource by name. memory and object_store_memory are bytes."""
    s = status()
    return {**{k: float(r["total"]) for k, r in s["resources"].items()}, "object_store_memory": float(s["store"]["limit"])}


def available_resources() -> dict[str, float]:
    """The free amount of each resource by name. memory and object_store_memory are bytes."""
    s = status()
    free = float(s["store"]["limit"] - s["store"]["held"])
    return {**{k: float(r["free"]) for k, r in s["resources"].items()}, "object_store_memory": free}


def html() -> str:
    """HTML about the connected node, for notebooks."""
    if _runtime.state.client is None:
        return _html.table("Mobula", {"": "not connected"})
    total, free = cluster_resources(), available_resources()
    shown = {f"node {n['NodeName']}": n["Address"] for n in nodes()}
    for name in sorted(total):
        show = _html.size if name in ("memory", "object_store_memory") else "{:g}".format
        shown[name.replace("_", " ")] = f"{show(free[name])} free of {show(total[name])}"
    return _html.table("Mobula", shown)
