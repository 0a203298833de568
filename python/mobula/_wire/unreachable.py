"""Errors for an address at which no node answers, with the same texts as in Go (wire/conn/dial.go)."""

from __future__ import annotations

import os
import re
from typing import Optional

from ..exceptions import InvalidError, MobulaError, NoNodeError, PermissionDeniedError

_INSTEAD = ("start a node with mobula start, or give the address of one that runs, its socket or its directory "
            "(address, MOBULA_ADDRESS, MOBULA_DIR)")


def no_socket(path: str) -> MobulaError:
    if "://" in path or re.fullmatch(r"[^/]*:[0-9]+", path):
        return InvalidError(f"address {path!r}: a host and port is the address of a cluster, which mobula.init joins as HOST:PORT; here a node of this "
                            f"machine is asked: {_INSTEAD}")
    if "/" not in path and "." in path and not path.endswith(".sock"):
        return NoNodeError(f"there is no socket {path}. A cluster on other machines is joined by host and port, {path}:7710 as a rule; else {_INSTEAD}")
    directory, name = os.path.split(path)
    directory = directory or "."
    if not os.path.exists(directory):
        return NoNodeError(f"there is no socket {path}, and no directory {directory}: {_INSTEAD}")
    if name == "node.sock" and os.path.isdir(directory):
        return NoNodeError(f"there is no socket {path}: no node runs in {directory}; {_INSTEAD}")
    return NoNodeError(f"there is no socket {path}: {_INSTEAD}")


def denied(path: str, why: OSError) -> MobulaError:
    found = _stranger(path)
    if found is None:
        return PermissionDeniedError(f"socket {path}: {why}")
    return PermissionDeniedError(f"{found[0]} is user {found[1]}'s, this process is user {os.geteuid()}'s: a node serves its own user alone ({why})")


def _stranger(path: str) -> Optional[tuple[str, int]]:
    """The deepest part of a path that this process can see and its owner's uid, if that is another user; else None."""
    at = os.path.abspath(path)
    while True:
        try:
            uid = os.lstat(at).st_uid
            return (at, uid) if uid != os.geteuid() else None
        except OSError:
            if at == os.path.dirname(at):
                return None
            at = os.path.dirname(at)
