"""Lines between a scheduler and its hosts, and among those: grants and turns in a fraction of the time of Ray's calls.

After the twenty milliseconds of a turn a call of Ray takes three more to come home, a message by a socket a tenth of
one. All hosts of a domain are on one node, so the sockets are local ones; each has a key that only Ray's calls tell.
"""

from __future__ import annotations

import logging
import pickle
import secrets
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge, wait
from typing import Any, NamedTuple

from actors.grant import Grant, Onward, Output, Turn
from dsms.errors import OperatorError

log = logging.getLogger("dsms")
GONE = "a process is gone with the stations in it"
HOME, PEER = "home", "peer"  # who has called


class Address(NamedTuple):
    """Where a host is called by others of its node, and what they have to know."""

    name: str
    key: bytes


class Switchboard:
    """A host's end of all lines: a grant comes in by any of them and goes on by another, or home as a turn."""

    def __init__(self, carry: Callable[[Grant, Sequence[Output]], Turn]) -> None:
        self._carry = carry
        # A name that is no file: nothing is left of it, however the process ends.
        name = f"\0dsms-{secrets.token_hex(8)}" if sys.platform == "linux" else None
        key = secrets.token_bytes(32)
        self._listener = Listener(name, "AF_UNIX", backlog=64)
        self.address = Address(name or str(self._listener.address), key)
        self._home: Connection[Any, Any] | None = None
        self._hosts: Sequence[Address] = ()
        self._lines: dict[int, Connection[Any, Any]] = {}  # to other hosts, by place
        threading.Thread(target=self._answer, daemon=True).start()

    def meet(self, hosts: Sequence[Address]) -> None:
        """Who else there is, by place."""
        for line in self._lines.values():
            line.close()
        self._hosts, self._lines = hosts, {}

    def _answer(self) -> None:
        while True:
            with suppress(OSError):  # of one that is gone again
                line = self._listener.accept()
                threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: Connection[Any, Any]) -> None:
        """All that comes by one line, until whoever called is gone."""
        with suppress(AuthenticationError, EOFError, OSError), line:
            # Here and not where lines are answered: one who says nothing keeps only himself waiting.
            deliver_challenge(line, self.address.key)
            answer_challenge(line, self.address.key)
            if line.recv() == HOME:
                self._home = line
                line.send(HOME)
            while True:
                data = line.recv_bytes()
                self._take(data)

    def _take(self, data: bytes) -> None:
        """Carry a grant on; whatever goes wrong with it, whoever waits for it hears of it."""
        answer: Turn | Exception
        try:
            answer = self._carry(*pickle.loads(data))
            if answer.onward is not None:
                self._pass_on(answer.onward)
                return
        except BaseException as error:  # user code may call sys.exit()
            answer = portable(error)
        if self._home is not None:
            self._home.send(answer)

    def _pass_on(self, onward: Onward) -> None:
        try:
            self._to(onward.place).send((onward.grant, onward.outputs))
        except OSError:
            raise OperatorError(GONE) from None

    def _to(self, place: int) -> Connection[Any, Any]:
        if place not in self._lines:
            self._lines[place] = _called(self._hosts[place], PEER)
        return self._lines[place]


class Lines:
    """A scheduler's ends of the lines to its hosts."""

    def __init__(self, hosts: Sequence[Address]) -> None:
        self._lines = [_called(address, HOME) for address in hosts]
        for line in self._lines:
            line.recv()  # it knows us now

    def carry(self, place: int, grant: Grant) -> Turn:
        """Send a grant, and wait for the turn to come home by whichever host was the last."""
        try:
            self._lines[place].send((grant, ()))
            line: Any = wait(self._lines)[0]
            answer: Turn | Exception = line.recv()
        except (EOFError, OSError):
            raise OperatorError(GONE) from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """Hang up."""
        for line in self._lines:
            line.close()


def _called(address: Address, who: str) -> Connection[Any, Any]:
    line = Client(address.name, "AF_UNIX", authkey=address.key)
    line.send(who)
    return line


def portable(error: BaseException) -> Exception:
    """An error that can be sent: what cannot be pickled, or is none that a turn may end by, is told in words."""
    try:
        if isinstance(error, Exception):
            pickle.loads(pickle.dumps(error))
            return error
    except Exception:
        log.debug("%r cannot be sent as it is", error)
    return OperatorError(f"{type(error).__name__}: {error}")
