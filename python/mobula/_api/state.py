"""What the node knows, asked off every task's path."""

from __future__ import annotations

from typing import Any, Optional

import cbor2

from .. import _html, _runtime
from .._client import Client


def request(method: str, body: Any, timeout: Optional[float] = None, client: Optional[Client] = None) -> Any:
    """Asks the node something that is on no task's path; client: over this connection, and no other. timeout: 30 seconds from when
    the node is there."""
    return cbor2.loads((client or _runtime.client()).request(method, cbor2.dumps(body), timeout))


def status() -> dict[str, Any]:
    """The node at a glance, as `mobula status --json` prints it: store (bytes in memory and spilled, now and ever), tasks by state, jobs,
    resources, workers. Of what does not answer within a second the name is in "silent"; the store's figures are up to two seconds old."""
    found: dict[str, Any] = request("node.status", None)
    return found


def nodes() -> list[dict[str, Any]]:
    """The nodes: name, whether it lives, address, process and resources."""
    s = status()
    return [{"NodeID": s["node"], "NodeName": s["node"], "Alive": True, "Address": s["address"], "PID": s["pid"],
             "Version": s["version"], "Resources": {k: r["total"] for k, r in s["resources"].items()},
             "ObjectStoreMemory": s["store"]["limit"]}]


def graphs() -> list[dict[str, Any]]:
    """The task graphs that run, as `mobula list graphs --json` prints them. Of a graph's tasks some are waiting for what they take, some
    queued (root tasks that could run and are withheld), some processing (of them in_line those that their owner has not yet), some done or
    failed; bytes are those of the results that are held."""
    found: list[dict[str, Any]] = status()["graphs"]
    return found


def cluster_resources() -> dict[str, float]:
    """What there is of each resource; memory in bytes."""
    s = status()
    return {**{k: float(r["total"]) for k, r in s["resources"].items()}, "object_store_memory": float(s["store"]["limit"])}


def available_resources() -> dict[str, float]:
    """What is free of each resource now."""
    s = status()
    free = float(s["store"]["limit"] - s["store"]["held"])
    return {**{k: float(r["free"]) for k, r in s["resources"].items()}, "object_store_memory": free}


def html() -> str:
    """The node that this process is connected to, at a glance, for notebooks."""
    if _runtime.state.client is None:
        return _html.table("Mobula", {"": "not connected"})
    total, free = cluster_resources(), available_resources()
    shown = {f"node {n['NodeID']}": n["Address"] for n in nodes()}
    for name in sorted(total):
        show = _html.size if name in ("memory", "object_store_memory") else "{:g}".format
        shown[name.replace("_", " ")] = f"{show(free[name])} free of {show(total[name])}"
    return _html.table("Mobula", shown)
