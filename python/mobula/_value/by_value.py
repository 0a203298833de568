"""Pickles functions and classes by value, as cloudpickle does, and what functools makes of them.

cloudpickle names a cached function (functools.cache, lru_cache) by its module and name, under which a worker cannot find it if the module
is __main__, and fails at functions and methods with single dispatch, whose caches hold weak references, and before Python 3.12 at
cached properties, which hold a lock. Here these come as the functions that they were made of, with empty caches. cloudpickle also makes
a class that has __slots__ as one without them: its instances have a __dict__ there, which those here have not, so that none came back.
"""

from __future__ import annotations

import functools
import io
import pickle
import sys
from types import FunctionType
from typing import Any, Callable, Optional

import cloudpickle

from .._callables import DISPATCHER
from . import views

_CACHED = type(functools.lru_cache(len))
_CACHES = ("lock", "_method_cache", "_all_weakrefable_instances")  # attributes of descriptors that do not travel
_SKELETON, _NAMESPACE = cloudpickle.cloudpickle._make_skeleton_class, 3  # what makes a class, and which argument has its first attributes
_OF_DISPATCHERS = ("register", "dispatch", "registry", "_clear_cache", "__wrapped__")


def dumps(x: Any, buffer_callback: Optional[Callable[[pickle.PickleBuffer], Any]] = None) -> bytes:
    """Pickles a value. Functions and classes that other processes cannot import come by value, views as what they show."""
    views.refresh()
    out = io.BytesIO()
    ByValue(out, 5, buffer_callback=buffer_callback).dump(x)
    return out.getvalue()


def by_value(module: str) -> bool:
    """Whether a module, or a package that it is in, is registered with cloudpickle to be pickled by value."""
    registered = cloudpickle.list_registry_pickle_by_value()
    return bool(registered) and any(module == m or module.startswith(m + ".") for m in registered)


def importable(f: Any) -> bool:
    """Whether workers can import a function or class by its module and name."""
    module: str = getattr(f, "__module__", None) or ""
    path: str = getattr(f, "__qualname__", None) or "<none>"
    if module == "__main__" or "<" in path or by_value(module):
        return False
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found is f


class ByValue(views.CloudPickler):
    """A pickler for that. Call views.refresh before one is made."""

    def reducer_override(self, x: Any) -> Any:
        cls = type(x)
        if cls is FunctionType:
            if x.__code__ is DISPATCHER and not importable(x):
                return _dispatcher, (x.__name__,), (dict(x.registry), _without(x, _OF_DISPATCHERS)), None, None, _set_dispatcher
        elif cls is _CACHED:
            if not importable(x):
                return self._cached(x)
        elif cls is functools.singledispatchmethod or cls is functools.cached_property:
            return _descriptor, (cls,), _without(x, _CACHES), None, None, _set_descriptor
        how = super().reducer_override(x)
        if isinstance(x, type) and "__slots__" in vars(x) and how is not NotImplemented and how[0] is _SKELETON \
                and not issubclass(x, tuple):  # a tuple's class has no slots with a name, and typing.NamedTuple refuses them
            how[1][_NAMESPACE]["__slots__"] = vars(x)["__slots__"]
        return how

    def _cached(self, x: Any) -> Any:
        """A cached function may be among its own globals. So it is made of a function without state, as cloudpickle makes functions, and
        gets its state once the pickler knows it."""
        named = _without(x, ("__wrapped__", "cache_parameters"))
        f = x.__wrapped__
        how = super().reducer_override(f) if type(f) is FunctionType else NotImplemented
        if how is NotImplemented or len(how) != 6:
            return _cache, (f, x.cache_parameters()), (None, None, named), None, None, _set_cached
        make, args, state, _, _, setter = how
        return _cache_made, (make, args, x.cache_parameters()), (setter, state, named), None, None, _set_cached


def _without(x: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {k: v for k, v in vars(x).items() if k not in names}


def _cache(f: Any, parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(f)


def _cache_made(make: Callable[..., Any], args: tuple[Any, ...], parameters: dict[str, Any]) -> Any:
    return _cache(make(*args), parameters)


def _set_cached(x: Any, parts: tuple[Any, Any, dict[str, Any]]) -> None:
    setter, state, named = parts
    if setter is not None:
        setter(x.__wrapped__, state)
    vars(x).update(named)


def _dispatcher(name: str) -> Any:
    def unset(*args: Any) -> None:
        raise NotImplementedError

    unset.__name__ = name
    return functools.singledispatch(unset)


def _set_dispatcher(x: Any, parts: tuple[dict[Any, Any], dict[str, Any]]) -> None:
    registry, said = parts
    functools.update_wrapper(x, registry[object], updated=())
    for cls, f in registry.items():
        x.register(cls, f)
    vars(x).update(said)


def _descriptor(cls: type[Any]) -> Any:
    return cls(_unset)


def _unset(x: Any) -> None:
    raise NotImplementedError


def _set_descriptor(x: Any, state: dict[str, Any]) -> None:
    vars(x).update(state)
