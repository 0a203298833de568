"""The codec against the frames that the Go build recorded, and against the schema."""

from __future__ import annotations

import base64
import json
import pathlib
import random
import re
from typing import Any

import pytest

from mobula import _ids
from mobula._wire import codec, messages
from mobula._wire.messages import FIELDS, KIND_OF, KINDS

ROOT = pathlib.Path(__file__).resolve().parents[2] / "wire"
ENUMS = {
    "RESULT_INLINE": 1, "RESULT_STORED": 2, "RESULT_ERROR": 3, "TASK_ACTOR_CREATE": 1, "TASK_ACTOR_CALL": 2,
    "ROLE_DRIVER": 1, "ROLE_WORKER": 2, "ROLE_TOOL": 3, "COMPONENT_OWNER": 1, "COMPONENT_STORE": 2,
    "ACTOR_STARTING": 1, "ACTOR_ALIVE": 2, "ACTOR_RESTARTING": 3, "ACTOR_DEAD": 4,
    "RESULT_NONE": 0, "TASK_NORMAL": 0, "ROLE_UNSPECIFIED": 0, "COMPONENT_UNSPECIFIED": 0, "ACTOR_UNSPECIFIED": 0,
    "LABEL_IN": 0, "LABEL_NOT_IN": 1, "LABEL_EXISTS": 2, "LABEL_ABSENT": 3, "AFFINITY_NONE": 0, "AFFINITY_HARD": 1, "AFFINITY_SOFT": 2,
    "SAID_NOTHING": 0, "SAID_WAITS": 1, "SAID_BEGUN": 2, "SAID_CULPRIT": 3,
    "NEXT_INSTANCE": 0, "NEXT_NONE": 1, "NEXT_SAME": 2,
    "PANIC_RESTARTS": 0, "PANIC_RESUMES": 1, "PANIC_STOPS": 2, "PANIC_ESCALATES": 3,
}


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(w.capitalize() for w in rest)


def from_json(cls: type[Any], data: dict[str, Any]) -> Any:
    m = cls()
    for f in FIELDS[cls]:
        if camel(f.name) not in data:
            continue
        raw = data[camel(f.name)]

        def one(x: Any) -> Any:
            if isinstance(f.kind, type):
                return from_json(f.kind, x)
            if f.kind == "y":
                return base64.b64decode(x)
            if f.kind == "t":
                return x
            if f.kind == "b":
                return x
            return ENUMS[x] if x in ENUMS else int(x)

        setattr(m, f.name, [one(x) for x in raw] if f.repeated else one(raw))
    return m


def same(a: Any, b: Any) -> bool:
    """Equal, where a message inside may be absent on one side and empty on the other."""
    return codec.encode(a) == codec.encode(b)


CHANNEL = next(k for k, c in KINDS.items() if c is messages.OpenChannel)  # from here on they go on channels, which have a version of their own
RECORDED = [(v, k) for v in range(messages.MIN_VERSION, messages.VERSION + 1) for k in KINDS if v >= 7 or k < CHANNEL]


@pytest.mark.parametrize("version, kind", RECORDED)
def test_recorded_frames(version: int, kind: int) -> None:
    cls = KINDS[kind]
    stem = ROOT / "testdata" / f"v{version}" / cls.__name__
    data = stem.with_suffix(".frame").read_bytes()
    want = from_json(cls, json.loads(stem.with_suffix(".json").read_text()))
    flags, size = codec.header(data, 0)
    assert (flags, size) == (0, len(data) - codec.HEADER_SIZE)
    [(got_kind, i, j)] = list(codec.split(data, codec.HEADER_SIZE, len(data)))
    got = codec.decode(cls, data, i, j)
    assert got_kind == kind
    assert same(got, want)
    assert codec.frame(got) == data
    assert codec.frame(want) == data


def test_table_follows_the_schema() -> None:
    text = re.sub(r"//.*", "", (ROOT / "mobula.proto").read_text())
    kinds = {"uint32": "u", "uint64": "u", "sint32": "s", "sint64": "s", "bool": "b", "sfixed64": "f", "fixed64": "x",
             "string": "t", "bytes": "y", "ResultKind": "u", "TaskKind": "u", "Role": "u", "Component": "u", "ActorState": "u",
             "LabelOp": "u", "Affinity": "u", "OnPanic": "u", "Said": "u", "Next": "u"}
    schema = dict(re.findall(r"message (\w+) \{([^}]*)\}", text))
    frame = schema.pop("Frame")
    assert [(t, int(n)) for t, n in re.findall(r"repeated (\w+) \w+ = (\d+);", frame)] == [(c.__name__, k) for k, c in KINDS.items()]
    for name, body in schema.items():
        cls = getattr(messages, name)
        have = {f.number: f for f in FIELDS[cls]}
        for repeated, typ, field, number in re.findall(r"(repeated )?(\w+) (\w+) = (\d+);", body):
            f = have[int(number)]
            assert f.name == field and f.repeated == bool(repeated), f"{name}.{field}"
            assert f.kind == kinds.get(typ, getattr(messages, typ, None)), f"{name}.{field}"


