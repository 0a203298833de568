"""Arrow record batches and tables as an IPC stream, whose buffers are read in place.

pyarrow is imported only by a process that has such a value.
"""

from __future__ import annotations

import sys
from typing import Any

from ..exceptions import NotDecodableError
from .meta import ARROW, NO_PARTS, NO_REFS, Encoded, header
from .pickled import pickled

BATCH, TABLE = "arrow.RecordBatch", "arrow.Table"


def kind(cls: type[Any]) -> str:
    """BATCH or TABLE; empty for another class."""
    if cls.__module__ != "pyarrow.lib":
        return ""
    return {"RecordBatch": BATCH, "Table": TABLE}.get(cls.__qualname__, "")


class _Sink:
    """A file object that collects the parts of a stream without copying columns' buffers."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[tuple[int, Any]] = []
        self.size = 0

    def write(self, part: Any) -> int:
        view = memoryview(part)
        if view.nbytes:
            self.parts.append((self.size, view))
            self.size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self.size

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def _parts(x: Any) -> tuple[int, list[tuple[int, Any]]]:
    """The size of x as a stream, and its parts with their offsets."""
    pa = sys.modules["pyarrow"]
    sink = _Sink()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), x.schema) as writer:
        writer.write(x)
    return sink.size, sink.parts


def of_python(x: Any) -> bool:
    """Whether a column has an extension type defined in Python, which another process would read as its storage type."""
    pa = sys.modules["pyarrow"]

    def made(t: Any) -> bool:
        return isinstance(t, pa.ExtensionType) or any(made(t.field(i).type) for i in range(t.num_fields))

    return any(made(f.type) for f in x.schema)


def read(name: str, data: Any) -> Any:
    """The record batch or table in a stream; its columns are views of data."""
    try:
        import pyarrow as pa
    except ImportError:
        raise NotDecodableError("an Arrow value needs pyarrow, which is not installed") from None
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            if name == TABLE:
                return reader.read_all()
            batches = list(reader)
    except (pa.ArrowException, OSError) as x:
        raise NotDecodableError(f"an Arrow stream of {len(data)} bytes is damaged: {x}") from None
    if len(batches) != 1:
        raise NotDecodableError(f"an Arrow stream of {len(batches)} record batches, want one")
    return batches[0]


def arrow(x: Any, inline: int) -> Encoded:
    """Encodes x for Python. A value with extension types defined in Python is pickled."""
    if of_python(x):
        return pickled(x, inline)
    return stream(x, inline)


def stream(x: Any, inline: int) -> Encoded:
    """Encodes x for any language."""
    size, parts = _parts(x)
    meta = header(ARROW, name=kind(type(x)))
    if size <= inline:
        return Encoded(meta, b"".join(p for _, p in parts), size, NO_PARTS, NO_REFS)
    return Encoded(meta, None, size, parts, NO_REFS)
