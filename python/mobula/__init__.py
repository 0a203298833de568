"""Mobula for Python: tasks, actors and shared-memory objects, with Ray's names.

    import mobula

    @mobula.remote
    def add(a, b):
        return a + b

    with mobula.init():
        print(mobula.get(add.remote(add.remote(1, 2), 3)))
"""

from . import exceptions
from ._api import (
                   ActorClass,
                   ActorEvent,
                   ActorHandle,
                   Buffer,
                   GoActorClass,
                   GoActorHandle,
                   GoFunction,
                   RemoteFunction,
                   Timer,
                   after,
                   available_resources,
                   cancel,
                   cluster_resources,
                   create,
                   every,
                   get,
                   get_actor,
                   get_runtime_context,
                   go_actor,
                   go_function,
                   graphs,
                   init,
                   is_initialized,
                   kill,
                   method,
                   nodes,
                   put,
                   remote,
                   shutdown,
                   status,
                   stop,
                   timeline,
                   wait,
                   watch,
)
from ._executor import Executor
from ._refs import ObjectRef, ObjectRefGenerator
from ._version import VERSION as __version__  # noqa: F401  # tools read it
from .exceptions import (
                   ActorDiedError,
                   ActorUnavailableError,
                   DeadlineError,
                   GetTimeoutError,
                   MobulaError,
                   ObjectFreedError,
                   ObjectLostError,
                   OwnerDiedError,
                   PendingCallsLimitError,
                   ShutdownError,
                   TaskCancelledError,
                   TaskError,
                   WorkerCrashedError,
)

__all__ = ["ActorClass", "ActorDiedError", "ActorEvent", "ActorHandle", "ActorUnavailableError", "Buffer", "DeadlineError", "Executor",
           "GetTimeoutError", "GoActorClass", "GoActorHandle", "GoFunction", "MobulaError", "ObjectFreedError", "ObjectLostError",
           "ObjectRef", "ObjectRefGenerator", "OwnerDiedError", "PendingCallsLimitError", "RemoteFunction", "ShutdownError",
           "TaskCancelledError", "TaskError", "Timer", "WorkerCrashedError", "after", "available_resources", "cancel", "cluster_resources",
           "create", "every", "exceptions", "get", "get_actor", "get_runtime_context", "go_actor", "go_function", "graphs", "init",
           "is_initialized", "kill", "method", "nodes", "put", "remote", "shutdown", "status", "stop", "timeline", "wait", "watch"]
