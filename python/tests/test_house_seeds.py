"""Tests draw from a seed that is the same in every run: that of the fixture seed, or a number. internal/lint holds Go's tests to the same."""

from __future__ import annotations

import ast
import pathlib
from typing import Iterator

import pytest
import seeds

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What makes a source of its own, if it is given a seed: by module. Everything else of these modules draws from one that all share.
_NUMPYS = {"default_rng", "RandomState", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "Generator"}
MAKERS = {"random": {"Random"}, "numpy.random": _NUMPYS, "dask.array.random": {"default_rng", "RandomState", "Generator"}}

# What is another number at each run.
CLOCKS = ("time.time", "time.monotonic", "time.perf_counter", "datetime.datetime.now", "datetime.datetime.utcnow", "os.urandom", "secrets.", "uuid.")

GLOBAL = "draws from a source without a seed: use random.Random(seed) or np.random.default_rng(seed), with the fixture seed"
CLOCK = "a seed that is another one at each run: use the fixture seed"


class _File:
    """Finds what draws without a seed."""

    def __init__(self, tree: ast.AST) -> None:
        self.tree = tree
        self.names: dict[str, str] = {}  # of what is imported
        for n in ast.walk(tree):
            if isinstance(n, ast.Import):
                for a in n.names:
                    self.names[a.asname or a.name.partition(".")[0]] = a.name if a.asname else a.name.partition(".")[0]
            elif isinstance(n, ast.ImportFrom) and n.module and not n.level:
                self.names.update({a.asname or a.name: f"{n.module}.{a.name}" for a in n.names})
            elif isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name):  # np = pytest.importorskip("numpy")
                match n.value:
                    case ast.Call(func=ast.Attribute(attr="importorskip"), args=[ast.Constant(value=str(module)), *_]):
                        self.names[n.targets[0].id] = module

    def path(self, n: ast.AST) -> str:
        """The name of what an expression names: of modules only."""
        if isinstance(n, ast.Attribute):
            of = self.path(n.value)
            return of and f"{of}.{n.attr}"
        return self.names.get(n.id, "") if isinstance(n, ast.Name) else ""

    def of_clock(self, n: ast.AST) -> bool:
        return any(self.path(x).startswith(CLOCKS) for x in ast.walk(n))

    def found(self) -> Iterator[tuple[int, str]]:
        for n in ast.walk(self.tree):
            match n:
                case ast.Call(func=f, args=args, keywords=keywords):
                    given = [*args, *(k.value for k in keywords)]
                    module, _, name = self.path(f).rpartition(".")
                    if name in MAKERS.get(module, ()):
                        if not given or all(isinstance(a, ast.Constant) and a.value is None for a in given):
                            yield n.lineno, f"{module}.{name} {GLOBAL}"
                        elif any(self.of_clock(a) for a in given):
                            yield n.lineno, CLOCK
                    elif any(k.arg in ("seed", "random_state") and self.of_clock(k.value) for k in keywords):
                        yield n.lineno, CLOCK
                case ast.Attribute() | ast.Name():
                    module, _, name = self.path(n).rpartition(".")
                    if module in MAKERS and name not in MAKERS[module]:
                        yield n.lineno, f"{module}.{name} {GLOBAL}"
                case ast.Assign(targets=[ast.Name(id=to)], value=value) if "seed" in to.lower() and self.of_clock(value):
                    yield n.lineno, CLOCK


def test_tests_draw_from_a_seed() -> None:
    files = [*(ROOT / "python/tests").rglob("*.py"), *(ROOT / "benchmarks/peers/tests").rglob("*.py")]
    files = [f for f in files if "testdata" not in f.parts]
    assert len(files) > 70
    wrong = [f"{f.relative_to(ROOT)}:{line}: {what}" for f in files for line, what in _File(ast.parse(f.read_bytes())).found()]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "source",
    [
        "import random; random.Random(7).random()",
        "import random\ndef f(r: random.Random) -> None: r.shuffle([])",
        "import numpy as np; np.random.default_rng([1, 2]).integers(0, 3)",
        "np = pytest.importorskip('numpy'); np.random.default_rng(seed=3)",
        "import dask.array as da; da.random.default_rng(1).random(3)",
        "import time; begun = time.time()",
        "import uuid; name = uuid.uuid4()",
    ],
)
def test_what_has_a_seed_may_draw(source: str) -> None:
    assert not list(_File(ast.parse(source)).found())


@pytest.mark.parametrize(
    ("source", "want"),
    [
        ("import random; random.shuffle([])", "random.shuffle"),
        ("import random as r; r.seed(1)", "random.seed"),
        ("from random import choice; choice([1])", "random.choice"),
        ("import random; random.Random()", "random.Random"),
        ("import random; random.SystemRandom()", "random.SystemRandom"),
        ("import numpy as np; np.random.randint(0, 3)", "numpy.random.randint"),
        ("import numpy; numpy.random.seed(1)", "numpy.random.seed"),
        ("from numpy import random; random.rand()", "numpy.random.rand"),
        ("np = pytest.importorskip('numpy'); np.random.default_rng()", "numpy.random.default_rng"),
        ("import numpy as np; np.random.default_rng(None)", "numpy.random.default_rng"),
        ("import dask.array as da; da.random.random(3)", "dask.array.random.random"),
        ("import random, time; random.Random(time.time_ns())", CLOCK),
        ("import os, random; random.Random(os.urandom(8))", CLOCK),
        ("import datetime; seed = datetime.datetime.now().microsecond", CLOCK),
        ("import time; frame.sample(3, random_state=int(time.time()))", CLOCK),
    ],
)
def test_what_has_none_is_named(source: str, want: str) -> None:
    found = [what for _, what in _File(ast.parse(source)).found()]
    assert len(found) == 1 and found[0].startswith(want), found


def test_a_seed_is_of_its_test_and_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(seeds.VARIABLE, raising=False)
    one, other = seeds.of("one"), seeds.of("other")
    assert one == seeds.of("one") != other
    monkeypatch.setenv(seeds.VARIABLE, "7")
    assert seeds.of("one") not in (one, other)
    monkeypatch.setenv(seeds.VARIABLE, "many")
    with pytest.raises(AssertionError, match="takes a whole number"):
        seeds.of("one")
