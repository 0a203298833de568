"""The plan of a run: tests, scheduler and versions."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
REPO = HERE.parents[1]

# The plugin of each mode.
MODES = {"baseline": "dask_suite.baseline", "mobula": "mobula.dask.pytest_plugin"}

# Relative to the directory that holds the package dask. The rest of dask/tests is about text, files and the command line.
TARGETS = (
    "dask/array",
    "dask/bag",
    "dask/dataframe",
    "dask/diagnostics",
    *(
        f"dask/tests/test_{name}.py"
        for name in (
            "base", "callbacks", "delayed", "graph_manipulation", "local", "multiprocessing", "order", "task_spec", "threaded",
        )
    ),
)  # fmt: skip

# Packages on whose versions a test's outcome may depend. distributed is here because it must not be installed.
DECISIVE = (
    "bokeh", "cachey", "crick", "dask", "distributed", "fastavro", "fsspec", "h5py", "jinja2", "numba", "numpy", "pandas",
    "psutil", "pyarrow", "pytest", "scipy", "sparse", "sqlalchemy", "tables", "xarray", "zarr",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """Tests and the plugin they run under. Ids are relative to root."""

    root: Path
    targets: tuple[str, ...]
    plugin: str
    timeout: float = 180.0  # seconds for one test with its set-up and tear-down
    grace: float = 120.0  # further seconds until a session that has not ended is killed; also the limit between two tests
    start: float = 600.0  # seconds until a session's first test begins


def of_dask(mode: str, timeout: float) -> Plan:
    """Dask's tests in the installed wheel."""
    spec = importlib.util.find_spec("dask")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"dask is not installed: pip install -r {HERE / 'requirements.txt'}")
    root = Path(spec.submodule_search_locations[0]).parent
    return Plan(root, TARGETS, MODES[mode], timeout)


def versions() -> dict[str, str]:
    """The installed versions on which outcomes depend; of Python only major and minor."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in DECISIVE:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def differences(have: dict[str, str], want: dict[str, str]) -> list[str]:
    """The differences between versions, one line each; empty if outcomes can be compared."""
    return [
        f"{name} {have.get(name, 'none')} instead of {want.get(name, 'none')}"
        for name in sorted(have.keys() | want.keys())
        if have.get(name) != want.get(name)
    ]
