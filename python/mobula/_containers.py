"""Finds objects of a kind, such as futures, inside containers, and copies the containers with something else in their place.

Containers are lists, tuples, sets, frozensets, dicts (their keys too), deques, and instances of subclasses of these, such as named tuples, defaultdicts
and OrderedDicts; views of dicts, MappingProxyType, ChainMap, UserDict and UserList; slices; and the fields of dataclasses. In other objects nothing
is looked for, even if they have attributes: a future there stays a future, as with Dask.

A copy has the type of the original and what else is in it: a default factory, the limit of a deque, attributes. No constructor of a user's class
is called. A container that has none is not copied. A container may contain itself.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections import ChainMap, OrderedDict, UserDict, UserList, deque
from types import MappingProxyType
from typing import Any, Callable, Iterable, Optional, Union

Kind = Union[type[Any], tuple[type[Any], ...]]

MISSING = object()  # replaced by this, an object is left out of its container; a field of a tuple with names, a dataclass or a slice becomes None
_PLAIN = frozenset((int, float, complex, bool, type(None), str, bytes, bytearray))
_VIEWS: dict[Any, Callable[[list[Any]], Any]] = {}  # by the type of a view of a dict: makes a view of a new dict that has the items
for _kind in (dict, OrderedDict):
    _VIEWS[type(_kind().keys())] = lambda items, kind=_kind: kind.fromkeys(items).keys()  # type: ignore[misc]
    _VIEWS[type(_kind().values())] = lambda items, kind=_kind: kind(enumerate(items)).values()  # type: ignore[misc]
    _VIEWS[type(_kind().items())] = lambda items, kind=_kind: kind(items).items()  # type: ignore[misc]
VIEWS = frozenset((*_VIEWS, MappingProxyType))  # of dicts
_WRAPPERS = {UserDict: "data", UserList: "data", ChainMap: "maps"}  # classes whose contents are in an attribute
_SEQUENCES: tuple[Any, ...] = (list, tuple, set, frozenset, deque)


def replace(x: Any, f: Callable[[Any], Any], kind: Kind) -> Any:
    """x with f(y) in place of each y of a kind. x itself if it has none; else a copy of the containers that have some."""
    search = _Search(kind)
    return _Copies(search, f).of(x) if search.has(x) else x


def _parts(x: Any) -> Optional[Iterable[Any]]:
    """What a container contains; None if x is none."""
    for base in _SEQUENCES:
        if isinstance(x, base):
            items: Iterable[Any] = base.__iter__(x)
            return itertools.chain(items, _fields(x).values()) if _is_record(x) else items
    if isinstance(x, dict):
        return itertools.chain(dict.keys(x), dict.values(x), _fields(x).values() if _is_record(x) else ())
    if isinstance(x, slice):
        return x.start, x.stop, x.step
    if type(x) in _VIEWS:
        return list(x)
    if isinstance(x, MappingProxyType):
        return itertools.chain(x.keys(), x.values())
    if (name := _wrapped(x)) is not None:
        return (getattr(x, name),)
    return _fields(x).values() if _is_record(x) else None


def _wrapped(x: Any) -> Optional[str]:
    """The attribute with the contents of a UserDict, UserList or ChainMap."""
    return next((name for cls, name in _WRAPPERS.items() if isinstance(x, cls)), None)


def _is_record(x: Any) -> bool:
    return hasattr(type(x), "__dataclass_fields__")


def _fields(x: Any) -> dict[str, Any]:
    """The fields of a dataclass that are set."""
    return {f.name: getattr(x, f.name) for f in dataclasses.fields(x) if hasattr(x, f.name)}


class _Search:
    """Looks for objects of a kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.circular = False  # a container contains itself
        self._known: dict[int, tuple[Any, Optional[bool]]] = {}  # by id: a container, and whether it has any; None while it is searched

    def has(self, x: Any) -> bool:
        if type(x) in _PLAIN:
            return False
        if isinstance(x, self.kind):
            return True
        known = self._known.get(id(x))
        if known is not None:
            if known[1] is None:
                self.circular = True
            return bool(known[1])
        if type(x) in _SEQUENCES and _PLAIN.issuperset(map(type, x)):
            return False
        parts = _parts(x)
        if parts is None:
            return False
        self._known[id(x)] = x, None
        found = False
        for y in parts:
            if type(y) not in _PLAIN and self.has(y):
                found = True
        self._known[id(x)] = x, found
        return found

    def copied(self, x: Any) -> bool:
        """Whether x is copied. In a circle anything may lead to a future."""
        return self.has(x) or (self.circular and id(x) in self._known)


