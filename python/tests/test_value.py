"""Values are decoded as they were encoded, and Go can read plain ones."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
import pickle
import sys
import threading
import types
from typing import Any

import cbor2
import cloudpickle
import numpy as np
import pytest

from mobula import _value as v
from mobula._value import arrays, cbor, meta
from mobula._wire.codec import to_wire
from mobula.exceptions import MobulaError, NotDecodableError, NotEncodableError, StoreFullError, TaskError

INLINE = 100 << 10


def flat(e: v.Encoded) -> bytes:
    if e.data is not None:
        assert len(e.data) == e.size
        return e.data
    out = bytearray(e.size)
    for off, part in e.parts:
        raw = bytes(memoryview(part).cast("B"))
        out[off:off + len(raw)] = raw
    return bytes(out)


def trip(x: Any, inline: int = INLINE) -> Any:
    e = v.encode(x, inline)
    return v.decode(e.meta, flat(e))


class Point:
    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and other.x == self.x


@pytest.mark.parametrize("x", [
    None, True, False, 0, 1, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64, 2**200, -1, -24, -25, -256, -257,
    -2**63, -2**63 - 1, 0.0, -1.5, 1e300, float("inf"), "", "text", "ÿ\U0001f600", "\ud800", "x" * 200_000, b"", b"abc", bytes(200_000),
    (1, 2), [1, (2, {3})], {"a": 1, 2: (3,)}, {1, 2}, collections.OrderedDict(a=1), Point(3), bytearray(b"ab"), complex(1, 2), range(3)])
def test_round_trip(x: Any) -> None:
    for inline in (INLINE, 0):
        got = trip(x, inline)
        assert got == x and type(got) is type(x)


def test_cbor_is_what_go_writes() -> None:
    for x in (0, 23, 24, 500, 70_000, 2**40, -1, -500, -2**40, None, True, 1.5, 2**70):
        assert cbor2.loads(flat(v.encode(x, INLINE))) == x
        assert v.decode(v.header(meta.CBOR, name="any"), cbor2.dumps(x)) == x
    assert v.decode(meta.META_FLOAT, cbor2.dumps(1.5, canonical=True)) == 1.5  # Go writes the shortest form
    assert v.decode(meta.META_FLOAT, b"\xf9\x3e\x00") == 1.5
    assert v.decode(v.header(meta.CBOR, name="map[string]int"), cbor2.dumps({"a": [1, b"x"]})) == {"a": [1, b"x"]}
    e = v.encode_plain({"a": [1, 2.5, None, "t", b"b", np.int64(4)]}, INLINE)
    assert cbor2.loads(flat(e)) == {"a": [1, 2.5, None, "t", b"b", 4]}
    with pytest.raises(NotEncodableError, match="Point"):
        v.encode_plain([Point(1)], INLINE)


@pytest.mark.parametrize(("data", "want"), [
    (b"\xc0\x740001-01-01T00:00:00Z", datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)),
    (b"\xc0\x749999-12-31T23:59:59Z", datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)),
    (b"\xc0\x78\x1e2026-01-01T00:00:00.000001999Z", datetime.datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=datetime.UTC)),
    (b"\xc1\x3a\x87\x65\x43\x20", datetime.datetime.fromtimestamp(-2271560481, datetime.UTC)),
    (b"\xc0\x740000-01-01T00:00:00Z", "year"),
    (b"\xc1;00000000", "datetime"),  # the year -110033701419
    (b"\xc1\x1b" + b"\x7f" + 7 * b"\xff", "datetime"),
    (b"\xc1\xfb\x7f\xf8" + 6 * b"\0", "NaN"),
])
def test_times_that_python_does_not_have_are_refused(data: bytes, want: Any) -> None:
    """Go writes the years 0 to 9999, and CBOR has times as numbers of seconds too."""
    for meta_, packed in ((v.header(meta.CBOR, name="time.Time"), data), (v.header(meta.CBOR, name="[]time.Time"), b"\x81" + data)):
        if isinstance(want, str):
            with pytest.raises(NotDecodableError, match=want):
                v.decode(meta_, packed)
            continue
        got = v.decode(meta_, packed)
        assert (got[0] if isinstance(got, list) else got) == want


def test_an_error_of_the_binder_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """cbor2 wraps what its hooks raise."""
    monkeypatch.setattr(cbor, "_bind", cbor._nowhere)
    with pytest.raises(MobulaError, match="outside any cluster") as x:
        cbor.read(cbor2.dumps([cbor2.CBORTag(v.TAG_REF, bytes(24))]))
    assert type(x.value) is NotDecodableError and "semantic" not in str(x.value)


def plain(x: Any) -> Any:
    e = v.encode_plain(x, INLINE)
    assert e.meta[1] != meta.PICKLE
    return v.decode(e.meta, flat(e))


def test_plain_data_is_never_pickled() -> None:
    for x in (None, True, 3, 2**70, -2.5, "text", b"raw", [1, [None, "x"]], {"a": {"b": [1.5]}}, []):
        assert plain(x) == x
    assert plain((1, 2)) == [1, 2] and plain(bytearray(b"ab")) == b"ab"
    assert plain(np.float64(1.5)) == 1.5 and plain(np.array(7)) == 7
    grid = np.arange(12.0).reshape(3, 4)
    for a in (grid, grid.T, grid[::2], grid[:, 1], grid.astype(">f4"), np.empty((3, 0))):
        got = plain(a)
        assert got.dtype == a.dtype.newbyteorder("=") and (a.size == 0 or np.array_equal(got, a))
    assert np.array_equal(plain({"a": grid})["a"], grid)  # inside other data it is a list


@pytest.mark.parametrize("x,name", [
    (Point(1), "test_value.Point"), ([{"a": Point(1)}], "test_value.Point"), (np.array(["a"]), "array of <U1"),
    (np.array([object()]), "array of object"),
    ("\ud800", "surrogates"), (lambda: 1, "function")])
def test_what_is_no_plain_data_is_refused_by_its_name(x: Any, name: str) -> None:
    with pytest.raises(NotEncodableError, match=name):
        v.encode_plain(x, INLINE)


def test_a_pickled_value_names_its_class() -> None:
    for x, name in ((Point(1), b"test_value.Point"), ({"a": 1}, b"dict"), ({"a": np.arange(9.0)}, b"dict"),
                    (collections.OrderedDict(), b"collections.OrderedDict")):
        e = v.encode(x, INLINE)
        assert e.meta[1] == meta.PICKLE and e.meta.endswith(name)


@pytest.mark.parametrize("inline", [INLINE, 0])
def test_arrow_is_read_in_place(inline: int) -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"n": np.arange(1000), "s": pa.array(["a", None, "é"] + ["z"] * 997),
                             "l": pa.array([[1], [], None] + [[2, 3]] * 997)})
    words = pa.chunked_array([["a", "b"], ["a"]]).dictionary_encode()
    table = pa.table({"x": pa.chunked_array([[1, 2], [3]]), "d": words}, metadata={"k": "v"})
    for x in (batch, table, batch.slice(10, 5), table.slice(0, 0)):
        e = v.encode(x, inline)
        assert e.meta[1] == meta.ARROW and v.encode_plain(x, inline).meta == e.meta
        data = flat(e)
        got = v.decode(e.meta, memoryview(data))
        assert type(got) is type(x) and got.equals(x) and got.schema.metadata == x.schema.metadata
    data = flat(v.encode(batch, inline))
    got = v.decode(v.encode(batch, inline).meta, memoryview(data))
    start = np.frombuffer(data, np.uint8).ctypes.data
    assert start <= got.column("n").buffers()[1].address < start + len(data)
    for bad in (b"", b"nonsense", data[:500], data[:-400]):
        with pytest.raises(NotDecodableError):
            v.decode(v.header(meta.ARROW, name="arrow.RecordBatch"), bad)
    two = v.encode(table, inline)
    with pytest.raises(NotDecodableError, match="2 record batches"):
        v.decode(v.header(meta.ARROW, name="arrow.RecordBatch"), flat(two))


@pytest.mark.parametrize("kind", list(arrays._ELEMS.values()))
@pytest.mark.parametrize("shape", [(0,), (5,), (3, 4), (2, 3, 4)])
def test_arrays(kind: str, shape: tuple[int, ...]) -> None:
    a = (np.arange(int(np.prod(shape))).reshape(shape) % 2).astype(kind)
    e = v.encode(a, INLINE)
    assert e.meta[1] == v.ARRAY and e.meta[3] == (len(shape) if len(shape) > 1 else 0) and flat(e) == a.tobytes()
    got = trip(a, 0)
    assert got.dtype == a.dtype and got.shape == shape and (got == a).all() and not got.flags.writeable


def test_arrays_that_go_has_not() -> None:
    for a in (np.array(3.0), np.asfortranarray(np.ones((3, 4))), np.ones(4, ">f8"), np.array(["a", "b"]), np.ones((0, 3)),
              np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]), np.arange(10)[::2], np.array([object()], object)[:0],
              np.array(["2020-01-01"], "M8[D]"), np.ma.masked_array([1, 2], [0, 1])):
        got = trip(a)
        assert got.dtype == a.dtype and got.shape == a.shape and type(got) is type(a) and np.array_equal(got, a)


def test_what_go_wrote() -> None:
    a = v.decode(v.header(v.ARRAY, 11), np.arange(3.0).tobytes())
    assert a.dtype == np.float64 and list(a) == [0, 1, 2]
    b = v.decode(v.header(v.ARRAY, 3, (0, 16)), np.arange(32, dtype="i2").tobytes())  # [][16]int16
    assert b.shape == (2, 16)
    assert v.decode(v.header(v.ARRAY, 6), b"raw") == b"raw"
    assert v.decode(v.header(meta.TEXT, name="app.Name"), b"x") == "x"
    assert v.decode(b"", b"") is None


def test_buffers_lie_aligned_behind_the_stream() -> None:
    x = {"a": np.arange(100_000.0), "b": np.ones(300_000), "c": np.ones(7, "u1")}
    e = v.encode(x, INLINE)
    assert e.data is None and e.size > 3_000_000
    at = {off: memoryview(p).nbytes for off, p in e.parts}
    [small, large] = [next(o for o, n in at.items() if n == size) for size in (800_000, 2_400_000)]
    assert small % 64 == 0 and large % 4096 == 0
    got = v.decode(e.meta, flat(e))
    assert (got["a"] == x["a"]).all() and not got["a"].flags.writeable and not got["c"].flags.writeable
    small_one = trip({"c": np.arange(5)})
    assert not small_one["c"].flags.writeable


def test_what_cannot_be_pickled_is_named() -> None:
    with pytest.raises(NotEncodableError, match=r"dict\['k'\]\[1\].*lock"):
        v.encode({"k": [1, threading.Lock()]}, INLINE)
    p = Point(1)
    p.x = (i for i in ())  # type: ignore[assignment]
    with pytest.raises(NotEncodableError, match=r"Point\.x.*generator"):
        v.encode(p, INLINE)
    lock = threading.Lock()
    with pytest.raises(NotEncodableError, match=r"\.lock"):
        v.pickler_for_functions(lambda: lock, [])


def test_lambdas_and_classes_of_main_go_by_value() -> None:
    assert trip(lambda x: x + 1)(2) == 3


def test_modules_that_cloudpickle_was_told_of_go_by_value(monkeypatch: Any) -> None:
    package, there = types.ModuleType("only"), types.ModuleType("only.there")
    for module in (package, there):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    exec("V = 1\ndef f(): return V\nclass C:\n    v = 1\n    def get(self): return self.v", there.__dict__)

    def sent(x: Any) -> Any:
        """The value in a process that has the module as it was before, or has none."""
        e = v.encode(x, INLINE)
        with monkeypatch.context() as m:
            for module in (package, there):
                m.delitem(sys.modules, module.__name__)
            return v.decode(e.meta, flat(e))

    for x in (there.f, there.C(), [there.C]):
        with pytest.raises(ModuleNotFoundError):
            sent(x)
    cloudpickle.register_pickle_by_value(package)
    try:
        assert sent(there.f)() == 1 and sent(functools.partial(there.f))() == 1
        assert sent({"k": [there.C()]})["k"][0].get() == sent([there.C])[0].v == 1
        assert trip({"only": "text"}) == {"only": "text"} and trip(collections.OrderedDict(a=1)) == {"a": 1}
    finally:
        cloudpickle.unregister_pickle_by_value(package)
    with pytest.raises(ModuleNotFoundError):
        sent(there.f)


def test_malformed_values() -> None:
    for raw, data in [(b"\x01", b""), (b"\x02\x01\x06\x00", b""), (b"\x01\x01\x63\x00", b""), (b"\x01\x01\x0b\x00", b"123"), (b"\x01\x01\x0b\x02\x80", b""),
                       (b"\x01\x01\x0b\x02\x03\x03", bytes(16)), (b"\x01\x04\x00\x00x.Y", b""), (v.header(meta.PICKLE, 0, (9000, 2)), b"abc"),
                       (v.header(meta.PICKLE, 0, (1,)), b"abc")]:
        with pytest.raises(NotDecodableError):
            v.decode(raw, data)


class Odd(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")
        self.a = a


class Keyed(Exception):
    def __init__(self, *, a: int) -> None:
        super().__init__("keyed")
        self.a = a


class Garbled(Exception):
    """Its constructor can be called with its arguments, and gives another text then."""

    def __init__(self, a: str) -> None:
        super().__init__(f"it is {a}")


class Gone(OSError):
    def __init__(self, path: str, *, why: str) -> None:
        super().__init__(2, why, path)
        self.lock = threading.Lock()


class Coded(Exception):
    """It has fields of the names that a MobulaError has."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code, self.message, self.name, self.task, self.causes = code, 1, 2, [3], 4


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    a: int
    b: int


