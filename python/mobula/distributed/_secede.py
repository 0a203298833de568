"""secede, rejoin and worker_client: tasks that give up their CPU and go on."""

from __future__ import annotations

import contextlib
from typing import Iterator

from .. import _runtime
from .._api.state import request
from .._client import TaskContext
from ..exceptions import InvalidError
from ._client import Client, get_client


def secede() -> None:
    """Gives up the CPU of the running task, and in a graph its slot. The task goes on in its worker, beside the tasks that get them.

    Use it before a long wait for something other than a future: waiting for a future gives up the CPU by itself. InvalidError outside a
    task, and in a coroutine.
    """
    task = _task("secede")
    if not task.seceded:
        task.seceded = True
        _tell(task, False)
        task.block()


def rejoin() -> None:
    """Undoes secede: waits until the task has a CPU again. InvalidError if the task has not seceded."""
    task = _task("rejoin")
    if not task.seceded:
        raise InvalidError("rejoin: the task has not seceded")
    task.unblock()
    task.seceded = False
    _tell(task, True)


@contextlib.contextmanager
def worker_client(timeout: object = None, separate_thread: bool = True) -> Iterator[Client]:
    """A client for use inside a task. In the with block the task has seceded, unless separate_thread is False. timeout is accepted and does
    nothing."""
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
