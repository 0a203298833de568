"""The order of runs, and what becomes of their figures."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import pytest

from peers import environment, page, table
from peers.bench import Comparison, Plan, Row, compare, turn
from peers.run import Result, result
from peers.guard import Outcome
from peers.workload import PEAK, Metric, Workload

TIME = Metric("time", "s", wants={"ray": 4})
RATE = Metric("rate", "/s", more_is_better=True, wants={"ray": 4})


def nothing(p: Any) -> dict[str, float]:
    return {}


def workload(*metrics: Metric, peak: Metric | None = None) -> Workload:
    return Workload("work", "some work", metrics, {"mobula": nothing, "ray": nothing, "dask": nothing}, peak=peak, timeout=100)


def plan(w: Workload, figures: dict[str, Result], repetitions: int = 3, systems: tuple[str, ...] = (),
         memory: int = 0) -> tuple[Plan, list[tuple[str, bool]]]:
    runs: list[tuple[str, bool]] = []

    def once(_: Workload, system: str, sampled: bool) -> Result:
        runs.append((system, sampled))
        return figures[system]

    return Plan([w], systems, repetitions, memory, once, lambda line: None), runs


def by_system(comparisons: list[Comparison]) -> dict[str, Comparison]:
    return {c.row.system: c for c in comparisons}


def test_systems_take_turns() -> None:
    assert [turn("abc", i) for i in range(4)] == [list("abc"), list("bca"), list("cab"), list("abc")]


def test_runs_with_memory_are_others() -> None:
    figures = {s: Result({"time": 2.0}, peak=7.0) for s in ("mobula", "ray", "dask")}
    p, runs = plan(workload(TIME, peak=Metric("", "MiB")), figures, 1, ("mobula", "ray"), 2)
    rows = [c.row for c in next(p.run())]
    assert runs == [("mobula", False), ("ray", False), ("mobula", True), ("ray", True), ("ray", True), ("mobula", True)]
    assert [(r.metric.name, r.system, r.samples) for r in rows] == [
        ("time", "mobula", [2.0]), ("time", "ray", [2.0]), (PEAK, "mobula", [7.0, 7.0]), (PEAK, "ray", [7.0, 7.0])]


def test_a_ratio_is_how_much_better_ours_is() -> None:
    for metric, ours, theirs in ((TIME, 2.0, 10.0), (RATE, 10.0, 2.0)):
        figures = {s: Result({metric.name: x}) for s, x in (("mobula", ours), ("ray", theirs), ("dask", ours))}
        p, _ = plan(workload(metric), figures)
        got = by_system(next(p.run()))
        assert (got["ray"].ratio, got["ray"].wanted, got["ray"].met) == (5.0, 4, True)
        assert (got["dask"].ratio, got["dask"].wanted, got["dask"].met) == (1.0, None, None)


def test_a_median_is_of_the_runs_that_were_done() -> None:
    rows = [Row("w", TIME, "mobula", [3.0, 1.0, 2.0]), Row("w", TIME, "ray", [6.0, 4.0], ["it failed"])]
    got = compare(rows)
    assert (got[1].ratio, got[1].met) == (2.5, False)
    assert "2 of 3" in table.text(got) and "w ray: it failed" in table.text(got)


def test_what_is_never_done_is_given_up_and_counts_as_its_deadline() -> None:
    late = Result({}, timeout=True, error="not done in 100 s")
    p, runs = plan(workload(TIME), {"mobula": Result({"time": 10.0}), "ray": late, "dask": late}, 5)
    got = by_system(next(p.run()))
    assert [s for s, _ in runs].count("ray") == 2
    assert [s for s, _ in runs].count("mobula") == 5
    assert (got["ray"].ratio, got["ray"].at_least, got["ray"].met) == (10.0, True, True)
    assert "> 100 s" in table.text(list(got.values())) and ">= 10x" in table.text(list(got.values()))


def test_a_deadline_proves_no_miss() -> None:
    got = compare([Row("w", TIME, "mobula", [50.0]), Row("w", TIME, "ray", [], ["late"], timeouts=1, timeout=100)])
    assert (got[1].ratio, got[1].at_least, got[1].met) == (2.0, True, None)


def test_ours_may_have_a_limit() -> None:
    m = Metric(PEAK, "MiB", at_most=100)
    assert [compare([Row("w", m, "mobula", [x])])[0].met for x in (100.0, 101.0)] == [True, False]


def test_without_ours_there_is_no_ratio() -> None:
    assert compare([Row("w", TIME, "ray", [1.0])])[0] == Comparison(Row("w", TIME, "ray", [1.0]), wanted=4)


def test_an_interrupted_workload_has_what_was_run() -> None:
    p, _ = plan(workload(TIME), {"mobula": Result({"time": 2.0})})
    with pytest.raises(KeyError):  # there is no figure for the next one: as good an end as any
        next(p.run())
    assert [(r.system, r.samples) for r in p.unfinished] == [("mobula", [2.0]), ("ray", []), ("dask", [])]


def test_a_system_that_no_workload_has_is_an_error() -> None:
    with pytest.raises(ValueError, match="'spark'; they have dask, mobula, ray"):
        plan(workload(TIME), {}, systems=("spark",))


def test_json_has_every_sample() -> None:
    compared = compare([Row("w", RATE, "mobula", [8.0, 9.0]), Row("w", RATE, "ray", [2.0])])
    rows = [json.loads(x) for x in table.lines(compared).splitlines()]
    assert rows[0]["samples"] == [8.0, 9.0] and rows[0]["unit"] == "/s" and rows[0]["ours_is_better"] is None
    assert rows[1]["ours_is_better"] == 4.25 and rows[1]["met"] is True


def test_a_page_has_the_figures_between_its_marks(tmp_path: pathlib.Path) -> None:
    compared = compare([Row("w", RATE, "mobula", [8.0, 9.0]), Row("w", RATE, "ray", [2.0], ["it | failed"])])
    path = tmp_path / "figures.md"
    path.write_text(f"# Figures\n\n{page.BEGIN}\nold\n{page.END}\n\nThe end.\n")
    page.write(path, {"memory_gib": 8.0, "cpu": "x*y"}, compared)
    once = path.read_text()
    page.write(path, {"memory_gib": 8.0, "cpu": "x*y"}, compared)
    assert path.read_text() == once
    assert once.startswith(f"# Figures\n\n{page.BEGIN}\n") and once.endswith(f"{page.END}\n\nThe end.\n") and "old" not in once
    assert "- memory gib: 8.0\n- cpu: x\\*y\n" in once
    assert "| w | rate | ray | 2 /s |  | 1 of 2 | 4.25x |\n" in once and "- w ray: it \\| failed\n" in once


def test_a_page_without_marks_is_refused_at_once(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "figures.md"
    for text in "", page.BEGIN, page.END + page.BEGIN:
        path.write_text(text)
        with pytest.raises(ValueError, match="no place for figures"):
            page.check(path)


def test_versions_are_those_of_the_requirements() -> None:
    got = environment.versions(environment.PROJECTS)
    assert [v.split()[0] for v in got] == ["mobula", "ray", "dask"] and all(re.fullmatch(r"[0-9][0-9a-z.]*", v.split()[1]) for v in got)


@pytest.mark.parametrize("x, want", [
    (0.012345, "0.0123"), (1.0, "1"), (123.4, "123"), (999.9, "1,000"), (1234.0, "1,230"), (12345678.0, "12,300,000")])
def test_numbers_have_three_digits(x: float, want: str) -> None:
    assert table.number(x) == want


def outcome(status: str, code: int = 0, left: int = 0) -> Outcome:
    return Outcome(status, code, 1.5, 1 << 20, 0, left)


@pytest.mark.parametrize("said, o, want", [
    ('{"time": 2}', outcome("done"), Result({"time": 2.0}, peak=1.0, seconds=1.5)),
    ("", outcome("timeout"), Result({}, timeout=True, error="not done in 100 s", seconds=1.5)),
    ('{"time": 2}', outcome("failed", 3), Result({}, error="failed, exit code 3: it broke", seconds=1.5)),
    ('{"time": 2}', outcome("done", left=2), Result({}, error="2 processes of the run would not end", seconds=1.5)),
    ('{"time": 2}\n{"time": 3}', outcome("done"), None),
    ("[1]", outcome("done"), None),
    ('{"time": "soon"}', outcome("done"), None),
    ('{"time": null}', outcome("done"), None),
])
def test_what_a_run_said(said: str, o: Outcome, want: Result | None) -> None:
    got = result(o, said, "it broke\n", 100)
    if want is None:
        assert not got.figures and "no JSON object of figures" in got.error
    else:
        assert got == want
