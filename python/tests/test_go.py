"""Values between the languages: what Go wrote is read here, what is written here Go reads.

The Go half is internal/codec/python_test.go. Written anew by `go test ./internal/codec -run Python -record` and by
MOBULA_RECORD=1 pytest tests/test_go.py.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import numpy as np

from mobula import _value as v

DATA = pathlib.Path(__file__).parent / "testdata"

# By what Python shows; lists and dicts are written as plain data.
VALUES: list[Any] = [
    True, False, 0, 23, 24, -1, 2**63 - 1, -(2**63), 1.5, 0.1, float("inf"), "", "text é", b"raw", np.array([0, 1.5, -2]), np.array([1, -2], "i4"),
    np.array([True, False]), np.array([[1, 2], [3, 4]]), np.array([1j]), {"a": 1, "b": 2}, ["x", "y"], {"Name": "n"}]


def test_go_wrote_it() -> None:
    for s in json.loads((DATA / "go_values.json").read_text()):
        got = v.decode(bytes.fromhex(s["meta"]), bytes.fromhex(s["data"]))
        assert repr(got) == s["python"], s["go"]


def test_go_reads_it() -> None:
    out = []
    for x in VALUES:
        e = v.encode_plain(x, 1 << 30)
        assert e.data is not None
        out.append({"python": repr(x), "meta": e.meta.hex(), "data": e.data.hex()})
    path = DATA / "python_values.json"
    if os.environ.get("MOBULA_RECORD"):
        path.write_text(json.dumps(out, indent=2) + "\n")
    assert json.loads(path.read_text()) == out