class Many(ExceptionGroup):  # type: ignore[type-arg]
    def __new__(cls, *errors: Exception, why: str) -> Many:
        x = super().__new__(cls, "many", errors)
        x.why = why
        return x

    why: str

    def __init__(self, *errors: Exception, why: str) -> None:
        pass


def no_room(raw: bytes) -> Any:
    raise StoreFullError(f"{len(raw)} bytes")


def through(x: BaseException) -> Any:
    def here() -> None:
        raise x

    try:
        here()
    except BaseException as raised:
        return v.task_failure(v.failure("f", "00", raised, raised.__traceback__, no_room, []))


@pytest.mark.parametrize("x", [Odd(1, 2), Keyed(a=1), Garbled("x"), Gone("/nowhere", why="moved"), Coded("teapot"), Frozen(1, b=2)])
def test_exceptions_whose_constructors_cannot_be_called_again(x: Exception) -> None:
    got = through(x)
    assert isinstance(got, TaskError) and isinstance(got, type(x)) and type(got.cause) is type(x) and str(got.cause) == str(x)
    again = pickle.loads(pickle.dumps(got))
    for e in (got, got.cause, again, again.cause):
        assert e.args == x.args
        assert {k: w for k, w in vars(x).items() if k not in vars(MobulaError("")) and k != "lock"}.items() <= vars(e).items()
    outer = through(got)  # one task's is another's
    assert isinstance(outer.cause, type(x)) and outer.message.startswith("f: TaskError(")


