"""Which module of the package may import which. Imports inside functions and under TYPE_CHECKING count too."""

from __future__ import annotations

import ast
import functools
import pathlib
from typing import Iterator, Mapping, Optional

import pytest

import mobula

ROOT = pathlib.Path(mobula.__file__).parent

# The layers, lowest first: a module imports what is in its own and in those below. A package stands for all that is in it.
LAYERS = (
    ("_version", "_exception_parts", "_said", "exceptions", "_ids", "_interrupts", "_callables", "_initialized", "_callbacks", "_containers", "_html"),
    ("_wire",),
    ("_sampling", "_safefs", "_segment", "_callsites", "_value"),
    ("_labels", "_node"),
    ("_client",),
    ("_runtime", "_trace"),
    ("_refs", "_logging", "_recording", "_otel"),
    ("_functions", "_options", "_stored"),
    ("_api",),
    ("_call", "_graphs", "_resolve"),
    ("_executor", "_worker"),
    ("_template", ""),
    ("util", "dask", "distributed", "__main__"),
)
Graph = Mapping[str, set[str]]


def modules(root: pathlib.Path) -> dict[str, pathlib.Path]:
    """By their names below the package, whose own is empty."""
    found = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, tree: ast.AST, package: bool, known: Mapping[str, object]) -> Iterator[str]:
    """The modules of the package that a module imports, anywhere in it."""
    at = ["mobula", *name.split(".")] if name else ["mobula"]
    for node in ast.walk(tree):
        wanted = []
        if isinstance(node, ast.Import):
            wanted = [a.name.split(".") for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = at[:len(at) - node.level + package] if node.level else []
            base = above + (node.module.split(".") if node.module else [])
            wanted = [base + [a.name] if ".".join((base + [a.name])[1:]) in known else base for a in node.names]
        for path in wanted:
            below = ".".join(path[1:])
            if path[0] == "mobula" and below != name:
                assert below in known, f"{name} imports {'.'.join(path)}, which is not there"
                yield below


@functools.cache
def graph() -> Graph:
    known = modules(ROOT)
    return {name: set(imported(name, ast.parse(path.read_text()), path.name == "__init__.py", known)) for name, path in known.items()}


def circle(g: Graph) -> Optional[list[str]]:
    """Modules that import one another in a circle, if there are such."""
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> Optional[list[str]]:
        if name in path:
            return path[path.index(name):]
        if name in done:
            return None
        for other in sorted(g[name]):
            if (found := walk(other, [*path, name])) is not None:
                return found
        done.add(name)
        return None

    return next((found for name in sorted(g) if (found := walk(name, [])) is not None), None)


def layer(name: str) -> int:
    return next(n for n, names in enumerate(LAYERS) if name.partition(".")[0] in names)


def upward(g: Graph) -> list[str]:
    """The imports that go up."""
    return [f"{name or 'mobula'} imports {other or 'mobula'}" for name, others in g.items() for other in others if layer(other) > layer(name)]


def test_no_modules_import_one_another() -> None:
    assert circle(graph()) is None


def test_no_module_imports_one_above_it() -> None:
    assert upward(graph()) == []


@pytest.mark.parametrize("text, circles, up", [
    ("def f() -> None:\n    from .._api import get\n", True, "_client.pin imports _api"),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .client import Client\n", True, ""),
    ("import mobula.dask\n", True, "_client.pin imports dask"),
    ("from ..distributed._keys import token\n", False, "_client.pin imports distributed._keys"),
])
def test_what_is_forbidden_is_found(text: str, circles: bool, up: str) -> None:
    g = dict(graph())
    g["_client.pin"] = g["_client.pin"] | set(imported("_client.pin", ast.parse(text), False, g))
    assert (circle(g) is not None, upward(g)) == (circles, [up] if up else [])
