"""Resolving the names of functions for callers in other languages."""

from __future__ import annotations

import os.path
import sys
from typing import Any

import helpers_of_go
import pytest
from waiting import PATIENCE

import mobula
from mobula import _functions, _resolve
from mobula.exceptions import UnknownFunctionError


def test_a_name_is_the_longest_module_and_what_follows() -> None:
    assert _resolve.resolve_name("builtins.len") is len
    assert _resolve.resolve_name("os.path.join") is os.path.join
    assert _resolve.resolve_name("helpers_of_go.Tally.add") is helpers_of_go.Tally.add
    assert _resolve.resolve_name("helpers_of_go.Tally") is helpers_of_go.Tally
    assert _resolve.resolve_name("helpers_of_go.mean") is helpers_of_go.mean.__wrapped__  # not what makes it remote
    assert isinstance(helpers_of_go.mean, mobula.RemoteFunction)


@pytest.mark.parametrize("name,says", [
    ("no.such.thing", "no module 'no' in the path"), ("alone", "no module 'alone'"),
    ("os.path.nothing", r"module posixpath has no 'nothing'; it has .*abspath"),
    ("helpers_of_go.Tally.nothing", "Tally has no 'nothing'; it has add, items, pid"), ("math.pi", "math's pi is a float")])
def test_names_that_mean_nothing(name: str, says: str) -> None:
    with pytest.raises(UnknownFunctionError, match=says):
        _resolve.resolve_name(name)


def test_a_module_that_fails_is_not_one_that_is_not_there(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "needs_more.py").write_text("import no_such_module_at_all\n")
    (tmp_path / "is_broken.py").write_text("1/0\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        _resolve.resolve_name("needs_more.f")
    with pytest.raises(ZeroDivisionError):
        _resolve.resolve_name("is_broken.f")
    sys.modules.pop("needs_more", None)


def test_names_on_the_wire() -> None:
    assert _functions.split_name("py:a.b:00ff") == ("a.b", "00ff") and not _functions.by_name("py:a.b:00ff")
    assert _functions.split_name("py:a.b") == ("a.b", "") and _functions.by_name("py:a.b")
    for name in ("math/add", "py:", ""):
        with pytest.raises(UnknownFunctionError):
            _functions.split_name(name)


def test_what_a_program_left_behind_does_not_wait_for_it(binary: str, request: Any) -> None:
    """A detached actor is back soon after a kill of its node, though the process that made it, and left, goes on."""
    kept = request.getfixturevalue("kept")
    with mobula.init(kept.address, namespace="n"):
        made = mobula.remote(helpers_of_go.Tally).options(name="left", lifetime="detached", max_restarts=-1, max_task_retries=-1).remote(0)
        assert mobula.get(made.add.remote(1), timeout=PATIENCE) == 1
        del made
    with mobula.init(kept.address, namespace="n"):
        found = mobula.get_actor("left", "n")
        for n in range(2, 5):  # the results are let go of, with the next call at the latest: no call runs again when the node is back
            assert mobula.get(found.add.remote(1), timeout=PATIENCE) == n
        kept.kill()
        kept.start()
        assert mobula.get(found.add.remote(1), timeout=25) == 1  # of the constructor's new life; a driver is waited for 35 s
