"""Views and slices cost what they show, at the top and in containers, wherever a value goes."""

from __future__ import annotations

import array
import ctypes
import dataclasses
import pickle
import sys
from typing import Any, Callable, Iterator

import cloudpickle
import pytest

import mobula
from mobula import _value
from mobula._value import views

np = pytest.importorskip("numpy")
cloudpickle.register_pickle_by_value(sys.modules[__name__])

WHOLE = 1 << 20  # elements of what the views are of


@dataclasses.dataclass
class Box:
    it: Any


IN: dict[str, Callable[[Any], Any]] = {
    "top": lambda x: x, "list": lambda x: [x], "dict": lambda x: {"a": x}, "tuple": lambda x: (1, x), "dataclass": Box, "deep": lambda x: [{"a": (Box(x),)}]}


def out_of(x: Any) -> Any:
    while True:
        if isinstance(x, Box):
            x = x.it
        elif isinstance(x, dict):
            x = x["a"]
        elif type(x) in (list, tuple):
            x = x[-1]
        else:
            return x


def big() -> Any:
    return np.arange(WHOLE)


def mat() -> Any:
    return np.arange(float(WHOLE)).reshape(1024, 1024)


def records() -> Any:
    return np.zeros(WHOLE // 4, dtype=[("a", "i8"), ("b", "f4"), ("c", "S20")])


class Sub(np.ndarray):  # type: ignore[misc, name-defined]
    pass


ARRAYS: dict[str, Callable[[], Any]] = {
    "slice": lambda: big()[:1000], "step": lambda: big()[::1000], "backwards": lambda: big()[999::-1], "window": lambda: mat()[:30, :30],
    "transposed": lambda: mat()[:30, :30].T, "fortran": lambda: np.asfortranarray(mat()[:50, :50]), "diagonal": lambda: np.diagonal(mat()),
    "field": lambda: records()["b"][:1000], "records": lambda: records()[:100], "fields": lambda: records()[["a", "b"]][:1000],
    "fields of steps": lambda: records()[["a", "c"]][::100], "fields of times": lambda: np.zeros(5000, [("a", "M8[s]"), ("b", "S90"), ("c", ">i4")])[["a", "c"]], "big endian": lambda: big().astype(">i8")[:100], "times": lambda: big().view("M8[ns]")[::1000],
    "real": lambda: big()[:2000].view("c16").real, "texts": lambda: np.full(100_000, "abc")[:100], "no dimension": lambda: big()[5:6].reshape(()),
    "masked": lambda: np.ma.masked_array(big()[:1000], mask=big()[:1000] > 5), "subclass": lambda: big().view(Sub)[::1000],
    "recarray": lambda: records()[:100].view(np.recarray), "matrix": lambda: mat()[:10, :10].view(np.matrix)}
# Arrays that repeat themselves, and the bytes of what they repeat.
REPEATED: dict[str, tuple[Callable[[], Any], int]] = {
    "a number": (lambda: np.broadcast_to(np.float64(3), (1 << 27,)), 8),
    "a row": (lambda: np.broadcast_to(np.arange(10.0), (100_000, 10)), 80),
    "a column": (lambda: np.broadcast_to(np.arange(1000.0)[:, None], (1000, 1000)), 8000),
    "steps": (lambda: np.broadcast_to(np.arange(1000)[::10], (5000, 100)), 800),
    "big endian": (lambda: np.broadcast_to(np.array(3, ">i4"), (2, 3, 5000)), 4),
    "times": (lambda: np.broadcast_to(np.datetime64("2026-11-29", "ns"), (5000,)), 8),
    "texts": (lambda: np.broadcast_to(np.array("text"), (5000,)), 16),
    "records": (lambda: np.broadcast_to(np.zeros((), [("a", "i8"), ("b", "S5")]), (5000,)), 13)}


def cost(x: Any) -> int:
    return _value.encode(x, 1 << 12).size


def decoded(x: Any) -> tuple[Any, Any]:
    e = _value.encode(x, 1 << 40)
    assert e.data is not None
    return _value.decode(e.meta, e.data), _value.decode_own(e.meta, e.data)


@pytest.mark.parametrize("how", IN)
@pytest.mark.parametrize("kind", ARRAYS)
def test_an_array_costs_what_it_shows(kind: str, how: str) -> None:
    a = ARRAYS[kind]()
    shown = sum(a[name].nbytes for name in a.dtype.names) if a.dtype.names else a.nbytes
    held = IN[how](a)
    assert cost(held) <= 1.1 * shown + 4096
    ordinary = pickle.loads(pickle.dumps(a, 5))
    for b in map(out_of, decoded(held)):
        assert type(b) is type(a) and b.dtype == a.dtype and b.shape == a.shape and np.array_equal(b, a)
        assert (b.flags.c_contiguous, b.flags.f_contiguous) == (ordinary.flags.c_contiguous, ordinary.flags.f_contiguous)
    assert out_of(_value.decode_own(*_whole(held))).flags.writeable


def _whole(x: Any) -> tuple[bytes, bytes]:
    e = _value.encode(x, 1 << 40)
    assert e.data is not None
    return e.meta, e.data


@pytest.mark.parametrize("how", IN)
@pytest.mark.parametrize("kind", REPEATED)
def test_an_array_that_repeats_itself_costs_what_it_repeats(kind: str, how: str) -> None:
    make, once = REPEATED[kind]
    a = make()
    held = IN[how](a)
    assert cost(held) <= 1.1 * once + 4096
    b = out_of(_value.decode(*_whole(held)))
    assert b.dtype == a.dtype and b.shape == a.shape and b[-1:].tobytes() == a[-1:].tobytes() and not b.flags.writeable
    if a.nbytes < 1 << 24:
        assert np.array_equal(a, b)
        own = out_of(_value.decode_own(*_whole(held)))
        assert own.flags.writeable and own.flags.c_contiguous and own.dtype == a.dtype and np.array_equal(own, a)


def test_what_repeats_itself_but_little_is_pickled_as_ever() -> None:
    for a in (np.broadcast_to(np.float64(3), (10,)), np.broadcast_to(np.array([None]), (5000,)), np.lib.stride_tricks.sliding_window_view(big()[:200], 10)):
        b = _value.decode(*_whole([a]))[0]
        assert np.array_equal(a, b) and b.flags.c_contiguous


def test_a_struct_with_padding_is_read_in_place() -> None:
    """Only a view's gaps may be other fields of something larger."""
    a = np.zeros(5000, np.dtype([("a", "i8"), ("b", "i1")], align=True))
    a["b"] = 7
    e = _value.encode([a], 10)
    assert e.size >= a.nbytes
    b = _value.decode(*_whole([a]))[0]
    assert b.dtype == a.dtype and b.dtype.itemsize == 16 and np.array_equal(a, b) and not b.flags.owndata


def other_values() -> Iterator[tuple[str, Any, int]]:
    whole = bytearray(1 << 20)
    yield "bytearray", whole[:1000], 1000
    yield "memoryview", memoryview(whole)[:1000], 1000
    yield "memoryview with steps", memoryview(whole)[::1000], 1049
    yield "array", array.array("d", bytes(1 << 20))[:1000], 8000
    yield "ctypes", (ctypes.c_double * 1000)(1, 2, 3), 8000


@pytest.mark.parametrize("kind, x, shown", list(other_values()), ids=lambda v: v if isinstance(v, str) else "")
def test_a_buffer_costs_what_it_shows(kind: str, x: Any, shown: int) -> None:
    for wrap in IN.values():
        assert cost(wrap(x)) <= 1.1 * shown + 4096
        back = out_of(decoded(wrap(x))[0])
        assert bytes(back) == bytes(x)
    if kind == "ctypes":
        assert type(back) is type(x)


def frames() -> dict[str, tuple[Any, int]]:
    pd = pytest.importorskip("pandas")
    df, wide = pd.DataFrame({f"c{i}": np.arange(50_000) * 1.0 for i in range(8)}), pd.DataFrame(mat())
    names = pd.Series([f"name {i}" for i in range(50_000)])  # 100 are 690 bytes of text, and an offset of 8 bytes for each
    return {
        "rows": (df.iloc[:1000], 64_000), "steps": (df.iloc[::100], 32_000 + 4000), "columns": (df[["c1"]], 400_000), "wide rows": (wide.iloc[:5], 40_960),
        "wide column": (wide[3], 8192), "wide window": (wide.iloc[:5, :5], 200), "series": (df["c1"].iloc[:1000], 8000), "index": (pd.Index(big())[:1000], 8000),
        "names": (names.iloc[:100], 1490), "objects": (names.astype(object).iloc[:100], 1500), "nullable": (pd.Series(pd.array(big())).iloc[:1000], 9000),
        "categories": (pd.Series(pd.Categorical(["a", "b"] * 50_000)).iloc[:1000], 1000),
        "repeated": (pd.DataFrame({"a": pd.Series(np.broadcast_to(np.float64(2), 50_000), copy=False)}), 400_000)}


@pytest.mark.parametrize("how", ["top", "list", "deep"])
def test_a_frame_costs_what_it_shows(how: str) -> None:
    for kind, (x, shown) in frames().items():
        held = IN[how](x)
        assert cost(held) <= 1.1 * shown + 4096, kind
        for y in map(out_of, decoded(held)):
            assert x.equals(y), kind


def arrow_values() -> dict[str, Any]:
    pa = pytest.importorskip("pyarrow")
    n = 100_000
    texts = [f"a text that is longer than a view has room for: {i % 100}" for i in range(n)]
    table = pa.table({"a": np.arange(n), "s": texts})
    unions = pa.array([0] * n, pa.int8()), [pa.array(range(n))]
    whole = {
        "numbers": pa.array(range(n)), "texts": pa.array(texts), "large texts": pa.array(texts, pa.large_string()), "lists": pa.array([[1, 2, 3]] * n),
        "dictionary": pa.array(["a", "b"] * (n // 2)).dictionary_encode(), "bools": pa.array([True, None] * n), "structs": pa.array([{"a": 1, "b": "x"}] * n),
        "fixed lists": pa.array([[1, 2]] * n, pa.list_(pa.int64(), 2)), "maps": pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        "text views": pa.array(texts, pa.string_view()), "list views": pa.array([list(range(20))] * n, pa.list_view(pa.int64())),
        "sparse union": pa.UnionArray.from_sparse(*unions), "dense union": pa.UnionArray.from_dense(unions[0], pa.array(range(n), pa.int32()), unions[1]),
        "extension": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16] * n, pa.binary(16))), "table": table, "batch": table.to_batches()[0],
        "chunked": table["s"]}
    return {k: v.slice(50, 20) for k, v in whole.items()}


