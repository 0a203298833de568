"""Graphs of delayed calls, in the form in which Dask passes them to a scheduler."""

from __future__ import annotations

from typing import Any

import pytest

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from dask.delayed import delayed  # noqa: E402

from mobula.dask._annotations import notes_of  # noqa: E402
from mobula.dask._delayed import culled  # noqa: E402
from mobula.dask._get import get_sync  # noqa: E402
from mobula.dask._plan import normal  # noqa: E402


def inc(x: Any) -> Any:
    return x + 1


def total(xs: Any) -> Any:
    return sum(xs)


def given(*collections: Any) -> tuple[Any, Any]:
    """What compute gives its scheduler."""
    seen = []

    def scheduler(dsk: Any, keys: Any, **_: Any) -> Any:
        seen.append((dsk, keys))
        return get_sync(dsk, keys)

    dask.compute(*collections, scheduler=scheduler)
    return seen[0]


@pytest.mark.parametrize("collections", [
    lambda: [delayed(inc)(1)],
    lambda: [delayed(inc)(i) for i in range(20)],
    lambda: [delayed(total)([delayed(inc)(delayed(inc)(i)) for i in range(5)]), delayed(inc)(7)],
    lambda: [delayed(inc)(1), da.ones(8, chunks=4) + 1],
], ids=["one", "many", "nested", "beside an array"])
def test_culling_leaves_what_dask_leaves(collections: Any) -> None:
    dsk, keys = given(*collections())
    theirs = dict(dsk.__dask_graph__())
    ours = culled(dsk)
    assert ours is not dsk
    assert normal(ours).keys() == normal(theirs).keys()
    assert repr(get_sync(ours, keys)) == repr(get_sync(theirs, keys))


def test_what_nobody_wants_is_culled() -> None:
    first, second = delayed(lambda: (1, 2), nout=2)()
    first.dask.layers["unwanted"] = second.dask.layers[second.key]
    assert second.key in first.dask.to_dict()
    dsk, _ = given(first)
    assert second.key not in normal(culled(dsk))
    assert normal(culled(dsk)).keys() == normal(dsk.__dask_graph__()).keys()


def test_annotations_of_culled_calls() -> None:
    with dask.annotate(priority=3, retries=2):
        x = delayed(inc)(1)
    dsk, _ = given(delayed(inc)(x), delayed(inc)(5))
    notes = notes_of(culled(dsk), {})
    assert notes is not None and (notes.of(x.key).priority, notes.of(x.key).retries) == (3, 2)
    assert [k for k in normal(culled(dsk)) if notes.of(k) is not None] == [x.key]


def test_what_is_not_of_calls_stays_as_it_is() -> None:
    dsk, _ = given(da.ones(4, chunks=2).sum())
    assert culled(dsk) is dsk
    graph = {"a": 1}
    assert culled(graph) is graph
    with dask.config.set({"optimization.fuse.delayed": True}):
        dsk, _ = given(delayed(inc)(1))
        assert culled(dsk) is dsk


def test_culling_looks_at_each_call_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask looks at all wanted keys once for each call."""
    from mobula.dask import _delayed

    looked = 0
    needed = _delayed._needed

    def counted(tasks: Any, wanted: Any) -> Any:
        nonlocal looked
        looked += len(tasks)
        return needed(tasks, wanted)

    dsk, _ = given(*[delayed(inc)(i) for i in range(300)])
    monkeypatch.setattr(_delayed, "_needed", counted)
    monkeypatch.setattr("dask.highlevelgraph.Layer.cull", lambda *a: pytest.fail("a layer was culled by itself"))
    assert len(normal(culled(dsk))) == 300 and looked == 300
