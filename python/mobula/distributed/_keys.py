"""Keys: calls of one function with the same arguments have the same key, and so has data of the same content."""

from __future__ import annotations

import hashlib
import pickle
import uuid
from typing import Any

from .. import _value


def token(*parts: Any) -> str:
    """A digest of the parts' pickles; a unique one if they cannot be pickled."""
    digest = hashlib.blake2b(digest_size=16)
    buffers: list[pickle.PickleBuffer] = []
    try:
        digest.update(_value.dumps(parts, buffers.append))
        for b in buffers:
            digest.update(b.raw())
    except Exception:
        return unique()  # the submit that follows raises the error
    return digest.hexdigest()


def unique() -> str:
    return uuid.uuid4().hex


def function_name(fn: Any) -> str:
    """The prefix of the keys of a function's calls."""
    fn = getattr(fn, "func", fn)  # of a functools.partial
    name: str = getattr(fn, "__name__", None) or type(fn).__name__
    return "lambda" if name == "<lambda>" else name
