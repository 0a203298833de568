"""Measures the memory of processes: their proportional set sizes (PSS), and the shared memory files that they have open.

PSS does not count a page of a shared file that no process has mapped. And since processes are read one after another, their shares of a
page may add up to more than the page. So shared memory is counted by its files: their pages on tmpfs, mapped or not.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Iterator

SHARED = "/dev/shm/"


@dataclass(frozen=True)
class Usage:
    """Bytes."""

    private: int = 0  # PSS without shared memory files
    shared: int = 0  # PSS of shared memory files
    segments: int = 0  # pages of shared memory files

    @property
    def total(self) -> int:
        return self.private + (self.segments or self.shared)


def family(root: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent(int(name))
            if parent is not None:
                children.setdefault(parent, []).append(int(name))
    out = [root]
    for pid in out:  # the loop appends to it
        out.extend(children.get(pid, ()))
    return out


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat") as f:
            return int(f.read().rpartition(")")[2].split()[1])  # a name may hold anything
    except (OSError, IndexError):
        return None  # it has ended


def shared_files() -> set[str]:
    """The shared memory files in the file system."""
    return {f"{SHARED}{name}" for name in os.listdir(SHARED)} if os.path.isdir(SHARED) else set()


def open_files(root: int) -> set[str]:
    """The shared memory files that a process and its descendants have open."""
    return {target for pid in family(root) for _, target in _open(pid)} & shared_files()


def usage(root: int, without: int | None = None) -> Usage:
    """The memory of a process and its descendants now."""
    private = shared = segments = 0
    seen: set[tuple[int, int]] = set()
    for pid in family(root):
        if pid == without:
            continue
        shares = _shares(pid)
        if shares is None:
            continue
        private += shares[0] - shares[1]
        shared += shares[1]
        segments += _segments(pid, seen)
    return Usage(private, shared, segments)


def _shares(pid: int) -> tuple[int, int] | None:
    """A process' PSS, and the part of it that is shared memory; None if it has ended."""
    found = {}
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            for line in f:
                name, _, rest = line.partition(":")
                if name in ("Pss", "Pss_Shmem"):
                    found[name] = int(rest.split()[0]) << 10
    except (OSError, IndexError):
        return None
    return (found["Pss"], found.get("Pss_Shmem", 0)) if "Pss" in found else None


def _segments(pid: int, seen: set[tuple[int, int]]) -> int:
    """The bytes of the shared memory files that a process has open, without files in seen."""
    total = 0
    for path, target in _open(pid):
        if not target.startswith(("/memfd:", SHARED)):
            continue
        try:
            st = os.stat(path)
        except OSError:
            continue  # it was closed
        if (st.st_dev, st.st_ino) not in seen:
            seen.add((st.st_dev, st.st_ino))
            total += st.st_blocks * 512
    return total


def _open(pid: int) -> Iterator[tuple[str, str]]:
    """A process' descriptors and their files."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return  # it has ended
    for name in names:
        with contextlib.suppress(OSError):
            yield f"{folder}/{name}", os.readlink(f"{folder}/{name}")
