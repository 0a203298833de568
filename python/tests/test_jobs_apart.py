"""Programs of two jobs can read each other's objects, but not write to them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Iterator

import helpers_of_jobs as h
import numpy as np
import pytest
from waiting import PATIENCE

import mobula

_KEEPER = """
import sys, mobula, helpers_of_jobs as h
mobula.init(sys.argv[1], namespace="n")
keeper = mobula.remote(h.Keeper).options(name="keeper").remote()
mobula.get(keeper.mapped.remote())
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def keeper(kept: Any) -> Iterator[Any]:
    """An actor of another program's job."""
    env = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    p = subprocess.Popen([sys.executable, "-c", _KEEPER, kept.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert p.stdout is not None and p.stdin is not None
    try:
        assert p.stdout.readline() == b"ready\n"
        mobula.init(kept.address, namespace="n")
        yield mobula.get_actor("keeper", "n")
    finally:
        mobula.shutdown()
        p.stdin.close()
        p.wait(PATIENCE)
        p.stdout.close()


@mobula.remote
def spoil(a: Any, value: int) -> int:
    assert (a == value).all()
    return h.overwrite(value)


def test_neither_has_a_file_of_the_other(keeper: Any) -> None:
    ref = keeper.make.remote(h.MARK)
    assert (mobula.get(ref, timeout=PATIENCE) == h.MARK).all()
    theirs, ours = mobula.get(keeper.mapped.remote(), timeout=PATIENCE), h.mapped()
    assert theirs and ours and not set(theirs) & set(ours)


def test_what_another_job_made_is_read_and_not_written(keeper: Any) -> None:
    ref = keeper.make.remote(h.MARK)
    held = mobula.get(ref, timeout=PATIENCE)
    with pytest.raises(ValueError, match="read-only"):
        held[0] = 1
    assert mobula.get(spoil.remote(ref, h.MARK), timeout=PATIENCE) > 0  # its own job's copy, which the test writes for good
    assert mobula.get(keeper.same.remote(ref, h.MARK), timeout=PATIENCE)
    again = keeper.make.remote(h.MARK)  # and what comes after is whole on both sides
    assert (mobula.get(again, timeout=PATIENCE) == h.MARK).all() and mobula.get(keeper.same.remote(again, h.MARK), timeout=PATIENCE)


def test_what_is_handed_over_stays_as_it_is(keeper: Any) -> None:
    value = h.MARK + 1
    ref = mobula.put(np.full(h.N, value))
    held = mobula.get(ref)
    assert mobula.get(keeper.same.remote(ref, value), timeout=PATIENCE)
    assert mobula.get(keeper.overwrite.remote(value), timeout=PATIENCE) > 0  # all that the other job can reach
    assert (held == value).all()
    assert mobula.get(spoil.remote(ref, value), timeout=PATIENCE) > 0  # within the job processes trust one another
    assert not (held == value).all()
