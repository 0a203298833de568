"""Finalisers that use an Executor, or futures of mobula.distributed, in the midst of either."""

from __future__ import annotations

from typing import Any, Callable

from helpers_of_cuts import Stops, places
from mininode import MiniNode

from mobula import _executor, _runtime
from mobula._call import Caller


def test_garbage_that_has_an_executor(mini: MiniNode, seed: int) -> None:
    """The finaliser of an executor took a lock that submitting and settling calls hold."""
    calls = _executor._Calls(Caller(_runtime.client(), {"num_returns": 1}), 1)
    submit = lambda: calls.submit(len, ([],), {}, "len")  # noqa: E731
    most = places(submit, True)
    ended: list[Any] = []
    for at in range(1, most + 1, 3):
        Stops(lambda: ended.append(submit()), [at], True).run(submit)
    Stops(lambda: calls.close(True), [places(submit, True) // 2], True).run(lambda: ended.append(_tried(submit)))
    assert calls._closed and len(ended) > 10


def _tried(f: Callable[[], Any]) -> Any:
    try:
        return f()
    except RuntimeError as x:
        return x


def test_futures_whose_garbage_looks_at_them(mini: MiniNode) -> None:
    """The state that futures of package distributed share, and as_completed."""
    from mobula.distributed import Client, as_completed

    with Client() as client:
        ready = client.scatter(list(range(20)))
        coming = as_completed(ready)

        def look() -> None:
            coming.count(), [f.add_done_callback(lambda f: None) for f in ready[:2]], client.scatter(1)

        f = lambda: [next(coming), coming.update(ready[:1])]  # noqa: E731
        for at in range(1, places(f, True, "distributed") + 1, 2):
            coming = as_completed(ready)
            Stops(look, [at], True, "distributed").run(f)
        assert {x for _, x in as_completed(ready, with_results=True)} == set(range(20))
