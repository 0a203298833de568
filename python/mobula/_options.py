"""Options of tasks, actors and calls, with Ray's names, and their form on the wire."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any, Mapping, Optional

from . import _labels
from ._functions import Exported, count_returns, shown
from ._wire.messages import AFFINITY_HARD, AFFINITY_NONE, AFFINITY_SOFT, MAX_HOME, ConcurrencyGroup, LabelMatch, Resource, TaskOptions
from .exceptions import InvalidError

_COMMON = {"num_cpus", "num_gpus", "memory", "resources", "name", "scheduling_strategy", "label_selector", "prefer_labels", "node", "soft", "isolated",
           "timeout"}
TASK = _COMMON | {"num_returns", "max_retries", "retry_exceptions", "_generator_backpressure_num_objects", "backpressure",
                  "_exception_retries"}
ACTOR = _COMMON | {"max_restarts", "max_task_retries", "max_concurrency", "max_pending_calls", "escalate", "namespace", "lifetime",
                   "get_if_exists", "concurrency_groups"}
CALL = {"num_returns", "name", "concurrency_group", "timeout", "wait_for_room", "_generator_backpressure_num_objects", "backpressure"}


def check(given: Mapping[str, Any], known: set[str], what: str) -> None:
    for k in given:
        if k not in known:
            public = ", ".join(sorted(x for x in known if not x.startswith("_")))
            raise InvalidError(f"{what} has no option {k!r}; it has {public}")


def _whole(o: Mapping[str, Any], key: str, default: int, least: int) -> int:
    v = o.get(key)
    if v is None:
        return default
    if isinstance(v, bool) or not isinstance(v, int) or v < least or v >= 1 << 31:
        raise InvalidError(f"{key}={v!r}: want a number from {least} on")
    return v


def _text(o: Mapping[str, Any], key: str) -> str:
    v = o.get(key)
    if v is not None and not isinstance(v, str):
        raise InvalidError(f"{key}={v!r}: want a string")
    return sendable(key, v or "")


def sendable(what: str, text: str) -> str:
    """Returns the text. InvalidError if it has no form in UTF-8, such as a file's name that is other bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidError(f"{what}={text!r}: it cannot be encoded in UTF-8") from None
    return text


def _dict(o: Mapping[str, Any], key: str, of: str) -> Mapping[str, Any]:
    v = o.get(key)
    if v is None:
        return {}
    if not isinstance(v, Mapping) or not all(isinstance(k, str) for k in v):
        raise InvalidError(f"{key}={v!r}: want a dict of {of} by their names")
    return v


def _number(v: Any) -> bool:
    return isinstance(v, numbers.Real) and not isinstance(v, bool)


def _bytes(o: Mapping[str, Any], key: str) -> int:
    v = o[key]
    if not _number(v) or not 0 <= v < 1 << 63 or v != int(v):
        raise InvalidError(f"{key}={v!r}: want a whole number of bytes, 0 or more")
    return int(v)


def timeout(o: Mapping[str, Any]) -> Optional[float]:
    """The option timeout: the task is ended after so many seconds; None: never."""
    v = o.get("timeout")
    if v is None:
        return None
    if not _number(v) or v != v:
        raise InvalidError(f"timeout={v!r}: want a number of seconds, or None")
    return None if v >= _NO_TIMEOUT else float(v) if v > 0 else 0.0


_NO_TIMEOUT = 1e9  # seconds, thirty years; an int64 of nanoseconds since 1970 ends at about ten times that


def _thousandths(name: str, x: Any) -> int:
    if isinstance(x, bool) or not isinstance(x, (int, float)) or not 0 <= x < 1 << 50:
        raise InvalidError(f"{name}={x!r}: want a number, 0 or more")
    n = math.floor(x * 1000 + 0.5)
    return n if n or not x else 1


def _resources(o: Mapping[str, Any], actor: bool) -> list[Resource]:
    """The resources that the options ask for. Empty means the default: one CPU for a task, none for a living actor."""
    if not any(o.get(k) is not None for k in ("num_cpus", "num_gpus", "memory", "resources")):
        return []
    out: dict[str, int] = {}
    cpus = o.get("num_cpus")
    if cpus is not None:
        out["CPU"] = _thousandths("num_cpus", cpus)
    elif not actor:
        out["CPU"] = 1000
    if o.get("num_gpus") not in (None, 0):
        out["GPU"] = _thousandths("num_gpus", o["num_gpus"])
    if o.get("memory") not in (None, 0):
        out["memory"] = _bytes(o, "memory")
    for name, x in _dict(o, "resources", "amounts").items():
        if name in ("CPU", "GPU", "memory", ""):
            raise InvalidError(f"resources[{name!r}]: use num_cpus, num_gpus or memory")
        if x:
            out[name] = _thousandths(f"resources[{name!r}]", x)
    return [Resource(k, out[k]) for k in sorted(out)]


def _spread(o: Mapping[str, Any]) -> bool:
    s = o.get("scheduling_strategy")
    if s not in (None, "DEFAULT", "SPREAD"):
        raise InvalidError(f"scheduling_strategy={s!r}: want \"DEFAULT\" or \"SPREAD\"")
    return s == "SPREAD"


