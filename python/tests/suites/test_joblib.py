"""joblib's own tests of Parallel, those with our backend as their parameter; make joblib-suite runs them all."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

from waiting import PATIENCE

TESTS = pathlib.Path(__file__).parents[1]
LEAST = 140  # passed with joblib 1.6.0; fewer would mean that our backend is no parameter any more


def test_parallel_with_our_backend(binary: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "suites.joblib_plugin", "-W", "ignore", "--pyargs",
               "joblib.test.test_parallel", "-k", "mobula"]
    said = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, timeout=5 * PATIENCE,
                          env={**os.environ, "MOBULA_BINARY": binary, "PYTHONPATH": str(TESTS)})
    passed = re.search(r"(\d+) passed", said.stdout)
    assert said.returncode == 0 and passed and int(passed[1]) >= LEAST, said.stdout[-8000:] + said.stderr[-2000:]