@pytest.mark.parametrize("how", IN)
def test_an_arrow_slice_costs_what_it_shows(how: str) -> None:
    for kind, x in arrow_values().items():
        held = IN[how](x)
        assert cost(held) <= 1.1 * 20 * 24 * 8 + 4096, kind
        back = out_of(decoded(held)[0])
        assert type(back) is type(x) and back.equals(x) and str(getattr(back, "type", "")) == str(getattr(x, "type", "")), kind


def test_an_arrow_value_that_shows_all_it_has_is_not_copied() -> None:
    pa = pytest.importorskip("pyarrow")
    a = pa.array(np.arange(WHOLE))
    for x in (a, a.slice(1), pa.chunked_array([a, a.slice(5)])):
        e = _value.encode([x], 10)
        first = max((part for _, part in e.parts), key=len)
        assert np.frombuffer(first, "u1").ctypes.data == a.buffers()[1].address


def test_a_column_of_a_users_type_costs_what_it_shows() -> None:
    pa = pytest.importorskip("pyarrow")

    class Metres(pa.ExtensionType):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(pa.float64(), "test.metres")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> Any:
            return cls()

    t = pa.table({"a": pa.ExtensionArray.from_storage(Metres(), pa.array(np.arange(100_000.0)))}).slice(7, 5)
    assert cost(t) <= 8192 and cost(t.to_batches()[0]) <= 8192 and cost([t]) <= 8192


