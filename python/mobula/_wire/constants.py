"""Constants of the protocol: enums, versions and limits, as in wire/msg.go and wire/value.go."""

from __future__ import annotations

# Roles.
DRIVER, WORKER, TOOL = 1, 2, 3

REQUESTS_AT_ONCE = 32  # most unanswered requests of a client

# Kinds of result.
NONE, INLINE, STORED, ERROR = 0, 1, 2, 3
# Kinds of task.
TASK, ACTOR_CREATE, ACTOR_CALL = 0, 1, 2
# Components.
OWNER, STORE = 1, 2

VERSION, MIN_VERSION = 5, 5  # older versions have shorter ids
MAX_FRAME = 64 << 20
MESSAGE_VALUES = 16 << 20  # most bytes of values in one message; further values go into the store, even small ones
MAX_META = 4 << 10
STREAMING = -1
END_OF_CALL = (1 << 32) - 1  # the number of a promise that resolves at a call's end, for a call without a single result
