"""A pytest plugin for joblib's own tests: wherever they are parametrised over backends, ours is one of them.

    cd python && PYTHONPATH=tests pytest -p suites.joblib_plugin --pyargs joblib.test.test_parallel

What exclusions.toml names is expected to fail, and must.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
import tomllib
from typing import Any, Iterator

import pytest

from mobula.util.joblib import register_mobula

register_mobula()  # before their tests are imported, which list the backends

# Where a backend comes with more: its rows for ours.
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "test_nested_parallel_warnings": [("mobula", "mobula", False), ("mobula", "threading", False),
                                      ("threading", "mobula", False)],
    "test_multiple_generator_call_separated_gc": [("mobula", False)],
}


def excluded() -> dict[str, str]:
    with open(pathlib.Path(__file__).with_name("exclusions.toml"), "rb") as f:
        return dict(tomllib.load(f).get("joblib", {}))


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: Any) -> None:
    marks = metafunc.definition.own_markers
    for i, mark in enumerate(marks):
        if mark.name != "parametrize":
            continue
        names, values, *rest = mark.args
        values = list(values)
        if "backend" in names and "," not in names and "loky" in values and "mobula" not in values:
            values.append("mobula")
        elif "backend" in names and "," in names:
            values += ROWS.get(metafunc.function.__name__, [])
        marks[i] = pytest.mark.parametrize(names, values, *rest, **mark.kwargs).mark


@pytest.hookimpl(tryfirst=True)  # before -k takes some out
def pytest_collection_modifyitems(items: list[Any]) -> None:
    reasons = excluded()
    for item in items:
        why = reasons.pop(item.name, None)
        if why is not None:
            item.add_marker(pytest.mark.xfail(reason=why, strict=True))
    if reasons:
        raise pytest.UsageError(f"exclusions.toml names tests that do not exist: {', '.join(reasons)}")


@pytest.fixture(scope="session", autouse=True)
def scripts() -> Iterator[None]:
    """The programs that the tests start know our backend too."""
    with tempfile.TemporaryDirectory(prefix="mobula-joblib-") as folder:
        program = "from mobula.util.joblib import register_mobula\n\nregister_mobula()\n"
        pathlib.Path(folder, "sitecustomize.py").write_text(program)
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = folder if before is None else os.pathsep.join([folder, before])
        yield
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
