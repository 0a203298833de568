"""Observing Python's tasks on the real node: lists, summaries and explanations, call sites, fields of log records."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, Iterator

import cloudpickle
import pytest
from cluster import cluster, dir, get, node, until  # noqa: F401
from waiting import until

import mobula
from mobula import _api, _ids, _logging, _trace
from mobula._callsites import CallSites
from mobula.exceptions import InvalidError, NotFoundError
from mobula.util import state, tracing

cloudpickle.register_pickle_by_value(sys.modules[__name__])


SEEN, PAGED = "test_seen.seen", "test_seen.paged"  # of tasks that have ended lists know the function


@mobula.remote
def seen(x: Any) -> Any:
    return x


@mobula.remote
def paged(x: Any) -> Any:
    return x


@mobula.remote
def waits(path: str) -> None:
    until(lambda: os.path.exists(path))


@mobula.remote
class Logger:
    def fields(self) -> dict[str, str]:
        r = logging.getLogger("x").makeRecord("x", logging.INFO, "f", 1, "m", (), None)
        return {k: getattr(r, k) for k in _logging.FIELDS}

    def same(self, x: Any) -> Any:
        return x

    def warn(self) -> None:
        logging.getLogger("x").warning("found by its task")


@mobula.remote
def logs() -> dict[str, str]:
    with tracing.span("inside"):
        r = logging.getLogger("x").makeRecord("x", logging.INFO, "f", 1, "m", (), None)
        return {"traceparent": tracing.traceparent(), **{k: getattr(r, k) for k in _logging.FIELDS}}


def line() -> int:
    return sys._getframe(1).f_lineno


def test_lists_get_summaries_and_explanations(node: Any) -> None:
    refs = [seen.remote(i) for i in range(12)]
    get(refs)
    ids = {r._h.id[:_ids.TASK].hex() for r in refs}
    until(lambda: len(state.list_tasks([("name", "=", SEEN), ("state", "=", "FINISHED")])) == 12)
    rows = state.list_tasks([("name", "=", SEEN)])
    assert {t["id"] for t in rows} == ids and all(t["kind"] == "task" for t in rows)
    assert len(state.list_tasks([("name", "=", SEEN)], limit=5)) == 5
    assert state.list_tasks([("name", "!=", SEEN), ("name", "=", SEEN)]) == []
    assert state.get_task(rows[0]["id"])["name"] == SEEN
    found = state.summarize_tasks()
    assert found["groups"][SEEN] == {"FINISHED": 12} and found["total"] >= 12 and found["by_state"]["FINISHED"] >= 12
    a = Logger.remote()
    get(a.fields.remote())
    assert state.get_actor(a._actor_id)["state"] == "ALIVE" and [x["id"] for x in state.list_actors([("id", "=", a._actor_id)])] == [a._actor_id]
    assert state.summarize_actors()["by_state"]["ALIVE"] >= 1
    big = mobula.put(b"x" * (1 << 20))
    until(lambda: any(o["size"] >= 1 << 20 for o in state.list_objects([("type", "=", "put")])))
    [o] = [o for o in state.list_objects([("type", "=", "put")]) if o["size"] >= 1 << 20]
    assert state.get_object(o["id"])["state"] == "STORED" and state.summarize_objects()["groups"]["memory"]["size"] >= 1 << 20
    assert state.explain(o["id"])["kind"] == "object" and state.explain(rows[0]["id"])["task"]["name"] == SEEN
    job = mobula.get_runtime_context().job_id
    assert state.get_job(job)["pid"] == os.getpid() and str(job) in [j["id"] for j in state.list_jobs()]
    w = state.list_workers([("language", "=", "python")])[0]
    assert state.get_worker(w["id"])["pid"] == w["pid"]
    assert state.list_graphs() == []
    del big


def test_ids_as_releases_before_0_5_wrote_them_are_found(node: Any) -> None:
    ref = seen.remote("kept")
    get(ref)
    task = ref.task_id()
    assert task.startswith("0" * 8)  # the first home, which is all that they know
    short, reference = task[8:], task[8:] + "0" * 8
    until(lambda: state.get_task(task)["state"] == "FINISHED")
    assert [t["id"] for t in state.list_tasks([("id", "=", short)])] == [task] and state.get_object(f"{short}:0")["id"] == f"{task}:0"
    assert task not in [t["id"] for t in state.list_tasks([("id", "!=", short)])]
    assert len(reference) == len(task)  # ref.hex() of then has as many digits as a task's id now
    assert state.explain(short)["task"]["id"] == task and state.explain(reference)["object"]["id"] == f"{task}:0"


def test_pages_are_read_until_the_limit(node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    refs = [paged.remote(i) for i in range(10)]
    get(refs)
    monkeypatch.setattr(state, "_PAGE", 3)
    assert len({t["id"] for t in state.list_tasks([("name", "=", PAGED)], limit=8)}) == 8
    until(lambda: state.summarize_tasks()["groups"][PAGED] == {"FINISHED": 10})
    del refs


def test_what_cannot_be_asked_is_an_exception(node: Any) -> None:
    for wrong in ({"filters": [("colour", "=", "red")]}, {"filters": [("state", "<", "3")]}, {"filters": [("attempt", "=", "many")]}, {"limit": 0},
                  {"limit": 10_001}):
        with pytest.raises(InvalidError):
            state.list_tasks(**wrong)  # type: ignore[arg-type]
    for f in (state.get_task, state.get_actor, state.get_object, state.get_job, state.get_worker):
        with pytest.raises(NotFoundError):
            f("0123456789abcdef0123456789abcdef")
    with pytest.raises(mobula.MobulaError):
        state.explain("nothing")
    with pytest.raises(mobula.GetTimeoutError):
        state.list_tasks(timeout=0)


def test_lists_show_where_calls_were_made(node: Any, dir: str) -> None:
    ref, at = waits.remote(dir + "/end"), line()
    a, made = Logger.remote(), line()
    call, called = a.same.remote(ref), line()  # of what has ended lists know less
    for id, want in ((ref._h.id[:_ids.TASK].hex(), at), (a._actor_id, made), (call._h.id[:_ids.TASK].hex(), called)):
        assert state.get_task(id).get("callsite") == f"test_seen.py:{want}"
    open(dir + "/end", "w").close()
    get([ref, call])


def test_few_calls_look_up_where_they_are_made() -> None:
    s = CallSites()
    assert [i for i in range(1, 300) if s.next()] == [1, 2, 3, 4, 5, 6, 7, 128, 256]


def written(task: str) -> str:
    """The lines of a task that the node has by now."""
    try:
        return "".join(s["text"] for s in _api.request("logs", {"id": task})["streams"])
    except NotFoundError:
        return ""


def test_log_records_say_where_they_come_from(node: Any) -> None:
    ref = logs.remote()
    said = get(ref)
    _, trace, span, _ = said["traceparent"].split("-")
    assert said == {"traceparent": said["traceparent"], "trace_id": trace, "span_id": span, "task_id": ref._h.id[:_ids.TASK].hex(), "actor_id": ""}
    a = Logger.remote()
    call = a.fields.remote()
    said = get(call)
    assert (said["task_id"], said["actor_id"], len(said["trace_id"])) == (call._h.id[:_ids.TASK].hex(), a._actor_id, 32)
    warned = a.warn.remote()
    get(warned)
    lines = until(lambda: written(warned._h.id[:_ids.TASK].hex()))
    assert "found by its task trace_id=" in lines and f"actor_id={a._actor_id}" in lines


@pytest.fixture
def factory() -> Iterator[None]:
    before = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(before)


def test_a_driver_has_the_fields_where_it_wants_them(node: Any, factory: None) -> None:
    tracing.log_fields()
    once = logging.getLogRecordFactory()
    tracing.log_fields()
    assert logging.getLogRecordFactory() is once
    log = logging.getLogger("x")
    r: Any = log.makeRecord("x", logging.INFO, "f", 1, "m", (), None)
    assert (r.trace_id, r.span_id, r.task_id, r.actor_id) == ("", "", "", "")
    with tracing.span("here"):
        r = log.makeRecord("x", logging.INFO, "f", 1, "m", (), None)
        p = _trace.user_span.get()
        assert p is not None and (r.trace_id, r.span_id, r.task_id) == (p.trace.hex(), p.span.hex(), "")


def test_nodes_that_do_not_answer_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    page = {"rows": [{"id": "1-1", "node": "n1"}], "unreachable": [{"node": "n2", "why": "no answer within 5s"}]}
    monkeypatch.setattr(state, "request", lambda *_: page)
    with pytest.warns(RuntimeWarning, match="what node n2 has is missing: no answer within 5s"):
        assert [j["node"] for j in state.list_jobs()] == ["n1"]


def test_an_actor_is_listed_by_its_class_and_with_its_node(node: mobula.Node) -> None:
    a = Logger.remote()
    at = get(a.same.remote(1)) and mobula.get_runtime_context().get_node_id()
    [row] = state.list_actors([("id", "=", a._actor_id)])
    assert (row["type"], row["runs_on"]) == ("test_seen.Logger", at)
