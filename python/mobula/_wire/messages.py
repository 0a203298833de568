"""The messages of wire/mobula.proto as plain classes, with the table that their encoding follows.

A field is (number, name, kind): u an unsigned varint, s a zigzag varint, b a bool, f 8 bytes signed, x 8 bytes
unsigned, t text, y bytes; a class is a message inside, a * before it a list. Absent values are the zero of
their kind, None for a message inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional, Union

# Roles.
DRIVER, WORKER, TOOL = 1, 2, 3

REQUESTS_AT_ONCE = 32  # that a client may have without an answer

# Kinds of result.
NONE, INLINE, STORED, ERROR = 0, 1, 2, 3
# Kinds of task.
TASK, ACTOR_CREATE, ACTOR_CALL = 0, 1, 2
# Components.
OWNER, STORE = 1, 2

VERSION, MIN_VERSION = 5, 5  # versions before have shorter ids
MAX_FRAME = 64 << 20
MESSAGE_VALUES = 16 << 20  # bytes of the values inside one message; what is more goes into the store, however small each is
MAX_META = 4 << 10
STREAMING = -1
END_OF_CALL = (1 << 32) - 1  # what a call promises of which no result is kept, for its caller to be told of its end


class Record:
    """Compares and shows itself by its fields. A dataclass would make these methods for each class, which takes a tenth of an import's time."""

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


@dataclass(slots=True, repr=False, eq=False)
class Value(Record):
    meta: bytes = b""
    data: bytes = b""
    refs: list[bytes] = field(default_factory=list)


@dataclass(slots=True, repr=False, eq=False)
class Extent(Record):
    file: int = 0
    off: int = 0
    size: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Error(Record):
    code: int = 0
    msg: str = ""
    name: str = ""
    task: str = ""
    stack: str = ""
    cause: list["Error"] = field(default_factory=list)
    data: bytes = b""
    refs: list[bytes] = field(default_factory=list)


@dataclass(slots=True, repr=False, eq=False)
class Result(Record):
    kind: int = 0
    value: Optional[Value] = None
    size: int = 0
    err: Optional[Error] = None


@dataclass(slots=True, repr=False, eq=False)
class TraceContext(Record):
    trace_id: bytes = b""
    span_id: bytes = b""
    flags: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Resource(Record):
    name: str = ""
    amount: int = 0


@dataclass(slots=True, repr=False, eq=False)
class ConcurrencyGroup(Record):
    name: str = ""
    max: int = 0


@dataclass(slots=True, repr=False, eq=False)
class TaskOptions(Record):
    func: str = ""
    num_returns: int = 0
    resources: list[Resource] = field(default_factory=list)
    max_retries: int = 0
    retry_exceptions: bool = False
    isolate: bool = False
    backpressure: int = 0
    spread: bool = False
    label: str = ""
    max_restarts: int = 0
    max_task_retries: int = 0
    max_concurrency: int = 0
    groups: list[ConcurrencyGroup] = field(default_factory=list)
    max_pending_calls: int = 0
    namespace: str = ""
    actor_name: str = ""
    detached: bool = False
    get_if_exists: bool = False
    group: str = ""
    exception_retries: int = 0
    retry_only: str = ""
    process: str = ""
    escalate: bool = False


@dataclass(slots=True, repr=False, eq=False)
class Arg(Record):
    ref: bytes = b""
    value: Optional[Value] = None


@dataclass(slots=True, repr=False, eq=False)
class TaskSpec(Record):
    id: bytes = b""
    parent: bytes = b""
    kind: int = 0
    opts: Optional[TaskOptions] = None
    args: list[Arg] = field(default_factory=list)
    actor: bytes = b""
    seq: int = 0
    deadline: int = 0
    trace: Optional[TraceContext] = None
    callsite: str = ""
    submitted: int = 0
    promises: list[int] = field(default_factory=list)


@dataclass(slots=True, repr=False, eq=False)
class ArgValue(Record):
    index: int = 0
    result: Optional[Result] = None
    extent: Optional[Extent] = None


@dataclass(slots=True, repr=False, eq=False)
class ExecTask(Record):
    spec: Optional[TaskSpec] = None
    attempt: int = 0
    args: list[ArgValue] = field(default_factory=list)


@dataclass(slots=True, repr=False, eq=False)
class FuncInfo(Record):
    name: str = ""
    signature: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Program(Record):
    language: str = ""
    version: str = ""
    args: list[str] = field(default_factory=list)
    single: bool = False
    template: bool = False


@dataclass(slots=True, repr=False, eq=False)
class Hello(Record):
    version: int = 0
    min_version: int = 0
    role: int = 0
    pid: int = 0
    job: int = 0
    token: bytes = b""
    functions: list[FuncInfo] = field(default_factory=list)
    namespace: str = ""
    client: int = 0
    program: Optional[Program] = None
    others: list[Program] = field(default_factory=list)
    environ: bytes = b""


