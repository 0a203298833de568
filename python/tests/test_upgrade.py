"""A node of this release in the directory of the release before. record_release.py makes the files in testdata."""

from __future__ import annotations

import json
import pathlib
import tarfile
import tempfile
from typing import Any, Iterator

import pytest
from conftest import Kept

import mobula
from mobula.util import state

BEFORE = "0.4"
DATA = pathlib.Path(__file__).parent / "testdata"


def unpack(name: str, to: Any) -> None:
    with tarfile.open(DATA / f"{name}-{BEFORE}.tar.xz") as t:
        t.extractall(to, filter="tar")  # with modes: a node asks for a directory of its user alone


@pytest.fixture
def upgraded(binary: str) -> Iterator[Kept]:
    """A node of this release in a directory that a node of the release before has left. The job's workers run this package, as after an
    installation over the old one."""
    with tempfile.TemporaryDirectory(prefix="mob", ignore_cleanup_errors=True) as base:
        unpack("directory", base)
        description = pathlib.Path(base, "n", "jobs", "1.json")
        d = json.loads(description.read_text())
        program = mobula._api.connecting.program("template")
        d["program"].update(Version=program.version, Args=program.args)
        description.write_text(json.dumps(d))
        k = Kept(binary, base)
        try:
            yield k
        finally:
            mobula.shutdown()
            k.kill()


def test_a_detached_actor_of_the_release_before_goes_on(upgraded: Kept) -> None:
    for life in range(2):  # in the second the directory is of this release
        with mobula.init(upgraded.address, namespace="upgrade") as c:
            estate = mobula.get_actor("estate")
            assert mobula.get(estate.total.remote(2), timeout=60) == ("left to you", 1002.0), life
            assert mobula.get(estate.total.remote(3), timeout=60) == ("left to you", 1003.0)
            assert mobula.get(estate.calls.remote(), timeout=60) == 2  # of this life: the constructor ran again
            (row,) = state.list_actors([("name", "=", "estate")])
            assert (row["job"], row["state"], row["detached"]) == ("1", "ALIVE", True)
            assert c.job_id > 1 and not mobula.status().get("lost")
        upgraded.kill()
        upgraded.start()
