"""A progress bar for references."""

from __future__ import annotations

from typing import Any, Iterable

from .._api import wait
from .._refs import ObjectRef

_LOOK = 0.1  # seconds between looks


def progress(refs: Iterable[ObjectRef[Any]], desc: str = "", **options: Any) -> list[ObjectRef[Any]]:
    """Waits until all of the objects are ready, with a value or an error, and shows a progress bar. Returns the references as a list.

        values = mobula.get(progress([f.remote(x) for x in xs], desc="f"))

    The bar is that of tqdm.auto, a widget in a notebook. options are those of tqdm.
    """
    from tqdm.auto import tqdm

    refs = list(refs)
    rest = list(dict.fromkeys(refs))
    with tqdm(total=len(rest), desc=desc or None, **options) as bar:
        while rest:
            ready, rest = wait(rest, num_returns=len(rest), timeout=_LOOK)
            bar.update(len(ready))
    return refs


__all__ = ["progress"]
