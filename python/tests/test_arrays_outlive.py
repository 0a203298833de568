"""A program's arrays stay valid after shutdown, after the node has ended, and after it has restarted."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import numpy as np
from waiting import PATIENCE, until

import mobula

N = 1 << 20  # int64s: 8 MiB, of a store of 64


def held_and_left(kept: Any) -> Any:
    """An array of a program that has left the node."""
    mobula.init(kept.address)
    ref = mobula.put(np.full(N, 7))
    held = mobula.get(ref)
    mobula.shutdown()
    return held


def fill(kept: Any) -> None:
    """Writes the whole store once over, as another program."""
    code = textwrap.dedent("""
        import sys, numpy as np, mobula
        mobula.init(sys.argv[1])
        for i in range(24):
            mobula.put(np.full(1 << 20, 100 + i))
        mobula.shutdown()
    """)
    subprocess.run([sys.executable, "-c", code, kept.address], check=True, timeout=PATIENCE)


def pinned(kept: Any) -> int:
    out = subprocess.run([kept.binary, "status", "--json", f"--address={kept.address}"], capture_output=True, check=True)
    return int(json.loads(out.stdout)["store"]["pinned"])


def test_after_shutdown_until_the_array_goes(kept: Any) -> None:
    held = held_and_left(kept)
    time.sleep(10.5)  # as long as a process that had left was waited for
    assert pinned(kept) >= held.nbytes
    fill(kept)
    assert (held == 7).all()
    part = held[:10]
    del held
    assert pinned(kept) and (part == 7).all()
    del part
    gc.collect()
    until(lambda: pinned(kept) == 0)
    until(lambda: not lingering())


def test_two_programs_after_another_in_one_process(kept: Any) -> None:
    first = held_and_left(kept)
    second = held_and_left(kept)
    fill(kept)
    assert (first == 7).all() and (second == 7).all()
    del first
    gc.collect()
    until(lambda: second.nbytes <= pinned(kept) < 2 * second.nbytes)
    fill(kept)
    assert (second == 7).all()


def test_after_the_node_was_killed_and_came_back(kept: Any) -> None:
    held = held_and_left(kept)
    kept.kill()
    until(lambda: not lingering())
    kept.start()
    fill(kept)
    assert (held == 7).all()


def test_of_a_program_whose_node_has_stopped_and_another_came(kept: Any) -> None:
    mobula.init(kept.address)
    held = mobula.get(mobula.put(np.full(N, 7)))
    kept.process.terminate()
    kept.process.wait(PATIENCE)
    until(lambda: not lingering())
    kept.start()
    fill(kept)
    assert (held == 7).all()


def test_of_a_node_of_inits_own(binary: str) -> None:
    mobula.init(num_cpus=1, object_store_memory=64 << 20)
    held = mobula.get(mobula.put(np.full(N, 7)))
    mobula.shutdown()
    until(lambda: not lingering())
    assert (held == 7).all()


def test_a_buffer_that_is_written_after_shutdown_is_nobodys_else(kept: Any) -> None:
    mobula.init(kept.address)
    open, put = mobula.create(N, "int64"), mobula.create(N, "int64")
    open.array.fill(3)
    put.array.fill(4)
    ref = put.put()
    mobula.shutdown()
    del ref
    fill(kept)
    assert (open.array == 3).all() and (put.array == 4).all()
    open.array.fill(5)
    kept.kill()
    until(lambda: not lingering())
    kept.start()
    fill(kept)
    assert (open.array == 5).all() and (put.array == 4).all()


def test_a_process_that_ends_with_arrays_gives_their_memory_back(kept: Any) -> None:
    code = "import sys, numpy as np, mobula; mobula.init(sys.argv[1]); x = mobula.get(mobula.put(np.full(1 << 20, 7)))"
    subprocess.run([sys.executable, "-c", code, kept.address], check=True, timeout=PATIENCE)
    until(lambda: pinned(kept) == 0)


def lingering() -> list[Any]:
    return [t for t in threading.enumerate() if t.name == "mobula-arrays"]
