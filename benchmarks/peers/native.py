"""Runs rows of actorbench, a program of Go: Mobula's Go API, protoactor-go, and floors."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Mapping, Sequence

from .environment import ROOT, EnvironmentFailed, versions as of_projects
from .workload import OURS

PROGRAM = ROOT / "bin" / "actorbench"
PROTOACTOR = "protoactor"
FLOOR = "floor"
SYSTEMS = (OURS, PROTOACTOR, FLOOR)


def check() -> None:
    """Raises if the program is not there."""
    if not os.access(PROGRAM, os.X_OK):
        raise EnvironmentFailed(f"{PROGRAM} is not there: make bench-peers makes it")


def figures(row: str, system: str, quick: bool) -> Mapping[str, float]:
    """The figures of a run, by metric."""
    done = subprocess.run([str(PROGRAM), *["-quick"] * quick, row, system], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    return {str(k): float(v) for k, v in found.items()}


def versions(systems: Sequence[str]) -> list[str]:
    """The versions of the systems, but for the floors, which are this program."""
    out = []
    if OURS in systems:
        out += of_projects([OURS])
    if PROTOACTOR in systems:
        found = re.search(r"protoactor-go (\S+)", (ROOT / "go.mod").read_text())
        out.append(f"protoactor-go {found[1] if found else 'of unknown version'}")
    return out
