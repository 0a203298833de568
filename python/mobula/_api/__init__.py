"""The public functions, with Ray's names.

    connecting  init, shutdown
    decorator   remote
    tasks       remote functions, cancel
    actors      actor classes, handles and methods, kill, get_actor
    lifecycle   watch, stop, timers
    golang      functions and actors of Go programs
    calls       encodes a call and submits it
    pending_calls  limits the pending calls of an actor
    signatures  types of remote calls for type checkers
    objects     put, get, wait
    buffers     create
    state       status, nodes, graphs, resources
    timeline    timeline
    context     get_runtime_context
"""

from .actors import ActorClass, ActorHandle, ActorMethod, get_actor, kill, method
from .buffers import Buffer, create
from .connecting import Context, init, is_initialized, shutdown
from .context import RuntimeContext, get_runtime_context
from .decorator import remote
from .golang import GoActorClass, GoActorHandle, GoFunction, go_actor, go_function
from .lifecycle import ActorEvent, Timer, after, every, stop, watch
from .objects import get, put, wait
from .state import available_resources, cluster_resources, graphs, nodes, request, status
from .tasks import RemoteFunction, cancel
from .timeline import timeline

__all__ = ["ActorClass", "ActorEvent", "ActorHandle", "ActorMethod", "Buffer", "Context", "GoActorClass", "GoActorHandle", "GoFunction",
           "RemoteFunction", "RuntimeContext", "Timer", "after", "available_resources", "cancel", "cluster_resources", "create", "every", "get", "get_actor",
           "get_runtime_context", "go_actor", "go_function", "graphs", "init", "is_initialized", "kill", "method", "nodes", "put",
           "remote", "request", "shutdown", "status", "stop", "timeline", "wait", "watch"]
