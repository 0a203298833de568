"""Queries about the state of the node and of its cluster. They are not on the path of tasks."""

from __future__ import annotations

import warnings
from typing import Any, Iterable, Mapping, Optional

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


_ALL = 10_000  # rows, the most that a node gives at once


def missing(answer: dict[str, Any], stacklevel: int) -> None:
    """Warns of each node of the cluster that an answer names as one that did not answer."""
    for lacks in answer.get("unreachable") or ():
        warnings.warn(f"what node {lacks['node']} has is missing: {lacks['why']}", RuntimeWarning, stacklevel=stacklevel + 1)


def _nodes(stacklevel: int) -> list[dict[str, Any]]:
    page = request("list.nodes", {"limit": _ALL})
    missing(page, stacklevel + 1)
    found: list[dict[str, Any]] = page["rows"]
    return found


def nodes() -> list[dict[str, Any]]:
    """One dict per node of the cluster: NodeID, NodeName, Alive, State, Role, Address, PID, Version, Labels, Resources, Free (of the resources), and
    ObjectStoreMemory and ObjectStoreFree (bytes). State is "ALIVE", "SILENT" (several heartbeats were missed; the node still counts as alive) or "DEAD". A node
    that does not say within a second what it has free is named in a RuntimeWarning; its Free and figures of the store are None."""
    return [{"NodeID": n["id"], "NodeName": n["name"], "Alive": n["state"] != "DEAD", "State": n["state"], "Role": n.get("role", ""),
             "Address": n["address"], "PID": n["pid"], "Version": n["version"], "Labels": n["labels"], "Resources": n["resources"], "Free": n.get("free"),
             "ObjectStoreMemory": n.get("store_limit"),
             "ObjectStoreFree": n["store_limit"] - n.get("store_held", 0) if "store_limit" in n else None} for n in _nodes(2)]


def graphs() -> list[dict[str, Any]]:
    """The running task graphs of all nodes, as `mobula list graphs --json` prints them. Each has numbers of tasks: waiting for their inputs, queued (root
    tasks that could run and are withheld), processing (in_line of them are not submitted to their owner yet), done and failed. bytes is the
    size of the results that the graph holds."""
    page = request("list.graphs", {"limit": _ALL})
    missing(page, 2)
    found: list[dict[str, Any]] = page["rows"]
    return found


def _sum(amounts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    out: dict[str, float] = {}
    for each in amounts:
        for name, amount in each.items():
            out[name] = out.get(name, 0.0) + float(amount)
    return out


def cluster_resources() -> dict[str, float]:
    """The total amount of each resource by name, of all nodes that are not dead. memory and object_store_memory are bytes."""
    return _total(_nodes(2))


def available_resources() -> dict[str, float]:
    """The free amount of each resource by name, of all nodes that answer. memory and object_store_memory are bytes."""
    return _free(_nodes(2))


def _total(rows: list[dict[str, Any]]) -> dict[str, float]:
    return _sum({**n["resources"], "object_store_memory": n.get("store_limit", 0)} for n in rows if n["state"] != "DEAD")


def _free(rows: list[dict[str, Any]]) -> dict[str, float]:
    return _sum({**n["free"], "object_store_memory": n.get("store_limit", 0) - n.get("store_held", 0)} for n in rows if n.get("free") is not None)


def html() -> str:
    """HTML about the connected node, for notebooks."""
    if _runtime.state.client is None:
        return _html.table("Mobula", {"": "not connected"})
    rows = _nodes(2)
    total, free = _total(rows), _free(rows)
    shown = {f"node {n['name']}": n["address"] if n["state"] == "ALIVE" else n["state"].lower() for n in rows}
    for name in sorted(total):
        show = _html.size if name in ("memory", "object_store_memory") else "{:g}".format
        shown[name.replace("_", " ")] = f"{show(free.get(name, 0))} free of {show(total[name])}"
    return _html.table("Mobula", shown)
