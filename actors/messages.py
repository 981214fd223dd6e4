"""How actors are spoken to: which of an actor's threads takes a call, and plain objects where there is no Ray."""

from __future__ import annotations

from typing import Any

GOODS = "goods"  # of a host: batches come in while it works
TURNS = "turns"  # of a scheduler: turns come home while its loop waits for them
ARRIVALS = "arrivals"  # of a scheduler: rows are announced
CONTROL = "control"  # of a scheduler: whoever steers it


def send(method: Any, *arguments: Any, group: str | None = None) -> Any:
    """Call a method of an actor, or of a plain object in its place; answers what the call will have come to."""
    if not hasattr(method, "remote"):
        return method(*arguments)
    return (method if group is None else method.options(concurrency_group=group)).remote(*arguments)
