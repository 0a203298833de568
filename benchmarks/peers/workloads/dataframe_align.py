"""The mean difference of two time series of different years and lengths, whose partitions are aligned by their index."""

from __future__ import annotations

from typing import Any

from ..collection import queuing
from ..measure import expect
from ..workload import Params

PARTITION = "12h"


def _build(p: Params) -> tuple[Any, Any]:
    import pandas as pd
    from dask.datasets import timeseries

    def frame(start: str, partitions: int) -> Any:
        end = pd.Timestamp(start) + pd.Timedelta(PARTITION) * partitions
        return timeseries(start=start, end=str(end), freq=p["freq"], partition_freq=PARTITION,
                          dtypes={str(i): float for i in range(p["columns"])}, seed=1)

    late, early = frame("2020-01-01", 2 * p["partitions"]), frame("2010-01-01", p["partitions"])

    def check(result: Any) -> None:  # the two series have no time in common
        expect((len(result), bool(result.isna().all())), (p["columns"], True))

    return (early - late).mean(), check


WORKLOADS = [queuing("dataframe-align", "the mean difference of 50 and 100 partitions of 17 MB", _build,
                     {"partitions": 50, "freq": "2s", "columns": 100}, {"partitions": 5, "freq": "60s", "columns": 5})]
