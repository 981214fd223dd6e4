"""The sockets of a turn: grants go from the scheduler to a host and from host to host, the report returns."""

from __future__ import annotations

import logging
import select
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from actors.hosts.grant import Forward, Grant, Output, TurnReport, read_grant, read_outputs, read_report
from actors.hosts.segment_layout import SegmentLayout
from actors.rpc.process_loss import is_process_gone, process_gone, unwrap
from actors.transport.address import SOCKET_LOSS_ERRORS, Address, Role, connect, peer_gone
from actors.transport.listener import Listener
from actors.transport.message_socket import MessageSocket
from dsms.errors import DsmsError

log = logging.getLogger("dsms")
LEARN, RUN = "learn", "run"  # the first field of a message to a host


class TurnHost(Protocol):
    """What a host does for its sockets."""

    def grant(self, grant: Grant, outputs: Sequence[Output] = ()) -> TurnReport:
        """Run this host's part of a turn."""

    def learn(self, layout: SegmentLayout, forget: bool) -> None:
        """Remember a segment; `forget`: drop those learned before."""


class Reply(NamedTuple):
    """What a host sends to the scheduler: a report, or the error that ended the turn; neither where it has learned."""

    report: tuple[object, ...] | None
    error: BaseException | None


class HostSockets:
    """A host's sockets: other processes call its methods, the scheduler and other hosts grant turns."""

    def __init__(self, host: TurnHost, methods: dict[str, Callable[..., object]]) -> None:
        self._host = host
        self._listener = Listener(methods, {Role.SCHEDULER: self._serve_scheduler, Role.PEER: self._serve})
        self.address: Address = self._listener.address
        self._scheduler: MessageSocket | None = None
        self._peers: Sequence[Address] = ()
        self._sockets: dict[int, MessageSocket] = {}  # to other hosts, by place

    def set_peers(self, hosts: Sequence[Address]) -> None:
        """Set the addresses of all hosts, by place."""
        for each in self._sockets.values():
            each.close()
        self._peers, self._sockets = hosts, {}

    def _serve_scheduler(self, connection: MessageSocket) -> None:
        self._scheduler = connection
        connection.send(Reply(None, None))  # the host has registered its scheduler
        self._serve(connection)

    def _serve(self, connection: MessageSocket) -> None:
        while True:
            kind, *fields = connection.receive()
            if kind == LEARN:
                self._host.learn(SegmentLayout.read(fields[0]), fields[1])
                connection.send(Reply(None, None))
            else:
                self._run(read_grant(fields[0]), read_outputs(fields[1]))

    def _run(self, grant: Grant, outputs: list[Output]) -> None:
        """Run a grant and send the report, or the error, to the scheduler, or the grant to the next host."""
        try:
            report = self._host.grant(grant, outputs)
            if report.forward is not None:
                self._forward(report.forward)
                return
            reply = Reply((report.steps, report.seconds, report.turns), None)
        except BaseException as error:  # user code may call sys.exit()
            reply = Reply(None, process_gone(error) if is_process_gone(error) else unwrap(error))
        scheduler = self._scheduler
        if scheduler is None:
            log.error("a turn has ended, but no scheduler is connected: %s", reply.error)
            return
        try:
            scheduler.send(reply)
        except SOCKET_LOSS_ERRORS:
            raise
        except Exception as error:  # what an operator made cannot be sent
            scheduler.send(Reply(None, error))

    def _forward(self, forward: Forward) -> None:
        try:
            self._connect_peer(forward.place).send((RUN, forward.grant, forward.outputs))
        except SOCKET_LOSS_ERRORS as error:
            self._sockets.pop(forward.place, None)
            raise peer_gone(f"host {forward.place} ({error})") from None

    def _connect_peer(self, place: int) -> MessageSocket:
        if place not in self._sockets:
            self._sockets[place] = connect(self._peers[place], Role.PEER)
        return self._sockets[place]


class SchedulerSockets:
    """A scheduler's sockets to its hosts, used by the one thread that runs turns."""

    def __init__(self, hosts: Sequence[Address]) -> None:
        self._sockets: list[MessageSocket] = []
        self._poll = select.poll()
        self._places: dict[int, int] = {}  # by file of a socket
        try:
            for place, address in enumerate(hosts):
                each = connect(address, Role.SCHEDULER)
                self._sockets.append(each)
                self._places[each.fileno()] = place
                self._poll.register(each.fileno(), select.POLLIN)
            for each in self._sockets:
                each.receive()  # the host has registered us as its scheduler
        except SOCKET_LOSS_ERRORS as error:
            self.close()
            raise peer_gone(error) from None

    def learn(self, places: Sequence[int], layout: SegmentLayout, forget: bool) -> None:
        """Tell hosts of a segment, and wait until they know it."""
        try:
            for place in places:
                self._sockets[place].send((LEARN, layout, forget))
            for place in places:
                self._sockets[place].receive()
        except SOCKET_LOSS_ERRORS as error:
            raise peer_gone(error) from None

    def run_turn(self, place: int, grant: Grant) -> TurnReport:
        """Send a grant and wait for the report, from the host that ran the last step."""
        try:
            self._sockets[place].send((RUN, grant, ()))
            place = self._places[self._poll.poll()[0][0]]
            report, error = self._sockets[place].receive()
        except SOCKET_LOSS_ERRORS as error:
            raise peer_gone(f"host {place} ({error})") from None
        if error is not None:
            raise error
        if report is None:
            raise DsmsError("a host answered a turn without a report")
        return read_report(report)

    def close(self) -> None:
        """Close all sockets."""
        for each in self._sockets:
            each.close()
