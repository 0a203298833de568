"""Objects that a function refers to live as long as the function can be called, and as a call of it can run. And no longer."""

from __future__ import annotations

import functools
import gc
import os
import pickle
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import cloudpickle
import pytest
from cluster import cluster, dir, get, node, objects, until  # noqa: F401
from waiting import PATIENCE

import mobula
import mobula.distributed
from mobula import _functions, _runtime, _stored

cloudpickle.register_pickle_by_value(sys.modules[__name__])

LARGE = 1 << 20

captured: Any = None


@pytest.fixture
def clean(node: Any) -> Iterator[Any]:
    """The module's node, which has no object when the test is over: nor do workers keep what a function referred to."""
    yield node
    until(lambda: gc.collect() is not None and not objects())


@mobula.remote
def value(x: Any) -> Any:
    return x


def settled() -> None:
    """What was released has been told, and what nobody needs is gone."""
    for _ in range(2):
        gc.collect()
        get(value.remote(0))


def forget() -> None:
    """Deletes the one reference that the program has."""
    global captured
    captured = None
    settled()


def capture(size: int = 0) -> None:
    global captured
    captured = mobula.put(["captured", bytes(size)])


def of_a_global() -> Any:
    return mobula.get(captured)[0]


def of_a_global_again(attempts: str) -> Any:
    """Its process dies in the first attempt."""
    if not os.path.exists(attempts):
        Path(attempts).touch()
        os._exit(1)
    return mobula.get(captured)[0]


class Failed(Exception):
    pass


# ---- functions


def closure() -> Callable[[], Any]:
    ref = mobula.put(["captured", b""])
    return lambda: mobula.get(ref)[0]


def default() -> Callable[[], Any]:
    made = mobula.put(["captured", b""])

    def f(ref: Any = made) -> Any:
        return mobula.get(ref)[0]

    return f


def attribute() -> Callable[[], Any]:
    def f() -> Any:
        return mobula.get(f.ref)[0]  # type: ignore[attr-defined]

    f.ref = mobula.put(["captured", b""])  # type: ignore[attr-defined]
    return f


def keyword() -> Callable[[], Any]:
    made = {"a": [mobula.put(["captured", b""])]}

    def f(*, refs: Any = made) -> Any:
        return mobula.get(refs["a"][0])[0]

    return f


def decorated() -> Callable[[], Any]:
    ref = mobula.put(["captured", b""])

    def decorator(f: Callable[..., Any]) -> Callable[[], Any]:
        @functools.wraps(f)
        def wrapper() -> Any:
            return f(ref)

        return wrapper

    @decorator
    def f(ref: Any) -> Any:
        return mobula.get(ref)[0]

    return f


def partial() -> Callable[[], Any]:
    return functools.partial(lambda refs: mobula.get(refs[0])[0], [mobula.put(["captured", b""])])


def partial_of_a_reference() -> Callable[[], Any]:
    return functools.partial(lambda ref: mobula.get(ref)[0], mobula.put(["captured", b""]))


class Callee:
    def __init__(self) -> None:
        self.ref = mobula.put(["captured", b""])

    def __call__(self) -> Any:
        return mobula.get(self.ref)[0]

    def method(self) -> Any:
        return self()


def instance() -> Callable[[], Any]:
    return Callee()


def method() -> Callable[[], Any]:
    return Callee().method


def another() -> Callable[[], Any]:
    """Calls another remote function, which refers to the object."""
    inner = mobula.remote(closure())
    return lambda: mobula.get(inner.remote())


def itself() -> Callable[[], Any]:
    """Calls itself as a task, which only the innermost call has the object for."""
    ref = mobula.put(["captured", b""])

    def f(n: int = 3) -> Any:
        return mobula.get(again.remote(n - 1)) if n else mobula.get(ref)[0]

    again = mobula.remote(f)
    return f


def future() -> Callable[[], Any]:
    made = mobula.distributed.get_client().submit(lambda: ["captured", b""], pure=False)
    return lambda: mobula.get(made.ref)[0]


@mobula.remote
class Holder:
    def say(self) -> Any:
        return "captured"


def handle() -> Callable[[], Any]:
    actor = Holder.remote()
    return lambda: mobula.get(actor.say.remote())


