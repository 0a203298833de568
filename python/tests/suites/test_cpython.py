"""CPython's own tests of executors, with ours."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Iterator

import pytest

import mobula
from suites import bring

if not bring.is_here():
    # bring.py, which make python runs, says how they come here.
    if os.environ.get("CI") or os.environ.get("REQUIRE_PYTHON"):
        raise ImportError(f"CPython's test.{bring.NAME} is missing")
    pytest.skip(f"this Python came without test.{bring.NAME}: python tests/suites/bring.py", allow_module_level=True)

if importlib.util.find_spec(f"test.{bring.NAME}") is None:
    sys.path.insert(0, str(bring.PLACE))  # the workers have the same path
    root = bring.NAME
else:
    root = f"test.{bring.NAME}"


def find(name: str) -> Any:
    """A class of the tests, which newer versions have in several modules."""
    for module in ("", ".util", ".executor", ".test_wait", ".test_as_completed", ".test_init"):
        try:
            found = getattr(importlib.import_module(root + module), name, None)
        except ModuleNotFoundError:
            continue
        if found is not None:
            return found
    raise ImportError(f"{root} has no {name}")


class Ours(find("ExecutorMixin")):  # type: ignore[misc]
    executor_type = mobula.Executor


@pytest.fixture(scope="module", autouse=True)
def node(binary: str) -> Iterator[None]:
    with mobula.init(num_cpus=2):
        yield


def case(mixin: str) -> type[Any]:
    return type(f"Test{mixin}", (find(mixin), Ours, find("BaseTestCase")), {"__module__": __name__})


TestExecutor = case("ExecutorTest")
TestWait = case("WaitTests")
TestAsCompleted = case("AsCompletedTests")
TestInitializer = type("TestInitializer", (find("InitializerMixin"), Ours, find("BaseTestCase")), {"__module__": __name__})
