"""Records what dask.order gives, for the tests of package order. Run by hand:

    python3 -m venv venv
    venv/bin/pip install -r graph/order/testdata/requirements.txt
    venv/bin/python graph/order/testdata/record.py

with Python 3.11 or later, in some minutes. It writes, beside itself:

    suite.jsonl.gz        every call of order() that dask's tests/test_order.py makes
    suite-tests.json      every test of that file: its outcome and how many calls it made
    collections.jsonl.gz  graphs of arrays, dataframes, bags and delayed values
    random.jsonl.gz       random graphs, from a seed

Where dask goes through a set, its order, and often its result, follows from the hashes of the
keys. So the recorded order is that of dask's own code with one thing changed: sets are gone
through by str(key). Each graph is ordered by the unchanged code too, under several hash seeds; where
those all give what is recorded, the record says "settled". Elsewhere it has the most results that
had to be held at once, by dask.order.diagnostics, under each of those.

dask's tests run twice, with the unchanged order() and with the one recorded: both pass what they
assert, so a program that gives the recorded order does too.
"""

import ast
import gzip
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import types
from collections import Counter

SEEDS = [0, 1, 2, 3, 4, 5, 6, 7]
VERSION = "2026.8.0"
HERE = pathlib.Path(__file__).parent

if os.environ.get("PYTHONHASHSEED") is None:
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import dask  # noqa: E402
import dask.core  # noqa: E402
import dask.order  # noqa: E402
from dask._task_spec import DataNode, DependenciesMapping, Task, TaskRef  # noqa: E402
from dask.core import istask  # noqa: E402

assert dask.__version__ == VERSION, dask.__version__
unchanged = dask.order.order


class Steady(set):
    """A set that is gone through by str(key)."""

    def __iter__(self):
        return iter(sorted(set.__iter__(self), key=str))

    def pop(self):
        first = next(iter(self))
        self.remove(first)
        return first

    def __hash__(self):
        return hash(frozenset(set.__iter__(self)))

    def __and__(self, other):
        return Steady(set.__and__(self, other))

    def __sub__(self, other):
        return Steady(set.__sub__(self, other))

    def difference(self, *others):
        return Steady(set.difference(self, *others))

    def copy(self):
        return Steady(self)


class SteadyDependencies(DependenciesMapping):
    def __getitem__(self, key):
        return Steady(DependenciesMapping.__getitem__(self, key))


def steady_reverse(d):
    out = {}
    for k, deps in d.items():
        out.setdefault(k, Steady())
        for dep in deps:
            out.setdefault(dep, Steady()).add(k)
    return out


class ToSteady(ast.NodeTransformer):
    def visit_SetComp(self, node):
        self.generic_visit(node)
        inner = ast.GeneratorExp(node.elt, node.generators)
        return ast.copy_location(ast.Call(ast.Name("set", ast.Load()), [inner], []), node)

    def visit_Set(self, node):
        self.generic_visit(node)
        inner = ast.List(node.elts, ast.Load())
        return ast.copy_location(ast.Call(ast.Name("set", ast.Load()), [inner], []), node)


def make_steady():
    source = pathlib.Path(dask.order.__file__).read_text()
    tree = ast.fix_missing_locations(ToSteady().visit(ast.parse(source)))
    module = types.ModuleType("steady_order")
    module.__dict__.update(set=Steady, frozenset=Steady)
    exec(compile(tree, "steady_order", "exec"), module.__dict__)
    module.DependenciesMapping = SteadyDependencies
    module.reverse_dict = steady_reverse
    return module.order


steady = make_steady()


# A graph as it is recorded: names, dependencies by number, and a letter for each of its kind:
# r is run, p is plain, o comes from outside.


