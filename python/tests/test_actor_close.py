"""The close hook of Python actors."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Iterator

import cloudpickle
import pytest
from waiting import until

import mobula
from mobula.util import state

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


class Notes:
    def __init__(self, path: str) -> None:
        self.path = path
        self.note("made")

    def note(self, what: str) -> str:
        with open(self.path, "a") as f:
            f.write(what + "\n")
        return what

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def close(self) -> None:
        self.note("closed")


class Async(Notes):
    async def later(self, what: str) -> str:
        return self.note(what)

    async def close(self) -> None:  # type: ignore[override]
        self.note("closed")


class Door(Notes):
    def close(self, softly: bool) -> None:  # type: ignore[override]  # needs an argument: no hook
        self.note("shut")


def noted(path: Path, want: list[str]) -> None:
    until(lambda: path.exists() and path.read_text().split() == want)


@pytest.mark.parametrize("cls", [Notes, Async])
def test_an_actor_is_closed_when_its_last_handle_goes(node: Any, tmp_path: Path, cls: Any) -> None:
    path = tmp_path / "n"
    a = mobula.remote(cls).remote(str(path))
    assert mobula.get(a.note.remote("one")) == "one"
    del a
    noted(path, ["made", "one", "closed"])


def test_an_actor_with_threads_is_closed_after_their_calls(node: Any, tmp_path: Path) -> None:
    path = tmp_path / "n"
    a = mobula.remote(max_concurrency=4)(Notes).remote(str(path))
    assert mobula.get([a.note.remote("one") for _ in range(8)]) == ["one"] * 8
    del a
    noted(path, ["made"] + ["one"] * 8 + ["closed"])


def test_an_actor_is_closed_with_its_job_and_node(binary: str, tmp_path: Path) -> None:
    path = tmp_path / "n"
    with mobula.init(num_cpus=1):
        a = mobula.remote(Notes).remote(str(path))
        mobula.get(a.note.remote("one"))
    noted(path, ["made", "one", "closed"])


def test_a_kill_and_a_crash_close_nothing(node: Any, tmp_path: Path) -> None:
    killed, crashed = tmp_path / "k", tmp_path / "c"
    a, b = mobula.remote(Notes).remote(str(killed)), mobula.remote(Notes).remote(str(crashed))
    mobula.get([a.note.remote("one"), b.note.remote("one")])
    mobula.kill(a)
    with pytest.raises(mobula.exceptions.ActorDiedError):
        mobula.get(b.die.remote())
    with pytest.raises(mobula.exceptions.ActorDiedError):
        mobula.get(a.note.remote("late"))
    door = tmp_path / "d"
    c = mobula.remote(Door).remote(str(door))
    mobula.get(c.note.remote("one"))
    del c
    last = tmp_path / "l"
    d = mobula.remote(Notes).remote(str(last))
    del d
    noted(last, ["made", "closed"])
    noted(killed, ["made", "one"])
    noted(crashed, ["made", "one"])
    noted(door, ["made", "one"])


class Slow:
    """Its close hook goes on until a file is there."""

    def __init__(self, path: str, who: int) -> None:
        self.path, self.who = path, who

    def one(self) -> int:
        return self.who

    def close(self) -> None:
        with open(self.path + ".closing", "w"):
            pass
        until(lambda: os.path.exists(self.path))


@pytest.mark.parametrize("get", [True, False])
def test_the_name_of_an_actor_that_is_ending_is_waited_for(node: Any, tmp_path: Path, get: bool) -> None:
    """Whoever takes what there is does not get the one that is ending."""
    path = str(tmp_path / "go on")
    slow = mobula.remote(Slow).options(name="slow", num_cpus=0)
    a = slow.remote(path, 1)
    assert mobula.get(a.one.remote()) == 1
    del a
    until(lambda: os.path.exists(path + ".closing"))
    made: list[Any] = []
    maker = threading.Thread(target=lambda: made.append(slow.options(get_if_exists=get).remote(path, 2)))
    maker.start()
    until(lambda: len(state.list_actors([("name", "=", "slow")])) == 2, "the next one waits for the name")
    assert not made
    open(path, "w").close()
    maker.join()
    assert mobula.get(made[0].one.remote()) == 2


@pytest.mark.parametrize("get", [True, False])
def test_a_name_is_free_once_the_last_handle_is_gone(node: Any, tmp_path: Path, get: bool) -> None:
    path = str(tmp_path / "go on")
    open(path, "w").close()
    slow = mobula.remote(Slow).options(name="slow", num_cpus=0, get_if_exists=get)
    for i in range(30):
        a = slow.remote(path, i)
        assert mobula.get(a.one.remote()) == i
        del a
