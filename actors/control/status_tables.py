"""Turns a deployment's status into tables and sentences, for printed tables, the terminal view and the console."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from dsms.cli.tables import format_cell, format_number, format_percent, format_seconds, make_table
from dsms.live.monitor.status import (
    CheckpointStatus,
    DeploymentStatus,
    DomainStatus,
    GatewayStatus,
    LatencyStatus,
    OperatorStatus,
    PhaseStatus,
    QueryStatus,
)

if TYPE_CHECKING:
    from rich.table import Table

BAR_CELLS = 12  # of the longest queue's bar
EIGHTHS = "▏▎▍▌▋▊▉█"
T = TypeVar("T")


@dataclass(frozen=True)
class StatusTable:
    """A titled table of texts; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    left: tuple[str, ...]  # the left-aligned columns
    rows: Sequence[tuple[str, ...]]

    def table(self) -> Table:
        """The table for printing."""
        table = make_table(self.title, self.columns, left=self.left)
        for row in self.rows:
            table.add_row(*(format_cell(text) for text in row))
        return table


def build_domains_table(domains: Sequence[DomainStatus]) -> StatusTable:
    """State, policy and figures of each domain."""
    columns = ("domain", "state", "policy", "used", "held", "p50", "p99", "stale", "idle with work", "turns")
    return StatusTable("domains", columns, columns[:3], [_domain_row(each) for each in domains])


def build_queries_table(domains: Sequence[DomainStatus]) -> StatusTable:
    """Results, latency and staleness of each query."""
    columns = ("query", "weight", "results", "a second", "p50", "p99", "stale", "shed")
    return _by_domain("queries", columns, ("query",), _flatten(domains, lambda one: one.queries), _query_row)


def build_operators_table(domains: Sequence[DomainStatus]) -> StatusTable:
    """Queue and figures of each operator, the longest queue first."""
    columns = ("operator", "queue", "", "in/s", "out/s", "cost", "passes", "busy", "priority", "actor", "query")
    ranked = sorted(_flatten(domains, lambda one: one.stations), key=lambda pair: -pair[1].queue)
    longest = ranked[0][1].queue if ranked else 0
    return _by_domain("operators", columns, ("operator", "", "query"), ranked, lambda one: _operator_row(one, longest))


def build_phases_table(domains: Sequence[DomainStatus]) -> StatusTable:
    """The policy of each phase and its figures, the latest phase first."""
    columns = ("phase", "from", "until", "swap", "memory mean", "max", "results", "latency", "p99", "stale", "reason")
    latest = sorted(_flatten(domains, lambda one: one.phases[::-1]), key=lambda pair: -pair[1].since)
    return _by_domain("phases", columns, ("phase", "reason"), latest, _phase_row)


def build_gateways_table(gateways: Sequence[GatewayStatus]) -> StatusTable:
    """Address and counters of each gateway."""
    columns = ("gateway", "connections", "subscribers", "rows", "bytes", "rejected")
    rows = [
        (
            each.address or "–",
            *map(format_count, (each.connections, each.subscribers, each.rows, each.bytes, each.rejected)),
        )
        for each in gateways
    ]
    return StatusTable("gateways", columns, ("gateway",), rows)


def describe_policy(policy: str | None, decides: str | None) -> str:
    """The policy as it was set and, for a selector, the policy that it has chosen."""
    chosen = str(policy or "–")
    return chosen if decides in (None, chosen.partition(":")[0]) else f"{chosen} ({decides})"


def describe_uptime(status: DeploymentStatus) -> str:
    """How long the deployment has been running, by its own clock."""
    return format_elapsed(max((one.now or 0.0 for one in status.domains), default=0.0))


def describe_state(domain: DomainStatus) -> str:
    """A domain's state; "stalled" without progress, "full" at its memory limit."""
    if domain.watchdog.alert:
        return "stalled"
    return "full" if domain.ingest.paused and domain.state == "running" else domain.state


def list_failures(status: DeploymentStatus) -> list[str]:
    """The domains and gateways that have failed, and why."""
    parts = [(f"domain {one.domain}", one.error) for one in status.domains]
    parts += [(f"gateway {place}", one.error) for place, one in enumerate(status.gateways)]
    return [f"{name} has failed: {error}" for name, error in parts if error]


def list_problems(status: DeploymentStatus) -> list[str]:
    """Stalled domains, quarantined queries, rejected rows, full logs and outputs that cannot be written."""
    problems = []
    for one in status.domains:
        name = f"domain {one.domain}"
        problems += [f"{name} is stalled: {one.watchdog.alert}"] if one.watchdog.alert else []
        problems += [f"{name}: query {each.query} is quarantined: {each.reason}" for each in one.quarantine]
        problems += [
            f"{name}: operator {each.station} rejected {format_count(each.rows)} rows ({each.kind}), "
            f"the first because of: {each.reason}"
            for each in one.rejected
        ]
    for place, log in ((place, one.log) for place, one in enumerate(status.gateways) if one.log is not None):
        if log.full:
            problems.append(f"gateway {place} accepts no rows: its log holds {format_count(log.bytes)} unread bytes")
        if log.error:
            problems.append(f"gateway {place} cannot deliver its log: {log.error}")
    failed = (each for each in status.outlet.queries if each.error)
    return problems + [f"results of query {each.name} cannot be written: {each.error}" for each in failed]


