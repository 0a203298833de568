"""Callbacks around the tasks of Dask graphs, with the names and signatures of Dask-on-Ray, with or without the prefix ray_.

    class Timing(MobulaDaskCallback):
        def _pretask(self, key, object_refs):
            return time.time()

        def _posttask(self, key, result, pre_state):
            print(key, time.time() - pre_state)

    with Timing():
        x.compute(scheduler=mobula.dask.get)

pretask and posttask run in the worker, on a copy of the callback. The other hooks run in the process that computes. RayDaskCallback is for
classes written for Dask-on-Ray.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ClassVar, Iterator, Mapping, Optional, Sequence

from dask.callbacks import Callback

HOOKS = ("presubmit", "postsubmit", "pretask", "posttask", "postsubmit_all", "finish")
_DASKS = ("start", "start_state", "pretask", "posttask", "finish")
_GIVEN = ("mobula_callbacks", "ray_callbacks")  # arguments of get that have callbacks


class MobulaDaskCallback:
    """Six hooks. Each is a method to override (_pretask, or _ray_pretask) or a function given here (pretask=, or ray_pretask=).

    presubmit(task, key, deps)              before a task is submitted. If it returns a value that is not None, this is the result, and the
                                            task does not run
    postsubmit(task, key, deps, object_ref) after a task was submitted
    pretask(key, object_refs)               in the worker, before the task runs, with its inputs' values. Returns the pre_state
    posttask(key, result, pre_state)        in the worker, after the task has run
    postsubmit_all(object_refs, dsk)        after all tasks were submitted
    finish(result)                          when the result is ready
    """

    active: ClassVar[list[MobulaDaskCallback]] = []

    def __init__(self, presubmit: Optional[Callable[..., Any]] = None, postsubmit: Optional[Callable[..., Any]] = None,
                 pretask: Optional[Callable[..., Any]] = None, posttask: Optional[Callable[..., Any]] = None,
                 postsubmit_all: Optional[Callable[..., Any]] = None, finish: Optional[Callable[..., Any]] = None, **ray: Any) -> None:
        given = {"presubmit": presubmit, "postsubmit": postsubmit, "pretask": pretask, "posttask": posttask, "postsubmit_all": postsubmit_all,
                 "finish": finish}
        for name, f in ray.items():
            short = name.removeprefix("ray_")
            if short == name or short not in HOOKS:
                raise TypeError(f"{type(self).__name__} has no hook {name!r}; it has {', '.join(HOOKS)}, and these with ray_ before them")
            given[short] = f
        for name, f in given.items():
            if f is not None:
                setattr(self, "_" + name, f)

    def hook(self, name: str) -> Optional[Callable[..., Any]]:
        """The hook with a name, or None."""
        f: Optional[Callable[..., Any]] = getattr(self, "_" + name, None) or getattr(self, "_ray_" + name, None)
        return f

    def register(self) -> None:
        """Turns the hooks on, until unregister."""
        MobulaDaskCallback.active.append(self)

    def unregister(self) -> None:
        """Turns the hooks off."""
        MobulaDaskCallback.active.remove(self)

    def __enter__(self) -> MobulaDaskCallback:
        self.register()
        return self

    def __exit__(self, *_: Any) -> None:
        self.unregister()


def _nothing(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Stands for a hook that is not overridden, so that subclasses can call it by super()."""


