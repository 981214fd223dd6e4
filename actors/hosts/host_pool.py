"""Calls the hosts of one domain: sends grants to them and waits for the reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.hosts.grant import Grant, TurnReport
from actors.hosts.host import Host, HostActor, HostedStation, ResultTaker
from actors.hosts.host_sockets import SchedulerSockets
from actors.hosts.segment_layout import SegmentLayout
from actors.rpc.answers import await_answer
from actors.rpc.messages import BATCHES, Call, get_results, is_remote, kill, send, serialize
from actors.transport.epoch import Epoch
from actors.transport.handle import get_actor, use_socket
from dsms.errors import DsmsError

STACK_TIMEOUT_S = 5.0  # for a host to return the stack of its running station
Answer = TypeVar("Answer")


class HostPool:
    """The hosts of a domain by place: actors, called through sockets, or plain objects in this process."""

    def __init__(
        self,
        hosts: Sequence[Host],
        result_hub: ResultTaker | None = None,
        sockets: bool | None = None,
        incarnation: int = 0,
    ) -> None:
        self.hosts = list(hosts)
        by_socket = any(is_remote(host.grant) for host in hosts) if sockets is None else sockets
        self.addresses = addresses = self.each(lambda _, host: send(host.listen_address)) if by_socket else []
        if by_socket:
            self.hosts = [use_socket(get_actor(h), address) for h, address in zip(hosts, addresses, strict=True)]
        self.epoch = Epoch()  # raised when another thread has work for the engine
        self.each(
            lambda place, host: send(
                host.connect_peers, place, self.hosts, result_hub, addresses, incarnation, self.epoch.path
            )
        )
        self._sockets = SchedulerSockets(addresses) if by_socket else None

    @classmethod
    def of(cls, count: int) -> HostPool:
        """Start actors on this node, for one run of this process."""
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), False)
        return cls([HostActor.options(scheduling_strategy=here).remote() for _ in range(count)])

    def each(self, call: Callable[[int, Host], Call[Answer]]) -> list[Answer]:
        """Call all hosts at once; returns their answers."""
        return get_results([call(place, host) for place, host in enumerate(self.hosts)])

    def open(self, hosted_stations: Sequence[Sequence[HostedStation]], folders: Sequence[str], measured: bool) -> None:
        """Bring stations to hosts, by place."""
        self.each(lambda place, host: send(host.open, serialize(list(hosted_stations[place])), folders, measured))

    def learn(self, places: Sequence[int], layout: SegmentLayout, forget: bool) -> None:
        """Tell these hosts what grants of a segment do not repeat; `forget`: all hosts drop the others."""
        if forget:
            places = range(len(self.hosts))
        if self._sockets is not None:
            self._sockets.learn(places, layout, forget)
        else:
            for place in places:
                self.hosts[place].learn(layout, forget)

    def run_turn(self, place: int, grant: Grant) -> TurnReport:
        """Run a turn. One turn runs at a time: a domain has one simulated CPU."""
        if self._sockets is not None:
            return self._sockets.run_turn(place, grant)
        turn: TurnReport = self.hosts[place].grant(grant)
        while turn.forward is not None:
            turn = self.hosts[turn.forward.place].grant(turn.forward.grant, turn.forward.outputs)
        return turn

    def current_work(self) -> tuple[str, str, str] | None:
        """The running station, its host and its stack; a thread that receives batches answers."""
        for place, host in enumerate(self.hosts):
            call = send(host.current_work, group=BATCHES)
            try:
                work = await_answer(call, f"the stack of host {place}", STACK_TIMEOUT_S)
            except DsmsError:
                continue  # its process has ended, or all its threads hang
            if work is not None:
                return work[0], f"host {place}", work[1]
        return None

    def kill(self, place: int) -> bool:
        """End a host's process; returns whether it has one of its own."""
        host = self.hosts[place]
        if is_remote(host.grant):
            kill(host)
        return is_remote(host.grant)

    def close(self) -> None:
        """Close the sockets and the epoch."""
        if self._sockets is not None:
            self._sockets.close()
        self.epoch.close()

    def end(self) -> None:
        """End the actors."""
        self.close()
        for host in self.hosts:
            kill(host)
        self.hosts = []
