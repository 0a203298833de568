"""This process' pins on one stored object."""

from __future__ import annotations

from .._wire.messages import Extent


class Pin:
    """The n pins that the node has given this process, shared by its readers (users)."""

    __slots__ = ("id", "extent", "users", "n")

    def __init__(self, id: bytes, extent: Extent) -> None:
        self.id = id
        self.extent = extent
        self.users = 0
        self.n = 0
