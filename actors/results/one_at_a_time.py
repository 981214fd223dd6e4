"""A decorator for methods of an object that several threads call: one of them runs at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

Parameters = ParamSpec("Parameters")
R = TypeVar("R")


class Locked(Protocol):
    """An object with a lock of its own."""

    lock: RLock


T = TypeVar("T", bound=Locked)


def one_at_a_time(method: Callable[Concatenate[T, Parameters], R]) -> Callable[Concatenate[T, Parameters], R]:
    """Hold the object's lock while the method runs; methods may call each other."""

    @wraps(method)
    def locked(self: T, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> R:
        with self.lock:
            return method(self, *arguments, **named)

    return locked
