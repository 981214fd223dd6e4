"""The status of a running system as frozen dataclasses; `to_json` makes what `dsms status --json` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any


@dataclass(frozen=True)
class LatencyStatus:
    """Latency of recent results in seconds; None without results."""

    mean: float | None = None
    p50: float | None = None
    p99: float | None = None


@dataclass(frozen=True)
class StreamStatus:
    """Rows that arrived by a stream in total, and recently per second."""

    name: str
    rows: int
    rate: float


@dataclass(frozen=True)
class InputStatus:
    """A stream or operator that an operator reads; `size`: bytes of one tuple that this reader frees."""

    name: str
    size: float


@dataclass(frozen=True)
class QueryStatus:
    """A query's results, recent rate, latency and staleness, its weight and its rows shed under load."""

    name: str
    weight: float
    results: int
    rate: float | None = None
    latency: LatencyStatus = LatencyStatus()
    staleness: float | None = None  # share of recent time in which its output was behind its input
    shed: int | None = None
    quarantined: bool = False


@dataclass(frozen=True)
class OperatorStatus:
    """An operator of the plan: its queue, recent rates and cost, and the host that runs it."""

    name: str
    query: str
    inputs: Sequence[InputStatus] = ()
    sink: bool = False  # whether results leave the plan here
    queue: float = 0
    rate_in: float = 0.0
    rate_out: float = 0.0
    cost: float = 0.0  # seconds per tuple
    selectivity: float = 1.0
    busy: float = 0.0  # share of recent time
    priority: float | None = None
    actor: int | None = None  # the number of its host; None: not placed


@dataclass(frozen=True)
class PhaseStatus:
    """A stretch of time under one policy, and the memory, latency and staleness in it."""

    policy: str
    since: float
    until: float | None = None  # None: the present phase
    reason: str = ""
    swap_seconds: float | None = None
    turns: int = 0
    choices: int = 0
    memory_mean: float | None = None
    memory_max: float | None = None
    results: int = 0
    latency_mean: float | None = None
    latency_p99: float | None = None
    staleness: float | None = None


@dataclass(frozen=True)
class RejectedRowsStatus:
    """Rows that an operator rejected for one kind of reason, and the reason of the first."""

    station: str
    kind: str
    rows: int
    reason: str


@dataclass(frozen=True)
class QuarantineStatus:
    """A query in quarantine, and why."""

    query: str
    reason: str


@dataclass(frozen=True)
class WatchdogStatus:
    """Whether the domain is stalled: `alert` says by what, `culprit` names the operator."""

    alerts: int = 0
    alert: str | None = None
    culprit: str | None = None
    seconds: float | None = None  # since when there was no progress
    ended: str | None = None  # the last operator whose process the watchdog killed


@dataclass(frozen=True)
class LimitStatus:
    """A domain's memory limits; None: no limit."""

    rows: float | None = None
    bytes: float | None = None


@dataclass(frozen=True)
class IngestStatus:
    """Whether rows wait because the domain is at its memory limit, how many, and for how long in total."""

    paused: bool = False
    seconds: float = 0.0
    waiting: int = 0
    limits: LimitStatus = LimitStatus()


@dataclass(frozen=True)
class RecordingStatus:
    """The folder that a domain is recorded to, and why recording failed, if it did."""

    folder: str
    error: str | None = None


@dataclass(frozen=True)
class OverheadStatus:
    """What recent turns took besides their work, in seconds, and the factor by which work took longer than its cost."""

    turn: float  # of each turn
    hop: float  # of each change of host within a turn
    stretch: float
    turns: int  # measured


@dataclass(frozen=True, kw_only=True)
class EngineStatus:
    """What a monitor measures of one engine; None before the first measurement."""

    policy: str | None = None  # the one put in charge
    decides: str | None = None  # the one that decides: another than `policy` where that is a selector
    turn: str | None = None  # the most that a turn takes, as in "at most 20 ms"
    qos: str | None = None
    now: float | None = None
    held: float | None = None
    bound: float | None = None  # the least that any scheduler would hold
    held_bytes: float | None = None
    turns: int | None = None
    swaps: int | None = None
    utilisation: float | None = None
    idle_with_work: float | None = None
    overhead: OverheadStatus | None = None
    latency: LatencyStatus = LatencyStatus()
    staleness: float | None = None
    queries: Sequence[QueryStatus] = ()
    rejected: Sequence[RejectedRowsStatus] = ()
    streams: Sequence[StreamStatus] = ()
    stations: Sequence[OperatorStatus] = ()
    phases: Sequence[PhaseStatus] = ()


LISTS = ("queries", "rejected", "streams", "stations", "phases")
FIGURES = tuple(field.name for field in fields(EngineStatus) if field.name not in LISTS)
SILENT_KEYS = ("domain", "streams", "queries", "stations", "phases", "state", "error")


