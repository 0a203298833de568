"""The workloads: what they declare, and that ours run."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from waiting import PATIENCE

from peers import cli, environment, native, workload

ALL = workload.load()
SMALL = ["task-sync", "task-async", "tasks-100k", "chain", "tree", "actor-sync", "async-actor-sync", "actor-async", "actor-concurrent",
         "async-actor", "async-actor-arg", "actor-1-to-2", "actor-2-to-2", "actor-2-to-2-arg", "async-actor-1-to-2", "async-actor-2-to-2",
         "actor-create", "tasks-2-clients", "put-2-clients", "put-2-clients-80m", "put-1k", "get-1k", "get-10k-refs", "get-10k-refs-task",
         "put-1g", "get-1g", "wait-1000", "cold-start", "broadcast", "broadcast-gil", "dask-100k"]


PACKAGES = ("numpy", "pandas", "dask", "ray", "mobula", "cloudpickle")


def test_every_file_is_listed() -> None:
    files = {p.stem for p in (environment.HERE / "workloads").glob("*.py")} - {"__init__"}
    assert files == set(workload.FILES)


def test_names_are_unique() -> None:
    assert len({w.name for w in ALL}) == len(ALL)


@pytest.mark.parametrize("w", ALL, ids=lambda w: w.name)
def test_a_workload_is_declared_well(w: workload.Workload) -> None:
    assert next(iter(w.systems)) == workload.OURS
    assert {workload.OURS} < {workload.project(s) for s in w.systems} <= set(native.SYSTEMS if w.native else environment.PROJECTS)
    assert set(w.quick) <= set(w.full)
    for m in (*w.metrics, *([w.peak] if w.peak else [])):
        assert set(m.wants) <= set(w.systems)


def test_the_harness_needs_no_packages() -> None:
    program = "import sys; from peers import cli, workload; workload.load(); print([m for m in %r if m in sys.modules])"
    env = {**os.environ, "PYTHONPATH": str(environment.HERE.parent)}
    done = subprocess.run([sys.executable, "-c", program % (PACKAGES,)], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_versions_are_pinned_and_the_same() -> None:
    versions: dict[str, set[str]] = {}
    for p in environment.PROJECTS:
        for line in (environment.HERE / "requirements" / f"{p}.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                name, _, version = line.partition("==")
                assert re.fullmatch(r"[\w.]+", version), line
                versions.setdefault(name, set()).add(version)
    assert {n: v for n, v in versions.items() if len(v) != 1} == {}
    assert {"ray", "dask", "distributed", "numpy", "pandas", "pyarrow", "xarray"} <= versions.keys()


@pytest.mark.parametrize("argv, said", [
    (["no-such"], "there is no workload 'no-such'"), (["--systems", "spark"], "none of the workloads has a system 'spark'"),
    (["--repetitions", "0"], "0: want 1 or more"), (["--timeout", "soon"], "invalid float value"),
])
def test_bad_arguments_are_named(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        cli.main(argv)
    assert e.value.code == 2
    assert said in capsys.readouterr().err


def test_help_names_every_workload_and_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert "examples:" in text
    for w in ALL:
        assert f"  {w.name} " in text
        assert not w.group or f"\n  {w.group} " in text


@pytest.mark.parametrize("name", SMALL)
def test_ours_runs(name: str, tmp_path: pathlib.Path) -> None:
    """On the environment of these tests, which has the SDK; its executable is in MOBULA_BINARY."""
    env = {**os.environ, "PYTHONPATH": str(environment.HERE.parent), "TMPDIR": str(tmp_path), "PEERS_STARTED": "0"}
    argv = [sys.executable, "-m", "peers.child", name, "mobula", "--quick"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    w = next(w for w in ALL if w.name == name)
    assert figures.keys() == {m.name for m in w.metrics}
    assert all(x > 0 for x in figures.values())


@pytest.fixture(scope="session")
def actorbench(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    if not shutil.which("go"):
        pytest.skip("there is no go to build actorbench with")
    program = tmp_path_factory.mktemp("bin") / "actorbench"
    env = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", program, "./benchmarks/actorbench"], cwd=environment.ROOT, env=env, check=True)
    return program


@pytest.mark.parametrize("w", [w for w in ALL if w.native], ids=lambda w: w.name)
def test_rows_of_actorbench_have_their_figures(w: workload.Workload, actorbench: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "PROGRAM", actorbench)
    native.check()
    for run in w.systems.values():
        assert run({**w.full, **w.quick}).keys() == {m.name for m in w.metrics}


def test_actorbench_is_missed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "PROGRAM", tmp_path / "none")
    with pytest.raises(environment.EnvironmentFailed, match="make bench-peers"):
        native.check()


def test_versions_of_actorbench() -> None:
    ours, theirs = native.versions(native.SYSTEMS)
    assert ours.startswith("mobula ") and re.fullmatch(r"protoactor-go v\S+", theirs)
