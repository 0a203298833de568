"""The rules of these tests: what bounds a wait is there against hangs alone, and nothing is held by how fast the machine is."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Iterator, NamedTuple, Optional

import pytest
import waiting
from conftest import ROOT

FOLDERS = (ROOT / "python" / "tests", ROOT / "benchmarks" / "peers" / "tests")

BOUND = "a number of seconds bounds a wait: use PATIENCE of waiting.py"
SPEED = "a time is held below a bound: assert an order, a count or a state, wait with until of waiting.py, or measure it in a benchmark"
SLEEP = "a test sleeps until something has happened: wait for that with until of waiting.py"
LIMIT = "a limit of its own does not grow with the patience: leave it out, or take it times TIMES of waiting.py"

# What must stay, by file, function and rule, with the reason.
STAYS = {
    ("test_arrays_outlive.py", "test_after_shutdown_until_the_array_goes", SLEEP): "it is longer than the node waits for a process that has left",
    ("test_bench.py", "workload", BOUND): "a figure in a table",
    ("test_bench.py", "test_a_deadline_proves_no_miss", BOUND): "a figure in a table",
    ("test_dask_suite.py", "test_a_hang_costs_the_test_that_did_it", BOUND): "it expires",
    ("test_dask_suite.py", "test_what_ends_badly_is_tried_again_alone_and_once", BOUND): "it expires",
    ("test_guard.py", "test_a_run_ends_at_its_deadline", BOUND): "it expires",
    ("test_guard.py", "test_shared_memory_files_go_with_the_run", BOUND): "it expires",
    ("test_resolve.py", "test_what_a_program_left_behind_does_not_wait_for_it", BOUND): "it is shorter than the 35 s that a driver is waited for",
    ("test_tasks.py", "test_a_task_that_waits_for_room_keeps_its_cpu", SLEEP): "it is time for what must not come: a slow machine passes",
    ("waiting.py", "until", SPEED): "it is the bound",
}

# The arguments that bound a wait where they have no name, by the method's name.
_PLACES = {"join": 0, "wait": 0, "result": 0, "exception": 0, "poll": 0, "settimeout": 0, "wait_for": 1, "select": 3}
_CLOCKS = {"monotonic", "perf_counter", "time", "monotonic_ns", "perf_counter_ns", "time_ns"}
_IN_TEXT = re.compile(r"timeout=[1-9]|\.(?:join|wait|result)\([1-9][\d.]*\)")  # of a program that a test runs


class Found(NamedTuple):
    function: str
    line: int
    rule: str


class _Rules(ast.NodeVisitor):
    """Finds what the rules refuse in a file."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.functions: list[str] = []
        self.constants: dict[str, float] = {}  # of the module
        self.times: list[set[str]] = [set()]  # names of what clocks said, by function

    def add(self, at: ast.expr, rule: str) -> None:
        self.found.append(Found(self.functions[0] if self.functions else "", at.lineno, rule))

    def number(self, e: Optional[ast.expr]) -> float:
        if isinstance(e, ast.Constant) and type(e.value) in (int, float):
            return e.value  # type: ignore[return-value]
        return self.constants.get(e.id, 0) if isinstance(e, ast.Name) else 0

    def bound(self, e: Optional[ast.expr]) -> None:
        if e is not None and self.number(e) >= 1:
            self.add(e, BOUND)

    def timed(self, e: ast.AST) -> bool:
        """Whether a clock's word is in an expression."""
        return any(
            (isinstance(n, ast.Name) and any(n.id in names for names in self.times))
            or (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and isinstance(n.func.value, ast.Name)
            and n.func.value.id == "time" and n.func.attr in _CLOCKS)
            for n in ast.walk(e))

    def visit_Module(self, node: ast.Module) -> None:
        for s in node.body:
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and self.number(s.value):
                self.constants[s.targets[0].id] = self.number(s.value)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        a = node.args
        named = [*zip([*a.posonlyargs, *a.args][::-1], a.defaults[::-1]), *zip(a.kwonlyargs, a.kw_defaults)]
        for arg, default in named:
            if "timeout" in arg.arg:
                self.bound(default)
        self.functions.append(node.name)
        self.times.append(set())
        self.generic_visit(node)
        self.times.pop()
        self.functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Assign(self, node: ast.Assign) -> None:
        if self.timed(node.value):
            self.times[-1] |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        for k in node.keywords:
            if k.arg == "timeout":
                self.bound(k.value)
        place = _PLACES.get(method, len(node.args))
        self.bound(node.args[place] if place < len(node.args) else None)
        if method == "timeout" and node.args and isinstance(node.args[0], ast.Constant):
            self.add(node, LIMIT)
        if method == "sleep" and len(self.functions) == 1 and self.functions[0].startswith("test_") and self.number(node.args[0]):
            self.add(node, SLEEP)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for k, v in zip(node.keys, node.values):
            if isinstance(k, ast.Constant) and k.value == "timeout":
                self.bound(v)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for less, op, more in zip(sides, node.ops, sides[1:]):
            if isinstance(op, (ast.Gt, ast.GtE)):
                less, more = more, less
            elif not isinstance(op, (ast.Lt, ast.LtE)):
                continue
            if self.timed(less):
                self.add(node, SPEED)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            for line in node.value.splitlines():
                if _IN_TEXT.search(line):
                    self.add(node, BOUND)


