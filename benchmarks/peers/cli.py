"""Parses arguments, and prints progress on standard error and results on standard output."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import sys
import time
from typing import Callable, Sequence

from . import environment, native, page, table
from .bench import Comparison, Plan, compare
from .run import Result, run
from .workload import OURS, Workload, load, project

EXAMPLES = """\
examples:
  make bench-peers                                              everything, three times: hours
  make bench-peers ARGS="task-sync put-1k"                      two workloads
  make bench-peers ARGS="--systems mobula,ray actor-create"     without Dask
  make bench-peers ARGS="--repetitions 5 --json set-index-100"  for machines: a JSON object a line
  make bench-peers ARGS="--markdown docs/figures.md task-sync"  the page of figures
  make bench-peers ARGS=actors                                  a group: messages between actors, beside protoactor-go and floors
  make bench-peers ARGS="--quick"                               small sizes, once: that all of it works
"""


def parser(workloads: Sequence[Workload]) -> argparse.ArgumentParser:
    names = "\n".join(f"  {w.name:<18} {w.what} ({', '.join(w.systems)})" for w in workloads)
    groups = "\n".join(f"  {g:<18} {', '.join(w.name for w in workloads if w.group == g)}" for g in _groups(workloads))
    p = argparse.ArgumentParser("peers", description="The same work on Mobula, Ray and Dask, or others, run in turn, in one table.",
                                epilog=f"{EXAMPLES}\nworkloads, and the systems they run on:\n{names}\n\ngroups of them:\n{groups}",
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="which to run, by name or group (default: all)")
    p.add_argument("--systems", default="", metavar="S,...",
                   help=f"which systems to run them on (default: all); ratios are against {OURS}")
    p.add_argument("--repetitions", type=_count(1), metavar="N",
                   help="runs of each workload on each system (default: 3; 1 with --quick)")
    p.add_argument("--memory-repetitions", type=_count(0), metavar="N",
                   help="further runs in which memory is sampled, where that matters (default: as --repetitions; 0: none)")
    p.add_argument("--timeout", type=float, metavar="SECONDS", help="of one run (default: the workload's own, 180 to 600)")
    p.add_argument("--quick", action="store_true", help="small sizes, to see that it works: the figures mean nothing")
    p.add_argument("--json", action="store_true", help="print a JSON object a line: the machine, then a row each")
    p.add_argument("--markdown", type=pathlib.Path, metavar="PAGE", help="write the table into a Markdown page too, between its marks")
    p.add_argument("--quiet", action="store_true", help="no progress on standard error")
    p.add_argument("--scratch", metavar="DIRECTORY",
                   help="where runs have their files, spilled objects too (default: that of temporary files)")
    return p


def _groups(workloads: Sequence[Workload]) -> list[str]:
    return sorted({w.group for w in workloads if w.group})


def _count(least: int) -> Callable[[str], int]:
    def count(text: str) -> int:
        n = int(text)
        if n < least:
            raise argparse.ArgumentTypeError(f"{n}: want {least} or more")
        return n

    return count


def main(argv: Sequence[str]) -> int:
    """Returns the exit code: 1 if a run on Mobula failed, 2 for wrong arguments or a missing environment, 130 after an interrupt."""
    workloads = load()
    p = parser(workloads)
    a = p.parse_args(argv)
    chosen = [w for w in workloads if not a.workloads or w.name in a.workloads or w.group in a.workloads]
    if a.timeout:
        chosen = [dataclasses.replace(w, timeout=a.timeout) for w in chosen]
    for name in a.workloads:
        if name not in {*(w.name for w in workloads), *_groups(workloads)}:
            p.error(f"there is no workload {name!r}; --help lists them")
    begun = time.monotonic()

    def log(line: str) -> None:
        if not a.quiet:
            print(f"{time.monotonic() - begun:7.0f} s  {line}", file=sys.stderr, flush=True)

    def once(w: Workload, system: str, sampled: bool) -> Result:
        return run(w, system, quick=a.quick, sampled=sampled, scratch=a.scratch, log=log)

    repetitions = a.repetitions or (1 if a.quick else 3)
    memory = repetitions if a.memory_repetitions is None else a.memory_repetitions
    try:
        plan = Plan(chosen, [s for s in a.systems.split(",") if s], repetitions, memory, once, log)
    except ValueError as e:
        p.error(str(e))
    projects = sorted({project(s) for w in chosen if not w.native for s in plan.systems_of(w)})
    natives = sorted({s for w in chosen if w.native for s in plan.systems_of(w)})
    try:
        if a.markdown:
            page.check(a.markdown)
        for name in projects:
            environment.prepare(name, log)
        if natives:
            native.check()
    except (OSError, ValueError) as e:
        p.error(f"--markdown {a.markdown}: {e}")
    except environment.EnvironmentFailed as e:
        print(f"peers: {e}", file=sys.stderr)
        return 2
    on = machine([*environment.versions(projects), *native.versions(natives)])
    try:
        return 1 if any(c.row.system == OURS and c.row.errors for c in _report(plan, on, a.json, a.markdown)) else 0
    except KeyboardInterrupt:
        return 130


def _report(plan: Plan, on: dict[str, object], as_json: bool, markdown: pathlib.Path | None) -> list[Comparison]:
    """Runs the plan and prints the results: JSON as they come, the table at the end, and after an interrupt the results so far."""
    done: list[Comparison] = []
    if as_json:
        print(json.dumps(on), flush=True)
    try:
        for comparisons in plan.run():
            done += comparisons
            if as_json:
                print(table.lines(comparisons), flush=True)
    finally:
        rest = compare([r for r in plan.unfinished if r.samples or r.errors])
        if as_json and rest:
            print(table.lines(rest), flush=True)
        if not as_json:
            print("\n".join(f"{k}: {v}" for k, v in on.items()))
            print(table.text(done + rest), flush=True)
        if markdown and (done or rest):
            page.write(markdown, on, done + rest)
    return done


def machine(versions: Sequence[str]) -> dict[str, object]:
    """The machine and the versions that the figures are of."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {"date": datetime.date.today().isoformat(), "cpu": _cpu(), "cpus": len(os.sched_getaffinity(0)), "memory_gib": round(memory, 1),
            "kernel": platform.release(), "python": platform.python_version(), "load": round(os.getloadavg()[0], 2),
            "versions": ", ".join(dict.fromkeys(versions))}


def _cpu() -> str:
    """The processor's name, from /proc/cpuinfo."""
    try:
        with open("/proc/cpuinfo") as f:
            names = [line.partition(":")[2].strip() for line in f if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()
