"""Utilities on top of tasks and actors: actor pools, queues, progress bars, memory samples.

Further modules: mobula.util.queue (the queue's errors), mobula.util.joblib (a joblib backend), mobula.util.tracing (the program's own spans),
mobula.util.state (lists of tasks, actors and objects).
"""

from ._actor_pool import ActorPool
from ._memory_sampler import MemorySampler
from ._progress import progress
from .queue import Queue

__all__ = ["ActorPool", "MemorySampler", "Queue", "progress"]
