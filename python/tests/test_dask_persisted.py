"""Collections that were persisted on the node, and are computed by Dask's own schedulers, copied, pickled and shown."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from typing import Any, Callable, Iterator

import cloudpickle
import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import dask.local
import dask.threaded
import pandas as pd
import pytest
from dask.graph_manipulation import bind, clone
from waiting import PATIENCE

import mobula
import mobula.dask
from mobula import exceptions as x
from mobula.dask._persisted import Persisted
from mobula.dask._plan import plan

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


def inc(a: Any) -> Any:
    return a + 1


def forever() -> None:
    threading.Event().wait()


def frame() -> Any:
    return dd.from_pandas(pd.DataFrame({"a": range(6)}), npartitions=2)


def listed(a: Any) -> Any:
    return a.tolist() if hasattr(a, "tolist") else a


# By kind: a collection, its value, what another is made of it, and the value of that.
KINDS: dict[str, tuple[Callable[[], Any], Any, Callable[[Any], Any], Any]] = {
    "delayed": (lambda: dask.delayed(inc)(1), 2, lambda c: dask.delayed(inc)(c), 3),
    "array": (lambda: da.arange(6, chunks=3) + 1, [1, 2, 3, 4, 5, 6], lambda c: (c + 1)[1:4].sum(), 12),
    "bag": (lambda: db.from_sequence(range(4), npartitions=2).map(inc), [1, 2, 3, 4], lambda c: c.map(inc).sum(), 14),
    "item": (lambda: db.from_sequence(range(4), npartitions=2).sum(), 6, lambda c: c.apply(inc), 7),
    "series": (lambda: (frame().a + 1).astype("int64"), [1, 2, 3, 4, 5, 6], lambda c: (c + 1).sum(), 27),
}


def persisted(make: Any) -> Any:
    with mobula.dask.enable():
        return make().persist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheduler", ["threads", "sync", mobula.dask.get, mobula.dask.get_sync])
def test_any_scheduler_computes_with_it(node: Any, kind: str, scheduler: Any) -> None:
    make, want, further, then = KINDS[kind]
    c = persisted(make)
    assert listed(c.compute(scheduler=scheduler)) == want and listed(further(c).compute(scheduler=scheduler)) == then
    both = dask.compute(c, further(c), make(), scheduler=scheduler)
    assert [listed(v) for v in both] == [want, then, want]


def test_processes_compute_with_it(node: Any) -> None:
    made = [(KINDS[kind][2](persisted(KINDS[kind][0])), KINDS[kind][3]) for kind in KINDS]
    assert [listed(v) for v in dask.compute(*[c for c, _ in made], scheduler="processes", num_workers=1)] == [want for _, want in made]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_of_it(node: Any, kind: str) -> None:
    make, want, further, then = KINDS[kind]
    c = persisted(make)
    with dask.config.set(scheduler="threads"):
        (optimized,) = dask.optimize(c)
        for same in (c, optimized, copy.copy(c), copy.deepcopy(c), pickle.loads(pickle.dumps(c)), mobula.get(mobula.put(c)), c.persist()):
            assert listed(same.compute()) == want and listed(same.compute(scheduler=mobula.dask.get)) == want
        assert [listed(v) for v in dask.compute({"in": [c]})[0]["in"]] == [want]
        assert dask.base.tokenize(c) == dask.base.tokenize(c)
        repr(c), str(c.__dask_graph__())
        here = mobula.get(mobula.remote(lambda c, f: (listed(c.compute(scheduler="sync")), listed(f(c).compute(scheduler="sync")))).remote(c, further),
                          timeout=PATIENCE)
        assert here == (want, then)
    if kind not in ("series", "item"):  # whose graphs are those of an expression, and a dict
        keys = list(dask.core.flatten(c.__dask_keys__()))
        assert all(type(v) is mobula.ObjectRef for v in dict(c.dask).values()) and all(type(v) is Persisted for _, v in c.dask.items())
        for scheduler in (dask.threaded.get, dask.local.get_sync):
            first = [listed(scheduler(g, keys)[0]) for g in (c.dask, dict(c.dask.items()))]
            assert first == [listed(mobula.dask.get(dict(c.dask), keys)[0])] * 2
    if kind in ("array", "delayed"):
        for same in (clone(c), bind(c, persisted(KINDS["delayed"][0]))):
            assert listed(same.compute(scheduler="sync")) == listed(same.compute(scheduler=mobula.dask.get)) == want


def test_nothing_that_only_looks_fetches_the_value(node: Any) -> None:
    ref = mobula.remote(forever).remote()
    n = Persisted("k", ref)
    assert n.copy() == n == n.substitute({}) and hash(n) == hash(n.copy()) and n.substitute({}, key="other").key == "other"
    assert n != Persisted("other", ref) and repr(n) == f"Persisted({ref!r})" and sys.getsizeof(n) and not n.dependencies
    assert dask.base.tokenize(n) == dask.base.tokenize(n.copy()) and copy.deepcopy(n) is n and plan({"k": n}, "k").given == {"k": ref}
    mobula.cancel(ref)


def test_errors_are_those_of_the_task(node: Any) -> None:
    def fail() -> None:
        raise KeyError("this one")

    c = persisted(lambda: dask.delayed(fail)())
    for scheduler in ("threads", "sync", mobula.dask.get):
        for late in (c, dask.delayed(inc)(c)):
            with pytest.raises(KeyError, match="this one"):
                late.compute(scheduler=scheduler)


def test_arrays_are_writable(node: Any) -> None:
    c = persisted(lambda: da.ones(1 << 20, chunks=1 << 20))
    a = c.compute(scheduler="sync")
    a[0] = 2
    assert c.compute(scheduler="sync")[0] == 1


def test_after_its_node_is_gone(binary: str, node: Any) -> None:
    mobula.shutdown()
    try:
        with mobula.init(num_cpus=1, object_store_memory=64 << 20):
            made = {kind: persisted(KINDS[kind][0]) for kind in KINDS}
        for again in (False, True):
            if again:
                mobula.init(num_cpus=1, object_store_memory=64 << 20)
            for kind, c in made.items():
                for scheduler in ("threads", "sync", "processes", mobula.dask.get_sync, *([mobula.dask.get] if again else [])):
                    for late in (c, KINDS[kind][2](c)):
                        with pytest.raises(x.ShutdownError, match="which was persisted, is gone .*: persist it again"):
                            late.compute(scheduler=scheduler, num_workers=1)
                repr(c)
                with pytest.raises(x.ShutdownError, match="was persisted"):
                    pickle.dumps(c)
    finally:
        mobula.shutdown()
        mobula.init(num_cpus=2, object_store_memory=64 << 20)
