"""One host's part of a turn: runs steps, forwards outputs to other hosts, and sends results to the result hub."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from actors.hosts.grant import Grant, Output, StepReport
from actors.hosts.segment_layout import QueueCursor
from actors.rpc.messages import Result, send
from dsms.clock import monotonic_s
from dsms.data.batch import Batch

if TYPE_CHECKING:
    from actors.hosts.host import Host, HostedStation

RESULT_CALL_MIN_BYTES = 1024 * 1024  # results of one turn wait for each other up to this size


class HostTurn:
    """Runs one host's part of a turn."""

    def __init__(self, host: Host, grant: Grant) -> None:
        self._host, self._grant = host, grant
        self.place = host.place
        self.outputs: dict[int, list[Output]] = {}  # by place of the host that receives them
        self._results: list[Result] = []
        self._bytes = 0.0  # of the results

    def is_local(self, stop: QueueCursor) -> bool:
        return stop.place == self.place

    def run_step(self, stop: QueueCursor, at: float, startup: float, most: float) -> tuple[float, float, float]:
        hosted_station = self._host.hosted_stations[stop.station]
        self._host.fill_queue(hosted_station, stop.port, stop.produced)
        self._host.working = stop.station, threading.get_ident()
        outcome, made = hosted_station.state.work(stop.port, startup, most, stop.coalesce)
        self._host.working = None
        stop.oldest = outcome.head
        if outcome.made:
            self._forward_output(hosted_station, made, at + outcome.cost)
            for reader in stop.downstream:
                reader.produced = hosted_station.made
                reader.oldest = min(reader.oldest, outcome.seq)
            filled = self._grant.filled
            for index in stop.outside:
                _, head = filled.get(index, (0, outcome.seq))
                filled[index] = hosted_station.made, min(head, outcome.seq)
        left, return_results = len(outcome.result_arrivals) > 0, self._grant.return_results
        if left and not return_results:
            self._emit_result(hosted_station.query, made)
        self._grant.steps.append(StepReport(stop.index, outcome, made if left and return_results else None))
        origin = self._grant.origin
        return outcome.taken, outcome.made, at + outcome.cost if origin is None else monotonic_s() - origin

    def flush_results(self) -> None:
        """Send the results that wait for more."""
        if self._results and self._host.result_hub is not None:
            take, incarnation = self._host.result_hub.take, self._host.incarnation
            call = send(take, self._results, incarnation) if incarnation else send(take, self._results)
            self._host.track_result_call(call)
        self._results, self._bytes = [], 0.0

    def _forward_output(self, hosted_station: HostedStation, made: Batch, since: float) -> None:
        """Put an output into the queues that read it: here at once, elsewhere with all others for the same host."""
        hosted_station.made += 1
        for place, station, port in hosted_station.routes:
            if place == self.place:
                reader = self._host.hosted_stations[station]
                reader.state.put(port, made, since)
                reader.received[port] = hosted_station.made
            else:
                self.outputs.setdefault(place, []).append(Output(station, port, hosted_station.made, made, since))

    def _emit_result(self, query: str, made: Batch) -> None:
        """Number a batch of results and send it to the result hub."""
        number = self._grant.results[query] = self._grant.results.get(query, 0) + 1
        self._results.append((query, number, made))
        self._bytes += made.memory()
        if self._bytes > RESULT_CALL_MIN_BYTES:
            self.flush_results()
