"""What a system's status says, as rows of text: the same for a table that is printed and a view that is kept up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from dsms.cli.tables import cell, figure, percent, seconds, table

BAR = 12  # cells of the longest queue's bar
EIGHTHS = "▏▎▍▌▋▊▉█"
Found = dict[str, Any]


@dataclass(frozen=True)
class Grid:
    """Rows under columns; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    left: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def table(self) -> Table:
        """As a table to print."""
        made = table(self.title, self.columns, left=self.left)
        for row in self.rows:
            made.add_row(*(cell(text) for text in row))
        return made


def domains(found: Sequence[Found]) -> Grid:
    """Who decides in each CPU budget, and how it fares."""
    columns = ("domain", "state", "policy", "used", "held", "p50", "p99", "stale", "idle with work", "turns")
    return Grid("domains", columns, columns[:3], [_domain(one) for one in found])


def decider(one: Found) -> str:
    """The policy as it was given and, of a selector, the one that it lets decide now."""
    given, decides = str(one.get("policy") or "–"), one.get("decides")
    return given if decides in (None, given.partition(":")[0]) else f"{given} ({decides})"


def queries(found: Sequence[Found]) -> Grid:
    """What each query has yielded, how late and how fresh."""
    columns = ("query", "weight", "results", "a second", "p50", "p99", "stale", "shed")
    return _by_domain("queries", columns, ("query",), _each(found, "queries"), _query)


def stations(found: Sequence[Found]) -> Grid:
    """Each operator's queue and figures, the longest queue first."""
    columns = ("station", "queue", "", "in/s", "out/s", "cost", "passes", "busy", "priority", "actor", "query")
    ranked = sorted(_each(found, "stations"), key=lambda pair: -(pair[1].get("queue") or 0))
    longest = (ranked[0][1].get("queue") or 0) if ranked else 0
    return _by_domain("stations", columns, ("station", "", "query"), ranked, lambda one: _station(one, longest))


def phases(found: Sequence[Found]) -> Grid:
    """Who has decided from when to when, and what came of it; the latest first."""
    columns = ("phase", "from", "until", "swap", "memory mean", "max", "results", "latency", "p99", "stale", "reason")
    backwards = [{**one, "phases": one["phases"][::-1]} for one in found]
    latest = sorted(_each(backwards, "phases"), key=lambda pair: -pair[1]["since"])
    return _by_domain("phases", columns, ("phase", "reason"), latest, _phase)


def gateways(found: Sequence[Found]) -> Grid:
    """Where rows are taken in and results given out, and how many."""
    columns = ("gateway", "connections", "subscribers", "rows", "bytes", "rejected")
    rows = [
        (
            str(one["address"] or "–"),
            *(count(one.get(key)) for key in ("connections", "subscribers", "rows", "bytes", "rejected")),
        )
        for one in found
    ]
    return Grid("gateways", columns, ("gateway",), rows)


def uptime(status: Found) -> str:
    """How long the system has been there, by its own clock."""
    return elapsed(max((one.get("now") or 0.0 for one in status["domains"]), default=0.0))


def failures(status: Found) -> list[str]:
    """What has failed, and why: domains and gateways."""
    parts = [(f"domain {one['domain']}", one) for one in status["domains"]]
    parts += [(f"gateway {place}", one) for place, one in enumerate(status["gateways"])]
    return [f"{name} has failed: {one['error']}" for name, one in parts if one.get("error")]


def state(one: Found) -> str:
    """A domain's state, and whether it takes rows in."""
    if (one.get("watchdog") or {}).get("alert"):
        return "stalled"
    return "full" if (one.get("ingest") or {}).get("paused") and one["state"] == "running" else str(one["state"])


def troubles(status: Found) -> list[str]:
    """What does not get on, rests, or was put aside, and why."""
    said = []
    for one in status["domains"]:
        name, alert = f"domain {one['domain']}", (one.get("watchdog") or {}).get("alert")
        said += [f"{name} has work and no progress: {alert}"] if alert else []
        said += [f"{name}: {each['query']} rests: {each['reason']}" for each in one.get("quarantine", ())]
        said += [
            f"{name}: {count(each['rows'])} rows of {each['station']} put aside ({each['kind']}), the first for: "
            f"{each['reason']}"
            for each in one.get("asides", ())
        ]
    for place, one in enumerate(status["gateways"]):
        log = one.get("log") or {}
        said += (
            [f"gateway {place} reads nothing: {count(log['bytes'])} bytes wait in its log"] if log.get("full") else []
        )
        said += [f"gateway {place} cannot bring what it has stored: {log['error']}"] if log.get("error") else []
    sinks = status.get("outlet", {}).get("queries", ())
    return said + [f"the results of {one['name']} are not written: {one['error']}" for one in sinks if one["error"]]


