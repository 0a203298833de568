"""Encodes values as bytes: a short Meta, which names the encoding, and Data (package internal/codec in the Go code).

    scalars    None, bool, int, float as CBOR, as Go writes them; str as UTF-8; bytes raw, as Go's []byte
    arrays     NumPy arrays of numbers: raw, little endian, C-contiguous, as Go's slices, and slices of arrays
    arrow      Arrow record batches and tables: an IPC stream
    pickled    anything else: pickle protocol 5, with its buffers behind it, aligned; for Python only, the Meta names the class
    views      reducers for pickled: a view is pickled as what it shows
    by_value   functions and classes that other processes cannot import, for pickled
    cbor       lists, dicts, and types with a CBOR tag (dates, decimals, sets), for other languages
    failures   exceptions of tasks
    meta       the Meta, and Encoded
    dispatch   chooses the encoding

Values for other languages are encoded by encode_plain, which never pickles. Values from Go that are no scalar, array or Arrow value are CBOR.

Buffers are read in place and read-only: an array out of the store is a view of the store's memory, which stays pinned as long as a view
exists.
"""

from .arrays import array_meta
from .by_value import ByValue, dumps, importable
from .cbor import TAG_ACTOR, TAG_REF, set_binder
from .dispatch import decode, decode_own, encode, encode_plain, has_views
from .failures import failure, refs_of, task_failure, undescribed
from .meta import ARRAY, META_BYTES, META_KWARGS, META_NIL, Encoded, header
from .pickled import by_name, found, load_own, local, pickler_for_functions
from .views import Pickler, refresh

__all__ = ["ARRAY", "META_BYTES", "META_KWARGS", "META_NIL", "TAG_ACTOR", "TAG_REF", "ByValue", "Encoded", "Pickler", "array_meta",
           "by_name", "decode", "decode_own", "dumps", "encode", "encode_plain", "failure", "found", "has_views", "header",
           "importable", "load_own", "local", "pickler_for_functions", "refresh", "refs_of", "set_binder", "task_failure",
           "undescribed"]
