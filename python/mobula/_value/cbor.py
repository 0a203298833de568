"""Plain data as CBOR, with a tag around each reference."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import cbor2

from .._wire import codec
from ..exceptions import MobulaError, NotDecodableError, NotEncodableError, set_field_reader
from .meta import META_PLAIN, Data, Encoded, flat
from .pickled import name_of

TAG_REF, TAG_ACTOR = 28015, 28016
NOT_PLAIN = ("is no plain data: only numbers, text, bytes, lists, dicts, references, arrays of numbers and Arrow record batches "
             "are the same in every language")


def plain(x: Any, inline: int) -> Encoded:
    """Encodes lists, dicts, and types with a CBOR tag, such as dates, decimals and sets. NotEncodableError for other types."""
    refs: list[bytes] = []

    def default(enc: Any, v: Any) -> None:
        id, tag = getattr(v, "_mobula_ref", (None, 0))
        if id is not None:
            refs.append(id)
            enc.encode(cbor2.CBORTag(tag, id))
        elif type(v).__module__ == "numpy" and hasattr(v, "tolist"):
            enc.encode(v.tolist())
        else:
            raise NotEncodableError(f"{name_of(v)} {NOT_PLAIN}")

    try:
        data = cbor2.dumps(x, default=default)
    except NotEncodableError:
        raise
    except Exception as why:
        raise NotEncodableError(f"{name_of(x)}: {why}") from why
    e = flat(META_PLAIN, data, inline)
    e.refs = refs
    return e


def read(data: Data) -> Any:
    """Decodes CBOR. NotDecodableError where it is none, or holds what Python has no value for, such as a time of the year 0."""
    try:
        return cbor2.loads(bytes(data), tag_hook=_tag)
    except MobulaError:
        raise
    except Exception as why:
        cause = why.__cause__
        if isinstance(cause, MobulaError):  # of _tag, which some versions of cbor2 wrap
            raise cause from None
        raise NotDecodableError(f"{why}: {cause}" if cause else str(why)) from why


def _nowhere(id: bytes, tag: int) -> Any:
    raise NotDecodableError("a reference outside any cluster")


_bind: Callable[[bytes, int], Any] = _nowhere


def set_binder(f: Callable[[bytes, int], Any]) -> None:
    """Sets the function that makes references and handles of ids in CBOR and in errors."""
    global _bind
    _bind = f
    codec.live = _live


def _live(ids: Sequence[bytes]) -> tuple[Any, ...]:
    try:
        return tuple(_bind(id, TAG_REF) for id in ids)
    except MobulaError:
        return ()  # this process has no connection any more


def _tag(decoder: Any, tag: Any, *rest: Any) -> Any:
    if not isinstance(tag, cbor2.CBORTag):  # the order of the arguments differs between versions of cbor2
        decoder, tag = tag, decoder
    if tag.tag in (TAG_REF, TAG_ACTOR):
        return _bind(bytes(tag.value), tag.tag)
    return tag


set_field_reader(read)