def handles_method() -> Callable[[], Any]:
    say = Holder.remote().say
    return lambda: mobula.get(say.remote())


FUNCTIONS = [closure, default, attribute, keyword, decorated, partial, partial_of_a_reference, instance, method, another, itself, future, handle, handles_method]


@pytest.mark.parametrize("size", [0, LARGE])
def test_a_global(clean: Any, size: int) -> None:
    capture(size)
    f = mobula.remote(of_a_global)
    first = f.remote()
    forget()
    assert get(first) == "captured"
    settled()
    assert get([f.remote() for _ in range(8)]) == ["captured"] * 8


@pytest.mark.parametrize("make", FUNCTIONS)
def test_called_later(clean: Any, make: Callable[[], Any]) -> None:
    f = mobula.remote(make())
    settled()
    assert get(f.remote()) == "captured"
    settled()
    assert get([f.remote() for _ in range(8)]) == ["captured"] * 8


@pytest.mark.parametrize("make", FUNCTIONS)
def test_dropped_behind_the_call(clean: Any, make: Callable[[], Any]) -> None:
    """The call waits for another task first, and the program keeps nothing but the reference to the result."""
    f = mobula.remote(make())
    ref = f.options(num_cpus=4).remote()
    later = value.remote([f.options(num_cpus=4).remote() for _ in range(3)])
    del f
    settled()
    assert get(ref) == "captured"
    assert get(get(later)) == ["captured"] * 3


def test_over_a_death_of_its_process(clean: Any, dir: str) -> None:
    capture()
    ref = mobula.remote(max_retries=2)(of_a_global_again).remote(f"{dir}/attempts")
    forget()
    assert get(ref) == "captured"


def test_over_an_error(clean: Any, dir: str) -> None:
    ref = mobula.put(["captured", b""])

    def f() -> Any:
        if not os.path.exists(f"{dir}/attempts"):
            Path(f"{dir}/attempts").touch()
            raise Failed
        return mobula.get(ref)[0]

    got = mobula.remote(max_retries=2, retry_exceptions=[Failed])(f).remote()
    del f, ref
    settled()
    assert get(got) == "captured"


def test_types_of_exceptions(clean: Any, dir: str) -> None:
    """The check of a type in retry_exceptions refers to an object."""
    ref = mobula.put([Failed])

    class Meta(type):
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, mobula.get(ref)[0])

    class Retried(Exception, metaclass=Meta):
        pass

    def f() -> Any:
        if not os.path.exists(f"{dir}/attempts"):
            Path(f"{dir}/attempts").touch()
            raise Failed
        return "captured"

    remote = mobula.remote(max_retries=2, retry_exceptions=[Retried])(f)
    got = remote.remote()
    del remote, Retried, Meta, ref
    settled()
    assert get(got) == "captured"


# ---- functions as values


def test_as_a_value(clean: Any) -> None:
    @mobula.remote
    def calls(f: Any, g: Any = None, *, h: Any = None) -> Any:
        return next(x for x in (f, g, h) if x is not None)()

    class Actor:
        def calls(self, f: Any) -> Any:
            return f()

    # A function that refers to itself lives until its process collects garbage, or ends as an actor's does.
    actor: Any = mobula.remote(Actor).remote()
    refs = [calls.remote(closure()), actor.calls.remote(mobula.put(attribute())), calls.remote(None, h=decorated()), calls.remote(None, Callee().method)]
    settled()
    assert get(refs) == ["captured"] * 4


def test_as_a_result(clean: Any) -> None:
    @mobula.remote
    def gives() -> Any:
        return closure()

    @mobula.remote(num_returns="streaming")
    def streams() -> Any:
        for make in (closure, decorated):
            yield make()

    @mobula.remote
    def fails() -> Any:
        raise Failed(closure())

    class Actor:
        async def gives(self) -> Any:
            return closure()

    f, stream, actor, failed = gives.remote(), streams.remote(), mobula.remote(Actor).remote(), fails.remote()
    g, items = actor.gives.remote(), list(stream)
    del stream, actor
    settled()
    assert [get(x)() for x in (f, g, *items)] == ["captured"] * 4
    with pytest.raises(Failed) as x:
        get(failed)
    del failed
    settled()
    assert x.value.args[0]() == "captured"


