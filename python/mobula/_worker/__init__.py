"""A worker process: one lane, which runs what the node pushes, one task after the other, in the main thread.

The main thread reads the connection itself while it has nothing to run. While it runs a task, the client's keeper reads. An actor
with concurrency runs its calls in threads, one with coroutines in an event loop; the main thread then only reads.

Reports go in batches: when the queue is empty, and at the latest with the keeper's next tick.

    process     the process: from its environment to its exit code
    orders      what the node says
    lane        what the main thread runs, what waits behind it, and what of that goes back: pure
    executor    begins a task, runs it, reports it
    call        one attempt at a task while it runs
    arguments   what it is called with
    results     what it gave, or why it failed
    streaming   results one after the other
    blocking    its CPU goes back to the node while it waits
    interrupt   it was cancelled, and has to notice
    growth      the memory that tasks leave behind
    tracing     where the program's own spans go
    user        where the user's code begins
    interfaces  what these ask of the executor
    actor       the instance that the process hosts; its calls run in the lane, or
    pool        in threads, or
    loop        as coroutines
"""

from .call import TaskInterrupt
from .executor import Executor
from .process import check_version, main, serve

__all__ = ["Executor", "TaskInterrupt", "check_version", "main", "serve"]
