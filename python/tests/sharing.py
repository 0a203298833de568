"""How the files of the tests are shared out among processes, by pytest-xdist."""

from __future__ import annotations

from typing import Any


def none_for_one(config: Any) -> None:
    """Has pytest run the tests itself where it is to have one process for them, as PYTEST_JOBS=1 says, or a machine with one CPU. With
    --dist loadfile xdist 3.8 hangs if its only process ends in the last test of a file and other files follow."""
    o = config.option
    if getattr(o, "numprocesses", None) == 1:
        o.numprocesses, o.dist, o.tx = 0, "no", []