def test_as_a_remote_function_in_an_argument(clean: Any) -> None:
    @mobula.remote
    def calls(f: Any) -> Any:
        return mobula.get([f[0].remote(), f[0].remote()])

    ref = calls.remote([mobula.remote(closure())])
    settled()
    assert get(ref) == ["captured"] * 2


# ---- actors


def actor_class() -> Any:
    default = mobula.put(["captured", b""])

    class Actor:
        attribute: Any = {"ref": mobula.put(["captured", b""])}  # noqa: RUF012

        def __init__(self, ref: Any = default) -> None:
            self.ref = ref

        def all(self) -> Any:
            return [mobula.get(r)[0] for r in (captured, self.attribute["ref"], self.ref)]

    return Actor


def test_an_actors_class(clean: Any) -> None:
    capture()
    cls = mobula.remote(max_restarts=1, max_task_retries=1)(actor_class())
    actor, idle = cls.remote(), cls.remote()
    del cls
    forget()
    assert get(actor.all.remote()) == ["captured"] * 3
    mobula.kill(actor, no_restart=False)
    settled()
    assert get(actor.all.remote()) == ["captured"] * 3
    settled()
    assert get(idle.all.remote()) == ["captured"] * 3


def test_an_actors_class_without_restarts(clean: Any) -> None:
    capture()
    cls = mobula.remote(actor_class())
    actor = cls.remote()
    forget()
    assert get(actor.all.remote()) == ["captured"] * 3
    del actor
    named = cls.options(name="captures").remote()
    del cls
    settled()
    assert get(mobula.get_actor("captures").all.remote()) == ["captured"] * 3
    del named


# ---- executors


def test_an_executor(clean: Any) -> None:
    with mobula.Executor(max_workers=2, initializer=lambda ref: mobula.get(ref[0]), initargs=([mobula.put(0)],)) as e:
        settled()
        fs = [e.submit(closure()) for _ in range(4)]
        mapped = e.map(lambda f, x: f(), [closure(), decorated()], [1, 2])
        settled()
        assert [f.result() for f in fs] + list(mapped) == ["captured"] * 6
        assert e.submit(len, "abc").result() == 3
    del fs, mapped, e


def test_distributed(clean: Any) -> None:
    with mobula.distributed.Client() as c:
        fs = [c.submit(closure(), pure=False), c.submit(lambda f: f(), decorated(), pure=False), *c.map(lambda f: f(), [closure()], pure=False)]
        settled()
        assert c.gather(fs) == ["captured"] * 3
        del fs


def test_joblib(clean: Any) -> None:
    joblib = pytest.importorskip("joblib")
    from mobula.util.joblib import register_mobula

    register_mobula()
    with joblib.parallel_config("mobula", n_jobs=2):
        assert joblib.Parallel()(joblib.delayed(make())() for make in (closure, default, decorated)) == ["captured"] * 3


# ---- as long, and no longer


def test_workers_let_go(clean: Any) -> None:
    """Of the function's object and of what it refers to, though their processes live on."""
    f = mobula.remote(closure())
    assert get([f.remote() for _ in range(8)]) == ["captured"] * 8
    assert objects()
    del f
    until(lambda: not objects())


