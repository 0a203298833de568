"""Tests run in processes of xdist, or in pytest itself."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from waiting import PATIENCE


def test_which_the_next_one_runs() -> None:
    pass


@pytest.mark.parametrize("n, apart", [("0", False), ("1", False), ("2", True)])
def test_there_is_no_single_process_beside_pytest(n: str, apart: bool) -> None:
    pytest.importorskip("xdist")
    args = ["-v", "-p", "no:cacheprovider", "-n", n, "--dist", "loadfile", f"{__file__}::{test_which_the_next_one_runs.__name__}"]
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}  # of the process that runs this one
    said = subprocess.run([sys.executable, "-m", "pytest", *args], cwd=pathlib.Path(__file__).parents[1], env=environ, capture_output=True,
                          text=True, timeout=PATIENCE).stdout
    assert "1 passed" in said and ("[gw" in said) == apart, said
