"""Values as bytes: a short Meta, which says how, and Data (package codec in the Go code).

    scalars    None, bool, int, float as CBOR, as Go writes them; str as its UTF-8 bytes; bytes raw, as Go's []byte
    arrays     numpy arrays of numbers: raw, little endian, dense; Go's slices, and arrays in slices
    arrow      Arrow batches and tables: an IPC stream
    pickled    anything else: pickle 5, its buffers behind it, aligned; for Python only, its Meta names the class
    cbor       lists, dicts and all that CBOR has a tag for (dates, decimals, sets), for other languages
    failures   exceptions of tasks
    meta       the Meta, and a value that was laid out
    dispatch   which kind a value is of

What crosses to another language is laid out by encode_plain, which knows no pickle. What is read from Go and is none of the others is
CBOR.

Buffers are read in place and are read-only: an array that came out of the store is the store's own memory, pinned as long as
anything views it.
"""

from .arrays import array_meta
from .cbor import TAG_ACTOR, TAG_REF, set_binder
from .dispatch import decode, decode_own, encode, encode_plain
from .failures import failure, refs_of, task_failure
from .meta import ARRAY, META_BYTES, META_KWARGS, META_NIL, Encoded, header
from .pickled import by_name, by_value, found, local, pickler_for_functions

__all__ = ["ARRAY", "META_BYTES", "META_KWARGS", "META_NIL", "TAG_ACTOR", "TAG_REF", "Encoded", "array_meta", "by_name", "by_value", "decode",
           "decode_own", "encode", "encode_plain", "failure", "found", "header", "local", "pickler_for_functions", "refs_of", "set_binder",
           "task_failure"]
