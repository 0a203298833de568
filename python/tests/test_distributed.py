"""mobula.distributed, and the plain API's references, awaited, on the real node."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import subprocess
import sys
import threading
import time
import weakref
from concurrent import futures
from typing import Any, Iterator

import cloudpickle
import notes
import numpy as np
import pytest
from waiting import PATIENCE, until

import mobula
from mobula import _html
from mobula import exceptions as x
from mobula.distributed import Client, Future, as_completed, get_client, progress, wait

cloudpickle.register_pickle_by_value(sys.modules[__name__])


FOREVER = 3600.0  # which every test cuts short


@pytest.fixture(scope="module")
def client(binary: str) -> Iterator[Client]:
    with Client(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c
    assert not mobula.is_initialized()  # it made the connection, and ended it


def add(a: Any, b: Any = 1) -> Any:
    return a + b


def sleep(t: float) -> float:
    time.sleep(t)
    return t


def fail(what: str) -> None:
    raise KeyError(what)


def total(xs: Any) -> Any:
    return sum(xs.values()) if isinstance(xs, dict) else sum(xs)


def test_submit(client: Client) -> None:
    f = client.submit(add, 1, b=2)
    assert f.result(timeout=PATIENCE) == 3 and f.status == "finished" and f.done() and not f.cancelled() and f.exception() is None
    assert f.key.startswith("add-") and repr(f) == f"<Future: finished, key: {f.key}>"
    g = client.submit(add, f, b=client.submit(add, f))  # futures are passed as their results
    assert g.result(PATIENCE) == 7
    nested = client.submit(total, [f, g, 1, (2,)[0]])
    assert nested.result(PATIENCE) == 13
    assert client.submit(total, {"a": f, "b": g}).result(PATIENCE) == 10
    assert client.submit(lambda xs, ys: [xs[0][0], sorted(ys)], ([f],), {f, 9}).result(PATIENCE) == [3, [3, 9]]
    assert mobula.get(f.ref) == 3


def test_keys(client: Client) -> None:
    f = client.submit(add, 1, 1)
    assert client.submit(add, 1, 1).key == f.key and client.submit(add, 1, 1).ref == f.ref  # it is not called again
    assert client.submit(add, 1, 2).key != f.key
    assert client.submit(add, f).key == client.submit(add, f).key != client.submit(add, client.submit(add, 5)).key
    h = client.submit(time.time_ns, pure=False)
    assert h.result() != client.submit(time.time_ns, pure=False).result()
    named = client.submit(time.time_ns, key="now")
    assert named.key == "now" and client.submit(time.time_ns, key="now").result() == named.result()
    before = named.result()
    del named
    until(lambda: client.submit(time.time_ns, key="now").result() != before)  # with its last future a key is forgotten
    a = np.arange(10)
    assert client.submit(np.sum, a).key == client.submit(np.sum, a.copy()).key != client.submit(np.sum, a + 1).key


def test_errors(client: Client) -> None:
    f = client.submit(fail, "it")
    with pytest.raises(KeyError) as e:
        f.result(PATIENCE)
    assert type(e.value) is KeyError and "fail" in e.value.__cause__.remote_traceback  # type: ignore[union-attr]
    assert f.status == "error" and type(f.exception()) is KeyError
    dependent = client.submit(add, f)
    with pytest.raises(KeyError):
        dependent.result(PATIENCE)
    slow = client.submit(sleep, FOREVER)
    with pytest.raises(TimeoutError):
        slow.result(timeout=0.05)
    with pytest.raises(TimeoutError):
        slow.exception(timeout=0.05)
    assert slow.status == "pending"
    slow.cancel()
    with pytest.raises(x.NotEncodableError):
        client.submit(add, threading.Lock())
    for wrong in ({"workers": ["a"]}, {"actor": True}, {"allow_other_workers": True}):
        with pytest.raises(x.InvalidError, match="this client has no"):
            client.submit(add, 1, **wrong)
    with pytest.raises(x.InvalidError, match="connection already"):
        Client(num_cpus=3)


def test_retries_and_resources(client: Client, tmp_path: Any) -> None:
    def flaky() -> int:
        n = len(list(tmp_path.iterdir()))
        (tmp_path / str(n)).touch()
        if n < 2:
            raise OSError(n)
        return n

    assert client.submit(flaky, retries=2, pure=False).result(PATIENCE) == 2
    tried = tmp_path / "tried"

    def deadly() -> str:
        with open(tried, "a") as f:
            f.write("x")
        n = tried.stat().st_size
        if n < 3:
            os._exit(1)
        if n == 3:
            raise OSError(n)
        return "at last"

    assert client.submit(deadly, retries=1, pure=False).result(PATIENCE) == "at last"  # two that died of it do not count
    with pytest.raises(OSError):
        client.submit(lambda: (_ for _ in ()).throw(OSError()), pure=False).result(PATIENCE)
    with pytest.raises(x.UnschedulableError):
        client.submit(add, 1, key="rare", resources={"rare": 1}).result(PATIENCE)
    assert client.submit(add, 1, resources={"CPU": 0.5, "memory": 1 << 20}).result(PATIENCE) == 2


def test_map_and_gather(client: Client) -> None:
    fs = client.map(add, range(20), range(20))
    assert client.gather(fs) == [2 * i for i in range(20)]
    assert client.gather({"a": fs[1], "b": [fs[2], (fs[3], 7)]}) == {"a": 2, "b": [4, (6, 7)]}
    assert client.gather(fs[4]) == 8 and client.gather([]) == []
    assert client.gather(client.map(add, fs[:3], b=10)) == [10, 12, 14]
    named = client.map(add, [1, 2], key="plus")
    assert all(f.key.startswith("plus-") for f in named) and named[0].key != named[1].key
    assert [f.key for f in client.map(add, [1, 2], key=["one", "two"])] == ["one", "two"]
    with pytest.raises(x.InvalidError, match="1 keys for 2 calls"):
        client.map(add, [1, 2], key=["one"])
    bad = client.submit(fail, "gathered")
    with pytest.raises(KeyError, match="gathered"):
        client.gather([fs[0], bad])
    gc.disable()
    try:
        for wait in (client.gather, lambda fs: fs[0].result()):
            more = client.submit(fail, "not held")
            kept = weakref.ref(more)
            with pytest.raises(KeyError, match="not held"):
                wait([more])
            del more
            assert kept() is None  # without a look for cycles
    finally:
        gc.enable()
    assert client.gather([fs[0], bad, fs[1]], errors="skip") == [0, 2]
    assert client.gather({"x": bad, "y": [bad, fs[1]]}, errors="skip") == {"y": [2]}
    assert client.gather(bad, errors="skip") is None
    slow = client.submit(sleep, FOREVER + 1)
    for failed in (client.submit(fail, "meanwhile"), bad):  # nobody has to wait for what is slow
        with pytest.raises(KeyError):
            client.gather([slow, failed])
    assert slow.status == "pending"
    slow.cancel()


def test_scatter(client: Client) -> None:
    a = np.arange(100_000.0)
    f = client.scatter(a)
    assert f.done() and (client.submit(add, f).result(PATIENCE) == a + 1).all()
    assert client.scatter(a.copy()).ref == f.ref and client.scatter(a, hash=False).ref != f.ref
    xs = client.scatter([1, 2, 3])
    assert client.gather(xs) == [1, 2, 3] and client.submit(total, xs).result(PATIENCE) == 6
    assert client.gather(client.scatter({"u": 1, "v": 2}, broadcast=True)) == {"u": 1, "v": 2}
    f.cancel()
    with pytest.raises(futures.CancelledError):
        f.result()
    assert (client.scatter(a).result() == a).all()


def test_as_completed(client: Client, tmp_path: Any) -> None:
    slow, quick = client.submit(notes.stay, str(tmp_path), "slow"), client.submit(sleep, 0.0)
    some = as_completed([slow, quick, slow])
    assert next(some) == quick
    notes.note(str(tmp_path), "go")
    assert list(some) == [slow]
    assert dict(as_completed([slow, quick], with_results=True)) == {slow: "slow", quick: 0.0}
    bad = client.submit(fail, "completed")
    with pytest.raises(KeyError):
        list(as_completed([bad], with_results=True))
    [(f, (kind, error, _))] = as_completed([bad], with_results=True, raise_errors=False)
    assert f is bad and kind is KeyError and error.args == ("completed",)
    ac = as_completed([client.submit(add, 0)])
    seen = []
    for f in ac:  # more are added on the way
        seen.append(f.result())
        if len(seen) < 5:
            ac.add(client.submit(add, f.result()))
    assert seen == [1, 2, 3, 4, 5] and ac.is_empty()
    never = client.submit(sleep, FOREVER + 2)
    late = as_completed([never], timeout=0.05)
    assert late.count() == 1 and not late.has_ready()
    with pytest.raises(TimeoutError):
        next(late)
    late.clear()
    assert list(late) == []
    batches = list(as_completed(client.map(add, range(10))).batches())
    assert sorted(f.result() for b in batches for f in b) == list(range(1, 11))
    never.cancel()
    assert list(as_completed([never])) == [never]


def test_wait_and_cancel(client: Client) -> None:
    slow, quick = client.submit(sleep, FOREVER + 2), client.submit(sleep, 0.01)
    done, rest = wait([slow, quick], return_when="FIRST_COMPLETED", timeout=PATIENCE)
    assert done == {quick} and rest == {slow}
    with pytest.raises(TimeoutError):
        wait([slow, quick], timeout=0.05)
    behind = client.submit(add, slow)
    client.cancel([slow])
    assert slow.cancelled() and slow.status == "cancelled"
    with pytest.raises(futures.CancelledError):
        slow.result()
    with pytest.raises(futures.CancelledError):
        slow.exception()
    with pytest.raises(futures.CancelledError):
        behind.result(PATIENCE)
    until(behind.cancelled)
    assert wait(quick).done == {quick} and wait([slow, behind]).not_done == set()
    again = client.submit(sleep, FOREVER + 2)
    assert again.key == slow.key and again.status == "pending"  # a key that was cancelled may be called again
    client.cancel({"a": again}, force=True)
    with pytest.raises(x.InvalidError, match="return_when"):
        wait([quick], return_when="SOME")


def test_done_callbacks(client: Client) -> None:
    got: list[Any] = []
    over = threading.Event()

    def note(f: Future) -> None:
        got.append((f.key, f.status, client.submit(add, 1).result(PATIENCE)))  # it may wait
        if len(got) == 2:
            over.set()

    client.submit(sleep, 0.1, key="later").add_done_callback(note)  # nobody keeps the future
    done = client.submit(add, 5, key="done")
    wait(done)
    done.add_done_callback(note)
    assert over.wait(PATIENCE)
    assert sorted(got) == [("done", "finished", 2), ("later", "finished", 2)]


def test_a_client_that_was_closed(client: Client, tmp_path: Any) -> None:
    got: list[Any] = []
    over = threading.Event()

    def note(f: Future) -> None:
        got.append((f.status, threading.current_thread()))
        if len(got) == 2:
            over.set()

    with Client() as other:
        slow = other.submit(notes.stay, str(tmp_path), "slow")
        slow.add_done_callback(note)
    assert not slow.done()
    notes.note(str(tmp_path), "go")
    assert slow.result(timeout=PATIENCE) == "slow"  # the connection is not this client's, and goes on
    until(lambda: got)
    slow.add_done_callback(note)
    assert over.wait(PATIENCE) and [status for status, _ in got] == ["finished"] * 2
    for _, thread in got:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    other.close()  # a second time
    assert repr(other) == "<Client: closed>"
    for call in (lambda: other.submit(add, 1), lambda: other.map(add, [1]), lambda: other.scatter(1), other.get_executor):
        with pytest.raises(x.ShutdownError, match="this client was closed: make another"):
            call()
    mine = get_client()
    assert get_client() is mine
    mine.close()
    assert get_client() is not mine and get_client().submit(add, 1).result(PATIENCE) == 2


def test_a_client_ends_its_own_connection_only(binary: str) -> None:
    program = """if True:
        import mobula
        from mobula.distributed import Client, get_client
        from mobula.exceptions import ShutdownError

        def tried(c):
            try:
                return c.submit(abs, -1).result()
            except ShutdownError as x:
                return x.message

        with Client(num_cpus=1) as c:
            f = c.submit(abs, -1)
            assert f.result() == 1
            c.close()
            print(tried(c), mobula.is_initialized(), sep=", ")
            mobula.init(num_cpus=1)
        print(mobula.is_initialized())
        mobula.shutdown()
        with Client(num_cpus=1) as c:
            mobula.shutdown()
            print(tried(c), mobula.is_initialized(), sep=", ")
            mobula.init(num_cpus=1)
            print(tried(c), get_client().submit(abs, -1).result(), sep=", ")
        print(mobula.is_initialized())
    """
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "MOBULA_BINARY": binary})
    closed, ended = "this client was closed: make another Client", "the connection of this client was ended: make another Client"
    assert said.stdout.splitlines() == [f"{closed}, False", "True", f"{ended}, False", f"{ended}, 1", "True"], said.stderr


def test_futures_in_tasks(client: Client) -> None:
    f = client.submit(add, 1)

    def inner(n: int) -> Any:
        c = get_client()
        return sum(c.gather(c.map(add, range(n))))

    assert client.submit(inner, 4).result(PATIENCE) == 10

    def given(fs: Any) -> Any:
        return fs[0]().result(timeout=PATIENCE)  # hidden from the client, it arrives as a future

    assert client.submit(given, [lambda: f]).result(PATIENCE) == 2
    assert list(client.get_executor(max_workers=2).map(abs, [-1, -2])) == [1, 2]


def test_a_client_for_coroutines(client: Client, tmp_path: Any) -> None:
    async def main() -> None:
        async with Client(asynchronous=True) as c:
            assert await c.submit(add, 1) == 2
            fs = c.map(add, range(10))
            assert await c.gather(fs) == list(range(1, 11)) and await fs[0].result() == 1 and await fs[0].exception() is None
            xs = await c.scatter([1, 2])
            assert await c.submit(total, xs) == 3
            bad = c.submit(fail, "async")
            with pytest.raises(KeyError) as e:
                await bad
            assert type(e.value) is KeyError and type(await bad.exception()) is KeyError
            with pytest.raises(KeyError):
                await c.gather([fs[0], bad])
            assert await c.gather([fs[0], bad], errors="skip") == [1]
            second, first = c.submit(notes.stay, str(tmp_path), "second"), c.submit(sleep, 0)
            came = []
            async for f in as_completed([second, first]):
                came.append(f)
                notes.note(str(tmp_path), "go")
            assert came == [first, second]
            slow = c.submit(sleep, FOREVER)
            assert sorted([r async for _, r in as_completed(fs, with_results=True)]) == list(range(1, 11))
            pairs = [p async for p in as_completed([bad], with_results=True, raise_errors=False)]
            assert pairs[0][1][0] is KeyError
            with pytest.raises(TimeoutError):
                await slow.result(timeout=0.05)
            with pytest.raises(TimeoutError):
                async for _ in as_completed([slow], timeout=0.05):
                    pass
            assert (await wait([slow, fs[0]], return_when="FIRST_COMPLETED")).done == {fs[0]}
            assert (await wait(fs)).not_done == set()
            await c.cancel(slow)
            with pytest.raises(futures.CancelledError):
                await slow
            same = await Client(asynchronous=True)
            with pytest.raises(x.InvalidError, match="async with"):
                same.__enter__()

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert mobula.is_initialized()  # the connection was there before


def test_a_connection_of_a_coroutines_client(binary: str) -> None:
    program = ("import asyncio, mobula\nfrom mobula.distributed import Client\nasync def main():\n"
               "    async with Client(num_cpus=1, asynchronous=True) as c:\n        print(await c.submit(abs, -3))\n"
               "    print(mobula.is_initialized())\nasyncio.run(main())")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "MOBULA_BINARY": binary})
    assert said.stdout.split() == ["3", "False"], said.stderr


def test_references_are_awaited(client: Client) -> None:
    plus, doze, broken = mobula.remote(add), mobula.remote(sleep), mobula.remote(fail)

    @mobula.remote
    class Counter:
        def __init__(self) -> None:
            self.n = 0

        async def inc(self) -> int:
            self.n += 1
            return self.n

    async def main() -> None:
        assert await plus.remote(1) == 2
        assert await asyncio.gather(*[plus.remote(i) for i in range(50)]) == list(range(1, 51))
        c = Counter.remote()
        assert sorted(await asyncio.gather(*[c.inc.remote() for _ in range(20)])) == list(range(1, 21))
        with pytest.raises(KeyError):
            await broken.remote("awaited")
        slow = doze.remote(FOREVER)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slow, 0.05)
        mobula.cancel(slow)
        with pytest.raises(x.TaskCancelledError):
            await slow
        a = np.arange(50_000)
        assert (await mobula.put(a) == a).all()
        late = doze.remote(FOREVER)
        first = await asyncio.wait([asyncio.ensure_future(_value(r)) for r in (doze.remote(0.0), late)], return_when=asyncio.FIRST_COMPLETED)
        assert [t.result() for t in first[0]] == [0.0]
        mobula.cancel(late)

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


async def _value(ref: Any) -> Any:
    return await ref


def test_what_notebooks_show(client: Client) -> None:
    f = client.submit(add, "<b>", "x")
    assert f.result() == "<b>x"
    assert "finished" in f._repr_html_() and f.key in f._repr_html_()
    assert "object store memory" in client._repr_html_() and "free of 64.0 MiB" in client._repr_html_()
    assert "node.sock" in repr(client)
    with_id = f.ref._repr_html_()
    assert "ready" in with_id and f.ref.task_id()[:8] in with_id
    assert "in the object store" in (big := client.scatter(np.ones(50_000)).ref._repr_html_()) and "390.6 KiB" in big
    assert "failed" in wait(client.submit(fail, "shown")).done.pop().ref._repr_html_()

    @mobula.remote
    class Shown:
        def method(self) -> None: ...

    made = Shown.options(name="shown").remote()
    assert "<td style='text-align:left'>method</td>" in made._repr_html_()
    found = mobula.get_actor("shown")
    found.__dict__["_methods"] = None  # as of an actor whose maker wrote nothing of it
    assert not hasattr(found, "_ipython_display_") and found._methods is None  # the actor was not asked
    assert "ActorHandle" in found._repr_html_() and "&lt;" in _html.table("<", {})


def test_progress(client: Client) -> None:
    shown = io.StringIO()
    fs = client.map(add, range(25))
    assert progress(fs, desc="adding", file=shown, ascii=True) == fs and all(f.done() for f in fs)
    assert "adding: 100%" in shown.getvalue() and "25/25" in shown.getvalue()