class RayDaskCallback(MobulaDaskCallback, Callback):  # type: ignore[misc]
    """The class of Dask-on-Ray. Its six hooks are the methods _ray_presubmit and so on, or functions given as ray_presubmit= and so on. It is
    a dask.callbacks.Callback too, whose five hooks have the names without ray_."""

    ray_active = MobulaDaskCallback.active
    _ray_presubmit = _ray_postsubmit = _ray_pretask = _ray_posttask = _ray_postsubmit_all = _ray_finish = _nothing

    def __init__(self, **hooks: Any) -> None:
        for name in HOOKS:
            f = hooks.pop("ray_" + name, None)
            if f is not None:
                setattr(self, "_ray_" + name, f)
        Callback.__init__(self, **hooks)

    def hook(self, name: str) -> Optional[Callable[..., Any]]:
        f: Callable[..., Any] = getattr(self, "_ray_" + name)
        return None if getattr(f, "__func__", None) is _nothing else f

    @property
    def _ray_callback(self) -> tuple[Optional[Callable[..., Any]], ...]:
        """The six hooks as a tuple, as Dask-on-Ray takes them in ray_callbacks."""
        return tuple(map(self.hook, HOOKS))

    def register(self) -> None:
        MobulaDaskCallback.register(self)
        if any(getattr(self, "_" + name, None) for name in _DASKS):
            Callback.register(self)

    def unregister(self) -> None:
        MobulaDaskCallback.unregister(self)
        with contextlib.suppress(KeyError):
            Callback.unregister(self)


class Active:
    """The hooks of one computation."""

    def __init__(self, callbacks: Sequence[MobulaDaskCallback]) -> None:
        self._callbacks = callbacks

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    def of(self, name: str) -> list[Callable[..., Any]]:
        return [f for c in self._callbacks if (f := c.hook(name)) is not None]

    def around(self) -> Optional[list[tuple[Optional[Callable[..., Any]], Optional[Callable[..., Any]]]]]:
        """The hooks that run in the worker: one pair (pretask, posttask) per callback; None if there are none."""
        pairs = [(c.hook("pretask"), c.hook("posttask")) for c in self._callbacks]
        pairs = [p for p in pairs if p != (None, None)]
        return pairs or None


def given(kwargs: Mapping[str, Any]) -> Optional[list[MobulaDaskCallback]]:
    """The callbacks in the arguments of get; None if there is no such argument. An argument is one callback or several, each also as the
    tuple of its hooks."""
    out: Optional[list[MobulaDaskCallback]] = None
    for name in _GIVEN:
        said = kwargs.get(name)
        if said is None:
            continue
        out = out or []
        for c in (said,) if isinstance(said, MobulaDaskCallback) else said:
            if isinstance(c, tuple) and len(c) == len(HOOKS):
                c = MobulaDaskCallback(*c)
            if not isinstance(c, MobulaDaskCallback):
                raise TypeError(f"{name} has {c!r}: give callbacks of mobula.dask, or tuples of their {len(HOOKS)} hooks")
            out.append(c)
    return out


@contextlib.contextmanager
def taken(instead: Optional[Sequence[MobulaDaskCallback]] = None) -> Iterator[Active]:
    """The given callbacks, or else the active ones, each once. Inside, none of those is active, so a computation by a hook does not call them."""
    if instead is not None:
        yield Active(instead)
        return
    active = MobulaDaskCallback.active
    now = active[:]
    active.clear()
    try:
        yield Active(list({id(c): c for c in now}.values()))
    finally:
        active[:0] = now


class ProgressBar(Callback):  # type: ignore[misc]
    """A progress bar of finished tasks, by tqdm.auto: in a terminal or a notebook. minimum: seconds before it appears."""

    def __init__(self, minimum: float = 0.0, desc: str = "tasks", **tqdm: Any) -> None:
        super().__init__()
        self._minimum = minimum
        self._tqdm = {"desc": desc, "unit": "task", **tqdm}
        self._bar: Any = None

    def _start_state(self, dsk: Any, state: Any) -> None:
        from tqdm.auto import tqdm

        total = sum(len(state[k]) for k in ("ready", "waiting", "running", "finished"))
        self._bar = tqdm(total=total, delay=self._minimum, **self._tqdm)

    def _pretask(self, key: Any, dsk: Any, state: Any) -> None:
        self._show(state)

    def _show(self, state: Any) -> None:
        if self._bar is not None:
            self._bar.update(len(state["finished"]) - self._bar.n)

    def _finish(self, dsk: Any, state: Any, failed: bool) -> None:
        if self._bar is not None:
            self._show(state)
            self._bar.close()
            self._bar = None


__all__ = ["Active", "Callback", "MobulaDaskCallback", "ProgressBar", "RayDaskCallback", "given", "taken"]
