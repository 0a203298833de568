"""What type checkers and editors know of calls: f.remote(...) takes what f takes, with a reference in the place of any value.

A reference is known of in the first eight places, and of a function that takes any number of values of one type in all of them; one that is
passed by its name is taken for an error. mypy does not see what a decorator makes of a class: write Counter = mobula.remote(Counts).
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
    """A class: what is called as its constructor is, and has an order of its bases."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...

    def mro(self) -> list[type]: ...


class Remote(Generic[P, S_co]):
    """What is called by remote, as something with the parameters P; S_co is what stands for the result. It is abstract: whatever is remote has a
    remote and a __call__ of its own."""

    @overload
    def remote(self, *args: P.args, **kwargs: P.kwargs) -> S_co: ...
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
    @overload  # what takes nine values of one type takes any number of them
    def remote(self: Callable[[A, A, A, A, A, A, A, A, A], Any], *args: Union[A, ObjectRef[A]]) -> S_co: ...

    def remote(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> NoReturn:
        """Says how it is called instead."""
        raise NotImplementedError
