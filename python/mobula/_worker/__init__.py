"""A worker process. Its main thread runs the tasks that the node pushes, one after the other (the lane).

The main thread reads the connection itself while it has nothing to run. While it runs a task, the client's keeper reads. An actor
with concurrency runs its calls in threads, an actor with coroutines in an event loop; then the main thread only reads.

Reports go in batches: when the queue is empty, or at the latest with the keeper's next tick.

    process     the process, from its environment to its exit code
    handlers    handles the node's messages
    lane        the main thread's running task and queue, and which tasks go back to the node: pure
    executor    begins tasks, runs them and reports them
    call        one running attempt of a task
    arguments   decodes its arguments
    results     encodes its results, or its error
    streaming   sends results one by one
    blocking    gives its CPU back to the node while it waits
    interrupt   interrupts it when it is cancelled
    memory      returns free memory to the system, and detects leaks
    garbage     collects what calls left in cycles, once it is idle
    tracing     sends the program's own spans to the node
    user_code   finds the border between the user's code and this package
    interfaces  what these modules need of the executor
    actor       the actor that the process hosts; its calls run in the lane, or
    pool        in threads, or
    loop        as coroutines
    close_hook  calls the actor's close hook
"""

from .call import TaskInterrupt
from .executor import Executor
from .process import check_version, main, serve

__all__ = ["Executor", "TaskInterrupt", "check_version", "main", "serve"]
