"""The state file of a run of Dask's tests, and the comparison of two runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dask_suite import __main__, compare, plan, record
from dask_suite.outcome import SEVERITY, Outcome
from dask_suite.plan import Plan
from dask_suite.record import Record
from dask_suite.session import Session
from dask_suite.state import Counts, OtherVersionsError, State, Verdict

VERSIONS = {"python": "3.11", "dask": "1"}
RAN = Counts(gets=3, tasks=5, executed=5, sessions=1)


def report(**counts: Any) -> dict[str, Any]:
    return {"gets": 1, "tasks": 2, "executed": 2, "in_driver": 0} | counts


def test_an_outcome_is_one_of_those_there_are() -> None:
    with pytest.raises(ValueError, match="outcome 'fine' of a::b: want one of passed"):
        Outcome("a::b", "fine", 0.0)


def test_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    s = State(tmp_path / "deep" / "state", "mobula", VERSIONS)
    s.add(Outcome("a", "passed", 0.5))
    s.add(Outcome("b", "failed", 1.0, "why\nnot"))
    s.add(Outcome("b", "crashed", 2.0, "so", alone=True))
    s.ended(Session(s.runs["a"], report=report(gets=7, stopped=1)))
    s.ended(Session(report=None))
    s.close()
    t = State(s.path, "mobula", VERSIONS)
    t.close()
    assert t.runs == s.runs
    assert t.counts == s.counts == Counts(gets=7, tasks=2, executed=2, stopped=1, sessions=2, silent=1)
    assert t.verdicts() == {"a": Verdict("passed", 0.5), "b": Verdict("failed", 1.0, "why\nnot", worst="crashed")}


@pytest.mark.parametrize("torn", [b'{"id": "c", "outc', b"\xff"])
def test_a_last_line_that_is_torn_is_dropped(tmp_path: Path, torn: bytes) -> None:
    s = State(tmp_path / "state", "mobula", VERSIONS)
    s.add(Outcome("a", "passed", 0.5))
    s.close()
    with open(s.path, "ab") as f:
        f.write(torn)
    t = State(s.path, "mobula", VERSIONS)
    assert set(t.runs) == {"a"}
    t.add(Outcome("c", "passed", 0.5))
    t.close()
    u = State(s.path, "mobula", VERSIONS)
    u.close()
    assert set(u.runs) == {"a", "c"}


def test_a_state_that_has_not_even_its_first_line(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b'{"abo')
    s = State(tmp_path / "state", "mobula", VERSIONS)
    s.close()
    assert json.loads(s.path.read_text()) == {"about": {"mode": "mobula", "versions": VERSIONS}}


def test_a_state_of_another_mode_or_versions_is_refused(tmp_path: Path) -> None:
    State(tmp_path / "state", "mobula", VERSIONS).close()
    with pytest.raises(OtherVersionsError, match="mode mobula instead of baseline"):
        State(tmp_path / "state", "baseline", VERSIONS)
    with pytest.raises(OtherVersionsError, match="dask 1 instead of 2; numpy none instead of 3"):
        State(tmp_path / "state", "mobula", {"python": "3.11", "dask": "2", "numpy": "3"})


def test_what_is_tried_again(tmp_path: Path) -> None:
    s = State(tmp_path / "state", "mobula", VERSIONS)
    for o in SEVERITY:
        s.add(Outcome(o, o, 0.0))
    assert [o for o in SEVERITY if s.wants_retry(o)] == ["failed", "error", "crashed", "timeout"]
    s.add(Outcome("failed", "failed", 0.0, alone=True))
    assert not s.wants_retry("failed")
    assert not s.wants_retry("never run")
    s.close()


@pytest.mark.parametrize(
    "wrong, fault",
    [
        (report(executed=1), "a session had 2 tasks and workers ran 1"),
        (report(executed=3), "a session had 2 tasks and workers ran 3"),
        (report(in_driver=1), "a session ran 1 tasks in the driver"),
        (report(wrong=["a graph lost a task"]), "a graph lost a task"),
    ],
)
def test_counts_that_disagree_fail_the_run(wrong: dict[str, Any], fault: str) -> None:
    c = Counts()
    c.add(report())
    c.add(wrong)
    result = compare.compare({}, {}, [], c)
    assert result.faults == [fault] and not result.ok


def test_a_test_of_which_no_session_reported_fails_the_run() -> None:
    passed = {"a": Verdict("passed", 0.0)}
    assert compare.compare(passed, passed, ["a"], RAN).ok
    result = compare.compare(passed, passed, ["a"], RAN, ["a"])
    assert not result.ok and "1 tests ran, as of a:" in result.faults[0]


def test_which_tests_no_session_reported_of(tmp_path: Path) -> None:
    s = State(tmp_path / "state", "mobula", VERSIONS)
    for name, outcome in {"a": "passed", "b": "skipped", "culprit": "timeout", "failed": "failed"}.items():
        s.add(Outcome(name, outcome, 0.0))
    s.ended(Session(s.runs["a"] + s.runs["b"] + s.runs["failed"]))
    assert [i for i in s.runs if s.unreported(i)] == ["a", "b"]
    s.add(Outcome("a", "passed", 0.0))
    s.ended(Session(s.runs["a"][1:], report=report()))
    s.add(Outcome("stopped", "passed", 0.0))  # in a session that was stopped, and has no line
    s.close()
    t = State(s.path, "mobula", VERSIONS)
    t.close()
    assert [i for i in t.runs if t.unreported(i)] == ["b", "stopped"] == [i for i in s.runs if s.unreported(i)]


def test_a_run_that_never_called_our_get_fails() -> None:
    passed = {"a": Verdict("passed", 0.0)}
    result = compare.compare(passed, passed, ["a"], Counts(sessions=1))
    assert not result.ok and "our get" in result.faults[0]


# For each outcome of the baseline, ours that are worse: it fails, is skipped, times out or is missing as that does not.
WORSE = {
    "passed": ["xfailed", "skipped", "failed", "error", "crashed", "timeout", "missing"],
    "xpassed": ["xfailed", "skipped", "failed", "error", "crashed", "timeout", "missing"],
    "xfailed": ["skipped", "failed", "error", "crashed", "timeout", "missing"],
    "skipped": ["failed", "error", "crashed", "timeout", "missing"],
    "failed": ["crashed", "timeout", "missing"],
    "error": ["crashed", "timeout", "missing"],
    "crashed": ["timeout", "missing"],
    "timeout": ["missing"],
    "missing": [],
}


@pytest.mark.parametrize("was", SEVERITY)
def test_worse(was: str) -> None:
    ours = {o: Verdict(o, 0.0, f"text of {o}") for o in SEVERITY}
    result = compare.compare(dict.fromkeys(SEVERITY, Verdict(was, 0.0)), ours, SEVERITY, RAN)
    assert [(w.id, w.baseline, w.ours, w.text) for w in result.worse] == [(o, was, o, f"text of {o}") for o in WORSE[was]]
    assert result.ok == (not WORSE[was])


def test_what_was_flaky_is_held_against_its_worse_end() -> None:
    was = dict.fromkeys("abc", Verdict("passed", 0.0, worst="failed"))
    got = {"a": Verdict("failed", 0.0), "b": Verdict("timeout", 0.0), "c": Verdict("passed", 0.0)}
    assert [w.id for w in compare.compare(was, got, "abc", RAN).worse] == ["b"]


def test_what_was_not_run_is_missing_and_what_is_new_is_named() -> None:
    was = {"a": Verdict("passed", 0.0), "b": Verdict("failed", 0.0), "other": Verdict("passed", 0.0)}
    got = {"a": Verdict("passed", 0.0, worst="failed"), "c": Verdict("failed", 0.0)}
    result = compare.compare(was, got, ["a", "b", "c"], RAN)
    assert [(w.id, w.ours) for w in result.worse] == [("b", "missing")]
    assert result.new == ["c"] and result.flaky == ["a"]
    assert result.faults == ["the baseline does not know 1 tests, as c"]
    assert result.baseline == {"passed": 1, "failed": 1}
    assert result.ours == {"passed": 1, "failed": 1, "missing": 1}
    assert "missing (baseline: failed)  b\n" in compare.text(result)
    assert json.loads(json.dumps(result.to_json()))["worse"] == [{"id": "b", "baseline": "failed", "ours": "missing", "text": ""}]


def test_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    tests = {"b::2": Verdict("passed", 0.123, "", "failed"), "a::1": Verdict("failed", 12.3, "why")}
    record.write(Record(VERSIONS, RAN, tests), tmp_path / "r")
    got = record.read(tmp_path / "r")
    assert (got.versions, got.counts) == (VERSIONS, RAN)
    assert list(got.tests.items()) == [("b::2", Verdict("passed", 0.12, worst="failed")), ("a::1", Verdict("failed", 12.0))]
    first = (tmp_path / "r").read_bytes()
    record.write(Record(VERSIONS, RAN, tests), tmp_path / "r")
    assert (tmp_path / "r").read_bytes() == first


def test_sample() -> None:
    tests = {f"t{n}": Verdict("passed", 5.9) for n in range(1000)}
    one, two = record.sample(tests, 1, 1), record.sample(tests, 2, 1)
    assert len(one) == 10 and len(two) == 20, "of 6 seconds each"
    assert set(one) < set(two), "a longer sample has all of a shorter one"
    assert record.sample(tests, 1, 2) == two, "two at a time"
    assert two == sorted(two, key=lambda i: int(i[1:])), "in order"
    assert two != list(tests)[:20], "from all over"
    assert record.sample({**tests, "x": Verdict("passed", 1.0)}, 1, 1) != [], "whatever else there is"
    assert len(record.sample(tests, 0.001, 1)) == 1
    assert record.sample({}, 1, 1) == []


def test_the_baseline_that_is_kept_is_of_what_is_pinned() -> None:
    kept = record.read(record.PATH)
    text = "".join((place / "requirements.txt").read_text() for place in (plan.HERE, plan.HERE.parent))
    pinned = {name.lower(): version for name, version in re.findall(r"^([\w.-]+)(?:\[.*\])?==(.+)$", text, re.MULTILINE)}
    assert {k: v for k, v in kept.versions.items() if k != "python"} == {k: pinned.get(k, "none") for k in plan.DECISIVE}
    assert kept.versions["distributed"] == "none"
    assert len(kept.tests) > 15_000 and kept.counts.gets > 50_000
    assert "missing" not in compare.count(kept.tests.values())
    for target in plan.TARGETS:
        assert any(i.startswith(target) for i in kept.tests), target


class Command:
    """The command line, over tests and a record of its own."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        self.place, self.capsys = tmp_path, capsys
        (tmp_path / "test_x.py").write_text(
            "import os\ndef test_a(): pass\ndef test_b(): assert os.path.exists(os.environ['FLAG'])\n"
        )
        (tmp_path / "plug.py").write_text(
            "import json, os\ndef pytest_sessionfinish():\n"
            f"    json.dump({report()!r}, open(os.environ['MOBULA_DASK_REPORT'], 'w'))\n"
        )
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setenv("FLAG", str(tmp_path / "flag"))
        monkeypatch.setattr(record, "PATH", tmp_path / "record")
        monkeypatch.setattr(plan, "of_dask", lambda mode, timeout: Plan(tmp_path, ("test_x.py",), "plug", timeout))
        self.flag = tmp_path / "flag"

    def __call__(self, *args: str) -> int:
        try:
            return __main__.main([*args, *(() if "--state" in args else ("--state", str(self.place / "state")))])
        except SystemExit as e:
            return int(e.code or 0)

    def know(self, seconds: float = 0.1, **versions: str) -> None:
        """Puts a baseline there in which all passed."""
        tests = {f"test_x.py::test_{n}": Verdict("passed", seconds) for n in "ab"}
        record.write(Record(plan.versions() | versions, RAN, tests), record.PATH)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Command:
    return Command(tmp_path, monkeypatch, capsys)


