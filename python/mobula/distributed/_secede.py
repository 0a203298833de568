"""Tasks that go on beside those that are counted."""

from __future__ import annotations

import contextlib
from typing import Iterator

from .. import _runtime
from .._api.state import request
from .._client import TaskContext
from ..exceptions import InvalidError
from ._client import Client, get_client


def secede() -> None:
    """Gives up the place of the task that calls it: its CPU is for others from now on, and in a graph it counts as none of those that run.
    The task goes on beside them, in its worker. For one that waits long for something else than a future (a future's result gives the CPU up by
    itself)."""
    task = _task("secede")
    if not task.seceded:
        task.seceded = True
        _tell(task, False)
        task.block()


def rejoin() -> None:
    """Takes a place again, after secede: waits until there is a CPU."""
    task = _task("rejoin")
    if not task.seceded:
        raise InvalidError("rejoin: the task has not seceded")
    task.unblock()
    task.seceded = False
    _tell(task, True)


@contextlib.contextmanager
def worker_client(timeout: object = None, separate_thread: bool = True) -> Iterator[Client]:
    """A client for use in a task; within, the task has seceded, unless separate_thread is False. There is nothing to wait for that takes a
    timeout."""
    if separate_thread:
        secede()
    try:
        yield get_client()
    finally:
        if separate_thread:
            rejoin()


def _task(what: str) -> TaskContext:
    task = _runtime.context(_runtime.client())
    if not task.waits:
        raise InvalidError(f"{what}: this code is run by no task, or by a coroutine, which has no place of its own")
    return task


def _tell(task: TaskContext, back: bool) -> None:
    request("task.secede", {"task": task.task, "parent": task.parent, "back": back})


__all__ = ["rejoin", "secede", "worker_client"]
