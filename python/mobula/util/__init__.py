"""What programs build on tasks and actors: pools, queues, progress bars, samples of memory.

mobula.util.queue has the queue's errors, mobula.util.joblib the backend for joblib, mobula.util.tracing spans of the program's own,
mobula.util.state what the node knows.
"""

from ._actor_pool import ActorPool
from ._memory_sampler import MemorySampler
from ._progress import progress
from .queue import Queue

__all__ = ["ActorPool", "MemorySampler", "Queue", "progress"]
