"""The owner gives back exactly the credit that a client was charged. Otherwise the client would in the end wait for ever."""

from __future__ import annotations

from typing import Any

from cluster import cluster, until  # noqa: F401

import mobula
from mobula import _runtime


def test_puts_with_references_leave_the_credit_as_it_was(cluster: Any) -> None:
    credit = _runtime.client().credit
    refs = [mobula.put(i) for i in range(500)]
    until(lambda: credit.left is not None)
    window = credit.left
    assert window is not None
    for _ in range(4000):  # a difference of 4 bytes a reference would be 8 MB
        mobula.put(refs)
    until(lambda: credit.left is not None and credit.left > window - window // 8 - (1 << 20))
