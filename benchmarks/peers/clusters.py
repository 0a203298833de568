"""Starts clusters of several nodes on this machine, and ends them.

Node 0 is the driver's. Node i has the resource "node<i>", so that a task can ask for one node by the same words on every system, and all but
node 0 have one "spare".
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import signal
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any, Callable, ContextManager, Iterator, Mapping, Sequence

from . import memory

SPARE: Mapping[str, Any] = {"resources": {"spare": 1}}
UP_TIMEOUT = 60.0
SHARES = 1000  # of a node's own resource: so many tasks of it may run there at once
PORTS = 4  # that a node of ours listens on


def on(node: int) -> Mapping[str, Any]:
    """The options of a task that is to run on a node."""
    return {"resources": {f"node{node}": 1}}


def _resources(node: int) -> dict[str, float]:
    return {f"node{node}": SHARES, **({"spare": 1} if node else {})}


@dataclass(frozen=True)
class Cluster:
    """A cluster, and who is in it."""

    api: Any  # mobula or ray, connected to node 0; of Dask a client
    roots: Sequence[int]  # the process of each node that all others of the node descend from

    def node_of(self, pid: int) -> int:
        """The node that a process belongs to."""
        for node, root in enumerate(self.roots):
            if pid in memory.family(root):
                return node
        raise RuntimeError(f"process {pid} belongs to no node")

    def kill(self, node: int) -> None:
        """Ends all processes of a node without notice."""
        for pid in memory.family(self.roots[node]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


Start = Callable[..., ContextManager[Cluster]]


@contextlib.contextmanager
def mobula(nodes: int, store: int, cpus: int = 1) -> Iterator[Cluster]:
    """Nodes as `mobula start` makes them, with the default security."""
    import mobula as module

    ports = _free_ports(nodes)
    first = f"127.0.0.1:{ports[0]}"
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="n"))
        started = []
        token = ""
        for i, port in enumerate(ports):
            argv = [os.environ["MOBULA_BINARY"], "start", "--json", "--until-stdin-closes", "--dir", f"{folder}/{i}", "--store-size", str(store),
                    "--cpus", str(cpus), "--resources", ",".join(f"{k}={v}" for k, v in _resources(i).items()), "--listen", f"127.0.0.1:{port}"]
            p = subprocess.Popen(argv + (["--join", first] if i else []), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env={**os.environ, "MOBULA_TOKEN": token} if i else None)
            stack.callback(_end, p)
            assert p.stdout is not None
            started.append((p, json.loads(p.stdout.readline())))
            if not i:
                made = subprocess.run([argv[0], "token", "create", "--json", "--address", started[0][1]["address"]], capture_output=True, check=True)
                token = json.loads(made.stdout)["token"]
        stack.enter_context(module.init(address=started[0][1]["address"]))
        yield Cluster(module, [p.pid for p, _ in started])


def _end(p: subprocess.Popen[bytes]) -> None:
    assert p.stdin is not None
    p.stdin.close()
    try:
        p.wait(30)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()


def _free_ports(nodes: int) -> list[int]:
    """The first port of each node: it and the next ones are free."""
    for _ in range(100):
        base = random.randrange(20_000, 30_000, 100)
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(base, base + nodes * PORTS):
                s = held.enter_context(socket.socket())
                s.bind(("127.0.0.1", port))
            return list(range(base, base + nodes * PORTS, PORTS))
    raise RuntimeError(f"no {nodes * PORTS} free ports in a row")


@contextlib.contextmanager
def ray(nodes: int, store: int, cpus: int = 1) -> Iterator[Cluster]:
    """Raylets of ray.cluster_utils, which has them on one machine, at its address: a driver never takes 127.0.0.1 for a cluster's."""
    import ray as module
    from ray.cluster_utils import Cluster as Raylets

    def node(i: int) -> dict[str, Any]:
        return {"num_cpus": cpus, "object_store_memory": store, "resources": _resources(i)}

    cluster = Raylets(initialize_head=True, head_node_args={
        **node(0), "include_dashboard": False, "temp_dir": os.path.join(tempfile.gettempdir(), "ray")})
    try:
        raylets = [cluster.head_node, *(cluster.add_node(**node(i)) for i in range(1, nodes))]
        module.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        try:
            yield Cluster(module, [r.all_processes["raylet"][0].process.pid for r in raylets])
        finally:
            module.shutdown()
    finally:
        cluster.shutdown()


@contextlib.contextmanager
def dask(nodes: int, store: int = 0, cpus: int = 1) -> Iterator[Cluster]:
    """Workers of a LocalCluster, a process each; the driver's node has one too. Dask has no stores."""
    import dask as module
    from distributed import Client, LocalCluster

    module.config.set({"distributed.admin.tick.limit": "60s"})  # not undone: workers are started with it
    with LocalCluster(n_workers=0, processes=True, dashboard_address=":0", host="127.0.0.1", silence_logs=logging.CRITICAL,
                      local_directory=tempfile.gettempdir()) as cluster:
        for i in range(nodes):
            cluster.worker_spec[i] = {**cluster.new_spec, "options": {
                **cluster.new_spec["options"], "nthreads": cpus, "memory_limit": 0, "resources": _resources(i)}}
        with Client(cluster) as client:
            client.wait_for_workers(nodes, UP_TIMEOUT)
            yield Cluster(client, [cluster.workers[i].process.pid for i in range(nodes)])
