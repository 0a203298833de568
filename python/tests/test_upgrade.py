"""A node of this release with the directory, the programs and the pickles of the release before. record_release.py makes the files in testdata."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tarfile
import tempfile
from typing import Any, Iterator

import pytest
from conftest import Kept
from mininode import MiniNode
from waiting import PATIENCE

import mobula
from mobula._version import RELEASE
from mobula._wire import messages as m
from mobula._wire.conn import dial
from mobula.exceptions import VersionError
from mobula.util import state

BEFORE, PROTOCOL = "0.8", 7
OLDEST = 6  # protocol that a node understands
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
        k = Kept(binary, base, "--moved")  # it was elsewhere when it was recorded
        try:
            yield k
        finally:
            mobula.shutdown()
            k.kill()


def test_a_detached_actor_of_the_release_before_goes_on(upgraded: Kept) -> None:
    for life in range(2):  # in the second the directory is of this release
        with mobula.init(upgraded.address, namespace="upgrade") as c:
            estate = mobula.get_actor("estate")
            assert mobula.get(estate.total.remote(2), timeout=PATIENCE) == ("left to you", 1002.0), life
            assert mobula.get(estate.total.remote(3), timeout=PATIENCE) == ("left to you", 1003.0)
            assert mobula.get(estate.calls.remote(), timeout=PATIENCE) == 2  # of this life: the constructor ran again
            (row,) = state.list_actors([("name", "=", "estate")])
            assert (row["job"], row["state"], row["detached"]) == ("1", "ALIVE", True)
            assert c.job_id > 1 and not mobula.status().get("lost")
        upgraded.kill()
        upgraded.start()


# A program of the release before: values in messages and in the store, tasks, a retry, an error, a stream, actors, a wait. A package refuses a
# node of another release, since requests and graphs have no version. The package is told that it is of the node's release, so that its frames are
# tested.
PROGRAM = """
import json, os, sys
import mobula
from mobula.util import state
import numpy as np

@mobula.remote
def add(a, b):
    return a + b

@mobula.remote(max_retries=2, retry_exceptions=True)
def flaky(path):
    with open(path, "a") as f:
        f.write("x")
    if os.path.getsize(path) < 3:
        raise OSError("not yet")
    return os.path.getsize(path)

@mobula.remote
def fails():
    raise KeyError("k")

@mobula.remote
def count(n):
    for i in range(n):
        yield np.full(50_000, i)

@mobula.remote
def inner(x):
    return mobula.get(add.remote(x, 1))

@mobula.remote
class Counter:
    def __init__(self, n):
        self.n = n

    def inc(self, by):
        self.n += by
        return self.n

with mobula.init(sys.argv[1], namespace="both") as c:
    said = {"package": mobula.__file__, "protocol": mobula._runtime.client().welcome.version}
    big = mobula.put(np.ones(1_000_000))
    said["task"] = mobula.get(add.remote(add.remote(1, 2), 3))
    said["array"] = float(mobula.get(add.remote(big, big)).sum())
    said["nested"] = mobula.get(inner.remote(1))
    said["retried"] = mobula.get(flaky.remote(sys.argv[1] + ".flaky"))
    try:
        mobula.get(fails.remote())
    except KeyError as x:
        said["error"] = x.args[0]
    said["stream"] = [int(mobula.get(ref)[0]) for ref in count.remote(3)]
    counter = Counter.remote(10)
    said["actor"] = mobula.get([counter.inc.remote(i) for i in range(3)])
    ready, rest = mobula.wait([add.remote(i, i) for i in range(4)], num_returns=4)
    said["wait"] = sorted(mobula.get(ready))
    said["theirs"] = mobula.get(mobula.get_actor("of this release").inc.remote(5))
    ours = Counter.options(name="of the release before", lifetime="detached").remote(100)
    said["listed"] = state.get_task(ready[0].task_id())["state"]
    print(json.dumps(said))
"""


@pytest.fixture
def package(tmp_path: Any) -> str:
    """The Python package of the release before."""
    unpack("package", tmp_path)
    return str(tmp_path)


def old(package: str, address: str, release: str) -> subprocess.CompletedProcess[str]:
    """Runs the program with the package of the release before, which takes itself for one of the release that is named."""
    version = pathlib.Path(package, "mobula", "_version.py")
    said, changed = re.subn(r'^RELEASE = ".*"', f'RELEASE = "{release}"', version.read_text(), flags=re.M)
    assert changed == 1
    version.write_text(said)
    env = {**os.environ, "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-c", PROGRAM, address], env=env, cwd=package, capture_output=True, text=True, timeout=PATIENCE)


class Counter:
    def __init__(self, n: int) -> None:
        self.n = n

    def inc(self, by: int) -> int:
        self.n += by
        return self.n


def test_a_program_of_the_release_before_joins(kept: Kept, package: str) -> None:
    """Its driver and its workers speak the protocol of that release, and programs of both releases call each other's actors."""
    with mobula.init(kept.address, namespace="both"):
        ours = mobula.remote(Counter).options(name="of this release").remote(0)
        ran = old(package, kept.address, RELEASE)
        assert ran.returncode == 0, ran.stderr
        said = json.loads(ran.stdout.splitlines()[-1])
        assert said == {
            "package": os.path.join(package, "mobula", "__init__.py"), "protocol": PROTOCOL, "task": 6, "array": 2_000_000.0, "nested": 2,
            "retried": 3, "error": "k", "stream": [0, 1, 2], "actor": [10, 11, 13], "wait": [0, 2, 4, 6], "theirs": 5, "listed": "FINISHED"}
        assert mobula.get(ours.inc.remote(1)) == 6
        theirs = mobula.get_actor("of the release before")
        assert mobula.get(theirs.inc.remote(1), timeout=PATIENCE) == 101  # its worker is of the release before
        mobula.kill(theirs)


def test_a_package_of_another_release_than_the_node_names_both(kept: Kept, package: str) -> None:
    ran = old(package, kept.address, "0.3.9")
    assert ran.returncode == 1 and f"is Mobula {RELEASE}, this package is mobula 0.3.9: use a package and" in ran.stderr


def test_a_program_of_two_releases_before_is_refused(kept: Kept) -> None:
    with pytest.raises(VersionError, match=f"the client speaks versions 2 to 3, this node {OLDEST} to {m.VERSION}: use binaries at most one release apart"):
        dial(kept.address, m.Hello(role=m.DRIVER, version=3, min_version=2))


def test_what_the_release_before_has_pickled_is_read(mini: MiniNode) -> None:
    """Functions and classes that pickles name stay where they are."""
    recorded = json.loads((DATA / f"pickles-{BEFORE}.json").read_text())
    assert len(recorded) >= 20
    for name, data in recorded.items():
        x = pickle.loads(base64.b85decode(data))
        assert name in (type(x).__name__, f"{getattr(x, '__module__', '')}.{getattr(x, '__qualname__', '')}")
