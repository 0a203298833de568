"""The runner of Dask's tests, on small tests of its own: sessions, shards and runs of tests with every outcome."""

from __future__ import annotations

import os
import select
import signal
import textwrap
from pathlib import Path
from typing import Callable

import pytest
from waiting import PATIENCE

from dask_suite import runner, session, shard
from dask_suite.collection import CollectionError, collect
from dask_suite.outcome import Outcome
from dask_suite.plan import Plan
from dask_suite.session import Session, Stop, Stopped
from dask_suite.state import State

# Counts as a scheduler's plugin does: a get a test that passes.
PLUGIN = """
import json, os
gets = 0
def pytest_runtest_logreport(report):
    global gets
    gets += report.when == "call" and report.passed
def pytest_sessionfinish():
    with open(os.environ["MOBULA_DASK_REPORT"], "w") as f:
        json.dump({"gets": gets, "tasks": gets, "executed": gets, "in_driver": 0}, f)
"""

Make = Callable[..., Plan]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A plan for test files given by name and text. What the tests share lies in tmp_path, which they are told as HERE."""
    (tmp_path / "counting.py").write_text(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def plan(timeout: float = PATIENCE, grace: float = PATIENCE, start: float = PATIENCE, plugin: str = "counting", **files: str) -> Plan:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(f"HERE = {str(tmp_path)!r}\n" + textwrap.dedent(text))
        return Plan(tmp_path, tuple(f"{n}.py" for n in files), plugin, timeout, grace, start)

    return plan


def run_shard(plan: Plan, ids: list[str]) -> tuple[dict[str, Outcome], list[Session]]:
    outcomes: list[Outcome] = []
    sessions: list[Session] = []
    shard.run(plan, ids, Stop(), outcomes.append, sessions.append)
    assert len({o.id for o in outcomes}) == len(outcomes), "two outcomes of a test"
    return {o.id: o for o in outcomes}, sessions


def by_name(outcomes: dict[str, Outcome]) -> dict[str, str]:
    return {i.partition("::")[2]: o.outcome for i, o in outcomes.items()}


def test_cut() -> None:
    ids = [str(n) for n in range(301)]
    shards = shard.cut(ids, 100)
    assert [i for s in shards for i in s] == ids
    assert sorted(map(len, shards)) == [75, 75, 75, 76]
    assert shard.cut(ids, 301) == [ids]
    assert shard.cut([], 100) == []


def test_every_outcome(make: Make) -> None:
    plan = make(
        test_kinds="""
        import pytest
        @pytest.fixture
        def broken(): raise RuntimeError("in set-up")
        @pytest.fixture
        def late():
            yield
            raise RuntimeError("in tear-down")
        def test_passed(): pass
        def test_failed(): assert 1 == 2
        def test_skipped(): pytest.skip("why not")
        @pytest.mark.xfail(reason="known")
        def test_xfailed(): assert False
        @pytest.mark.xfail(reason="known")
        def test_xpassed(): pass
        @pytest.mark.xfail(strict=True)
        def test_strict(): pass
        def test_setup(broken): pass
        def test_teardown(late): pass
        @pytest.mark.parametrize("x", ["a::b", "c d", "[e]"])
        def test_names(x): pass
        """
    )
    ids = collect(plan)
    assert len(ids) == 11
    outcomes, sessions = run_shard(plan, ids)
    assert list(outcomes) == ids
    assert by_name(outcomes) == {
        "test_passed": "passed", "test_failed": "failed", "test_skipped": "skipped", "test_xfailed": "xfailed",
        "test_xpassed": "xpassed", "test_strict": "failed", "test_setup": "error", "test_teardown": "error",
        "test_names[a::b]": "passed", "test_names[c d]": "passed", "test_names[[e]]": "passed",
    }  # fmt: skip
    assert "assert 1 == 2" in outcomes["test_kinds.py::test_failed"].text
    assert "why not" in outcomes["test_kinds.py::test_skipped"].text
    assert len(sessions) == 1 and sessions[0].complete
    assert sessions[0].report == {"gets": 6, "tasks": 6, "executed": 6, "in_driver": 0}


def test_only_what_is_asked_for_runs(make: Make, tmp_path: Path) -> None:
    plan = make(
        test_pick="""
        import pytest
        @pytest.mark.parametrize("n", range(4))
        def test_n(n): open(f"{HERE}/ran{n}", "w").close()
        """
    )
    outcomes, _ = run_shard(plan, ["test_pick.py::test_n[1]", "test_pick.py::test_n[3]", "test_pick.py::test_gone"])
    assert by_name(outcomes) == {"test_n[1]": "passed", "test_n[3]": "passed", "test_gone": "missing"}
    assert sorted(p.name for p in tmp_path.glob("ran*")) == ["ran1", "ran3"]


def test_interrupts_work_where_the_run_ignores_them(make: Make) -> None:
    plan = make(
        test_int="""
        import pytest, signal
        def test_a():
            with pytest.raises(KeyboardInterrupt): signal.raise_signal(signal.SIGINT)
        """
    )
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        outcomes, _ = run_shard(plan, ["test_int.py::test_a"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert by_name(outcomes) == {"test_a": "passed"}


def test_a_crash_costs_the_test_that_did_it(make: Make) -> None:
    plan = make(
        test_crash="""
        import os, signal
        def test_a(): pass
        def test_b(): os.kill(os.getpid(), signal.SIGSEGV)
        def test_c(): pass
        def test_d(): os._exit(0)
        def test_e(): pass
        """
    )
    outcomes, sessions = run_shard(plan, collect(plan))
    assert list(by_name(outcomes).values()) == ["passed", "crashed", "passed", "crashed", "passed"]
    assert "SIGSEGV" in outcomes["test_crash.py::test_b"].text
    assert "status 0" in outcomes["test_crash.py::test_d"].text
    assert [s.report is None for s in sessions] == [True, True, False]


def test_a_test_that_leaves_pytest_is_charged(make: Make) -> None:
    plan = make(
        test_exit="""
        import pytest
        def test_a(): pytest.exit("enough")
        def test_b(): pass
        """
    )
    outcomes, _ = run_shard(plan, collect(plan))
    assert by_name(outcomes) == {"test_a": "crashed", "test_b": "passed"}


def test_a_hang_costs_the_test_that_did_it(make: Make) -> None:
    plan = make(
        timeout=1.0,
        test_hang="""
        import threading
        def test_a(): pass
        def test_b(): threading.Event().wait()
        def test_c(): pass
        """,
    )
    outcomes, _ = run_shard(plan, collect(plan))
    assert by_name(outcomes) == {"test_a": "passed", "test_b": "timeout", "test_c": "passed"}
    assert "threading.Event().wait()" in outcomes["test_hang.py::test_b"].text, "where it hung"


def test_a_hang_that_lets_nothing_else_run_is_killed(make: Make) -> None:
    plan = make(
        timeout=0.5,
        grace=1.0,
        test_gil="""
        import ctypes
        def test_a(): ctypes.PyDLL(None).pause()
        def test_b(): pass
        """,
    )
    outcomes, _ = run_shard(plan, collect(plan))
    assert by_name(outcomes) == {"test_a": "timeout", "test_b": "passed"}
    assert "SIGKILL" in outcomes["test_gil.py::test_a"].text


def test_a_session_that_does_not_end_is_killed(make: Make) -> None:
    plan = make(
        grace=1.0,
        test_end="""
        import atexit, threading
        def test_a(): atexit.register(threading.Event().wait)
        """,
    )
    outcomes, sessions = run_shard(plan, collect(plan))
    assert by_name(outcomes) == {"test_a": "passed"}
    assert len(sessions) == 1


def test_a_session_that_closes_the_pipe_is_waited_for(make: Make) -> None:
    plan = make(
        test_pipe="""
        import os
        def test_a(request): os.close(request.config.getoption("--suite-events"))
        def test_b(): pass
        """
    )
    outcomes, sessions = run_shard(plan, collect(plan))
    assert by_name(outcomes) == {"test_a": "crashed", "test_b": "passed"}
    assert len(sessions) == 2


def test_a_file_that_does_not_import_costs_its_tests_alone(make: Make, tmp_path: Path) -> None:
    plan = make(test_good="def test_a(): pass", test_torn="def test_b(): pass")
    ids = collect(plan)
    (tmp_path / "test_torn.py").write_text("import nothing_of_that_name")
    outcomes, _ = run_shard(plan, ids)
    assert by_name(outcomes) == {"test_a": "passed", "test_b": "missing"}
    assert "nothing_of_that_name" in outcomes["test_torn.py::test_b"].text


def test_processes_left_behind_are_ended(make: Make, tmp_path: Path) -> None:
    plan = make(
        test_left="""
        import subprocess, sys
        def test_a():
            p = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
            open(f"{HERE}/pid", "w").write(str(p.pid))
        """
    )
    run_shard(plan, collect(plan))
    try:
        fd = os.pidfd_open(int((tmp_path / "pid").read_text()))
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], PATIENCE)[0], "it runs on"
    finally:
        os.close(fd)


def test_sessions_that_never_reach_a_test(make: Make) -> None:
    plan = make(plugin="no_such_plugin", test_a="def test_a(): pass")
    with pytest.raises(shard.FutileError, match="no_such_plugin"):
        run_shard(plan, ["test_a.py::test_a"])
    with pytest.raises(CollectionError, match="no_such_plugin"):
        collect(plan)


def test_a_start_that_hangs(make: Make) -> None:
    plan = make(start=1.0, test_a="import threading; threading.Event().wait()")
    with pytest.raises(shard.FutileError):
        run_shard(plan, ["test_a.py::test_a"])


def test_the_environment_is_the_same_everywhere(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    monkeypatch.setenv("DASK_SCHEDULER", "sync")
    plan = make(
        test_env="""
        import os, tempfile
        def test_a(tmp_path):
            assert "DASK_SCHEDULER" not in os.environ
            for p in (tempfile.gettempdir(), os.environ["DASK_CONFIG"], str(tmp_path)):
                assert p.startswith(os.getcwd()), p
            open(f"{HERE}/cwd", "w").write(os.getcwd())
        """
    )
    outcomes, _ = run_shard(plan, ["test_env.py::test_a"])
    assert by_name(outcomes) == {"test_a": "passed"}
    assert not os.path.exists((tmp_path / "cwd").read_text()), "its files are gone with it"


def always(o: Outcome) -> bool:
    return True


HANG = """
import threading
def test_a(): pass
def test_b():
    open(f"{HERE}/begun", "a").write("b")
    threading.Event().wait()
