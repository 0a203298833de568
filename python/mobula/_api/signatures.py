"""Types of remote calls: f.remote(...) takes the parameters of f, and accepts a reference in place of a value.

A type checker accepts references as the first eight positional arguments, and as any argument of a function with *args of one type. It reports
a reference passed by keyword as an error. mypy ignores what a decorator makes of a class: write Counter = mobula.remote(Counts).
"""

from __future__ import annotations

from typing import Any, Callable, Concatenate, Generic, NoReturn, ParamSpec, Protocol, TypeVar, Union, overload

from .._refs import ObjectRef

P = ParamSpec("P")
Q = ParamSpec("Q")
S_co = TypeVar("S_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")


class Class(Protocol[P, T_co]):
    """Matches a class and not a function: it has the constructor's parameters, and a method mro."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...

    def mro(self) -> list[type]: ...


class Remote(Generic[P, S_co]):
    """The type of a function or class with a method remote: P are its parameters, S_co is the type that remote returns. Subclasses define
    remote and __call__."""

    @overload
    def remote(self, /, *args: P.args, **kwargs: P.kwargs) -> S_co: ...
    @overload
    def remote(self: Callable[Concatenate[A, Q], Any], a: Union[A, ObjectRef[A]], /, *args: Q.args, **kwargs: Q.kwargs) -> S_co: ...
    @overload
    def remote(self: Callable[Concatenate[A, B, Q], Any], a: Union[A, ObjectRef[A]], b: Union[B, ObjectRef[B]], /,
               *args: Q.args, **kwargs: Q.kwargs) -> S_co: ...
    @overload
    def remote(self: Callable[Concatenate[A, B, C, Q], Any], a: Union[A, ObjectRef[A]], b: Union[B, ObjectRef[B]],
               c: Union[C, ObjectRef[C]], /, *args: Q.args, **kwargs: Q.kwargs) -> S_co: ...
    @overload
    def remote(self: Callable[Concatenate[A, B, C, D, Q], Any], a: Union[A, ObjectRef[A]], b: Union[B, ObjectRef[B]],
               c: Union[C, ObjectRef[C]], d: Union[D, ObjectRef[D]], /, *args: Q.args, **kwargs: Q.kwargs) -> S_co: ...
    @overload
    def remote(self: Callable[Concatenate[A, B, C, D, E, Q], Any], a: Union[A, ObjectRef[A]], b: Union[B, ObjectRef[B]],
               c: Union[C, ObjectRef[C]], d: Union[D, ObjectRef[D]], e: Union[E, ObjectRef[E]], /,
               *args: Q.args, **kwargs: Q.kwargs) -> S_co: ...
    @overload
    def remote(self: Callable[Concatenate[A, B, C, D, E, F, Q], Any], a: Union[A, ObjectRef[A]], b: Union[B, ObjectRef[B]],
               c: Union[C, ObjectRef[C]], d: Union[D, ObjectRef[D]], e: Union[E, ObjectRef[E]], f: Union[F, ObjectRef[F]], /,
               *args: Q.args, **kwargs: Q.kwargs) -> S_co: ...
    @overload
    def remote(self: Callable[Concatenate[A, B, C, D, E, F, G, Q], Any], a: Union[A, ObjectRef[A]], b: Union[B, ObjectRef[B]],
               c: Union[C, ObjectRef[C]], d: Union[D, ObjectRef[D]], e: Union[E, ObjectRef[E]], f: Union[F, ObjectRef[F]],
               g: Union[G, ObjectRef[G]], /, *args: Q.args, **kwargs: Q.kwargs) -> S_co: ...
    @overload
    def remote(self: Callable[Concatenate[A, B, C, D, E, F, G, H, Q], Any], a: Union[A, ObjectRef[A]], b: Union[B, ObjectRef[B]],
               c: Union[C, ObjectRef[C]], d: Union[D, ObjectRef[D]], e: Union[E, ObjectRef[E]], f: Union[F, ObjectRef[F]],
               g: Union[G, ObjectRef[G]], h: Union[H, ObjectRef[H]], /, *args: Q.args, **kwargs: Q.kwargs) -> S_co: ...
    @overload  # a function that accepts nine values of one type is taken to accept any number of them
    def remote(self: Callable[[A, A, A, A, A, A, A, A, A], Any], *args: Union[A, ObjectRef[A]]) -> S_co: ...

    def remote(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> NoReturn:
        """Raises TypeError, which says how to call it instead."""
        raise NotImplementedError