@dataclass(frozen=True, kw_only=True)
class DomainStatus(EngineStatus):
    """A domain's state and limits together with what is measured of its engine."""

    domain: str
    state: str = "running"
    error: str | None = None
    recorded: RecordingStatus | None = None
    clock: str = ""
    budget: float = 1.0
    ingest: IngestStatus = IngestStatus()
    watchdog: WatchdogStatus = WatchdogStatus()
    quarantine: Sequence[QuarantineStatus] = ()
    node: str | None = None
    is_silent: bool = False  # its scheduler did not answer; `error` says why

    @classmethod
    def silent(cls, domain: str, error: str) -> DomainStatus:
        """The status of a domain whose scheduler does not answer."""
        return cls(domain=domain, state="failed", error=error, is_silent=True)

    def to_json(self) -> dict[str, Any]:
        """Plain data; figures are left out before the first measurement."""
        table: dict[str, Any] = to_json(self)
        del table["is_silent"]
        if self.is_silent:
            return {key: table[key] for key in SILENT_KEYS}
        return table if self.now is not None else {key: table[key] for key in table if key not in FIGURES}


@dataclass(frozen=True)
class GatewayLogStatus:
    """A durable gateway's write-ahead log: its end, and how far the slowest scheduler is behind."""

    offset: int
    behind: int
    bytes: int
    full: bool
    error: str | None


@dataclass(frozen=True)
class GatewayStatus:
    """A gateway's address and counters; after an error they are None."""

    address: str | None
    connections: int | None = None
    rows: int | None = None
    bytes: int | None = None
    rejected: int | None = None
    subscribers: int | None = None
    log: GatewayLogStatus | None = None
    error: str | None = None  # why it does not answer

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> GatewayStatus:
        """From the plain data that a gateway answers."""
        log = table.get("log")
        return cls(**{**table, "log": None if log is None else GatewayLogStatus(**log)})

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        if self.error is not None:
            return {"address": self.address, "state": "failed", "error": self.error}
        table: dict[str, Any] = to_json(self)
        del table["error"]
        return table


@dataclass(frozen=True)
class OutputStatus:
    """A query's results at the result hub: their number, rows, batches held back, and why writing failed."""

    name: str
    results: int = 0
    rows: int = 0
    held: int = 0
    gateways: int = 0
    error: str | None = None


@dataclass(frozen=True)
class ResultHubStatus:
    """The outputs of all queries."""

    queries: Sequence[OutputStatus] = ()
    error: str | None = None  # why it does not answer

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> ResultHubStatus:
        """From the plain data that a result hub answers."""
        return cls([OutputStatus(**each) for each in table["queries"]])

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"state": "failed", "error": self.error} if self.error else {"queries": to_json(self.queries)}


@dataclass(frozen=True)
class CheckpointStatus:
    """A checkpoint: its size, how long it took, and how long turns waited for it."""

    number: int
    bytes: int
    seconds: float
    pause: float
    at: float  # by the wall clock
    age: float | None = None  # seconds


@dataclass(frozen=True)
class RecoveryStatus:
    """The last checkpoint and the recoveries of a deployment; `error`: why the last one failed."""

    folder: str
    checkpoint: CheckpointStatus | None = None
    error: str | None = None
    recoveries: int = 0
    median: float | None = None  # seconds of a recovery
    worst: float | None = None

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> RecoveryStatus:
        """From the plain data of a deployment's durability."""
        last = table["checkpoint"]
        return cls(**{**table, "checkpoint": None if last is None else CheckpointStatus(**last)})


@dataclass(frozen=True)
class DeploymentStatus:
    """A deployment with all its parts; a part that does not answer has an error instead of figures."""

    name: str
    since: float
    version: str
    gateways: Sequence[GatewayStatus] = ()
    outlet: ResultHubStatus = ResultHubStatus()
    metrics: str | None = None  # where metrics are served
    domains: Sequence[DomainStatus] = ()
    durable: RecoveryStatus | None = None

    def to_json(self) -> dict[str, Any]:
        """What `dsms status --json` prints."""
        table: dict[str, Any] = {field.name: to_json(getattr(self, field.name)) for field in fields(self)}
        for name, parts in (("gateways", self.gateways), ("domains", self.domains)):
            table[name] = [part.to_json() for part in parts]
        table["outlet"] = self.outlet.to_json()
        if self.durable is None:
            del table["durable"]
        return table


def to_json(value: Any) -> Any:
    """Dataclasses and their sequences as plain dicts and lists, key by field."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    return [to_json(each) for each in value] if isinstance(value, list | tuple) else value
