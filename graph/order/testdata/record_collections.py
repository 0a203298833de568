"""Graphs of dask's collections for record.py: as they are built, and as they are run."""

import operator

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.base import collections_to_expr

arrays = {}
frames = {}
others = {}


def into(where):
    def add(f):
        where[f.__name__] = f
        return f

    return add


@into(arrays)
def anom_mean():
    x = da.ones((60, 6, 4), chunks=(5, 3, -1))
    months = [x[i::12] for i in range(12)]
    anom = [m - m.mean(axis=0) for m in months]
    return da.concatenate(anom).mean(axis=0)


@into(arrays)
def standardised():
    x = da.ones((40, 40), chunks=(10, 10))
    return (x - x.mean(axis=0)) / x.std(axis=0)


@into(arrays)
def total():
    return da.ones((1000,), chunks=(10,)).sum()


@into(arrays)
def total_split_every():
    return da.ones((64, 64), chunks=(8, 8)).sum(split_every=2)


@into(arrays)
def several_totals():
    x = da.ones((40, 40), chunks=(10, 5))
    return [x.sum(), x.mean(axis=0), x.max(axis=1), x.var()]


@into(arrays)
def argument_of_maximum():
    return da.ones((40, 40), chunks=(10, 10)).argmax(axis=1)


@into(arrays)
def tensordot():
    a = da.ones((40, 40), chunks=(10, 10))
    return da.tensordot(a, a.T, axes=((1,), (0,)))


@into(arrays)
def product():
    a = da.ones((50, 40), chunks=(10, 10))
    return (a @ a.T).sum(axis=0)


@into(arrays)
def gram_of_sliced():
    x = da.ones((80, 20), chunks=(8, 10))
    return x[::2].T @ x[1::2]


@into(arrays)
def rechunk():
    return da.ones((60, 60), chunks=(6, 60)).rechunk((60, 6))


@into(arrays)
def rechunk_in_steps():
    return da.ones((64, 64, 4), chunks=(1, 64, 4)).rechunk((64, 2, 4), threshold=2, block_size_limit=4096).sum(axis=2)


@into(arrays)
def overlap():
    x = da.ones((48, 48), chunks=(8, 8))
    return x.map_overlap(lambda b: b, depth=1, boundary="reflect")


@into(arrays)
def overlap_twice():
    x = da.ones((60,), chunks=(5,))
    for _ in range(3):
        x = x.map_overlap(lambda b: b * 2, depth=1, boundary="periodic")
    return x.sum()


@into(arrays)
def cumulated():
    x = da.ones((60, 4), chunks=(4, 2))
    return x.cumsum(axis=0)


@into(arrays)
def cumulated_blelloch():
    return da.cumsum(da.ones((64,), chunks=(4,)), axis=0, method="blelloch")


@into(arrays)
def singular_values():
    return list(da.linalg.svd(da.ones((80, 4), chunks=(8, 4))))


@into(arrays)
def triangular_factors():
    return list(da.linalg.qr(da.ones((80, 4), chunks=(8, 4))))


@into(arrays)
def cholesky():
    return da.linalg.cholesky(da.eye(40, chunks=8) * 2)


@into(arrays)
def solved():
    a = da.eye(32, chunks=8) * 2
    return da.linalg.solve(a, da.ones((32,), chunks=8))


@into(arrays)
def stacked_and_taken():
    x = da.stack([da.ones((20, 20), chunks=(5, 5)) + i for i in range(4)])
    return x.transpose((1, 0, 2))[::-1, :, [1, 7, 3]].mean(axis=1)


@into(arrays)
def shuffled():
    x = da.arange(60, chunks=6)
    return x[np.arange(60)[::-1]] + x


@into(arrays)
def histogram():
    counts, _ = da.histogram(da.ones((200,), chunks=10), bins=4, range=(0, 2))
    return counts


@into(arrays)
def convolved():
    return da.fft.fft(da.ones((32, 32), chunks=(4, 32)), axis=1).rechunk((32, 4)).sum(axis=0)


@into(arrays)
def coarse():
    return da.coarsen(np.mean, da.ones((64, 64), chunks=(8, 16)), {0: 2, 1: 4}).std()


@into(arrays)
def iterated():
    x = da.ones((40, 5), chunks=(8, 5))
    b = da.zeros((5,), chunks=5)
    for _ in range(4):
        b = b - 0.1 * (x.T @ (x @ b - 1))
    return b


