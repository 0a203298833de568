"""How much memory a computation takes, over time."""

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

    samples has, for each label, pairs of a Unix time in seconds and bytes. A series is of the node that the program is connected to
    when it begins, and ends with that connection at the latest.
    """

    def __init__(self) -> None:
        self.samples: dict[str, list[tuple[float, int]]] = {}
        self._running: dict[str, tuple[threading.Thread, threading.Event]] = {}

    @contextlib.contextmanager
    def sample(self, label: Optional[str] = None, *, measure: str = "process", interval: float = 0.5) -> Iterator[None]:
        """Samples every interval seconds, and once at the begin and at the end.

        label: of the series, by default a new one; it must not be in use. measure: "process" is the memory of the node, its
        drivers and its workers, each page of the object store counted once; "managed" what objects have of the store; "spilled"
        what they have in spill storage.
        """
        label = self.start(label, measure=measure, interval=interval)
        try:
            yield
        finally:
            self.stop(label)

    def start(self, label: Optional[str] = None, *, measure: str = "process", interval: float = 0.5) -> str:
        """Begins a series as sample does, which goes on until stop, and gives its label."""
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
        """Ends a series with a last sample, if the connection is still there."""
        if label not in self._running:
            raise InvalidError(f"no samples are being taken with the label {label!r}")
        thread, over = self._running.pop(label)
        over.set()
        thread.join()

    def to_pandas(self, *, align: bool = False) -> pd.DataFrame:
        """One column a label, one row a time. Between the first and the last sample of a label, gaps have the value before them.

        align: times are differences to each label's first sample, so that the labels can be compared.
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
        """The frame of to_pandas, with its times as the first column, "time"."""
        import pyarrow as pa

        table: pa.Table = pa.Table.from_pandas(self.to_pandas(align=align).rename_axis("time").reset_index(), preserve_index=False)
        return table

    def to_csv(self, path: Any = None, *, align: bool = False) -> Optional[str]:
        """The table of to_arrow in a file, or as text where there is no path. Times are ISO 8601, in UTC, or where they are aligned
        seconds."""
        text: Optional[str] = self._seconds(align).to_csv(path, index_label="time", date_format="%Y-%m-%dT%H:%M:%S.%fZ")
        return text

    def plot(self, *, align: bool = False, **options: Any) -> Any:
        """The series in GiB over time, drawn by matplotlib; options are those of pandas.DataFrame.plot, whose result this
        gives."""
        return (self._seconds(align) / 2**30).plot(**{"xlabel": "time (s)" if align else "time", "ylabel": "memory (GiB)", **options})

    def _seconds(self, align: bool) -> pd.DataFrame:
        """The frame of to_pandas, where times are aligned by the second."""
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
