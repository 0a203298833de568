"""Runs the mobula executable that this package starts nodes with: python -m mobula status."""

from __future__ import annotations

import os
import sys

from . import _node
from .exceptions import NoNodeError

if __name__ == "__main__":
    try:
        binary = _node.binary()
    except NoNodeError as x:
        sys.exit(f"mobula: {x}")
    os.execv(binary, [binary, *sys.argv[1:]])
