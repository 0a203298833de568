"""A module of the program's own, with data beside it."""

import os


def table() -> str:
    with open(os.path.join(os.path.dirname(__file__), "table.txt")) as f:
        return f.read().strip()