def test_unknown_fields_are_skipped() -> None:
    body = codec.encode(messages.Get(b"x" * 24, True)) + b"\xfa\x01\x03abc" + b"\xf8\x01\x05" + b"\xf9\x01" + bytes(8) + b"\xfd\x01" + bytes(4)
    assert codec.decode(messages.Get, body) == messages.Get(b"x" * 24, True)


def test_fields_of_another_wire_type_are_skipped() -> None:
    """As Go's decoder does."""
    good = codec.encode(messages.TaskOptions(func="f", node=3))
    for number in (2, 5, 26, 27):  # numbers and booleans, as bytes and as fixed numbers
        assert codec.decode(messages.TaskOptions, good + codec.varint(number << 3 | 2) + b"\x01\x07") == codec.decode(messages.TaskOptions, good)
        assert codec.decode(messages.TaskOptions, good + codec.varint(number << 3 | 1) + bytes(8)) == codec.decode(messages.TaskOptions, good)
    assert codec.decode(messages.TaskOptions, good + codec.varint(1 << 3) + b"\x07") == codec.decode(messages.TaskOptions, good)
    assert codec.decode(messages.TaskSpec, b"\x60\x05\x62\x02\x06\x07").promises == [5, 6, 7]


def test_malformed_bytes_never_do_more_than_raise_a_protocol_error(seed: int) -> None:
    rng = random.Random(seed)
    recorded = ROOT / "testdata" / f"v{messages.VERSION}"
    good = [(cls, (recorded / f"{cls.__name__}.frame").read_bytes()[8:]) for cls in KINDS.values()]
    for cls, data in good:
        _, i = codec.read_varint(data, 0)
        _, i = codec.read_varint(data, i)
        body = bytearray(data[i:])
        for _ in range(60):
            bad = bytearray(body)
            for _ in range(rng.randint(1, 3)):
                if bad:
                    bad[rng.randrange(len(bad))] = rng.randrange(256)
            bad = bad[: rng.randint(0, len(bad))]
            try:
                codec.decode(cls, bytes(bad))
            except codec.ProtocolError:
                pass


def test_frames_are_cut_at_the_target() -> None:
    chunks = [codec.message(messages.PutValue(bytes([i]) * 24, messages.Value(b"m", bytes(20_000)))) for i in range(10)]
    chunks.append(codec.message(messages.PutValue(b"z" * 24, messages.Value(b"m", bytes(100_000)))))
    data = b"".join(codec.frames(chunks))
    i, got, sizes = 0, [], []
    while i < len(data):
        _, n = codec.header(data, i)
        sizes.append(n)
        got += [data[j:k] for _, j, k in codec.split(data, i + 8, i + 8 + n)]
        i += 8 + n
    assert len(got) == 11 and all(n <= codec.FRAME_TARGET for n in sizes[:-1])


def test_ids_are_those_of_the_go_code() -> None:
    # Printed by internal/ids: RootTask(7, 42), and Derive of it with 1, 2^40+3.
    root = _ids.root_task(7, 42)
    assert root.hex() == "00000000000000072d6d6e9ffad9323801d3947d"
    assert _ids.derive(root, 1).hex() == "00000000000000079a4d698d995a53fd08bf0ba5"
    assert _ids.derive(root, (1 << 40) + 3).hex() == "00000000000000076de66bbb20006281672dd6a2"
    assert _ids.show_object(_ids.put_id(root, 5)) == root.hex() + ":p5"
    assert _ids.show_object(_ids.return_id(root, 300)) == root.hex() + ":300"
    assert _ids.job_of(root) == 7 and _ids.is_put(_ids.put_id(root, 5)) and not _ids.is_put(_ids.stream_id(root))


def test_errors_cross_the_wire() -> None:
    e = messages.Error(1, "m", "n", "t", "s", [messages.Error(34, "deep")])
    x = codec.from_wire(e)
    assert type(x).__name__ == "TaskError" and codec.to_wire(x) == e
    long = codec.to_wire(codec.MobulaError("é" * 20_000))
    assert len(long.msg.encode()) <= 16 << 10 and "bytes in all" in long.msg
    assert KIND_OF[messages.Get] == 7


def test_references_of_errors() -> None:
    id = bytes(range(20))
    e = messages.Error(code=1, cause=[messages.Error(code=41, refs=[id, id])], refs=[id])
    raw = codec.encode(e)
    inner = b"\x08\x29" + 2 * (b"\x42\x14" + id)  # as wire.AppendError writes it
    assert raw == b"\x08\x01\x32" + bytes([len(inner)]) + inner + b"\x42\x14" + id
    assert codec.decode(messages.Error, raw) == e and codec.all_refs(e) == [id, id, id]


def test_ids_of_release_04_are_widened() -> None:
    old = bytes.fromhex("000000072d6d6e9ffad9323801d3947d")
    assert _ids.widen(old, _ids.TASK) == _ids.root_task(7, 42) == _ids.widen(_ids.root_task(7, 42), _ids.TASK)
    assert _ids.widen(old + bytes(4)) == _ids.return_id(_ids.root_task(7, 42), 0)
    assert _ids.widen(b"", _ids.TASK) == b""
