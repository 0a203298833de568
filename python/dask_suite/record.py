"""The baseline's outcomes in a compact file that is kept with the code, with the versions that they are of."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from dask_suite.plan import HERE
from dask_suite.state import Counts, Verdict

PATH = HERE / "baseline.json.gz"

# Seconds per test for its share of a session's start and of collecting its file.
SHARE = 0.1


@dataclass(frozen=True)
class Record:
    versions: dict[str, str]
    counts: Counts
    tests: dict[str, Verdict]  # in the order they were collected


def write(record: Record, path: Path) -> None:
    """Writes a record. Equal records give equal bytes."""
    tests = {i: [v.outcome, float(f"{v.seconds:.2g}"), *([v.worst] if v.flaky else [])] for i, v in record.tests.items()}
    document = {"versions": record.versions, "counts": asdict(record.counts), "tests": tests}
    path.write_bytes(gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0))


def read(path: Path) -> Record:
    d = json.loads(gzip.decompress(path.read_bytes()))
    tests = {i: Verdict(v[0], v[1], worst=v[2] if len(v) > 2 else "") for i, v in d["tests"].items()}
    return Record(d["versions"], Counts(**d["counts"]), tests)


def sample(tests: Mapping[str, Verdict], minutes: float, jobs: int) -> list[str]:
    """A sample of tests that takes about so many minutes with so many jobs, chosen by a hash of the id.

    A longer sample contains a shorter one. It has at least one test, in the order of the record.
    """
    left = minutes * 60 * jobs
    chosen: set[str] = set()
    for i in sorted(tests, key=_hash):
        left -= tests[i].seconds + SHARE
        if left < 0 and chosen:
            break
        chosen.add(i)
    return [i for i in tests if i in chosen]


def expected(tests: Mapping[str, Verdict], ids: Iterable[str]) -> dict[str, float]:
    """The expected seconds of each test; 1 for an unknown test."""
    return {i: tests[i].seconds + SHARE if i in tests else 1.0 for i in ids}


def _hash(id: str) -> bytes:
    return hashlib.sha256(id.encode()).digest()