def describe(dsk):
    dsk = dict(dsk)
    deps = DependenciesMapping(dsk)
    keys = list(dsk)
    outside = sorted({d for k in keys for d in deps[k] if d not in dsk}, key=str)
    number = {k: i for i, k in enumerate(keys + outside)}
    names = [str(k) for k in number]
    assert len(set(names)) == len(names), "two keys have one name"
    graph = {
        "names": names,
        "deps": [sorted(number[d] for d in deps[k]) for k in keys] + [[] for _ in outside],
        "kinds": "".join("r" if istask(dsk[k]) else "p" for k in keys) + "o" * len(outside),
    }
    return graph, keys


def nothing(*_):
    pass


def build(graph):
    """The graph for dask, with names for keys."""
    names, dsk = graph["names"], {}
    for name, deps, kind in zip(names, graph["deps"], graph["kinds"]):
        deps = [names[d] for d in deps]
        if kind == "r":
            dsk[name] = Task(name, nothing, *(TaskRef(d) for d in deps))
        elif kind == "p":
            dsk[name] = deps if deps else DataNode(name, None)
    return dsk


class Hangs(Exception):
    pass


def limited(seconds, f, *args, **kwargs):
    def stop(*_):
        raise Hangs

    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return f(*args, **kwargs)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


def record(graph):
    """Adds the order to a graph. It gives what went wrong, if that was no cycle."""
    dsk = build(graph)
    try:
        stats = limited(60, steady, dsk, return_stats=True) if dsk else {}
    except RuntimeError as e:
        assert "Cycle detected" in str(e)
        graph["cycle"] = True
        return None
    except (IndexError, AssertionError, KeyError, Hangs) as e:
        return type(e).__name__
    names = graph["names"]
    graph["order"] = [stats[n].priority if n in stats else -1 for n in names]
    lists = [i for i, n in enumerate(names) if n in stats and stats[n].critical_path == -1]
    if lists:
        graph["lists"] = sorted(lists, key=lambda i: -graph["order"][i])
    return None


def held(graph, order):
    """The most results that are held at once."""
    names = graph["names"]
    if "o" in graph["kinds"] or len(set(order)) < len(order):
        return None
    _, pressure = dask.order.diagnostics(build(graph), dict(zip(names, order)))
    return max(pressure)


def probe(path):
    """Under this process' hash seed: is the order what was recorded, and else, how good is it?"""
    with open(path) as f:
        for line in f:
            graph = json.loads(line)
            if "order" not in graph or not graph["names"]:
                print("null")
                continue
            try:
                got = limited(60, unchanged, build(graph))
            except (IndexError, AssertionError, KeyError, Hangs) as e:
                print(json.dumps(type(e).__name__))
                continue
            order = [got.get(n, -1) for n in graph["names"]]
            print("true" if order == graph["order"] else json.dumps([held(graph, order)]))


def settle(graphs):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        for graph in graphs:
            f.write(json.dumps(graph) + "\n")
        f.flush()
        runs = []
        for seed in SEEDS:
            env = dict(os.environ, PYTHONHASHSEED=str(seed))
            out = subprocess.run(
                [sys.executable, __file__, "--probe", f.name], env=env, check=True, stdout=subprocess.PIPE, text=True
            ).stdout
            runs.append([json.loads(line) for line in out.splitlines()])
    for graph, *found in zip(graphs, *runs, strict=True):
        if "order" not in graph:
            continue
        if all(x is True or x is None for x in found):
            graph["settled"] = True
        else:
            mine = held(graph, graph["order"])
            graph["held"] = [x[0] if isinstance(x, list) else mine if x is True else None for x in found]


