from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Any, Iterator

import pytest

sys.path.insert(0, os.path.dirname(__file__))

import seeds
import sharing
import waiting
from mininode import MiniNode

import mobula

# A shell that runs the tests in the background has them ignore interrupts, which some are about.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    waiting.stretch(config)
    sharing.none_for_one(config)


@pytest.fixture
def mini() -> Iterator[MiniNode]:
    """A stub node with this process as its driver."""
    node = MiniNode()
    try:
        mobula.init(node.path)
        yield node
    finally:
        mobula.shutdown()
        node.close()


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """What a test draws from: made of its name. A test that fails says with which one it ran."""
    made = seeds.of(f"{request.module.__name__}::{request.node.name}")
    print(f"seed {made}: {seeds.VARIABLE}={seeds.run()} runs it again")
    return made


@pytest.fixture(scope="session")
def binary(tmp_path_factory: Any) -> str:
    """The mobula executable: MOBULA_BINARY, or built from this source."""
    said = os.environ.get("MOBULA_BINARY")
    if said:
        return said
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is neither MOBULA_BINARY nor go")
    path = str(tmp_path_factory.mktemp("bin") / "mobula")
    subprocess.run([go, "build", "-o", path, "./cmd/mobula"], cwd=ROOT, check=True, env={**os.environ, "CGO_ENABLED": "0"})
    os.environ["MOBULA_BINARY"] = path
    return path


# Modules whose templates import Dask too.
_WITH_DASK = {"test_dask", "test_dask_options", "test_dask_ship", "test_dask_watched", "test_samples", "test_samples_python", "test_snippets", "test_faults",
              "test_function_refs_dask"}


@pytest.fixture(autouse=True)
def light_templates(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A template imports the packages that its program has imported, and this process imports everything. Templates of most tests import
    NumPy alone, which takes a tenth of the time."""
    if request.module.__name__ not in _WITH_DASK:
        from mobula._api import connecting

        monkeypatch.setattr(connecting, "_PRELOAD", ("numpy",))


class Kept:
    """A node in a process of its own, which can be killed and started again."""

    def __init__(self, binary: str, base: str, *args: str) -> None:
        self.binary = binary
        self.base = base
        self.start(*args)

    def start(self, *more: str) -> None:
        args = [self.binary, "start", "--json", f"--dir={self.base}/n", "--store-size=64MiB", f"--store-dir={self.base}", "--cpus=2", *more]
        with open(f"{self.base}/stderr", "a+b") as said:
            self.process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=said)
            assert self.process.stdout is not None
            line = self.process.stdout.readline()
            assert line, os.pread(said.fileno(), 1 << 16, 0).decode(errors="replace")[-2000:]
        self.address = json.loads(line)["address"]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def kept(binary: str) -> Iterator[Kept]:
    with tempfile.TemporaryDirectory(prefix="mob", ignore_cleanup_errors=True) as base:
        k = Kept(binary, base)
        try:
            yield k
        finally:
            mobula.shutdown()
            k.kill()
