"""Collects the tests' ids."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from dask_suite.plan import Plan
from dask_suite.session import LOG, arguments, environment

LIMIT = 600.0  # seconds


class CollectionError(Exception):
    """pytest could not collect the tests."""


def collect(plan: Plan) -> list[str]:
    """The ids of the plan's tests, in pytest's order. It loads the plan's plugin, so that its errors show up here."""
    with tempfile.TemporaryDirectory(prefix="suite-") as place:
        args = [*arguments(plan), "-p", plan.plugin, "--collect-only", "-q", *(str(plan.root / t) for t in plan.targets)]
        p = subprocess.run(args, capture_output=True, text=True, cwd=place, env=environment(Path(place)), timeout=LIMIT)
    ids = [line for line in p.stdout.splitlines() if "::" in line and not line.startswith(("ERROR ", " "))]
    if p.returncode != 0 or not ids:
        output = (p.stdout + p.stderr)[-LOG:]
        raise CollectionError(f"pytest ended with status {p.returncode} when it collected the tests:\n{output}")
    return ids