@dataclass(slots=True, repr=False, eq=False)
class Welcome(Record):
    version: int = 0
    client: int = 0
    node: str = ""
    job: int = 0
    root: bytes = b""
    segment_size: int = 0
    inline_max: int = 0
    token: bytes = b""
    namespace: str = ""
    slots: int = 0
    trace_millionths: int = 0
    job_dir: str = ""
    release: str = ""
    clock: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Bye(Record):
    err: Optional[Error] = None


@dataclass(slots=True, repr=False, eq=False)
class Submit(Record):
    spec: Optional[TaskSpec] = None


@dataclass(slots=True, repr=False, eq=False)
class PutValue(Record):
    id: bytes = b""
    value: Optional[Value] = None


@dataclass(slots=True, repr=False, eq=False)
class Seal(Record):
    id: bytes = b""
    attempt: int = 0
    size: int = 0
    value: Optional[Value] = None


@dataclass(slots=True, repr=False, eq=False)
class Get(Record):
    id: bytes = b""
    fetch: bool = False


@dataclass(slots=True, repr=False, eq=False)
class Unget(Record):
    id: bytes = b""


@dataclass(slots=True, repr=False, eq=False)
class AddRef(Record):
    id: bytes = b""


@dataclass(slots=True, repr=False, eq=False)
class Release(Record):
    ids: list[bytes] = field(default_factory=list)


@dataclass(slots=True, repr=False, eq=False)
class Cancel(Record):
    task: bytes = b""
    force: bool = False
    recursive: bool = False
    insist: bool = False


@dataclass(slots=True, repr=False, eq=False)
class KillActor(Record):
    actor: bytes = b""
    restart: bool = False
    stop: bool = False


@dataclass(slots=True, repr=False, eq=False)
class WatchActor(Record):
    actor: bytes = b""
    done: bool = False


@dataclass(slots=True, repr=False, eq=False)
class ActorNews(Record):
    actor: bytes = b""
    state: int = 0
    restarts: int = 0
    err: Optional[Error] = None


@dataclass(slots=True, repr=False, eq=False)
class Resolved(Record):
    id: bytes = b""
    fetch: bool = False
    result: Optional[Result] = None
    extent: Optional[Extent] = None


@dataclass(slots=True, repr=False, eq=False)
class StreamNext(Record):
    task: bytes = b""
    index: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Create(Record):
    req: int = 0
    id: bytes = b""
    attempt: int = 0
    size: int = 0
    task: bytes = b""


@dataclass(slots=True, repr=False, eq=False)
class Created(Record):
    req: int = 0
    id: bytes = b""
    extent: Optional[Extent] = None
    exists: bool = False
    err: Optional[Error] = None


@dataclass(slots=True, repr=False, eq=False)
class Abort(Record):
    id: bytes = b""
    attempt: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Unpin(Record):
    id: bytes = b""
    n: int = 0


@dataclass(slots=True, repr=False, eq=False)
class MapFile(Record):
    file: int = 0
    size: int = 0
    path: bytes = b""


@dataclass(slots=True, repr=False, eq=False)
class UnmapFile(Record):
    file: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Collect(Record):
    pass


@dataclass(slots=True, repr=False, eq=False)
class Credit(Record):
    bytes: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Exec(Record):
    lease: int = 0
    tasks: list[ExecTask] = field(default_factory=list)


@dataclass(slots=True, repr=False, eq=False)
class CancelTask(Record):
    task: bytes = b""
    abandon: bool = False


@dataclass(slots=True, repr=False, eq=False)
class StopActor(Record):
    actor: bytes = b""
    restarts: bool = False
    close: bool = False
    drain: bool = False


@dataclass(slots=True, repr=False, eq=False)
class ActorStopped(Record):
    actor: bytes = b""
    err: Optional[Error] = None


@dataclass(slots=True, repr=False, eq=False)
class Drain(Record):
    pass


@dataclass(slots=True, repr=False, eq=False)
class Resume(Record):
    task: bytes = b""


@dataclass(slots=True, repr=False, eq=False)
class StreamAck(Record):
    task: bytes = b""
    consumed: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Unneeded(Record):
    task: bytes = b""
    numbers: list[int] = field(default_factory=list)


@dataclass(slots=True, repr=False, eq=False)
class Times(Record):
    received: int = 0
    started: int = 0
    ended: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Done(Record):
    task: bytes = b""
    attempt: int = 0
    lease: int = 0
    results: list[Result] = field(default_factory=list)
    items: int = 0
    err: Optional[Error] = None
    times: Optional[Times] = None
    final: bool = False


@dataclass(slots=True, repr=False, eq=False)
class StreamItem(Record):
    task: bytes = b""
    attempt: int = 0
    index: int = 0
    result: Optional[Result] = None


@dataclass(slots=True, repr=False, eq=False)
class Blocked(Record):
    task: bytes = b""
    lease: int = 0
    returned: list[bytes] = field(default_factory=list)
    waits_for: list[bytes] = field(default_factory=list)