@into(arrays)
def rotated():
    """The graph of dask's test_connected_roots_deduplication_mem_usage."""
    x = da.ones((10_000, 100), chunks=(5_000, -1))
    u, _, _ = da.linalg.svd_compressed(x, k=100, compute=False, seed=1)
    r = np.eye(100)
    for _ in range(2):
        basis = u @ r
        squared = basis * basis.conj()
        turned = u.conj().T @ (squared * basis - (1e-4 * basis @ np.diag(np.sum(squared, axis=0))))
        left, _, right = da.linalg.svd_compressed(turned, k=100, compute=False, seed=1)
        r = left @ right
    return u @ r


def frame(n=8, rows=80):
    return dd.from_pandas(
        pd.DataFrame({"k": np.arange(rows) % 7, "v": np.arange(rows, dtype=float), "w": np.arange(rows)[::-1]}),
        npartitions=n,
    )


@into(frames)
def set_index():
    return frame().set_index("w", divisions=[0, 20, 40, 60, 79], shuffle_method="tasks")


@into(frames)
def shuffle():
    return frame(9).shuffle("k", shuffle_method="tasks", max_branch=3)


@into(frames)
def shuffle_in_one():
    return frame(6).shuffle("k", shuffle_method="tasks").map_partitions(lambda x: x)


@into(frames)
def merge():
    return frame(5).merge(frame(4), on="k", shuffle_method="tasks")


@into(frames)
def merge_with_one():
    return frame(6).merge(frame(1, 10), on="k")


@into(frames)
def merge_and_group():
    return frame(4).merge(frame(3), on="k", shuffle_method="tasks").groupby("k").v_x.sum()


@into(frames)
def groupby():
    return frame().groupby("k").v.mean()


@into(frames)
def groupby_split_out():
    return frame(6).groupby("k").agg({"v": ["sum", "mean"], "w": "max"}, split_out=3)


@into(frames)
def groupby_apply():
    return frame(5).groupby("k").v.apply(lambda x: x, meta=("v", float))


@into(frames)
def cumulated_frame():
    return frame(6).v.cumsum()


@into(frames)
def rolling():
    return frame(6).v.rolling(3).mean()


@into(frames)
def description():
    return frame(5).describe()


@into(frames)
def distinct():
    x = frame(10)
    return x.k.drop_duplicates().sum() + x.v.max()


@into(frames)
def concatenated():
    return dd.concat([frame(3), frame(4)]).v.sum()


@into(frames)
def normalised():
    x = frame(6)
    return (x - x.mean()) / x.std()


@into(others)
def words():
    b = db.from_sequence(range(60), npartitions=12)
    return b.map(lambda x: x % 5).frequencies()


@into(others)
def folded():
    return db.from_sequence(range(60), npartitions=15).fold(operator.add, split_every=3)


@into(others)
def grouped_bag():
    return db.from_sequence(range(60), npartitions=6).groupby(lambda x: x % 3, shuffle="tasks")


@into(others)
def bag_product():
    b = db.from_sequence(range(20), npartitions=4)
    return b.product(b.map(lambda x: x + 1)).filter(lambda x: x[0] > 3)


@into(others)
def statistics():
    b = db.from_sequence(range(60), npartitions=10).map(lambda x: x + 1)
    return [b.sum(), b.mean(), b.std(), b.topk(4)]


@into(others)
def delayed_tree():
    level = [dask.delayed(i) for i in range(37)]
    add = dask.delayed(operator.add)
    while len(level) > 1:
        level = [add(*level[i : i + 2]) if len(level[i : i + 2]) == 2 else level[i] for i in range(0, len(level), 2)]
    return level[0]


@into(others)
def delayed_lists():
    f = dask.delayed(lambda *x: x, pure=False)
    rows = [f(i) for i in range(12)]
    return f([f(r, rows[i - 1]) for i, r in enumerate(rows)], {"a": rows[0], "b": [rows[1], f(rows)]})


@into(others)
def delayed_pipelines():
    load, work, save = (dask.delayed(lambda *x: x, pure=False) for _ in range(3))
    model = load()
    return [save(work(load(), model), i) for i in range(25)]


@into(others)
def delayed_search():
    fit, score, best = (dask.delayed(lambda *x: x, pure=False) for _ in range(3))
    parts = [fit(i) for i in range(6)]
    tried = [score(fit(parts[:k] + parts[k + 1 :], c), parts[k]) for k in range(6) for c in range(5)]
    return best(tried)


def graphs():
    for kind, where in ("array", arrays), ("dataframe", frames), ("bag", others):
        for name, make in where.items():
            made = make()
            made = made if isinstance(made, list) else [made]
            for how in (False, True):
                expr = collections_to_expr(made, optimize_graph=how)
                if how:
                    expr = expr.optimize()
                else:
                    expr = expr.lower_completely()
                dsk = expr.__dask_graph__()
                yield f"{kind}/{name}/{'run' if how else 'built'}", dsk