def closure(a: Any) -> Callable[[], Any]:
    return lambda: a


def test_what_a_function_captures_costs_what_it_shows() -> None:
    for x in (big()[:10], big()[::100_000], np.broadcast_to(np.float64(3), (1 << 27,)), *(v for v in (arrow_values()["texts"], arrow_values()["table"]))):
        data = _value.pickler_for_functions(closure(x), [])
        assert len(data) < 8192
        y = pickle.loads(data)()
        assert y.equals(x) if hasattr(y, "equals") else y.shape == x.shape and y[-1] == x[-1]


def test_the_programs_own_pickles_are_as_ever() -> None:
    a = np.broadcast_to(np.float64(3), (10_000,))
    _value.encode([a], 10)
    for protocol in range(2, 6):
        assert b"mobula" not in pickle.dumps(a, protocol)
    assert b"mobula" not in cloudpickle.dumps(a)


def test_reducers_that_the_program_registers_are_used() -> None:
    import copyreg

    class Mine:
        pass

    _value.encode([np.zeros(3), Box(1)], 10)
    copyreg.pickle(Mine, lambda x: (str, ("mine",)))  # type: ignore[arg-type, return-value]
    try:
        assert _value.decode(*_whole([Mine(), np.zeros(3)]))[0] == "mine"
    finally:
        del copyreg.dispatch_table[Mine]
    copyreg.pickle(np.ndarray, lambda x: (str, ("theirs",)))
    try:
        assert _value.decode(*_whole([np.zeros(3)])) == ["theirs"]
    finally:
        del copyreg.dispatch_table[np.ndarray]
    assert len(_value.decode(*_whole([np.zeros(3)]))[0]) == 3