def list_recordings(status: DeploymentStatus) -> list[str]:
    """Where each domain is recorded to, or why recording failed."""
    recorded = [(one.domain, one.recorded) for one in status.domains if one.recorded is not None]
    return [f"domain {name}: {to.error or 'recorded to ' + to.folder}" for name, to in recorded]


def describe_checkpoint(checkpoint: CheckpointStatus) -> str:
    """A checkpoint's number, size and times."""
    took, paused = format_seconds(checkpoint.seconds), format_seconds(checkpoint.pause)
    return f"checkpoint {checkpoint.number}, {checkpoint.bytes:,} bytes in {took}, turns paused for {paused}"


def list_durability(status: DeploymentStatus) -> list[str]:
    """The last checkpoint and the recoveries of a durable deployment; nothing for any other."""
    durable = status.durable
    if durable is None:
        return []
    last = durable.checkpoint
    saved = f"{describe_checkpoint(last)}, {format_seconds(last.age)} ago" if last else "no checkpoint yet"
    lines = [f"durable in {durable.folder}: {saved}"]
    if durable.recoveries:
        median, worst = format_seconds(durable.median), format_seconds(durable.worst)
        lines.append(f"recovered {durable.recoveries} times, in {median} (median), {worst} at worst")
    return [*lines, *([f"not durable now: {durable.error}"] if durable.error else [])]


def format_latencies(latency: LatencyStatus) -> tuple[str, str]:
    """The median and the 99th percentile."""
    return format_seconds(latency.p50), format_seconds(latency.p99)


def format_count(value: float | None) -> str:
    """A count; whole numbers without decimals."""
    return format_number(int(value) if value is not None and value == int(value) else value)


def format_rate(value: float | None) -> str:
    """A rate per second; large ones without decimals."""
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def draw_bar(share: float) -> str:
    """A bar of this share of the longest."""
    eighths = max(round(share * BAR_CELLS * 8), 1 if share > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (EIGHTHS[rest - 1] if rest else "")


def format_elapsed(seconds: float) -> str:
    """A time in its two largest units, as in `3 min 20 s`."""
    left, parts = int(seconds), list[str]()
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        whole, left = divmod(left, size)
        if whole or (parts and len(parts) < 2):
            parts.append(f"{whole} {unit}")
    return " ".join(parts[:2]) or "0 s"


def _flatten(domains: Sequence[DomainStatus], parts: Callable[[DomainStatus], Sequence[T]]) -> list[tuple[str, T]]:
    """The parts of all domains with the domain's name; "" where there is only one domain."""
    return [("" if len(domains) == 1 else one.domain, part) for one in domains for part in parts(one)]


def _by_domain(
    title: str,
    columns: tuple[str, ...],
    left: tuple[str, ...],
    parts: Sequence[tuple[str, T]],
    row: Callable[[T], tuple[str, ...]],
) -> StatusTable:
    if not any(domain for domain, _ in parts):
        return StatusTable(title, columns, left, [row(one) for _, one in parts])
    rows = [(name, domain, *rest) for domain, (name, *rest) in ((domain, row(one)) for domain, one in parts)]
    return StatusTable(title, (columns[0], "domain", *columns[1:]), (*left, "domain"), rows)


def _domain_row(one: DomainStatus) -> tuple[str, ...]:
    return (
        one.domain,
        describe_state(one),
        describe_policy(one.policy, one.decides),
        format_percent(one.utilisation),
        format_count(one.held),
        *format_latencies(one.latency),
        format_percent(one.staleness),
        format_percent(one.idle_with_work),
        format_count(one.turns),
    )


def _query_row(one: QueryStatus) -> tuple[str, ...]:
    return (
        one.name,
        format_number(one.weight),
        format_count(one.results),
        format_rate(one.rate),
        *format_latencies(one.latency),
        format_percent(one.staleness),
        "quarantine" if one.quarantined else format_count(one.shed),
    )


def _operator_row(one: OperatorStatus, longest: float) -> tuple[str, ...]:
    return (
        one.name,
        format_count(one.queue),
        draw_bar(one.queue / longest) if longest else "",
        format_rate(one.rate_in),
        format_rate(one.rate_out),
        format_seconds(one.cost),
        format_number(one.selectivity),
        format_percent(one.busy),
        format_number(one.priority),
        "–" if one.actor is None else str(one.actor),
        one.query or "–",
    )


def _phase_row(one: PhaseStatus) -> tuple[str, ...]:
    return (
        one.policy,
        f"{one.since:.1f} s",
        "now" if one.until is None else f"{one.until:.1f} s",
        format_seconds(one.swap_seconds),
        format_rate(one.memory_mean),
        format_count(one.memory_max),
        format_count(one.results),
        format_seconds(one.latency_mean),
        format_seconds(one.latency_p99),
        format_percent(one.staleness),
        one.reason,
    )