def test_command(command: Command) -> None:
    assert command() == 2, "no baseline yet"
    assert "--mode baseline --record" in command.capsys.readouterr().err

    command.flag.touch()
    assert command("--mode", "baseline", "--record", "--state", str(command.place / "baseline")) == 0
    assert "2 passed\n1 gets, 2 tasks" in command.capsys.readouterr().out

    command.flag.unlink()
    assert command("--json") == 1
    result = json.loads(command.capsys.readouterr().out)
    assert [w["id"] for w in result["worse"]] == ["test_x.py::test_b"]
    assert "AssertionError" in result["worse"][0]["text"] or "assert" in result["worse"][0]["text"]
    assert result["tests"] == {"baseline": {"passed": 2}, "ours": {"passed": 1, "failed": 1}}
    assert result["gets"] == 2 and result["sessions"] == {"all": 2, "without a report": 0}, "the test that failed was tried again"

    command.flag.touch()
    assert command("--compare") == 1, "what is known is not run again"
    assert "failed (baseline: passed)  test_x.py::test_b" in command.capsys.readouterr().out
    assert command("--compare", "--only", "test_a") == 0
    assert command("--fresh", "--only", "test_a") == 0
    assert command("--compare") == 1, "test_b is missing now"
    assert command("--sample", "1") == 0


@pytest.mark.filterwarnings("error::tqdm.TqdmWarning")
def test_the_bar_ends_at_its_end(command: Command) -> None:
    command.know(seconds=0.12)  # whose sum, shares and all, is 0.44
    command.flag.touch()
    assert command() == 0


def test_commands_that_make_no_sense(command: Command) -> None:
    assert command("--record") == 2
    assert command("--mode", "baseline", "--record", "--only", "x") == 2
    assert command("--mode", "baseline", "--sample", "1") == 2
    assert command("--mode", "baseline", "--compare") == 2
    assert command("--jobs", "0") == 2
    assert command("--help") == 0
    command.know()
    assert command("--only", "no such test") == 2
    assert command("--only", "(") == 2


def test_a_baseline_of_other_versions_is_refused(command: Command) -> None:
    command.know(dask="0")
    assert command() == 2
    err = command.capsys.readouterr().err
    assert "dask 0 instead of" in err and "--mode baseline --record" in err
