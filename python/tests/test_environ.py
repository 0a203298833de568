"""Workers have the driver's environment, and none of the node's."""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import Optional

import pytest
from waiting import PATIENCE

import mobula
from mobula import _node

SECRET, OURS = "MOBULA_TEST_SECRET_OF_NODE", "MOBULA_TEST_OURS"


def _get(name: str) -> Optional[str]:
    return os.environ.get(name)


class Reader:
    def get(self, name: str) -> Optional[str]:
        return os.environ.get(name)


def test_workers_have_the_drivers_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="mobula-") as dir:
        node = subprocess.Popen([_node.binary(), "start", "--until-stdin-closes", f"--dir={dir}/n", "--cpus=2", "--store-size=16MiB", f"--store-dir={dir}"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, SECRET: "aws"})
        try:
            assert node.stdout is not None and node.stdout.readline()
            monkeypatch.setenv(OURS, "driver")  # as it is now, not as the process was started
            mobula.init(f"{dir}/n")
            try:
                ask = mobula.remote(_get)
                reader = mobula.remote(Reader).remote()
                for name, is_ in ((SECRET, None), (OURS, "driver"), ("PATH", os.environ["PATH"])):
                    assert mobula.get(ask.remote(name)) == is_
                    assert mobula.get(reader.get.remote(name)) == is_
            finally:
                mobula.shutdown()
        finally:
            assert node.stdin is not None
            node.stdin.close()
            node.wait(PATIENCE)