class _Copies:
    """Copies containers, each once."""

    def __init__(self, search: _Search, f: Callable[[Any], Any]) -> None:
        self._search = search
        self._f = f
        self._made: dict[int, Any] = {}

    def of(self, x: Any) -> Any:
        if type(x) in _PLAIN:
            return x
        if isinstance(x, self._search.kind):
            return self._f(x)
        if not self._search.copied(x):
            return x
        if id(x) in self._made:
            return self._made[id(x)]
        if isinstance(x, (tuple, frozenset, slice)):
            return self._whole(x)
        if type(x) in _VIEWS:
            return _VIEWS[type(x)]([y for y in map(self.of, x) if y is not MISSING])
        if isinstance(x, MappingProxyType):
            return MappingProxyType(self.of(x.copy()))
        made = self._made[id(x)] = copy.copy(x)  # before its parts, which may lead back to it
        if isinstance(x, dict):
            self._dict(x, made)
        elif isinstance(x, (list, deque)):
            self._list(x, made)
        elif isinstance(x, set):
            items = [(y, self.of(y)) for y in set.__iter__(x)]
            set.difference_update(made, [y for y, z in items if z is not y])
            set.update(made, [z for y, z in items if z is not y and z is not MISSING])
        elif (name := _wrapped(x)) is not None:
            setattr(made, name, self.of(getattr(x, name)))
        self._set_fields(x, made)
        return made

    def _whole(self, x: Any) -> Any:
        """A copy of a container that cannot be changed."""
        cls = type(x)
        if cls is slice:
            return slice(*[_none(self.of(y)) for y in (x.start, x.stop, x.step)])
        base: Any = tuple if isinstance(x, tuple) else frozenset
        parts = [self.of(y) for y in base.__iter__(x)]
        if id(x) in self._made:  # a part has led back to it
            return self._made[id(x)]
        items = [_none(y) for y in parts] if hasattr(cls, "_fields") else [y for y in parts if y is not MISSING]
        made = base.__new__(cls, items)
        if hasattr(x, "__dict__"):
            made.__dict__.update(x.__dict__)
        self._made[id(x)] = made
        self._set_fields(x, made)
        return made

    def _dict(self, x: Any, made: Any) -> None:
        items = [(k, self.of(k), v, self.of(v)) for k, v in dict.items(x)]
        if any(a is not b or d is MISSING for a, b, _, d in items):
            made.clear()
            for _, k, _, v in items:
                if k is not MISSING and v is not MISSING:
                    made[k] = v
        else:
            for k, _, v, new in items:
                if new is not v:
                    dict.__setitem__(made, k, new)

    def _list(self, x: Any, made: Any) -> None:
        base: Any = list if isinstance(x, list) else deque
        new = [self.of(y) for y in base.__iter__(x)]
        kept = [y for y in new if y is not MISSING]
        if len(kept) < len(new):
            base.clear(made)
            base.extend(made, kept)
            return
        for n, (y, z) in enumerate(zip(base.__iter__(x), new)):
            if z is not y:
                base.__setitem__(made, n, z)

    def _set_fields(self, x: Any, made: Any) -> None:
        """Sets the fields of a dataclass that contain something to replace, also if it is frozen."""
        for name, y in _fields(x).items() if _is_record(x) else ():
            z = _none(self.of(y))
            if z is not y:
                object.__setattr__(made, name, z)


def _none(x: Any) -> Any:
    return None if x is MISSING else x
