"""The slides' example of Dask-ML, run here: make dask-ml

It has a virtual environment of its own, and is in no other run of the tests (see dask_ml_requirements.txt).
"""

from __future__ import annotations

from typing import Any, Iterator

import dask
import numpy as np
import pytest
from dask_ml.datasets import make_classification
from dask_ml.linear_model import LogisticRegression

import mobula
from mobula.dask import _ship
from mobula.dask import get as ray_dask_get


@pytest.fixture
def shipped() -> Iterator[list[_ship.Shipped]]:
    """The graphs that went to the node."""
    seen: list[_ship.Shipped] = []
    with mobula.init(num_cpus=2, object_store_memory=64 << 20), dask.config.set(scheduler=ray_dask_get):
        _ship.observers.append(seen.append)
        yield seen
        _ship.observers.remove(seen.append)


def test_dask_ml_learns_what_scikit_learn_learns(shipped: list[_ship.Shipped]) -> None:
    from sklearn.linear_model import LogisticRegression as OfScikitLearn

    train, labels = make_classification(n_samples=2000, n_features=5, random_state=0, chunks=500)
    lr = LogisticRegression()
    lr.fit(train, labels)
    score = float(lr.score(train, labels))
    assert len(shipped) > 10 and sum(ran(s) for s in shipped) > 100, "it was computed elsewhere"
    rows, classes = dask.compute(train, labels)
    there = OfScikitLearn().fit(rows, classes)
    assert score == pytest.approx(there.score(rows, classes), abs=0.02)
    assert np.corrcoef(lr.coef_, there.coef_[0])[0, 1] > 0.99


def ran(s: _ship.Shipped) -> Any:
    """How many tasks of the graph ran in workers."""
    if s.graph is None:
        return 0
    summary = s.graph.summary()
    assert summary is not None
    return summary["ran"]