@dataclass(slots=True, repr=False, eq=False)
class Unblocked(Record):
    task: bytes = b""
    lease: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Stats(Record):
    heap_bytes: int = 0
    goroutines: int = 0
    running: int = 0
    worn: bool = False


@dataclass(slots=True, repr=False, eq=False)
class Request(Record):
    req: int = 0
    method: str = ""
    body: bytes = b""
    trace: Optional[TraceContext] = None


@dataclass(slots=True, repr=False, eq=False)
class Reply(Record):
    req: int = 0
    body: bytes = b""
    err: Optional[Error] = None


@dataclass(slots=True, repr=False, eq=False)
class Resync(Record):
    component: int = 0
    epoch: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Attempt(Record):
    task: bytes = b""
    attempt: int = 0
    lease: int = 0


@dataclass(slots=True, repr=False, eq=False)
class Holdings(Record):
    component: int = 0
    epoch: int = 0
    handles: list[bytes] = field(default_factory=list)
    gets: list[Get] = field(default_factory=list)
    streams: list[StreamNext] = field(default_factory=list)
    tasks: list[Attempt] = field(default_factory=list)
    actors: list[bytes] = field(default_factory=list)
    pins: list[Unpin] = field(default_factory=list)


Message = Any

# By the message's number in Frame, which is its kind.
KINDS: dict[int, type[Any]] = dict(enumerate([
    Hello, Welcome, Bye, Submit, PutValue, Seal, Get, Unget, AddRef, Release, Cancel, KillActor, Resolved, Create, Created,
    Abort, Unpin, MapFile, Exec, CancelTask, StopActor, Drain, Done, StreamItem, StreamAck, Blocked, Unblocked, Resume,
    Stats, Request, Reply, Resync, Holdings, Credit, Collect, StreamNext, Unneeded, ActorStopped, WatchActor, ActorNews,
    UnmapFile], start=1))
KIND_OF: dict[type[Any], int] = {c: k for k, c in KINDS.items()}

_TYPES: dict[type[Any], str] = {
    Value: "y y *y",
    Extent: "u u u",
    Error: "u t t t t *Error y *y",
    Result: "u Value u Error",
    TraceContext: "y y u",
    Resource: "t s",
    ConcurrencyGroup: "t s",
    TaskOptions: "t s *Resource s b b s b t s s s *ConcurrencyGroup s t t b b t s t t b",
    Arg: "y Value",
    TaskSpec: "y y u TaskOptions *Arg y u f TraceContext t f *u",
    ArgValue: "u Result Extent",
    ExecTask: "TaskSpec u *ArgValue",
    FuncInfo: "t x",
    Program: "t t *t b b",
    Hello: "u u u s u y *FuncInfo t u Program *Program y",
    Welcome: "u u t u y u u y t s s t t f",
    Bye: "Error",
    Submit: "TaskSpec",
    PutValue: "y Value",
    Seal: "y u u Value",
    Get: "y b",
    Unget: "y",
    AddRef: "y",
    Release: "*y",
    Cancel: "y b b b",
    KillActor: "y b b",
    WatchActor: "y b",
    ActorNews: "y u u Error",
    Resolved: "y b Result Extent",
    StreamNext: "y u",
    Create: "u y u u y",
    Created: "u y Extent b Error",
    Abort: "y u",
    Unpin: "y u",
    MapFile: "u u y",
    UnmapFile: "u",
    Collect: "",
    Credit: "s",
    Exec: "u *ExecTask",
    CancelTask: "y b",
    StopActor: "y b b b",
    ActorStopped: "y Error",
    Drain: "",
    Resume: "y",
    StreamAck: "y u",
    Unneeded: "y *u",
    Times: "f f f",
    Done: "y u u *Result u Error Times b",
    StreamItem: "y u u Result",
    Blocked: "y u *y *y",
    Unblocked: "y u",
    Stats: "u u u b",
    Request: "u t y TraceContext",
    Reply: "u y Error",
    Resync: "u u",
    Attempt: "y u u",
    Holdings: "u u *y *Get *StreamNext *Attempt *y *Unpin",
}


@dataclass(slots=True, frozen=True)
class Field:
    number: int
    name: str
    kind: Union[str, type[Any]]
    repeated: bool


def _table() -> dict[type[Any], list[Field]]:
    by_name = {c.__name__: c for c in _TYPES}
    out: dict[type[Any], list[Field]] = {}
    for cls, kinds in _TYPES.items():
        fields = []
        for number, (name, kind) in enumerate(zip(cls.__dataclass_fields__, kinds.split(), strict=True), start=1):
            repeated = kind.startswith("*")
            bare = kind.lstrip("*")
            fields.append(Field(number, name, by_name.get(bare, bare), repeated))
        out[cls] = fields
    return out


FIELDS = _table()
