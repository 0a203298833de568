"""The samples in a small size, run as a user would run them."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
from conftest import ROOT
from waiting import PATIENCE

pytest.importorskip("dask.dataframe")
pytest.importorskip("xarray")

SAMPLES = ROOT / "samples" / "python"
MIB = 1 << 20


def run(name: str, *flags: str) -> str:
    """What a sample prints."""
    done = subprocess.run([sys.executable, SAMPLES / name, *flags], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_every_sample_is_in_the_readme_and_has_help(binary: str) -> None:
    readme = (SAMPLES.parent / "README.md").read_text()
    names = {p.name for p in SAMPLES.iterdir() if p.suffix in (".py", ".ipynb")} - {"memory.py"}  # what others import
    assert names == set(re.findall(r"samples/python/(\w+\.\w+)", readme))


@pytest.mark.parametrize("name", ["broadcast.py", "climatology.py", "counter.py", "set_index.py"])
def test_help(name: str) -> None:
    said = run(name, "--help")
    assert "usage:" in said and f"python {name} --" in said


def test_broadcast(binary: str) -> None:
    said = run("broadcast.py", "--size", "16MiB", "--tasks", "10")
    for line in ("10 plain tasks sum it", "10 Dask tasks sum it", "10 plain tasks pick 10000 items", "10 Dask tasks pick 10000 items"):
        assert line in said
    assert "all results are right; the object store holds 16 MiB: one copy" in said


def test_set_index(binary: str) -> None:
    said = run("set_index.py", "--size", "24MiB", "--store", "8MiB", "--partitions", "6")
    assert "241974 rows, 24 MiB, sorted and verified" in said
    spilled = re.search(r"spilled (\d+) MiB", said)
    assert spilled and int(spilled[1]) >= 16  # what does not fit


def test_climatology(binary: str) -> None:
    said = run("climatology.py", "--years", "2", "--grid", "12", "--chunk", "200")
    assert re.search(r"the anomaly's spread is 0\.7\d+ degrees \(0\.707 is right\)", said)


def test_counter(binary: str) -> None:
    assert "300 calls, 2 processes killed, every answer right" in run("counter.py", "--calls", "300", "--kill-every", "100")


def test_counter_that_is_killed_all_the_time(binary: str) -> None:
    assert "4 calls, 3 processes killed, every answer right" in run("counter.py", "--calls", "4", "--kill-every", "1")


def test_climatology_of_a_single_place(binary: str) -> None:
    assert "2 years on a grid of 1 x 1" in run("climatology.py", "--years", "2", "--grid", "1")


@pytest.mark.parametrize("name, flags, said", [
    ("climatology.py", ["--chunk", "0"], "--chunk: '0': give a whole number, 1 or more"),
    ("climatology.py", ["--years", "0"], "--years: '0': give a whole number, 1 or more"),
    ("set_index.py", ["--partitions", "0"], "--partitions: '0': give a whole number, 1 or more"),
    ("set_index.py", ["--workers", "two"], "--workers: 'two': give a whole number, 1 or more"),
    ("set_index.py", ["--size", "1KiB"], "--size: 20 partitions of a row each are 2 KiB: give that or more"),
    ("broadcast.py", ["--size", "4B"], "--size: a number has 8 bytes: give that or more"),
    ("counter.py", ["--kill-every", "-1"], "--kill-every: '-1': give a whole number, 0 or more"),
])
def test_what_cannot_be_done_is_refused(name: str, flags: list[str], said: str) -> None:
    done = subprocess.run([sys.executable, SAMPLES / name, *flags], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_counter_state_is_found_again(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SAMPLES))
    import counter

    path = str(tmp_path / "journal")
    for crash in range(3):
        c = counter.Counter(path)
        for call in range(1, 2 * crash + 3):
            assert c.add(call, 10) == 10 * call
        with pytest.raises(ValueError, match=f"call {2 * crash + 4} comes before call {2 * crash + 3}"):
            c.add(2 * crash + 4, 10)
        with open(path, "a") as f:
            f.write("4")  # an answer that was cut short, and never given


def test_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SAMPLES))
    import argparse

    import memory

    assert [memory.parsed(s) for s in ("512", "64KiB", "1.5 MiB", "2GiB")] == [512, 64 << 10, 3 * MIB // 2, 2 << 30]
    assert [memory.size(n) for n in (12, 64 << 10, 24 * MIB, 3 << 29)] == ["12 B", "64 KiB", "24 MiB", "1.50 GiB"]
    for wrong in ("", "MiB", "0", "12 parsecs", "-3MiB"):
        with pytest.raises(argparse.ArgumentTypeError, match="give a size, as 512MiB"):
            memory.parsed(wrong)


def test_memory_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SAMPLES))
    import memory

    with memory.Watch() as before:
        pass
    with memory.Watch() as used:
        held = b"x" * (64 * MIB)
    assert len(held) + before.peak < used.peak + 10 * MIB


class Notebook:
    """A notebook that was run; what a cell shows is found by the cell's last line."""

    def __init__(self, path: pathlib.Path) -> None:
        nbformat = pytest.importorskip("nbformat")
        nbclient = pytest.importorskip("nbclient")
        self.book = nbformat.read(path, 4)
        nbclient.NotebookClient(self.book, timeout=PATIENCE, kernel_name="python3").execute()

    def shown(self, line: str) -> Any:
        (cell,) = [c for c in self.book.cells if c.cell_type == "code" and c.source.splitlines()[-1] == line]
        (text,) = [o.data["text/plain"] for o in cell.outputs if o.output_type == "execute_result"]
        return text


def test_the_notebook_is_stored_without_outputs() -> None:
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.read(SAMPLES / "first_tour.ipynb", 4)
    nbformat.validate(book)
    assert all(c.outputs == [] and c.execution_count is None for c in book.cells if c.cell_type == "code")


def test_the_notebook(binary: str) -> None:
    pytest.importorskip("ipykernel")
    book = Notebook(SAMPLES / "first_tour.ipynb")
    assert book.shown("total") == "285"
    assert book.shown("os.getpid() not in workers, len(workers)") in ("(True, 1)", "(True, 2)")
    assert book.shown('type(caught).__name__, "broken" in str(caught)') == "('TaskError(KeyError)', True)"
    assert book.shown("counts") == "[1, 2, 3, 4, 5]"
    assert book.shown("sum(s for s, _, _ in looks), looks[0][1:]") == "(7999998000000.0, (False, False))"
    assert book.shown('f"{held / 1e6:.0f} MB in the object store"') == "'32 MB in the object store'"
    assert book.shown("symmetric") == "0.0"
    assert abs(float(book.shown("round(mean, 6)"))) < 1e-6
    assert book.shown("kinds, abs(trace - float((x * x).sum().compute())) < 1e-6") == "({'ObjectRef'}, True)"
    assert book.shown("firsts == list(range(24))") == "True"
    assert book.shown("""store["held"] <= store["limit"], f"{store['spilled_ever'] / 1e6:.0f} MB were written to disk\"""").startswith("(True, ")
    assert book.shown("mobula.is_initialized()") == "False"
