"""Runs one workload on one system, in a child process.

    python -m peers.child WORKLOAD SYSTEM [--quick]

It prints one line of JSON: an object of figures by metric. Any other output to standard output goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys

from . import workload


def main(argv: list[str]) -> None:
    name, system = argv[0], argv[1]
    out = os.dup(1)
    os.dup2(2, 1)  # output of libraries and workers must not mix with the result
    w = next(w for w in workload.load() if w.name == name)
    params = {**w.full, **w.quick} if "--quick" in argv else dict(w.full)
    figures = w.systems[system](params)
    missing = {m.name for m in w.metrics} ^ figures.keys()
    if missing:
        raise RuntimeError(f"{name} on {system}: its figures are {sorted(figures)}, want {sorted(m.name for m in w.metrics)}")
    os.write(out, json.dumps(dict(figures)).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
