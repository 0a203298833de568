"""What the node knows of tasks, actors, objects, workers, jobs and graphs, by the names of ray.util.state.

    from mobula.util import state

    for t in state.list_tasks(filters=[("state", "=", "RUNNING")], limit=10):
        print(t["id"], t["name"], t["callsite"])
    print(state.summarize_tasks())
    print(state.explain(t["id"])["summary"])

A row is a dictionary, the same as `mobula list tasks --json` prints: its class says which fields it has. Fields that a row has nothing to say
of may be missing. Times are in nanoseconds since 1970, sizes in bytes. Rows come by id. A filter is (field, "=" or "!=", value); a row
passes all of them. A filter or a limit that is none raises InvalidError, a node that does not answer in time GetTimeoutError.
"""

from __future__ import annotations

import time
from typing import Any, Optional, Sequence, TypedDict, Union, cast

from .._api.state import request
from ..exceptions import GetTimeoutError, InvalidError, NotFoundError

DEFAULT_LIMIT = 100
MAX_LIMIT = 10_000
DEFAULT_TIMEOUT = 30.0
_PAGE = 1000

Filter = tuple[str, str, Union[str, int, float, bool]]


class Task(TypedDict, total=False):
    """kind: "task", "actor-creation" or "actor-call"; since: in this state; callsite: of a sample of the tasks; reason: why it failed, or
    runs again."""

    id: str
    name: str
    func: str
    kind: str
    state: str
    job: str
    attempt: int
    since: int
    worker: str
    actor: str
    parent: str
    callsite: str
    reason: str


class Actor(TypedDict, total=False):
    """resets: restarts that max_restarts does not count; due: when it restarts; pending and running: calls."""

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
    pid: int
    reason: str


class Object(TypedDict, total=False):
    """type: "return", "put" or "item"; where: "message", "memory", "spilled"; holders: processes with a reference; tasks: unfinished, that
    use it; within: live objects that contain it."""

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


class Worker(TypedDict, total=False):
    """heap: as it last reported; rss: as the kernel counts."""

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


class Job(TypedDict, total=False):
    """tasks: how many there are, by state; the other numbers are since its beginning."""

    id: str
    namespace: str
    pid: int
    tasks: dict[str, int]
    submitted: int
    finished: int
    failed: int
    retried: int
    objects: int


class Graph(TypedDict, total=False):
    """A task graph that runs; of its tasks some wait for what they take, some are queued though they could run, some are processing."""

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


class Explanation(TypedDict, total=False):
    """summary: the answer in one line; task or object: the row; next: of what it waits for in turn."""

    id: str
    kind: str
    state: str
    summary: str
    details: list[str]
    task: Task
    object: Object
    next: Explanation


class Summary(TypedDict):
    """total: how many there are; by_state: of them; groups: the same for each name of a function, each type of actor, or each place of
    objects, which also have "size"."""

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
    """Rows on as many pages as it takes; limit None: all."""
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
        if not page.get("next"):
            break
        query["cursor"] = page["next"]
    return out


def list_tasks(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Task]:
    """The tasks that are remembered, also those that have ended, as long as something refers to their results."""
    return _rows("tasks", filters, limit, timeout)


def list_actors(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Actor]:
    return _rows("actors", filters, limit, timeout)


def list_objects(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Object]:
    """The objects that something refers to."""
    return _rows("objects", filters, limit, timeout)


def list_workers(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Worker]:
    return _rows("workers", filters, limit, timeout)


def list_jobs(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Job]:
    return _rows("jobs", filters, limit, timeout)


def list_graphs(filters: Optional[Sequence[Filter]] = None, limit: int = DEFAULT_LIMIT, timeout: float = DEFAULT_TIMEOUT) -> list[Graph]:
    """The task graphs that run."""
    return _rows("graphs", filters, limit, timeout)


def _one(what: str, id: Any, timeout: float) -> Any:
    found = _rows(what, [("id", "=", id)], 1, timeout)
    if not found:
        raise NotFoundError(f"{what} {id!r}: there is none of this id, or it is not remembered")
    return found[0]


def get_task(id: str, timeout: float = DEFAULT_TIMEOUT) -> Task:
    """NotFoundError where there is none; so for the others."""
    return cast(Task, _one("tasks", id, timeout))


def get_actor(id: str, timeout: float = DEFAULT_TIMEOUT) -> Actor:
    return cast(Actor, _one("actors", id, timeout))


def get_object(id: str, timeout: float = DEFAULT_TIMEOUT) -> Object:
    """id: as lists show it, with the index behind a colon."""
    return cast(Object, _one("objects", id, timeout))


def get_worker(id: Union[str, int], timeout: float = DEFAULT_TIMEOUT) -> Worker:
    return cast(Worker, _one("workers", id, timeout))


def get_job(id: Union[str, int], timeout: float = DEFAULT_TIMEOUT) -> Job:
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
    """All tasks that are remembered, by the name that lists show. It reads them all."""
    return _summary(_rows("tasks", None, None, timeout), "name")


def summarize_actors(timeout: float = DEFAULT_TIMEOUT) -> Summary:
    """All actors, by their type."""
    return _summary(_rows("actors", None, None, timeout), "type")


def summarize_objects(timeout: float = DEFAULT_TIMEOUT) -> Summary:
    """All objects, by where they are."""
    return _summary(_rows("objects", None, None, timeout), "where", True)


def explain(id: str, timeout: float = DEFAULT_TIMEOUT) -> Explanation:
    """Why a task is where it is, or who holds an object, as `mobula explain` says it."""
    return cast(Explanation, request("explain", {"id": id}, timeout))


__all__ = ["Actor", "Explanation", "Filter", "Graph", "Job", "Object", "Summary", "Task", "Worker", "explain", "get_actor", "get_job", "get_object",
           "get_task", "get_worker", "list_actors", "list_graphs", "list_jobs", "list_objects", "list_tasks", "list_workers",
           "summarize_actors", "summarize_objects", "summarize_tasks"]
