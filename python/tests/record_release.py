"""Records what a release leaves to the next one, for test_upgrade.py. Run it with the package and the executable of that release:

    PYTHONPATH=python MOBULA_BINARY=bin/mobula .venv/bin/python python/tests/record_release.py python/tests/testdata

It writes package-X.Y.tar.xz, the Python package; directory-X.Y.tar.xz, the directory of a killed node with a detached actor; and
pickles-X.Y.json, pickles that name functions and classes of the package.
"""

from __future__ import annotations

import base64
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tarfile
import tempfile
from typing import Any, Callable, Optional

import cloudpickle
import numpy as np
import upgrade_actor

import mobula
import mobula.dask
from mobula import _call, _executor, exceptions
from mobula._functions import Exported
from mobula._version import RELEASE
from mobula.dask import _payload
from mobula.distributed import Client, _nested
from mobula.util import Queue
from mobula.util import queue as queues

NAMESPACE, NAME = "upgrade", "estate"
TEXT, NUMBERS = "left to you", 1000


def leave() -> None:
    """Makes the detached actor. What its argument refers to is in the log of the job."""
    inside = [mobula.put(TEXT), mobula.put(np.ones(NUMBERS))]
    estate = mobula.remote(upgrade_actor.Estate).options(name=NAME, lifetime="detached", max_restarts=-1, max_task_retries=-1).remote(inside)
    assert mobula.get(estate.total.remote(1)) == (TEXT, NUMBERS + 1)


def pickles() -> dict[str, str]:
    """By their types, values as tasks, actors and logs may have them."""
    own = exceptions.UserError("of a program", name="app/broken")
    raised = exceptions.task_error(KeyError("k"), "Traceback", "f failed")
    counter = mobula.remote(upgrade_actor.Estate).remote([])
    values = [
        mobula.put(1), counter, mobula.go_actor("app/counter", max_pending_calls=2).bind(counter), mobula.go_function("app/f", num_returns=2),
        mobula.go_actor("app/counter"), mobula.remote(max), mobula.remote(upgrade_actor.Estate), Exported(max), Client().submit(max, 1, 2),
        Queue(maxsize=3), mobula.dask.get, exceptions.ObjectLostError("gone"), own, raised, _executor._Runner(None, ()), _nested.Slot(1)]
    functions = [_call.call, _nested.call_with, _executor._chunk, _payload.run, _payload.load_function, _payload._raise, queues._Items]
    out = {type(x).__name__: cloudpickle.dumps(x) for x in values} | {f"{f.__module__}.{f.__qualname__}": pickle.dumps(f) for f in functions}
    return {name: base64.b85encode(data).decode() for name, data in out.items()}


def strip(description: pathlib.Path) -> None:
    """Removes what is of this machine alone from a job's description."""
    d: dict[str, Any] = json.loads(description.read_text())
    for name in ("environ", "exe", "args"):
        d.pop(name, None)
    d["program"]["Args"] = []
    description.write_text(json.dumps(d))


def pack(path: pathlib.Path, root: pathlib.Path, takes: Callable[[pathlib.Path], bool]) -> None:
    """Packs the files and directories below one that takes says yes to; sockets are left out."""

    def entry(t: tarfile.TarInfo) -> Optional[tarfile.TarInfo]:
        t.uid = t.gid = t.mtime = 0
        t.uname = t.gname = ""
        return t

    with tarfile.open(path, "w:xz", preset=9) as out:
        for f in sorted(root.rglob("*")):
            if takes(f) and (f.is_dir() or f.is_file()):
                out.add(f, f.relative_to(root), recursive=False, filter=entry)


def main(folder: pathlib.Path) -> None:
    release = RELEASE.rpartition(".")[0]
    package = pathlib.Path(mobula.__file__).parent
    pack(folder / f"package-{release}.tar.xz", package.parent, lambda f: f.suffix == ".py" and package in f.parents)
    with tempfile.TemporaryDirectory(prefix="mob") as temporary:
        base = pathlib.Path(temporary)
        node = subprocess.Popen([os.environ["MOBULA_BINARY"], "start", "--json", f"--dir={base}/n", "--store-size=64MiB", f"--store-dir={base}", "--cpus=2"],
                                stdout=subprocess.PIPE)
        try:
            assert node.stdout is not None
            address = json.loads(node.stdout.readline())["address"]
            with mobula.init(address, namespace=NAMESPACE):
                leave()
                (folder / f"pickles-{release}.json").write_text(json.dumps(pickles(), indent=1) + "\n")
        finally:
            node.kill()
            node.wait()
        strip(base / "n" / "jobs" / "1.json")
        pack(folder / f"directory-{release}.tar.xz", base, lambda f: "logs" not in f.parts)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