def test_a_function_is_kept_while_its_object_is_there(clean: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(_stored, "LOOK", 0.0)
    c = _runtime.client()
    kept, ref = _stored.Kept(), mobula.put(["captured", b""])

    def looked() -> bool:
        kept.look(c)
        c.flush()
        return not any(e.asked for e in kept._entries.values())

    put = [_stored.put_function(c, c.root, "00", pickle.dumps(ref), [ref]) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_runtime.state, "worker", object())
        patch.setattr(_stored, "kept", kept)
        del ref
        settled()
        first, second = get(put)
    assert first is second and get(first)[0] == "captured"
    id = first.hex()
    del first, second
    until(looked)
    assert len(kept) == 1
    del put[0]  # the other has the same function
    settled()
    until(looked)
    assert len(kept) == 1 and any(o["state"] == "INLINE" for o in objects().values()), id
    put.clear()
    until(lambda: looked() and not len(kept))


def test_a_job_with_many_functions_keeps_few_files(clean: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settled()  # the job has a file
    folder = Path(_runtime.client().welcome.job_dir) / "functions"
    most = len(list(folder.iterdir())) + 3
    monkeypatch.setattr(_functions, "MOST_FILES", most, raising=False)
    assert get([mobula.remote(lambda x, i=i: x + i).remote(1) for i in range(20)]) == list(range(1, 21))

    class Late:
        def name(self) -> str:
            return "late"

    a = mobula.remote(Late).options(name="late").remote()
    assert get(mobula.get_actor("late").name.remote()) == "late"
    assert len(list(folder.iterdir())) <= most
    mobula.kill(a)
    known = mobula.remote(lambda x: -x)
    for _ in range(3):
        assert get(known.remote(1)) == -1


def test_a_job_with_many_lists_of_types_keeps_few_files(clean: Any, dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In retry_exceptions: the lists beyond the files are in the store, and as long as they are needed."""
    settled()
    folder = Path(_runtime.client().welcome.job_dir) / "functions"
    most = len(list(folder.iterdir())) + 3
    monkeypatch.setattr(_functions, "MOST_FILES", most, raising=False)

    @mobula.remote(max_retries=2)
    def f(x: Any, path: str, what: Any, *, default: int = 0) -> Any:
        if not os.path.exists(path):
            Path(path).touch()
            raise what("once")
        return x, default

    many = [type(f"Retried{i}", (Exception,), {}) for i in range(30)]
    assert get([f.options(retry_exceptions=[OSError, cls]).remote(i, f"{dir}/{i}", cls, default=i) for i, cls in enumerate(many)]) \
        == [(i, i) for i in range(30)]
    assert get([f.options(retry_exceptions=[cls]).remote(i, f"{dir}/{i}", cls) for i, cls in enumerate(many)]) == [(i, 0) for i in range(30)]
    assert len(list(folder.iterdir())) <= most
    other = f.options(retry_exceptions=[many[0]])
    for i in range(2):
        with pytest.raises(ValueError):
            get(other.remote(0, f"{dir}/other{i}", ValueError))
    late = mobula.remote(max_retries=2, retry_exceptions=[many[1]])(lambda path: os.path.exists(path) or f.__wrapped__(0, path, many[1]))
    assert get(late.remote(f"{dir}/late"))  # its function is in the store too
    with mobula.Executor(2, max_retries=2, retry_exceptions=[many[2]]) as ex:
        assert ex.submit(f.__wrapped__, 0, f"{dir}/executor", many[2]).result(PATIENCE) == (0, 0)


# ---- nodes of their own: the last, they end this module's


def test_over_a_kill_of_the_node(binary: str, request: Any) -> None:
    mobula.shutdown()
    kept = request.getfixturevalue("kept")
    with mobula.init(kept.address):
        f, large = mobula.remote(closure()), mobula.remote(functools.partial(lambda data, ref: [mobula.get(ref)[0], len(data)], bytes(LARGE), mobula.put(["large"])))
        assert get([f.remote(), large.remote()]) == ["captured", ["large", LARGE]]
        settled()
        kept.kill()
        kept.start()
        assert get([f.remote(), large.remote()]) == ["captured", ["large", LARGE]]
        del f, large
        until(lambda: gc.collect() is not None and not objects())


def test_an_actor_that_outlives_its_job(binary: str, request: Any) -> None:
    mobula.shutdown()
    kept = request.getfixturevalue("kept")
    with mobula.init(kept.address, namespace="n"):
        data, ref = bytes(LARGE), mobula.put(["captured", b""])

        class Actor:
            attribute = ref

            def say(self) -> Any:
                return mobula.get(self.attribute)[0], len(data)

        get(mobula.remote(Actor).options(name="a", lifetime="detached", max_restarts=-1, max_task_retries=-1).remote().say.remote())
    with mobula.init(kept.address, namespace="n"):
        a = mobula.get_actor("a")
        assert get(a.say.remote()) == ("captured", LARGE)
        mobula.kill(a, no_restart=False)
        assert get(a.say.remote()) == ("captured", LARGE)
        mobula.kill(a)
