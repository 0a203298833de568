"""Makes a virtual environment for each project on first use, and again when its requirements change."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv
from typing import Callable, Sequence

from .workload import OURS

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / ".cache" / "peers"
BINARY = ROOT / "bin" / "mobula"
PROJECTS = (OURS, "ray", "dask")
OLDEST = (3, 11)
INSTALL_TIMEOUT = 1800.0

Log = Callable[[str], None]


class EnvironmentFailed(Exception):
    """An environment could not be made."""


def python(project: str) -> str:
    """The path of the interpreter in a project's environment."""
    return str(FOLDER / project / "bin" / "python")


def prepare(project: str, log: Log) -> None:
    """Makes the environment, unless it exists and matches its requirements."""
    if sys.version_info < OLDEST:
        found, oldest = sys.version.split()[0], ".".join(map(str, OLDEST))
        raise EnvironmentFailed(f"this is Python {found}, {oldest} is the oldest that will do: name another with PYTHON=")
    if project == OURS and not os.access(BINARY, os.X_OK):
        raise EnvironmentFailed(f"{BINARY} is not there: make build")
    requirements = HERE / "requirements" / f"{project}.txt"
    folder, stamp = FOLDER / project, FOLDER / project / "requirements"
    want = hashlib.sha256(sys.version.encode() + requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == want:
        return
    log(f"{project}: making {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    argv = [python(project), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(requirements)]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=INSTALL_TIMEOUT)
    except subprocess.TimeoutExpired:
        raise EnvironmentFailed(f"{project}: pip was not done in {INSTALL_TIMEOUT:.0f} s: {' '.join(argv)}") from None
    if done.returncode != 0:
        raise EnvironmentFailed(f"{project}: {' '.join(argv)} failed with code {done.returncode}:\n{done.stdout[-2000:]}")
    stamp.write_text(want)


def versions(projects: Sequence[str]) -> list[str]:
    """The versions of the projects' packages, such as "ray 2.60.0"."""
    out = []
    for name in projects:
        if name == OURS:
            found = re.search(r'VERSION = "(.+?)"', (ROOT / "python" / "mobula" / "_version.py").read_text())
        else:
            found = re.search(rf"(?m)^{name}(?:\[.*\])?==(.+)$", (HERE / "requirements" / f"{name}.txt").read_text())
        out.append(f"{name} {found[1] if found else 'of unknown version'}")
    return out


def variables(project: str, scratch: str) -> dict[str, str]:
    """The environment variables of a run's child. Numerical libraries get one thread, so that no system uses more CPUs than it was given."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MOBULA_", "RAY_", "DASK_", "VIRTUAL_ENV"))}
    path = [str(HERE.parent)]
    out = {**keep, "TMPDIR": scratch, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
           "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}
    if project == OURS:
        path.append(str(ROOT / "python"))
        out["MOBULA_BINARY"] = str(BINARY)
    if project == "ray":
        out.update(RAY_USAGE_STATS_ENABLED="0")
    return {**out, "PYTHONPATH": os.pathsep.join(path)}
