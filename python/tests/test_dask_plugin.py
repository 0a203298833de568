"""The pytest plugin: a session whose tasks did not run in worker processes fails."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from waiting import PATIENCE

pytest.importorskip("dask")

COMPUTES = """
import dask.array as da
def test_sum():
    assert da.ones(100, chunks=10).sum().compute(scheduler="threads") == 100
"""
IN_DRIVER = COMPUTES + """
def test_in_the_driver():
    from mobula import _runtime
    from mobula.dask import _record
    _record.Recorder(_runtime.client().welcome.job_dir).note(b"t" * 20, _record.OK)
"""
UNRECORDED = COMPUTES + """
def test_nobody_wrote_it_down():
    import os, pathlib
    from mobula import _runtime
    from mobula.dask import _record
    files = list(pathlib.Path(_runtime.client().welcome.job_dir, _record.FOLDER).iterdir())
    assert files
    for f in files:
        os.truncate(f, 0)
"""
NO_END = COMPUTES + """
def test_the_node_says_nothing():
    from types import SimpleNamespace
    from mobula.dask import _ship
    tally = _ship.observers[0].__self__
    for stopped in (True, False):
        tally.graphs.append((SimpleNamespace(task=b"g" * 20, stopped=stopped, summary=lambda: None), 7))
"""
FAILS = COMPUTES + """
def test_fails():
    assert da.zeros(10, chunks=5).sum().compute() == 1
"""


@pytest.mark.parametrize("text, code, says", [
    (COMPUTES, 0, "1 computations, "),
    ("def test_nothing(): pass", 1, "no computation came"),
    (IN_DRIVER, 1, "1 tasks ran in the process of the tests"),
    (UNRECORDED, 1, "workers wrote down 0"),
    (NO_END, 1, "mobula: graph 6767676767676767676767676767676767676767: the scheduler says nothing of its 7 tasks"),
    (FAILS, 1, "2 computations, "),
])
def test_sessions(binary: str, tmp_path: pathlib.Path, text: str, code: int, says: str) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(text)
    env = {**os.environ, "MOBULA_BINARY": binary, "MOBULA_DASK_STORE": str(64 << 20)}
    ended = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "mobula.dask.pytest_plugin", "-p", "no:cacheprovider", str(path)],
                           cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == code and says in ended.stdout, ended.stdout + ended.stderr
