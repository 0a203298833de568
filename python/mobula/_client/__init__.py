"""This process' side of the connection to its node, as internal/client is for Go.

Who owns what: this process counts its references in one table of handles, and the owner on the node knows only whether there is
at least one. The store owns the pins; this process counts the readers of each pin, and gives the pin back with the last.

    client     the connection, from its welcome to its end: handles messages, and tells the parts when it is over
    reader     which thread reads the connection, and how threads wait
    outbox     messages to send, and messages that a restarted node is sent again
    rejoin     finds the node again
    handle     Handle and Reading: what this process holds of an object
    pin        Pin: what this process has pinned of an object's bytes
    objects    the tables of handles and pins
    getting    gets and waits
    putting    puts, and results of tasks that go into the segment
    announcing has the owner know of what is made, before a reference leaves by a way of its own
    credit     limits how many bytes are under way
    pending    numbered requests that wait for their answers
    requests   requests that are on no task's path
    streams    the items of streams
    watching   watches of actors
    spans      the program's own spans
    context    the task on whose behalf code runs
    uncounted  drops counters of calls to actors that have ended
    waiter     a waiting thread
    spin       adaptive spinning before a wait
    lingering  keeps a closed connection while arrays view the store
    interfaces what the parts need of the client: no part imports the client, or a part that is made after it

Locks: Client.lock guards the tables. It is re-entrant because a finaliser may run anywhere. Finalisers of this package only append to
Client.dropped and Client.unpins; those of the user may do anything, and signal handlers may raise anywhere. So the tables change in steps that
nothing cuts (a comment begins with "whole"), and a thread that waits gives up the lock (docs/decisions/0031). Messages are queued with deque.append, which is
atomic; where their order matters, in such a step.
"""

from .client import Client, log
from .context import CallOrder, Hosted, TaskContext
from .handle import EVICTED, Found, Handle, Reading, answer_error
from .pin import Pin
from .streams import Wanted
from .waiter import Waiter

__all__ = ["EVICTED", "CallOrder", "Client", "Found", "Handle", "Hosted", "Pin", "Reading", "TaskContext", "Waiter", "Wanted", "answer_error", "log"]
