"""Keys: what is called with the same arguments, or has the same content, has the same key."""

from __future__ import annotations

import hashlib
import pickle
import uuid
from typing import Any

import cloudpickle


def token(*parts: Any) -> str:
    """A digest of the parts' content; a new one where they cannot be pickled."""
    digest = hashlib.blake2b(digest_size=16)
    buffers: list[pickle.PickleBuffer] = []
    try:
        digest.update(cloudpickle.dumps(parts, 5, buffer_callback=buffers.append))
        for b in buffers:
            digest.update(b.raw())
    except Exception:
        return unique()  # whoever needs the pickled form will say what is wrong
    return digest.hexdigest()


def unique() -> str:
    return uuid.uuid4().hex


def function_name(fn: Any) -> str:
    """What the keys of a function's calls begin with."""
    fn = getattr(fn, "func", fn)  # of a functools.partial
    name: str = getattr(fn, "__name__", None) or type(fn).__name__
    return "lambda" if name == "<lambda>" else name