def recorded(status: Found) -> list[str]:
    """Where domains are recorded to, or why they no longer are."""
    told = [(one["domain"], one["recorded"]) for one in status["domains"] if one.get("recorded")]
    return [f"domain {name}: {to['error'] or 'recorded to ' + to['folder']}" for name, to in told]


def saved(checkpoint: Found) -> str:
    """A checkpoint in words."""
    return (
        f"checkpoint {checkpoint['number']}, {checkpoint['bytes']:,} bytes in {seconds(checkpoint['seconds'])}, "
        f"turns waited {seconds(checkpoint['pause'])}"
    )


def durable(status: Found) -> list[str]:
    """How safe a system is that is to outlive its processes."""
    told = status.get("durable")
    if told is None:
        return []
    last = told["checkpoint"]
    how = f"{saved(last)}, {seconds(last['age'])} ago" if last else "not saved yet"
    found = [f"durable in {told['folder']}: {how}"]
    if told["recoveries"]:
        found.append(
            f"rebuilt {told['recoveries']} times, in {seconds(told['median'])}, {seconds(told['worst'])} at worst"
        )
    return [*found, *([f"not safe: {told['error']}"] if told["error"] else [])]


def latencies(found: Found) -> tuple[str, str]:
    """The median of recent latencies, and the 99th percentile."""
    latency = found.get("latency") or {}
    return seconds(latency.get("p50")), seconds(latency.get("p99"))


def count(value: float | None) -> str:
    """How many, whole where it is."""
    return figure(int(value) if value is not None and value == int(value) else value)


def rate(value: float | None) -> str:
    """How many a second; large ones need no digits after the point."""
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def bar(share: float) -> str:
    """A bar of this share of the longest."""
    eighths = max(round(share * BAR * 8), 1 if share > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (EIGHTHS[rest - 1] if rest else "")


def elapsed(time: float) -> str:
    """A long time in its two largest units."""
    left, said = int(time), list[str]()
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        whole, left = divmod(left, size)
        if whole or (said and len(said) < 2):
            said.append(f"{whole} {unit}")
    return " ".join(said[:2]) or "0 s"


def _each(found: Sequence[Found], key: str) -> list[tuple[str, Found]]:
    """All of this kind, each with its domain; where there is but one, that need not be said."""
    return [("" if len(found) == 1 else str(domain["domain"]), one) for domain in found for one in domain[key]]


def _by_domain(
    title: str,
    columns: tuple[str, ...],
    left: tuple[str, ...],
    found: Sequence[tuple[str, Found]],
    row: Callable[[Found], tuple[str, ...]],
) -> Grid:
    if not any(domain for domain, _ in found):
        return Grid(title, columns, left, [row(one) for _, one in found])
    rows = [(name, domain, *rest) for domain, (name, *rest) in ((domain, row(one)) for domain, one in found)]
    return Grid(title, (columns[0], "domain", *columns[1:]), (*left, "domain"), rows)


def _domain(one: Found) -> tuple[str, ...]:
    return (
        str(one["domain"]),
        state(one),
        decider(one),
        percent(one.get("utilisation")),
        count(one.get("held")),
        *latencies(one),
        percent(one.get("staleness")),
        percent(one.get("idle_with_work")),
        count(one.get("turns")),
    )


def _query(one: Found) -> tuple[str, ...]:
    stale = percent(one.get("staleness"))
    return (
        one["name"],
        figure(one.get("weight")),
        count(one.get("results")),
        rate(one.get("rate")),
        *latencies(one),
        stale,
        "quarantine" if one.get("quarantined") else count(one.get("shed")),
    )


def _station(one: Found, longest: float) -> tuple[str, ...]:
    queue, place = one.get("queue") or 0, one.get("actor")
    return (
        one["name"],
        count(queue),
        bar(queue / longest) if longest else "",
        rate(one.get("rate_in")),
        rate(one.get("rate_out")),
        seconds(one.get("cost")),
        figure(one.get("selectivity")),
        percent(one.get("busy")),
        figure(one.get("priority")),
        "–" if place is None else str(place),
        str(one.get("query") or "–"),
    )


def _phase(one: Found) -> tuple[str, ...]:
    until = one.get("until")
    return (
        one["policy"],
        f"{one['since']:.1f} s",
        "now" if until is None else f"{until:.1f} s",
        seconds(one.get("swap_seconds")),
        rate(one.get("memory_mean")),
        count(one.get("memory_max")),
        count(one.get("results")),
        seconds(one.get("latency_mean")),
        seconds(one.get("latency_p99")),
        percent(one.get("staleness")),
        str(one.get("reason") or ""),
    )
