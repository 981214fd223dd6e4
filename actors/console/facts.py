"""The console's texts: a domain's figures, the last decisions, and the message that the deployment is gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from actors.console.poller import PageState
from actors.control.status_tables import (
    describe_policy,
    describe_uptime,
    format_count,
    format_elapsed,
    format_latencies,
)
from dsms.cli.tables import format_percent
from dsms.live.monitor.status import DeploymentStatus, DomainStatus

COLOURS = {"running": "text-positive", "paused": "text-warning", "failed": "text-negative"}
Decision = Mapping[str, Any]


class Fact(NamedTuple):
    """A figure and its colour."""

    text: str
    colour: str = ""


def facts(status: DeploymentStatus, domain: DomainStatus) -> list[Fact]:
    """State, policy, uptime, CPU use, memory, latency and staleness."""
    p50, p99 = format_latencies(domain.latency)
    return [
        Fact(domain.state or "–", COLOURS.get(domain.state, "")),
        Fact(describe_policy(domain.policy, domain.decides)),
        Fact(describe_uptime(status)),
        Fact(format_percent(domain.utilisation)),
        Fact(format_count(domain.held)),
        Fact(p50),
        Fact(p99),
        Fact(format_percent(domain.staleness)),
    ]


def decisions(found: Iterable[Decision]) -> list[dict[str, str]]:
    """Decisions as table rows, the newest first."""
    return [
        {
            "key": str(one["number"]),
            "number": f"{one['number']:,}",
            "at": "–" if one["at"] is None else f"{one['at']:.2f} s",
            "by": describe_policy(one["policy"], one.get("decides")),
            "chosen": " + ".join(one["chosen"] or ["–"]),
            "reason": _reason(one),
            "candidates": format_count(len(one["candidates"])),
        }
        for one in found
    ]


def _reason(decision: Decision) -> str:
    """Why the policy chose this candidate."""
    own = next((str(each["why"]) for each in decision["candidates"] if each["chosen"]), "")
    return f"{decision['reason']}: {own}" if own else str(decision["reason"])


def describe_outage(view: PageState, now: float) -> str | None:
    """Why the page shows no current figures, and for how long; None while it does."""
    if view.hidden:
        return "Enter a token under Controls to see this deployment."
    if view.error is not None:
        since = "" if view.heard is None else f" Last answer {format_elapsed(now - view.heard)} ago."
        return f"The deployment does not answer: {view.error}.{since} Reconnecting …"
    return "Connecting …" if view.status is None else None
