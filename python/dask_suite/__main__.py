"""Run Dask's own tests under Mobula's scheduler, and compare each with how it ends under Dask's.

The run can be stopped at any time, and continues from there when it is started again. The exit status is 0 if no test does worse than in the
baseline, 1 if one does or the scheduler's own counts disagree, 2 if the run was not possible, 130 if it was stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from tqdm import tqdm

from dask_suite import compare, plan, record, runner, shard, state
from dask_suite.collection import CollectionError, collect
from dask_suite.outcome import Outcome, worse

JOBS = max(1, (os.cpu_count() or 1) // 2)


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser("python -m dask_suite", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--mode", choices=plan.MODES, default="mobula", help="the scheduler (%(default)s)")
    p.add_argument("--only", metavar="PATTERN", type=_pattern, help="tests in whose id this regular expression is found")
    p.add_argument("--sample", metavar="MINUTES", type=float, help="tests for about so long, chosen by a hash of the id")
    known = p.add_mutually_exclusive_group()
    known.add_argument("--compare", action="store_true", help="run nothing, compare what is known")
    known.add_argument("--fresh", action="store_true", help="forget what is known, begin anew")
    p.add_argument("--record", action="store_true", help=f"with --mode baseline: write {record.PATH.name} after a whole run")
    p.add_argument("--jobs", metavar="N", type=_positive, default=JOBS, help="sessions at a time (%(default)s)")
    p.add_argument("--shard", metavar="N", type=_positive, default=150, help="tests a session (%(default)s)")
    p.add_argument("--timeout", metavar="SECONDS", type=float, default=180.0, help="of one test (%(default)s)")
    p.add_argument("--state", metavar="FILE", type=Path, help="what is known of the run (.cache/dask-suite/MODE.jsonl)")
    p.add_argument("--json", action="store_true", help="the result as JSON on standard output")
    return p


def _positive(text: str) -> int:
    n = int(text)
    if n < 1:
        raise argparse.ArgumentTypeError(f"{n} is less than 1")
    return n


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as e:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {e}") from None


def main(argv: Sequence[str] | None = None) -> int:
    a = parser().parse_args(argv)
    if a.mode == "baseline" and (a.sample or a.compare):
        _impossible("--sample and --compare want the baseline's record, not --mode baseline")
    if a.record and (a.mode != "baseline" or a.only):
        _impossible("--record wants --mode baseline, and all of the tests")
    try:
        return _main(a)
    except (CollectionError, ModuleNotFoundError, shard.FutileError, state.OtherVersionsError) as e:
        _impossible(str(e))
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130


def _impossible(why: str) -> NoReturn:
    print(f"dask-suite: {why}", file=sys.stderr)
    raise SystemExit(2)


def _main(a: argparse.Namespace) -> int:
    have = plan.versions()
    known = _record(have) if a.mode == "mobula" else None
    path = a.state or plan.REPO / ".cache" / "dask-suite" / f"{a.mode}.jsonl"
    if a.fresh:
        path.unlink(missing_ok=True)
    s = state.State(path, a.mode, have)
    try:
        ids = _selected(a, known, s)
        if not a.compare:
            _run(a, ids, s, known)
        if known is not None:
            return _compared(a, known, ids, s)
        return _finished(a, ids, s, have)
    finally:
        s.close()


def _record(have: dict[str, str]) -> record.Record:
    again = "Install what requirements.txt says, or make the baseline anew: --mode baseline --record."
    if not record.PATH.exists():
        _impossible(f"there is no {record.PATH}. {again}")
    known = record.read(record.PATH)
    if lines := plan.differences(known.versions, have):
        raise state.OtherVersionsError(str(record.PATH), lines, again)
    return known


def _selected(a: argparse.Namespace, known: record.Record | None, s: state.State) -> list[str]:
    """The selected tests: a sample; or, if nothing is to run, those in the state and the record; or else all tests."""
    if known and a.sample:
        ids = record.sample(known.tests, a.sample, a.jobs)
    elif known and a.compare:
        ids = list(dict.fromkeys([*known.tests, *s.runs]))
    else:
        ids = list(dict.fromkeys([*collect(plan.of_dask(a.mode, a.timeout)), *(known.tests if known else ())]))
    if a.only:
        ids = [i for i in ids if a.only.search(i)]
    if not ids:
        _impossible("no test is selected")
    return ids


def _run(a: argparse.Namespace, ids: list[str], s: state.State, known: record.Record | None) -> None:
    seconds = record.expected(known.tests if known else {}, ids)
    left = sum(seconds[i] for i in ids if i not in s.runs)
    ended = bad = 0
    with tqdm(
        total=math.ceil(left), desc=a.mode, mininterval=0.5 if sys.stderr.isatty() else 30.0,
        bar_format="{desc} {percentage:3.0f}% |{bar:30}| {elapsed} gone, {remaining} left{postfix}",
    ) as bar:  # fmt: skip

        def tell(o: Outcome) -> None:
            nonlocal ended, bad
            ended += 1
            bad += o.bad
            bar.set_postfix_str(f"{ended} ended, {bad} badly", refresh=False)
            bar.update(seconds[o.id] if len(s.runs[o.id]) == 1 else 0.0)

        def matters(o: Outcome) -> bool:
            return known is None or o.id not in known.tests or worse(o.outcome, than=known.tests[o.id].outcome)

        runner.run(plan.of_dask(a.mode, a.timeout), ids, s, jobs=a.jobs, size=a.shard, matters=matters, tell=tell)


def _compared(a: argparse.Namespace, known: record.Record, ids: list[str], s: state.State) -> int:
    c = compare.compare(known.tests, s.verdicts(), ids, s.counts, [i for i in ids if s.unreported(i)])
    print(json.dumps(c.to_json(), indent=1) if a.json else compare.text(c))
    return 0 if c.ok else 1


def _finished(a: argparse.Namespace, ids: list[str], s: state.State, have: dict[str, str]) -> int:
    verdicts = s.verdicts()
    done: dict[str, state.Verdict] = {i: verdicts[i] for i in ids if i in verdicts}
    result: dict[str, Any] = {
        "tests": compare.count(done.values()),
        "flaky": [i for i, v in done.items() if v.flaky],
        "gets": s.counts.gets,
        "tasks": s.counts.executed,
    }
    if a.json:
        print(json.dumps(result, indent=1))
    else:
        print(", ".join(f"{n} {o}" for o, n in result["tests"].items()))
        print(f"{result['gets']} gets, {result['tasks']} tasks; {len(result['flaky'])} ended otherwise when tried again alone")
    if a.record:
        record.write(record.Record(have, s.counts, done), record.PATH)
        print(f"wrote {record.PATH}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
