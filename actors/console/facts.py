"""What the page says in words: a domain's figures in its head, the last decisions, and that the system is gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from actors.cli import grids
from actors.console.poller import View
from dsms.cli.tables import percent

COLOURS = {"running": "text-positive", "paused": "text-warning", "failed": "text-negative"}
Found = Mapping[str, Any]


class Fact(NamedTuple):
    """A figure, and the colour that it has."""

    text: str
    colour: str = ""


def facts(status: Found, domain: Found) -> list[Fact]:
    """State, policy, time up, use of the CPU, memory, latency and staleness."""
    state, one = str(domain.get("state") or "–"), dict(domain)
    p50, p99 = grids.latencies(one)
    return [
        Fact(state, COLOURS.get(state, "")),
        Fact(grids.decider(one)),
        Fact(grids.uptime(dict(status))),
        Fact(percent(domain.get("utilisation"))),
        Fact(grids.count(domain.get("held"))),
        Fact(p50),
        Fact(p99),
        Fact(percent(domain.get("staleness"))),
    ]


def decisions(found: Iterable[Found]) -> list[dict[str, str]]:
    """Decisions as rows of a table, the newest first."""
    return [
        {
            "key": str(one["number"]),
            "number": f"{one['number']:,}",
            "at": "–" if one["at"] is None else f"{one['at']:.2f} s",
            "by": grids.decider(dict(one)),
            "chosen": " + ".join(one["chosen"] or ["–"]),
            "reason": _reason(one),
            "candidates": grids.count(len(one["candidates"])),
        }
        for one in found
    ]


def _reason(decision: Found) -> str:
    """Why it was chosen, and what speaks for it by its policy."""
    own = next((str(each["why"]) for each in decision["candidates"] if each["chosen"]), "")
    return f"{decision['reason']}: {own}" if own else str(decision["reason"])


def gone(view: View, now: float) -> str | None:
    """That the system does not answer, why, and for how long; None while it does."""
    if view.hidden:
        return "Nothing is shown until a token is: see Controls."
    if view.error is not None:
        since = "" if view.heard is None else f" Last heard of {grids.elapsed(now - view.heard)} ago."
        return f"The system does not answer: {view.error}.{since} Looking for it again …"
    return "Looking for the system …" if view.status is None else None
