"""Programs in odd places: without a working directory, with names that are not UTF-8. They work, or are refused by a clear error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from waiting import PATIENCE

import mobula
from mobula.exceptions import InvalidError, NameTakenError
from mobula.util import state

PROGRAM = """
import mobula, os, sys

@mobula.remote
def where(x):
    try:
        return x + 1, os.fsencode(os.getcwd()), os.environb.get(b"ODD")
    except FileNotFoundError:
        return x + 1, b"", os.environb.get(b"ODD")

if __name__ == "__main__":
    mobula.init(sys.argv[1])
    print(mobula.get(where.remote(1)))
"""


@pytest.fixture
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


def run(address: str, path: Any, cwd: Any, **env: Any) -> str:
    done = subprocess.run([sys.executable, path, address, b"\xff"], cwd=cwd, env={**os.environb, **{k.encode(): v for k, v in env.items()}},
                          capture_output=True, text=True, errors="surrogateescape", timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_directory_whose_name_is_not_utf8(node: Any, tmp_path: Path) -> None:
    odd = os.path.join(os.fsencode(tmp_path), b"x\xffy")
    os.mkdir(odd)
    program = os.path.join(odd, b"p\xfe.py")
    with open(program, "w") as f:
        f.write(PROGRAM)
    assert run(node.address, program, odd, ODD=b"\xfd") == f"{(2, odd, bytes([0xfd]))!r}\n"


def test_a_directory_that_is_gone(node: Any, tmp_path: Path) -> None:
    program, gone = tmp_path / "p.py", tmp_path / "gone"
    program.write_text(PROGRAM)
    gone.mkdir()
    start = f"import mobula, os, runpy, sys; os.rmdir(os.getcwd()); sys.argv = ['p.py', sys.argv[1]]; runpy.run_path({str(program)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", start, node.address], cwd=gone, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and done.stdout.startswith("(2, "), done.stderr  # its workers are where the node is


ODD = "x\udcff"


@mobula.remote
def names(**kw: int) -> dict[str, int]:
    return kw


@mobula.remote
class Plain:
    def one(self) -> int:
        return 1


@pytest.mark.parametrize("ask", [
    lambda: Plain.options(name=ODD).remote(),
    lambda: Plain.options(name="x", namespace=ODD).remote(),
    lambda: names.options(name=ODD).remote(),
    lambda: mobula.get_actor(ODD),
    lambda: state.list_actors([("name", "=", ODD)]),
])
def test_a_name_that_cannot_be_sent_is_refused(node: Any, ask: Callable[[], Any]) -> None:
    with pytest.raises(InvalidError, match=r"'x\\udcff'.* cannot be encoded in UTF-8"):
        ask()


@pytest.mark.parametrize("name", ["n" * 10_000, "long: " * 2000])
def test_long_names(node: Any, name: str) -> None:
    a = Plain.options(name=name, namespace=name).remote()
    assert mobula.get(mobula.get_actor(name, namespace=name).one.remote()) == 1
    with pytest.raises(NameTakenError):
        Plain.options(name=name, namespace=name).remote()
    mobula.kill(a)
    short = Plain.options(name="n").remote()
    assert mobula.get(mobula.get_actor("n").one.options(name=name).remote()) == 1
    mobula.kill(short)


def test_odd_names_of_keyword_arguments(node: Any) -> None:
    assert mobula.get(names.remote(**{ODD: 1, "": 2})) == {ODD: 1, "": 2}
    with pytest.raises(InvalidError, match="has a NUL"):
        names.remote(**{"a\0b": 1})
