"""Lists of tasks, actors, objects, workers, jobs, graphs, nodes and logs, with the names of ray.util.state.

    from mobula.util import state

    for t in state.list_tasks(filters=[("state", "=", "RUNNING")], limit=10):
        print(t["id"], t["name"], t["callsite"])
    print(state.summarize_tasks())
    print(state.explain(t["id"])["summary"])

A row is a dict, as `mobula list tasks --json` prints it. The classes here list its fields; a field without a value may be missing. Times are
nanoseconds since 1970, sizes bytes. A filter is (field, "=" or "!=", value); a row has to pass all filters. All functions raise
InvalidError for a wrong filter or limit, and GetTimeoutError if the node does not answer in time.

In a cluster the rows are those of all nodes, and "node" names the node of each; ("node", "=", NAME) is a filter like others. A node that does not answer
is named in a RuntimeWarning.
"""

from __future__ import annotations

import time
from typing import Any, Optional, Sequence, TypedDict, Union, cast

from .._api.state import missing, request
from ..exceptions import GetTimeoutError, InvalidError, NotFoundError

DEFAULT_LIMIT = 100
MAX_LIMIT = 10_000
DEFAULT_TIMEOUT = 30.0
_PAGE = 1000

Filter = tuple[str, str, Union[str, int, float, bool]]


class Task(TypedDict, total=False):
    """kind: "task", "actor-creation" or "actor-call"; since: when it came into this state; callsite: only of a sample of the tasks; reason:
    why it failed, or why it is retried; runs_on: the id of its worker's node; node: where it is listed."""

    id: str
    name: str
    func: str
    kind: str
    state: str
    job: str
    attempt: int
    since: int
    worker: str
    runs_on: str
    actor: str
    parent: str
    callsite: str
    reason: str
    node: str


class Actor(TypedDict, total=False):
    """type: the name of its class; resets: restarts that max_restarts does not count; due: when it will restart; pending, running: numbers of calls;
    runs_on: the id of its worker's node; node: where it is listed."""

    id: str
    type: str
    name: str
    namespace: str
    state: str
    job: str
    detached: bool
    restarts: int
    resets: int
    due: int
    pending: int
    running: int
    worker: str
    runs_on: str
    pid: int
    reason: str
    node: str


class Object(TypedDict, total=False):
    """type: "return", "put" or "item"; where: "message", "memory" or "spilled"; holders: number of processes with a reference; tasks: number of
    unfinished tasks that use it; within: number of live objects that contain a reference to it."""

    id: str
    type: str
    state: str
    where: str
    size: int
    job: str
    func: str
    callsite: str
    holders: int
    tasks: int
    within: int
    pins: int
    error: str
    node: str


class Worker(TypedDict, total=False):
    """heap: bytes that it last reported; rss: resident bytes as the kernel counts them."""

    id: str
    pid: int
    job: str
    language: str
    slot: str
    func: str
    state: str
    leases: int
    running: int
    heap: int
    goroutines: int
    rss: int
    lease_ids: list[int]
    node: str


class Job(TypedDict, total=False):
    """tasks: present numbers by state; the other numbers are totals since the job began."""

    id: str
    namespace: str
    pid: int
    tasks: dict[str, int]
    submitted: int
    finished: int
    failed: int
    retried: int
    objects: int
    node: str


class Graph(TypedDict, total=False):
    """A running task graph. Numbers of its tasks: waiting for inputs, queued (withheld though they could run), processing."""

    id: str
    name: str
    job: str
    tasks: int
    waiting: int
    queued: int
    processing: int
    in_line: int
    done: int
    failed: int
    bytes: int
    peak: int
    started: int
    node: str