def _selector(o: Mapping[str, Any], key: str) -> list[LabelMatch]:
    return _labels.selector(key, _dict(o, key, "conditions"))


def _node(o: Mapping[str, Any]) -> tuple[int, int]:
    """What a node is to the task, and its home."""
    node, soft = o.get("node"), o.get("soft")
    if soft is not None and not isinstance(soft, bool):
        raise InvalidError(f"soft={soft!r}: want True or False")
    if node is None:
        if soft:
            raise InvalidError("soft=True without a node: give node=..., with the id of one of mobula.nodes()")
        return AFFINITY_NONE, 0
    if not isinstance(node, str) or not re.fullmatch("[0-9]{1,9}", node) or int(node) > MAX_HOME:
        raise InvalidError(f"node={node!r}: want the NodeID of one of mobula.nodes(), a number as a string")
    if _spread(o):
        raise InvalidError("scheduling_strategy=\"SPREAD\" takes one node after the other, node=... names one: give one of them")
    return AFFINITY_SOFT if soft else AFFINITY_HARD, int(node)


def _backpressure(o: Mapping[str, Any]) -> int:
    key = "backpressure" if o.get("backpressure") is not None else "_generator_backpressure_num_objects"
    return max(0, _whole(o, key, 0, -1))


def _label(func: str, o: Mapping[str, Any]) -> str:
    """The name in lists and traces: the option name, else the function's name without its hash."""
    return _text(o, "name") or _shown(func)


def _shown(func: str) -> str:
    return shown(func) if ":" in func[3:] else ""


def _returns(o: Mapping[str, Any]) -> int:
    return count_returns(1 if o.get("num_returns") is None else o["num_returns"])


def _retry_exceptions(o: Mapping[str, Any]) -> bool:
    given = o.get("retry_exceptions")
    if given is None or isinstance(given, bool):
        return bool(given)
    if isinstance(given, (list, tuple)) and all(isinstance(t, type) and issubclass(t, Exception) for t in given):
        return len(given) > 0
    raise InvalidError(f"retry_exceptions={given!r}: want True, for any exception of the task's own, False, or a list of exceptions' types")


def retry_only(o: Mapping[str, Any]) -> Optional[Exported]:
    """The list of exception types in retry_exceptions, for workers; None: any exception is retried, or none."""
    given = o.get("retry_exceptions")
    return Exported(tuple(given)) if isinstance(given, (list, tuple)) and given else None


def task(func: str, o: Mapping[str, Any]) -> TaskOptions:
    """The options of a task."""
    timeout(o)
    affinity, node = _node(o)
    return TaskOptions(
        func=func, num_returns=_returns(o), resources=_resources(o, False), labels=_selector(o, "label_selector"),
        prefer_labels=_selector(o, "prefer_labels"), affinity=affinity, node=node, max_retries=_whole(o, "max_retries", 3, -1),
        retry_exceptions=_retry_exceptions(o), exception_retries=_whole(o, "_exception_retries", 0, -1), isolate=bool(o.get("isolated")),
        backpressure=_backpressure(o), spread=_spread(o), label=_label(func, o), max_concurrency=1, max_pending_calls=-1)


def actor(func: str, o: Mapping[str, Any], namespace: str, concurrency: int) -> TaskOptions:
    """The options of an actor's creation. concurrency is the default of max_concurrency."""
    lifetime = o.get("lifetime")
    if lifetime not in (None, "detached", "non_detached"):
        raise InvalidError(f"lifetime={lifetime!r}: want \"detached\" or None")
    timeout(o)
    name = _text(o, "name")
    namespace = _text(o, "namespace") or namespace
    if lifetime == "detached" and not name:
        raise InvalidError("a detached actor needs a name to be found by")
    if o.get("get_if_exists") and not name:
        raise InvalidError("get_if_exists needs a name to look for")
    affinity, node = _node(o)
    groups = [ConcurrencyGroup(k, _whole({f"concurrency_groups[{k!r}]": n}, f"concurrency_groups[{k!r}]", 1, 1))
              for k, n in _dict(o, "concurrency_groups", "numbers of calls at once").items()]
    return TaskOptions(
        func=func, num_returns=1, resources=_resources(o, True), labels=_selector(o, "label_selector"),
        prefer_labels=_selector(o, "prefer_labels"), affinity=affinity, node=node, max_retries=3, isolate=bool(o.get("isolated")),
        spread=_spread(o), label=_shown(func),
        max_restarts=_whole(o, "max_restarts", 0, -1), max_task_retries=_whole(o, "max_task_retries", 0, -1),
        max_concurrency=_whole(o, "max_concurrency", concurrency, 1), groups=groups,
        max_pending_calls=_whole(o, "max_pending_calls", -1, -1),
        namespace=namespace if name else "", actor_name=name, detached=lifetime == "detached",
        get_if_exists=bool(o.get("get_if_exists")), escalate=bool(o.get("escalate")))


def call(func: str, o: Mapping[str, Any]) -> TaskOptions:
    """The options of a call of an actor's method."""
    timeout(o)
    return TaskOptions(func=func, num_returns=_returns(o), max_retries=3, backpressure=_backpressure(o), label=_label(func, o),
                       max_concurrency=1, max_pending_calls=-1, group=_text(o, "concurrency_group"))