def write(name, graphs):
    settle(graphs)
    with open(HERE / name, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as f:
        for graph in graphs:
            f.write(json.dumps(graph, separators=(",", ":")).encode() + b"\n")
    print(
        name,
        len(graphs), "graphs,",
        sum(len(g["names"]) for g in graphs), "tasks,",
        sum("settled" in g for g in graphs), "settled,",
        sum("cycle" in g for g in graphs), "cycles,",
        (HERE / name).stat().st_size, "bytes",
    )


# dask's own tests


class Suite:
    """Stands in for dask.order.order while dask's tests run."""

    def __init__(self, use):
        self.use = use
        self.test = None
        self.graphs = []
        self.tests = {}

    def order(self, dsk, dependencies=None, *, return_stats=False):
        if not dsk:
            graph, keys = {"names": [], "deps": [], "kinds": ""}, []
        else:
            graph, keys = describe(dsk)
        if self.test is not None:
            call = self.tests[self.test]["calls"]
            self.tests[self.test]["calls"] += 1
            graph = {"of": f"{self.test}#{call}", **graph}
            problem = record(graph)
            assert problem is None, problem
            self.graphs.append(graph)
        if self.use is unchanged or not dsk:
            return unchanged(dsk, dependencies, return_stats=return_stats)
        got = steady(build(graph), return_stats=return_stats)
        return {k: got[n] for k, n in zip(keys, graph["names"])}

    def pytest_runtest_logstart(self, nodeid, location):
        self.test = nodeid.split("::")[-1]
        self.tests[self.test] = {"calls": 0}

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            outcome = report.outcome
            if hasattr(report, "wasxfail"):
                outcome = "xpassed" if report.passed else "xfailed"
            self.tests[self.test]["outcome"] = outcome
            if outcome in ("failed", "skipped"):
                print(self.test, report.longrepr)

    def run(self, file):
        import pytest

        replaced = []
        for module in list(sys.modules.values()):
            if getattr(module, "order", None) is unchanged:
                module.order = self.order
                replaced.append(module)
        sys.modules.pop("test_order", None)
        try:
            pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(file.parent), str(file)], plugins=[self])
        finally:
            for module in replaced:
                module.order = unchanged


def no_drawing():
    """One test draws its graph. What it draws is of no interest here."""
    import dask.dot

    dask.dot.graphviz_to_file = lambda *_, **__: None


def suite():
    import dask.local  # noqa: F401

    no_drawing()
    source = pathlib.Path(dask.order.__file__).parent / "tests" / "test_order.py"
    with tempfile.TemporaryDirectory() as tmp:
        file = pathlib.Path(tmp) / "test_order.py"
        file.write_bytes(source.read_bytes())
        os.chdir(tmp)
        runs = []
        for use in (unchanged, steady):
            runs.append(Suite(use))
            runs[-1].run(file)
        os.chdir(HERE)
    ours, theirs = runs[1], runs[0]
    assert list(ours.tests) == list(theirs.tests)
    for name, test in ours.tests.items():
        was = theirs.tests[name]
        assert test["calls"] == was["calls"], name
        allowed = ("xfailed", "xpassed") if was["outcome"].startswith("x") else ("passed",)
        assert test["outcome"] in allowed, (name, was, test)
        assert was["outcome"] in allowed, (name, was, test)
    with open(HERE / "suite-tests.json", "w") as f:
        json.dump(ours.tests, f, indent=0)
        f.write("\n")
    print(len(ours.tests), "tests,", Counter(t["outcome"] for t in ours.tests.values()))
    write("suite.jsonl.gz", ours.graphs)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--probe"]:
        probe(sys.argv[2])
        sys.exit()
    sys.path.insert(0, str(HERE))
    what = sys.argv[1:] or ["suite", "collections", "random"]
    if "suite" in what:
        suite()
    if "collections" in what:
        from record_collections import graphs

        out = []
        for name, dsk in graphs():
            graph = {"of": name, **describe(dsk)[0]}
            problem = record(graph)
            assert problem is None, (name, problem)
            out.append(graph)
        write("collections.jsonl.gz", out)
    if "random" in what:
        from record_random import graphs

        out, problems = [], Counter()
        for name, graph in graphs(random.Random(20260801)):
            graph = {"of": name, **graph}
            problem = record(graph)
            if problem is None:
                out.append(graph)
            problems[problem] += 1
        print("random graphs on which dask fails:", {k: v for k, v in problems.items() if k})
        write("random.jsonl.gz", out)