class Node(TypedDict, total=False):
    """state: "ALIVE", "SILENT" or "DEAD"; heard: nanoseconds since its last heartbeat. free, of the resources, and the figures of the store are missing of
    a node that does not answer."""

    id: str
    name: str
    role: str
    state: str
    address: str
    pid: int
    version: str
    epoch: int
    started: int
    heard: int
    resources: dict[str, float]
    labels: dict[str, str]
    free: dict[str, float]
    store_limit: int
    store_held: int


class Log(TypedDict, total=False):
    """What a worker wrote to one stream, "out" or "err". text: the end of it; omitted: bytes before that; size: in all; changed: when it was written last."""

    worker: str
    stream: str
    path: str
    size: int
    changed: int
    text: str
    omitted: int
    node: str


class Explanation(TypedDict, total=False):
    """summary: the answer in one line; task or object: the row; next: the explanation of what it waits for."""

    id: str
    kind: str
    state: str
    summary: str
    details: list[str]
    task: Task
    object: Object
    task_class: int
    next: Explanation


class Summary(TypedDict):
    """total: the number of rows; by_state: numbers by state; groups: numbers by state for each function's name, type of actor, or
    place of objects (which also have "size")."""

    total: int
    by_state: dict[str, int]
    groups: dict[str, dict[str, int]]


def _query(filters: Optional[Sequence[Filter]]) -> list[dict[str, Any]]:
    out = []
    for f in filters or ():
        if len(f) != 3 or f[1] not in ("=", "!="):
            raise InvalidError(f"filter {f!r}: want (field, \"=\" or \"!=\", value)")
        value = str(f[2]).lower() if isinstance(f[2], bool) else str(f[2])
        out.append({"field": str(f[0]), "not": f[1] == "!=", "value": value})
    return out


def _rows(what: str, filters: Optional[Sequence[Filter]], limit: Optional[int], timeout: float) -> list[Any]:
    """Reads rows page by page; limit None: all."""
    if limit is not None and not 1 <= limit <= MAX_LIMIT:
        raise InvalidError(f"limit {limit!r}: want 1 to {MAX_LIMIT}")
    until = time.monotonic() + timeout
    query: dict[str, Any] = {"filters": _query(filters)}
    out: list[Any] = []
    while limit is None or len(out) < limit:
        query["limit"] = _PAGE if limit is None else min(_PAGE, limit - len(out))
        left = until - time.monotonic()
        if left <= 0:
            raise GetTimeoutError(f"list.{what}: {len(out)} rows came in {timeout} s, and there are more")
        page = request("list." + what, query, left)
        out += page["rows"]
        missing(page, 3)
        if not page.get("next"):
            break
        query["cursor"] = page["next"]
    return out


def list_tasks(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Task]:
    """Lists tasks. Tasks that have ended are listed as long as something refers to their results."""
    return _rows("tasks", filters, limit, timeout)


def list_actors(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Actor]:
    """Lists actors."""
    return _rows("actors", filters, limit, timeout)


def list_objects(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Object]:
    """Lists objects that something refers to."""
    return _rows("objects", filters, limit, timeout)


def list_workers(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Worker]:
    """Lists worker processes."""
    return _rows("workers", filters, limit, timeout)


def list_jobs(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Job]:
    """Lists jobs."""
    return _rows("jobs", filters, limit, timeout)


def list_graphs(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Graph]:
    """Lists running task graphs."""
    return _rows("graphs", filters, limit, timeout)


def list_nodes(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Node]:
    """Lists the nodes of the cluster, without those that have stopped in order."""
    return _rows("nodes", filters, limit, timeout)


def list_logs(timeout: float = DEFAULT_TIMEOUT) -> list[Log]:
    """Lists what workers of all nodes have written, without the texts. Logs outlive their worker."""
    return _logs("", 1, timeout)


def get_log(id: Union[str, int], bytes: int = 64 << 10, timeout: float = DEFAULT_TIMEOUT) -> list[Log]:
    """Returns what a worker of any node wrote, with at most that many bytes of each stream: the end. The id is that of list_workers or list_logs. Of a task it
    returns the lines that name it: logging in a task does that, print does not. NotFoundError if there is no such log."""
    return _logs(str(id), bytes, timeout)