def test_fields_of_exceptions() -> None:
    for x in (FileNotFoundError(2, "no", "a", None, "b"), Gone("/nowhere", why="moved")):
        got = through(x)
        for e in (got, got.cause, pickle.loads(pickle.dumps(got))):
            assert (e.errno, e.strerror, e.filename, e.filename2) == (2, x.strerror, x.filename, x.filename2)
    for got in (through(ImportError("no", name="mod", path="p")), pickle.loads(pickle.dumps(through(ImportError("no", name="mod", path="p"))))):
        assert (got.name, got.path, got.cause.name) == ("mod", "p", "mod") and to_wire(got).name == "f"
    got = through(Coded("teapot"))
    assert got.code == "teapot" and got.message == "f: Coded: teapot" and (got.name, got.task, got.causes[0].code) == ("f", "00", 41)
    assert (got.cause.message, got.cause.name, got.cause.task, got.cause.causes) == (1, 2, [3], 4)
    assert to_wire(got).code == TaskError.code and to_wire(got).task == "00"


def test_groups_of_exceptions() -> None:
    for x in (ExceptionGroup("some", [ValueError(1), KeyError(2), Odd(1, 2)]), Many(ValueError(1), KeyError(2), Odd(1, 2), why="so")):
        got = through(x)
        assert isinstance(got, TaskError) and isinstance(got, type(x)) and got.message == x.message and getattr(got, "why", "so") == "so"
        assert str(got).startswith("f: ") and to_wire(got).msg.startswith("f: ")
        caught: list[Any] = []
        try:
            raise pickle.loads(pickle.dumps(got))
        except* ValueError as some:
            caught += some.exceptions
        except* Odd as some:
            caught += some.exceptions
        except* KeyError as some:
            caught += some.exceptions
        assert [(type(e), e.args) for e in caught] == [(ValueError, (1,)), (Odd, ("1 and 2",)), (KeyError, (2,))] and caught[1].a == 1
    got = through(BaseExceptionGroup("ends", [SystemExit(3)]))
    assert type(got) is TaskError and isinstance(got.cause, BaseExceptionGroup)


def test_exceptions_of_tasks() -> None:
    for x in (ValueError("bad", 3), KeyError("k"), OSError(2, "no"), UnicodeDecodeError("utf-8", b"x", 0, 1, "why")):
        got = through(x)
        assert isinstance(got, TaskError) and isinstance(got, type(x)) and got.args == x.args
        assert got.cause is not None and type(got.cause) is type(x) and "here" in str(got)
        again = pickle.loads(pickle.dumps(got))
        assert isinstance(again, type(x)) and again.remote_traceback == got.remote_traceback
    got = through(ValueError("columns", np.arange(3.0)))  # it has buffers of its own
    assert isinstance(got, ValueError) and list(got.args[1]) == [0, 1, 2]
    got = through(ValueError("large", np.arange(30_000.0)))  # too much for an error: the text has to do, of the same class
    assert isinstance(got, ValueError) and "large" in str(got.cause)
    inner = through(ValueError("deep"))
    outer = through(inner)
    assert isinstance(outer, TaskError) and isinstance(outer.cause, ValueError)
    held = ValueError("x")
    held.lock = threading.Lock()  # type: ignore[attr-defined]
    assert isinstance(through(held), ValueError)
