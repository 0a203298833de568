"""Samples how much memory a computation takes over time."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional

from .. import _runtime
from .._api import request
from .._client import Client
from ..exceptions import InvalidError, MobulaError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

log = logging.getLogger("mobula")

MEASURES: Mapping[str, Callable[[Mapping[str, int]], int]] = {
    "process": lambda u: u["private"] + u["backed"],
    "managed": lambda u: u["held"],
    "spilled": lambda u: u["spilled"],
}


class MemorySampler:
    """Samples the memory of the node and of its programs while a block of code runs.

        ms = MemorySampler()
        with ms.sample("with spilling"):
            mobula.get(work())
        ms.to_pandas(align=True).max() / 2**30
        ms.plot(align=True)

    The attribute samples has, for each label, a list of pairs (Unix time in seconds, bytes). A series samples the node that the program is
    connected to when it starts, and ends with that connection at the latest.
    """

    def __init__(self) -> None:
        self.samples: dict[str, list[tuple[float, int]]] = {}
        self._running: dict[str, tuple[threading.Thread, threading.Event]] = {}

    @contextlib.contextmanager
    def sample(self, label: Optional[str] = None, *, measure: str = "process", interval: float = 0.5) -> Iterator[None]:
        """Takes samples in a with block: at its begin, every interval seconds, and at its end.

        label: of the series; by default a unique one. measure: "process" is the memory of the node, its drivers and its workers,
        with each page of the object store counted once; "managed" is the memory of objects in the store; "spilled" is their size in
        spill storage. InvalidError for another measure, a label in use, or an interval that is not above 0.
        """
        label = self.start(label, measure=measure, interval=interval)
        try:
            yield
        finally:
            self.stop(label)

    def start(self, label: Optional[str] = None, *, measure: str = "process", interval: float = 0.5) -> str:
        """Starts a series as sample does, and returns its label. It goes on until stop."""
        if measure not in MEASURES:
            raise InvalidError(f"measure={measure!r}: want one of {', '.join(MEASURES)}")
        if not interval > 0:
            raise InvalidError(f"interval={interval!r}: want a number of seconds above 0")
        label = label or f"sample-{uuid.uuid4()}"
        if label in self.samples:
            raise InvalidError(f"there are samples with the label {label!r} already")
        client = _runtime.client()
        series = [_look(client, measure)]
        self.samples[label] = series
        over = threading.Event()
        thread = threading.Thread(target=_watch, args=(client, series, measure, interval, over),
                                  name="mobula-memory-sampler", daemon=True)
        self._running[label] = thread, over
        thread.start()
        return label

    def stop(self, label: str) -> None:
        """Ends a series with a last sample, unless the connection is gone. InvalidError if the label is not running."""
        if label not in self._running:
            raise InvalidError(f"no samples are being taken with the label {label!r}")
        thread, over = self._running.pop(label)
        over.set()
        thread.join()

    def to_pandas(self, *, align: bool = False) -> pd.DataFrame:
        """Returns a DataFrame with one column of bytes per label and one row per time. Between a label's first and last sample, gaps are filled
        with the value before them.

        align: times are relative to each label's first sample, so that labels can be compared.
        """
        import pandas as pd

        columns = {}
        for label, series in self.samples.items():
            times = pd.to_datetime([t for t, _ in series], unit="s")
            column = pd.Series([float(n) for _, n in series], index=times - times[0] if align else times)
            columns[label] = column[~column.index.duplicated(keep="last")]
        df = pd.DataFrame(columns)
        return df.ffill().where(df.bfill().notna())

    def to_arrow(self, *, align: bool = False) -> pa.Table:
        """Returns the data of to_pandas as a table whose first column is "time"."""
        import pyarrow as pa

        table: pa.Table = pa.Table.from_pandas(self.to_pandas(align=align).rename_axis("time").reset_index(), preserve_index=False)
        return table

    def to_csv(self, path: Any = None, *, align: bool = False) -> Optional[str]:
        """Writes the data of to_pandas as CSV to path, or returns it as text if path is None. The column "time" is ISO 8601 in UTC, or
        seconds with align."""
        text: Optional[str] = self._seconds(align).to_csv(path, index_label="time", date_format="%Y-%m-%dT%H:%M:%S.%fZ")
        return text

    def plot(self, *, align: bool = False, **options: Any) -> Any:
        """Plots the series in GiB over time by matplotlib. options are those of pandas.DataFrame.plot, whose result it returns."""
        return (self._seconds(align) / 2**30).plot(**{"xlabel": "time (s)" if align else "time", "ylabel": "memory (GiB)", **options})

    def _seconds(self, align: bool) -> pd.DataFrame:
        """The frame of to_pandas; with align its times are seconds."""
        df = self.to_pandas(align=align)
        if align:
            df.index = df.index.total_seconds()
        return df


def _look(client: Client, measure: str) -> tuple[float, int]:
    usage = request("node.usage", None, client=client)
    return usage["time"] / 1e9, MEASURES[measure](usage)


def _watch(client: Client, series: list[tuple[float, int]], measure: str, interval: float, over: threading.Event) -> None:
    due = time.monotonic()
    while True:
        due = max(due + interval, time.monotonic())
        last = over.wait(due - time.monotonic())
        try:
            series.append(_look(client, measure))
        except MobulaError as x:
            if client.dead is not None:
                log.warning("the samples of the memory end with the connection: %s", x)
                return
            log.warning("a sample of the memory is missing: %s", x)
        if last:
            return


__all__ = ["MemorySampler"]
