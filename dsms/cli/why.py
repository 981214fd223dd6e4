"""One decision of a run on the console: who was chosen, over whom, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsms.advice.why import Candidate, Decision
from dsms.cli.tables import cell, figure, input_names, show, table


def decision_from(found: Mapping[str, Any]) -> Decision:
    """The decision that `to_json` made this of; whoever passed it on may have added keys."""
    given = {name: found[name] for name in Decision.__dataclass_fields__}
    return Decision(**{**given, "candidates": [Candidate(**candidate) for candidate in found["candidates"]]})


def show_decision(found: Decision, heading: str = "") -> None:
    print(heading or f"The decision of {found.policy} in force at {figure(found.asked)}:")
    if found.at is None:
        print(f"{found.reason}.")
        return
    decided = "" if found.decides == found.policy.partition(":")[0] else f", by {found.decides}"
    end = "" if found.done is None else f", its turn until {figure(found.done)}"
    print(f"number {found.number:,} of the run, made at {figure(found.at)}{decided}{end}.")
    print(f"Chosen: {' + '.join(found.chosen or ['–'])}: {found.reason}.")
    names = [name for name in input_names([one.inputs for one in found.candidates]) if name != "pending"]
    columns = ("", "candidate", "priority", "pending", "oldest", *names, "why")
    shown = table("", columns, left=("", "candidate", "why"))
    for one in found.candidates:
        inputs = [cell(one.inputs[name]) if name in one.inputs else "–" for name in names]
        oldest = "–" if one.oldest is None else f"#{one.oldest:,}"
        row = [cell(" + ".join(one.stations)), cell(one.priority), cell(one.pending), oldest, *inputs, one.why]
        shown.add_row("►" if one.chosen else "", *row)
    show(shown)
    for said, segments in (("No work", found.idle), ("Waiting for an older tuple at another input", found.blocked)):
        if segments:
            print(f"{said}: {', '.join(' + '.join(names) for names in segments)}.")
