"""A program that test_util runs: what a MemorySampler says of a store and of a task's memory."""

from __future__ import annotations

import sys
import threading
from datetime import datetime
from pathlib import Path

import notes
import numpy as np
import pandas as pd
import pytest
from waiting import PATIENCE, until

import mobula
from mobula import exceptions as x
from mobula.util import MemorySampler


def sampled(dir: str) -> None:
    """Dask's example, with what a store and a task take: both are seen, and each once."""

    @mobula.remote
    def takes(n: int, name: str) -> int:
        a = np.ones(n << 17)  # MiB
        notes.stay(dir, name)
        return int(a.nbytes)

    def rise() -> int:
        """By how much a task's memory has grown. This program and the node, which are counted too, may let go of some meanwhile: 50 MiB at most."""
        sizes = [n for _, n in ms.samples["task"]]
        return max(n - min(sizes[:i + 1]) for i, n in enumerate(sizes))

    notes.note(dir, "first.go")
    mobula.get(takes.remote(1, "first"))
    a = np.ones(4 << 20)  # 32 MiB
    ms = MemorySampler()
    with ms.sample("store", measure="managed", interval=0.05):
        ref = mobula.put(a)
        got = mobula.get(ref)
    with ms.sample("task", interval=0.05):
        until(lambda: ms.samples.get("task"))
        task = takes.remote(250, "task")
        until(lambda: rise() > 200 << 20)
        notes.note(dir, "task.go")
        mobula.get(task, timeout=PATIENCE)
    with ms.sample("freed", measure="managed", interval=0.05):
        del ref, got
        until(lambda: mobula.available_resources()["object_store_memory"] == 64 << 20)
    with ms.sample(measure="spilled"):
        pass
    first = {label: s[0][1] for label, s in ms.samples.items()}
    most = {label: max(n for _, n in s) for label, s in ms.samples.items()}
    assert 32 << 20 <= most["store"] - first["store"] < 40 << 20
    assert first["task"] > most["store"]  # the processes' memory, and what is behind the store
    assert 200 << 20 < rise() < 300 << 20
    assert first["freed"] >= 32 << 20 and ms.samples["freed"][-1][1] == 0
    [other] = ms.samples.keys() - {"store", "task", "freed"}
    assert len(ms.samples[other]) == 2 and most[other] == 0

    df = ms.to_pandas(align=True)
    assert list(df.columns) == list(ms.samples) and (df.iloc[0] == [first[c] for c in df.columns]).all()
    assert df["task"].max() == most["task"] and df.index[0].total_seconds() == 0
    last = ms.samples["freed"][-1][0] - ms.samples["freed"][0][0]
    assert df["freed"].dropna().index[-1].total_seconds() == pytest.approx(last, abs=1e-3)  # nothing is made up beyond
    assert len(ms.to_pandas()) >= len(df)
    ax = ms.plot(align=True, grid=True)
    assert len(ax.get_lines()) == 4 and ax.get_ylabel() == "memory (GiB)"
    assert ax.get_lines()[1].get_ydata()[0] == pytest.approx(first["task"] / 2**30)

    table = ms.to_arrow(align=True)
    assert table.column_names == ["time", *ms.samples] and table["task"].to_pandas().max() == most["task"]
    head, row = ms.to_csv(align=True).splitlines()[:2]  # type: ignore[union-attr]
    assert head == ",".join(["time", *ms.samples]) and row.startswith(f"0.0,{first['store']:.1f},{first['task']:.1f},")
    path = Path(dir) / "samples.csv"
    assert ms.to_csv(path) is None
    assert [float(n) for n in pd.read_csv(path, parse_dates=["time"])["task"].dropna()][0] == first["task"]
    assert abs(datetime.fromisoformat(path.read_text().splitlines()[1].split(",")[0]).timestamp() - ms.samples["store"][0][0]) < 1e-3

    with pytest.raises(x.InvalidError, match="label 'store' already"):
        ms.sample("store").__enter__()
    with pytest.raises(x.InvalidError, match="measure='rss'"):
        ms.sample(measure="rss").__enter__()
    with pytest.raises(x.InvalidError, match="interval=0"):
        ms.sample(interval=0).__enter__()
    empty = MemorySampler()
    assert empty.to_pandas().empty
    label = empty.start(interval=0.02)
    until(lambda: len(empty.samples[label]) > 2)
    empty.stop(label)
    assert not any(t.name == "mobula-memory-sampler" for t in threading.enumerate())  # none that would take another
    with pytest.raises(x.InvalidError, match="no samples are being taken"):
        empty.stop(label)


if __name__ == "__main__":
    with mobula.init(num_cpus=2, object_store_memory=64 << 20):
        sampled(sys.argv[1])