def _logs(id: str, bytes: int, timeout: float) -> list[Log]:
    streams = request("logs", {"id": id, "bytes": bytes}, timeout)["streams"]
    missing({"unreachable": [{"node": s["node"], "why": s["error"]} for s in streams if s.get("error")]}, 3)
    return [s for s in streams if not s.get("error")]


def _one(what: str, id: Any, timeout: float) -> Any:
    found = _rows(what, [("id", "=", id)], 1, timeout)
    if not found:
        raise NotFoundError(f"{what} {id!r}: there is none of this id, or it is not remembered")
    return found[0]


def get_task(id: str, timeout: float = DEFAULT_TIMEOUT) -> Task:
    """Returns the task with an id. NotFoundError if there is none."""
    return cast(Task, _one("tasks", id, timeout))


def get_actor(id: str, timeout: float = DEFAULT_TIMEOUT) -> Actor:
    """Returns the actor with an id. NotFoundError if there is none."""
    return cast(Actor, _one("actors", id, timeout))


def get_object(id: str, timeout: float = DEFAULT_TIMEOUT) -> Object:
    """Returns the object with an id, as lists show it: TASK:INDEX. NotFoundError if there is none."""
    return cast(Object, _one("objects", id, timeout))


def get_worker(id: Union[str, int], timeout: float = DEFAULT_TIMEOUT) -> Worker:
    """Returns the worker with an id. NotFoundError if there is none."""
    return cast(Worker, _one("workers", id, timeout))


def get_node(id: Union[str, int], timeout: float = DEFAULT_TIMEOUT) -> Node:
    """Returns the node with an id, as mobula.nodes() and the option node have it. NotFoundError if there is none."""
    return cast(Node, _one("nodes", id, timeout))


def get_job(id: Union[str, int], timeout: float = DEFAULT_TIMEOUT) -> Job:
    """Returns the job with an id. NotFoundError if there is none."""
    return cast(Job, _one("jobs", id, timeout))


def _summary(rows: Sequence[Any], group: str, size: bool = False) -> Summary:
    out: Summary = {"total": len(rows), "by_state": {}, "groups": {}}
    for r in rows:
        g = out["groups"].setdefault(r.get(group) or "", {})
        for counts in (out["by_state"], g):
            counts[r["state"]] = counts.get(r["state"], 0) + 1
        if size:
            g["size"] = g.get("size", 0) + r["size"]
    return out


def summarize_tasks(timeout: float = DEFAULT_TIMEOUT) -> Summary:
    """Counts all tasks by the name that lists show. It reads all rows."""
    return _summary(_rows("tasks", None, None, timeout), "name")


def summarize_actors(timeout: float = DEFAULT_TIMEOUT) -> Summary:
    """Counts all actors by type. It reads all rows."""
    return _summary(_rows("actors", None, None, timeout), "type")


def summarize_objects(timeout: float = DEFAULT_TIMEOUT) -> Summary:
    """Counts all objects by where they are, with their sizes. It reads all rows."""
    return _summary(_rows("objects", None, None, timeout), "where", True)


def explain(id: str, timeout: float = DEFAULT_TIMEOUT) -> Explanation:
    """Explains why a task is in its state, or what holds an object, as `mobula explain` does."""
    return cast(Explanation, request("explain", {"id": id}, timeout))


__all__ = ["Actor", "Explanation", "Filter", "Graph", "Job", "Log", "Node", "Object", "Summary", "Task", "Worker", "explain", "get_actor", "get_job",
           "get_log", "get_node", "get_object", "get_task", "get_worker", "list_actors", "list_graphs", "list_jobs", "list_logs", "list_nodes", "list_objects",
           "list_tasks", "list_workers", "summarize_actors", "summarize_objects", "summarize_tasks"]
