"""One process' side of the conversation with its node: what internal/client is for Go.

Who owns what: the table of handles is the one place where this process' references are counted; the owner on the node knows
only whether there is at least one. The store alone knows pins; this process counts its readers of a pin and gives it back
with the last.

    client     the connection's life; what a message is for, and who is told when all is over
    reader     which thread reads, and how one waits
    outbox     what is to be sent, and what a node that comes back is sent again
    rejoin     finding the node again
    handle     Handle, Reading: what this process holds of an object, and
    pin        of its bytes
    objects    the tables of those, and what comes in about them
    getting    gets and waits
    putting    puts, and the results of tasks that go into the segment
    credit     how much may be under way
    pending    numbered questions and their answers
    streams    the items of streams
    context    the task on whose behalf code runs
    waiter     a thread that waits
    interfaces what the parts ask of the client: none of them knows it, nor one that is made after it

Locks: Client.lock guards the tables; it is re-entrant because a finaliser may run anywhere. Finalisers themselves only append to
Client.dropped and Client.unpins. Messages are queued with deque.append, which is atomic; where their order matters they are
queued under the lock.
"""

from .client import Client, log
from .context import CallOrder, Hosted, TaskContext
from .handle import FORGOTTEN, Found, Handle, Reading, answer_error
from .pin import Pin
from .streams import Wanted
from .waiter import Waiter

__all__ = ["FORGOTTEN", "CallOrder", "Client", "Found", "Handle", "Hosted", "Pin", "Reading", "TaskContext", "Waiter", "Wanted", "answer_error", "log"]
