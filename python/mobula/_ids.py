"""Ids are bytes: 20 of a task or an actor, 24 of an object (the task's id, and an index, big endian).

internal/ids in the Go code says what the bytes mean.
"""

from __future__ import annotations

import struct
from typing import Callable

PUT_BIT = 1 << 31

TASK, OBJECT = 20, 24  # bytes of an id
_JOB = 8  # an id begins with 8 bytes of the job; the first four take no part in the hash
_NUMBER_BITS = 36  # bits of the number of a job, client or worker; the bits above are its home


def home(number: int) -> int:
    """The home of a job, client or worker: a number of the node where it is."""
    return number >> _NUMBER_BITS


_K0, _K1, _K2 = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F
_M = (1 << 64) - 1
_TAIL = struct.Struct("<IQ")
_PAIR = struct.Struct("<QQ")


def deriver(parent: bytes) -> Callable[[int], bytes]:
    """Returns the function that derives the id of the parent's n-th call."""
    a, b = _PAIR.unpack_from(parent, 4)
    a0, b1, b2 = a ^ _K0, b ^ _K1, b ^ _K2
    head = parent[:_JOB]
    pack = _TAIL.pack

    def derive(n: int) -> bytes:
        p = (a0 ^ n) * b1
        q = (b2 ^ ((n << 32 | n >> 32) & _M)) * ((a0 + n) & _M)
        x = (p >> 64) ^ (q & _M) ^ n
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & _M
        x = ((x ^ x >> 27) * 0x94D049BB133111EB) & _M
        x ^= x >> 31
        y = (p & _M) ^ (q >> 64) ^ b
        y = ((y ^ y >> 30) * 0xBF58476D1CE4E5B9) & _M
        y = ((y ^ y >> 27) * 0x94D049BB133111EB) & _M
        y ^= y >> 31
        return head + pack(x & 0xFFFFFFFF, y ^ ((x << 29 | x >> 35) & _M))

    return derive


def derive(parent: bytes, n: int) -> bytes:
    """The id of the n-th call made by parent."""
    return deriver(parent)(n)


def root_task(job: int, nonce: int) -> bytes:
    """The id of a driver's implicit root task."""
    return derive(job.to_bytes(_JOB, "big") + bytes(TASK - _JOB), nonce)


_indices = [i.to_bytes(4, "big") for i in range(256)]


def return_id(task: bytes, i: int) -> bytes:
    return task + (_indices[i] if i < 256 else i.to_bytes(4, "big"))


def put_id(task: bytes, n: int) -> bytes:
    return task + (PUT_BIT | n).to_bytes(4, "big")


def stream_id(task: bytes) -> bytes:
    """The id of a stream as a whole. Releasing it gives up the items that were not taken."""
    return task + (PUT_BIT - 1).to_bytes(4, "big")


def is_put(obj: bytes) -> bool:
    return obj[TASK] >= 0x80


def in_job(task: bytes, other: bytes) -> bytes:
    """The task's id with its job replaced by that of another task."""
    return task if task[:_JOB] == other[:_JOB] else other[:_JOB] + task[_JOB:]


def job_of(id: bytes) -> int:
    return int.from_bytes(id[:_JOB], "big")


def widen(id: bytes, size: int = OBJECT) -> bytes:
    """An object's id, or with size TASK a task's, at full length. Releases before 0.5 wrote ids 4 bytes shorter."""
    return id if len(id) != size - 4 else bytes(4) + id


def trace_of(task: bytes) -> bytes:
    """The id of the trace that a task begins if its caller is in none."""
    return task[4:]


def parse_number(text: str) -> int:
    """Parses the id of a job, client or worker as the node prints it: NUMBER or HOME-NUMBER. ValueError otherwise."""
    home, _, number = text.rpartition("-")
    return int(home or 0) << _NUMBER_BITS | int(number)


def show_object(obj: bytes) -> str:
    """An object's id as the command line shows it: TASK:INDEX, or TASK:pINDEX of a put."""
    index = int.from_bytes(obj[TASK:], "big")
    if index & PUT_BIT:
        return f"{obj[:TASK].hex()}:p{index & ~PUT_BIT}"
    return f"{obj[:TASK].hex()}:{index}"


__all__ = ["OBJECT", "PUT_BIT", "TASK", "derive", "deriver", "in_job", "is_put", "job_of", "parse_number", "put_id", "return_id", "root_task",
           "show_object", "stream_id", "trace_of", "widen"]
