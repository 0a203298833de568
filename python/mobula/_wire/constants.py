"""The protocol's numbers that no field has: enums, versions and limits, as in wire/msg.go and wire/value.go."""

from __future__ import annotations

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