"""


def test_stop(make: Make) -> None:
    plan = make(test_stop=HANG)
    stop = Stop()
    outcomes: list[Outcome] = []

    def done(o: Outcome) -> None:
        outcomes.append(o)
        stop.set()

    with pytest.raises(Stopped):
        session.run(plan, collect(plan), done, stop)
    assert [o.outcome for o in outcomes] == ["passed"], "what was running is not charged"
    with pytest.raises(Stopped):
        session.run(plan, collect(plan), done, stop)


COUNTED = """
import pytest
@pytest.mark.parametrize("n", range(10))
def test_n(n): open(f"{HERE}/ran", "a").write(f"{n} ")
"""


def test_a_run_goes_on_where_it_was_stopped(make: Make, tmp_path: Path) -> None:
    plan = make(test_counted=COUNTED)
    ids = collect(plan)
    heard: list[Outcome] = []

    def interrupted(o: Outcome) -> None:
        heard.append(o)
        if len(heard) == 4:
            raise KeyboardInterrupt

    state = State(tmp_path / "state", "mobula", {})
    with pytest.raises(KeyboardInterrupt):
        runner.run(plan, ids, state, jobs=1, size=3, matters=always, tell=interrupted)
    state.close()
    known = set(state.runs)
    assert len(known) == 4
    before = (tmp_path / "ran").read_text().split()

    state = State(tmp_path / "state", "mobula", {})
    assert set(state.runs) == known
    unreported = {i for i in known if state.unreported(i)}
    assert len(unreported) == 1, "the session that was stopped had said nothing yet"
    runner.run(plan, ids, state, jobs=2, size=3, matters=always, tell=heard.append)
    state.close()
    assert set(state.runs) == set(ids) and not any(map(state.unreported, ids))
    assert {v.outcome for v in state.verdicts().values()} == {"passed"}
    later = (tmp_path / "ran").read_text().split()[len(before) :]
    assert sorted(later) == sorted(i[-2] for i in ids if i not in known or i in unreported)


def test_what_ends_badly_is_tried_again_alone_and_once(make: Make, tmp_path: Path) -> None:
    plan = make(
        timeout=1.0,
        test_flaky="""
        import os, pytest, threading
        def count(name):
            with open(f"{HERE}/{name}", "a+") as f:
                f.write("x")
                f.seek(0)
                return len(f.read())
        def test_good(): count("good")
        def test_bad():
            count("bad")
            assert False
        def test_disturbed():
            count("disturbed")
            assert not test_disturbed.others
        test_disturbed.others = []
        def test_flaky(): assert count("flaky") == 2
        def test_crashing():
            if count("crashing") == 1:
                os._exit(1)
        def test_hanging():
            if count("hanging") == 1:
                threading.Event().wait()
        def test_last():
            assert count("last") == 1
        @pytest.fixture(autouse=True)
        def seen(request):
            yield
            test_disturbed.others.append(request.node.name)
        """,
    )
    ids = collect(plan)
    state = State(tmp_path / "state", "mobula", {})
    runner.run(plan, ids, state, jobs=1, size=100, matters=always, tell=lambda o: None)
    verdicts = {i.partition("::")[2]: v for i, v in state.verdicts().items()}
    assert {i: v.outcome for i, v in verdicts.items()} == {
        "test_good": "passed", "test_bad": "failed", "test_disturbed": "passed", "test_flaky": "passed",
        "test_crashing": "passed", "test_hanging": "passed", "test_last": "passed",
    }  # fmt: skip
    assert [i for i, v in verdicts.items() if v.flaky] == ["test_disturbed", "test_flaky", "test_crashing", "test_hanging"]
    state.close()

    state = State(tmp_path / "state", "mobula", {})
    runner.run(plan, ids, state, jobs=1, size=100, matters=always, tell=lambda o: pytest.fail(f"{o} again"))
    state.close()
    ran = {p.name: len(p.read_text()) for p in tmp_path.iterdir() if p.suffix == "" and p.name in {n[5:] for n in verdicts}}
    # The session of the good one died of another: whether it ran where it should, nobody had said.
    assert ran == {"good": 2, "bad": 2, "flaky": 2, "crashing": 2, "hanging": 2, "disturbed": 2, "last": 1}


def test_a_shard_that_leads_nowhere_costs_its_tests_alone(make: Make, tmp_path: Path) -> None:
    plan = make(test_a="def test_a(): pass", test_b="def test_b(): pass")
    ids = collect(plan)
    (tmp_path / "test_b.py").write_text("import os; os._exit(3)")
    state = State(tmp_path / "state", "mobula", {})
    runner.run(plan, ids, state, jobs=1, size=1, matters=always, tell=lambda o: None)
    state.close()
    assert {i: v.outcome for i, v in state.verdicts().items()} == {"test_a.py::test_a": "passed", "test_b.py::test_b": "error"}


def test_a_run_that_leads_nowhere_says_so(make: Make, tmp_path: Path) -> None:
    plan = make(plugin="no_such_plugin", test_a="def test_a(): pass")
    state = State(tmp_path / "state", "mobula", {})
    with pytest.raises(shard.FutileError, match="no_such_plugin"):
        runner.run(plan, ["test_a.py::test_a"], state, jobs=1, size=1, matters=always, tell=lambda o: None)
    state.close()
    assert state.runs == {}


def test_only_what_matters_is_tried_again(make: Make, tmp_path: Path) -> None:
    plan = make(test_a="def test_a(): assert False\ndef test_b(): assert False")
    state = State(tmp_path / "state", "mobula", {})
    runner.run(plan, collect(plan), state, jobs=1, size=9, matters=lambda o: o.id.endswith("b"), tell=lambda o: None)
    state.close()
    assert {i: [r.alone for r in runs] for i, runs in state.runs.items()} == {
        "test_a.py::test_a": [False], "test_a.py::test_b": [False, True],
    }  # fmt: skip
