"""Constants of the protocol: enums, versions and limits, as in wire/msg.go and wire/value.go."""

from __future__ import annotations

# Roles.
DRIVER, WORKER, TOOL = 1, 2, 3

REQUESTS_AT_ONCE = 32  # most unanswered requests of a client

# Kinds of result.
NONE, INLINE, STORED, ERROR = 0, 1, 2, 3
# Kinds of task.
TASK, ACTOR_CREATE, ACTOR_CALL = 0, 1, 2
# What a condition asks of a label: LabelMatch.op.
LABEL_IN, LABEL_NOT_IN, LABEL_EXISTS, LABEL_ABSENT = 0, 1, 2, 3
# What a node is to a task: TaskOptions.affinity.
AFFINITY_NONE, AFFINITY_HARD, AFFINITY_SOFT = 0, 1, 2
MAX_HOME = (1 << 27) - 1
HOME_SHIFT = 36  # of the home in the id of a job, client, lease or worker
# Components.
OWNER, STORE = 1, 2

VERSION, MIN_VERSION = 7, 6
MAX_FRAME = 64 << 20
MESSAGE_VALUES = 16 << 20  # most bytes of values in one message; further values go into the store, even small ones
MAX_META = 4 << 10
STREAMING = -1
END_OF_CALL = (1 << 32) - 1  # the number of a promise that resolves at a call's end, for a call without a single result