def test_which_values_are_obviously_plain() -> None:
    for x in ([], {}, (), [1, "a", None, 2.5, b"x", True], {"a": 1, 2: "b"}, ((1, 2), [3]), {"a": {"b": [1]}}):
        assert views.obviously_plain(x) and _value.decode(*_whole(x)) == x
    shared: list[Any] = [1]
    loop: list[Any] = []
    loop.append(loop)
    for y in ([np.zeros(1)], {"a": Box}, {Box: 1}, loop, [1j, object], list(range(100)), np.zeros(1), Sub, {1}, [[[[1]]]]):
        assert not views.obviously_plain(y)
    twice = _value.decode(*_whole([shared, shared]))
    assert twice[0] is twice[1]


# ---- with a node: each way that a value goes


@pytest.fixture(scope="module")
def node(binary: str) -> Iterator[None]:
    with mobula.init(num_cpus=2, object_store_memory=128 << 20):
        yield


@mobula.remote
def same(x: Any) -> Any:
    return x


@mobula.remote
def made(kind: str) -> Any:
    return {"it": views_by_name()[kind]()}


@mobula.remote(num_returns="streaming")
def stream(kind: str) -> Any:
    yield views_by_name()[kind]()
    yield [views_by_name()[kind]()]


def views_by_name() -> dict[str, Callable[[], Any]]:
    return {"steps": lambda: np.arange(1 << 20)[::1000], "repeated": lambda: np.broadcast_to(np.float64(3), (1 << 27,)), "arrow": _arrow}


def _arrow() -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.array(np.arange(1 << 20)).slice(7, 2000)


@pytest.mark.parametrize("kind", ["steps", "repeated", "arrow"])
def test_a_view_costs_what_it_shows_wherever_it_goes(node: None, kind: str) -> None:
    """The store has 128 MiB: no value of 1 GiB fits."""
    x = views_by_name()[kind]()

    def check(y: Any) -> None:
        assert y.equals(x) if hasattr(x, "equals") else y.shape == x.shape and y[0] == x[0] and y[-1] == x[-1] and y.dtype == x.dtype

    check(mobula.get(mobula.put(x)))
    check(mobula.get(mobula.put({"a": x}))["a"])
    check(mobula.get(same.remote([x]))[0])
    check(mobula.get(same.remote(x)))
    check(mobula.get(made.remote(kind))["it"])
    first, second = (mobula.get(r) for r in stream.remote(kind))
    check(first)
    check(second[0])
    check(mobula.get(mobula.remote(closure(x)).remote()))


def test_a_view_in_a_dask_graph_costs_what_it_shows(node: None) -> None:
    pytest.importorskip("dask")
    from dask.task_spec import Task

    from mobula import _runtime
    from mobula._graphs import Builder
    from mobula.dask import _payload, _ship

    client = _runtime.client()
    writer = _payload.Writer(Builder(client, _ship._runner), client)
    for kind in views_by_name():
        x = views_by_name()[kind]()
        for f in (len, lambda _: 0):  # named, and pickled by cloudpickle
            data, outer = writer.payload([(Task("t", f, [x]), ())], (), {})
            assert len(data) < 24_000 and not outer, kind
            [(again, _)], _, _ = _payload.load(data, ())
            assert again.args[0][0].shape == x.shape if hasattr(x, "shape") else again.args[0][0].equals(x)
