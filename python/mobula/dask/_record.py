"""Records the graph tasks that workers have run, for pytest_plugin to check.

If a job's directory has a folder "executed", each worker process writes a file there: one record per task, with its id and how it ended.
"""

from __future__ import annotations

import os
from typing import Iterator, Optional

from .. import _ids

FOLDER = "executed"
SIZE = _ids.TASK + 1  # bytes of a record: the id and one letter
OK, FAILED = b"k", b"f"


class Recorder:
    """Writes this process' file."""

    def __init__(self, job_dir: str) -> None:
        folder = os.path.join(job_dir, FOLDER)
        self._fd: Optional[int] = None
        self.on = False
        if job_dir and os.path.isdir(folder):
            self._fd = os.open(os.path.join(folder, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self.on = True

    def note(self, task: bytes, how: bytes) -> None:
        if self._fd is not None:
            os.write(self._fd, task + how)


def records(job_dir: str) -> Iterator[tuple[int, bytes, bytes]]:
    """Yields pid, task id and outcome of every record."""
    folder = os.path.join(job_dir, FOLDER)
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        for i in range(0, len(data) - len(data) % SIZE, SIZE):
            yield int(name), data[i:i + SIZE - 1], data[i + SIZE - 1:i + SIZE]