def refused(text: str) -> list[Found]:
    rules = _Rules()
    rules.visit(ast.parse(text))
    return rules.found


def files() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (f for f in sorted(folder.rglob("*.py")) if "testdata" not in f.parts and f != Path(__file__))


def test_waits_are_bound_in_one_way_and_nothing_by_speed() -> None:
    found = [(f, r) for f in files() for r in refused(f.read_text())]
    wrong = [f"{f.relative_to(ROOT)}:{r.line}: {r.rule}" for f, r in found if (f.name, r.function, r.rule) not in STAYS]
    assert not wrong, "\n".join(wrong)
    unneeded = STAYS.keys() - {(f.name, r.function, r.rule) for f, r in found}
    assert not unneeded, "these exceptions are not needed any more"


@pytest.mark.parametrize("text, rules", [
    ("mobula.get(ref, timeout=10)", [BOUND]), ("t.join(5)", [BOUND]), ("event.wait(0.5)", []), ("q.get(timeout=PATIENCE)", []),
    ("p.wait(30.0)", [BOUND]), ("', '.join('ab')", []), ("mobula.wait([r], timeout=0.05)", []), ("f.result(60)", [BOUND]),
    ("asyncio.wait_for(f, 20)", [BOUND]), ("select.select([fd], [], [], 10)", [BOUND]), ("sock.settimeout(3)", [BOUND]),
    ("subprocess.run(a, timeout=120)", [BOUND]), ("get(dsk, remote_args={'timeout': 60})", [BOUND]), ("WAIT = 20.0\nq.get(timeout=WAIT)", [BOUND]), ("def until(f, timeout=10.0): pass", [BOUND]),
    ("def until(f, *, timeout: float = 15): pass", [BOUND]), ("run('''\nt.join(5)\nmobula.get(r, timeout=30)\n''')", [BOUND] * 2),
    ("def test_x():\n    begun = time.monotonic()\n    assert time.monotonic() - begun < 2", [SPEED]),
    ("def test_x():\n    begun = time.monotonic()\n    assert 0.1 <= time.monotonic() - begun < 2", [SPEED]),
    ("def test_x():\n    begun = time.monotonic()\n    assert time.monotonic() - begun >= 0.1", []),
    ("def test_x():\n    took = time.perf_counter() - begun\n    assert 3 > took", [SPEED]),
    ("def until(f):\n    end = time.monotonic() + PATIENCE\n    while not f():\n        assert time.monotonic() < end", [SPEED]),
    ("def test_x():\n    time.sleep(0.1)", [SLEEP]), ("def test_x():\n    def slow():\n        time.sleep(0.1)", []),
    ("async def test_x():\n    await asyncio.sleep(0)", []), ("@pytest.mark.timeout(300)\ndef test_x(): pass", [LIMIT]),
    ("@pytest.mark.timeout(1800 * TIMES)\ndef test_x(): pass", []),
])
def test_what_is_refused(text: str, rules: list[str]) -> None:
    assert [r.rule for r in refused(text)] == rules


def test_deadlines_nest() -> None:
    """pytest's limit of a test has room for several waits: one that never ends is told as that."""
    for project in (ROOT / "python", ROOT / "benchmarks" / "peers"):
        limit = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["timeout"]
        config = SimpleNamespace(option=SimpleNamespace(timeout=None), getini={"timeout": str(limit)}.__getitem__)
        waiting.stretch(config)
        assert config.option.timeout == waiting.TIMES * limit and config.option.timeout >= 5 * waiting.PATIENCE
    config.option.timeout = 30.0  # what is said on the command line is meant so
    waiting.stretch(config)
    assert config.option.timeout == 30.0


@pytest.mark.parametrize("said, times", [("", 1), ("2", 2), ("0.5", 0.5), ("100", 100)])
def test_the_environment_multiplies_the_patience(said: str, times: float) -> None:
    assert waiting.times(said) == times


@pytest.mark.parametrize("said", ["0", "-1", "101", "x", "nan", "inf", "2x"])
def test_no_other_patience(said: str) -> None:
    with pytest.raises(ValueError, match="MOBULA_TEST_PATIENCE is '.*': it takes a number above 0, up to 100"):
        waiting.times(said)
