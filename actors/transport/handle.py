"""A handle to an actor some of whose methods are called through its socket, all others through Ray."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from actors.transport.address import Address
from actors.transport.channel import Channel
from dsms.errors import OperatorError

T = TypeVar("T")
_channels: dict[str, Channel] = {}  # of this process, by the name of the address
_changing = threading.Lock()


class SocketMethod:
    """A method that is called through a socket."""

    __slots__ = ("_address", "_name")

    def __init__(self, address: Address, name: str) -> None:
        self._address, self._name = address, name

    def call(self, *arguments: object) -> Future[Any]:
        """Call it; the future completes with the answer, or with an error where the actor's process is gone."""
        try:
            return get_channel(self._address).call(self._name, arguments)
        except OperatorError as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return failed

    def cast(self, *arguments: object) -> None:
        """Call it without an answer."""
        get_channel(self._address).cast(self._name, arguments)


class SocketHandle:
    """Has the methods of an actor's handle; processes on the actor's machine call those of its address by socket."""

    def __init__(self, handle: object, address: Address) -> None:
        self.actor, self._address = handle, address

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)  # while it is unpickled
        if name in self._address.methods and self._address.is_near:
            return SocketMethod(self._address, name)
        return getattr(self.actor, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SocketHandle) and self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __repr__(self) -> str:
        return f"SocketHandle({self.actor!r})"


def use_socket(handle: T, address: Address) -> T:
    """Return a handle that calls the methods of the address through its socket."""
    return cast(T, SocketHandle(get_actor(handle), address))


def get_actor(handle: T) -> T:
    """Return Ray's handle of an actor."""
    return cast(T, handle.actor) if isinstance(handle, SocketHandle) else handle


def get_channel(address: Address) -> Channel:
    """Return this process's connection to an address; a lost one is made again."""
    with _changing:
        channel = _channels.get(address.name)
        if channel is None or not channel.is_open:
            for name in [name for name, each in _channels.items() if not each.is_open]:
                del _channels[name]  # also those of actors that have ended
            channel = _channels[address.name] = Channel(address)
        return channel
