"""The runtime context: the job, node, task and actor of the running code."""

from __future__ import annotations

from typing import Any, Optional

from .. import _ids, _runtime
from .._client import Client, TaskContext
from .._refs import bound
from .._wire.messages import HOME_SHIFT
from ..exceptions import InvalidError
from .actors import ActorHandle


class RuntimeContext:
    """Ids and names of the job, node, worker, task and actor of the running code."""

    def __init__(self, c: Client, tc: TaskContext) -> None:
        self._c = c
        self._tc = tc

    @property
    def job_id(self) -> int:
        return self._c.welcome.job

    @property
    def node_id(self) -> str:
        """The node's id, as mobula.nodes() and the option node have it."""
        return str(self._c.welcome.client >> HOME_SHIFT)

    @property
    def namespace(self) -> str:
        return self._c.welcome.namespace

    @property
    def gcs_address(self) -> str:
        return self._c.address

    @property
    def worker_id(self) -> int:
        return self._c.welcome.client

    @property
    def task_id(self) -> Optional[str]:
        """The task's id in hexadecimal digits; None in the driver."""
        return None if self._tc is self._c.root else self._tc.task.hex()

    @property
    def attempt(self) -> int:
        """The number of the task's attempt."""
        return self._tc.attempt

    @property
    def actor_id(self) -> Optional[str]:
        """The actor's id in hexadecimal digits; None outside an actor."""
        return self._tc.actor.hex() if self._tc.actor else None

    @property
    def current_actor(self) -> ActorHandle[Any]:
        """A handle of the actor that runs this code. InvalidError outside an actor."""
        a, c = self._tc.host(), self._c
        if a is None:
            raise InvalidError("this code runs in no actor")
        return ActorHandle(bound(c, _ids.return_id(self._tc.actor, 0)), a.name, a.sha, a.methods)

    def get_job_id(self) -> int:
        return self.job_id

    def get_node_id(self) -> str:
        return self.node_id

    def get_task_id(self) -> Optional[str]:
        return self.task_id

    def get_actor_id(self) -> Optional[str]:
        return self.actor_id

    def get_worker_id(self) -> int:
        return self.worker_id

    def get(self) -> dict[str, Any]:
        """All ids and names as a dict."""
        return {"job_id": self.job_id, "node_id": self.node_id, "namespace": self.namespace, "task_id": self.task_id,
                "actor_id": self.actor_id, "worker_id": self.worker_id, "attempt": self.attempt}


def get_runtime_context() -> RuntimeContext:
    """Returns the context of the running code.

        ctx = mobula.get_runtime_context()
        print(ctx.task_id, ctx.attempt)
    """
    c = _runtime.client()
    return RuntimeContext(c, _runtime.context(c))
