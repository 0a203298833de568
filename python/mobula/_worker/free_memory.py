"""How much more memory this process can have: what the machine has available, and what its control groups allow. The node reckons alike."""

from __future__ import annotations

from typing import Iterator, Optional

_V2 = ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")
_V1 = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_UNLIMITED = 1 << 62


def available() -> Optional[int]:
    """Bytes that are free; None if nothing says so."""
    return min([*_machine(), *_groups()], default=None)


def _machine() -> Iterator[int]:
    kib = _field("/proc/meminfo", "MemAvailable:")
    if kib is not None:
        yield kib << 10


def _groups() -> Iterator[int]:
    """What is free in each control group of the process that has a limit. In a container the path may name a group above what is mounted."""
    for line in _lines("/proc/self/cgroup"):
        number, _, rest = line.strip().partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            root, most, used, cache = _V2
        elif "memory" in controllers.split(","):
            root, most, used, cache = _V1
        else:
            continue
        path = path.strip("/")
        while True:
            folder = f"{root}/{path}" if path else root
            limit, now = _number(f"{folder}/{most}"), _number(f"{folder}/{used}")
            if limit and limit < _UNLIMITED and now is not None:
                yield max(0, limit - max(0, now - (_field(f"{folder}/memory.stat", cache) or 0)))
            if not path:
                break
            path = path.rpartition("/")[0]


def _number(path: str) -> Optional[int]:
    """The number that a file has; None if it has another text, such as max."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdecimal() else None


def _field(path: str, name: str) -> Optional[int]:
    """The number behind a name at the start of a line."""
    for line in _lines(path):
        words = line.split()
        if len(words) > 1 and words[0] == name and words[1].isdecimal():
            return int(words[1])
    return None


def _lines(path: str) -> list[str]:
    try:
        with open(path) as f:
            return f.readlines()
    except (OSError, ValueError):
        return []
