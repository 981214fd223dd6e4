"""Prints one scheduling decision: the chosen segment, the other candidates with their priorities, and the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsms.advice.why import Candidate, Decision
from dsms.cli.tables import format_cell, format_number, list_input_names, make_table, show


def parse_decision(found: Mapping[str, Any]) -> Decision:
    """Restore a decision from its `to_json`; further keys are ignored."""
    given = {name: found[name] for name in Decision.__dataclass_fields__}
    return Decision(**{**given, "candidates": [Candidate(**candidate) for candidate in found["candidates"]]})


def show_decision(found: Decision, heading: str = "") -> None:
    print(heading or f"The decision of {found.policy} in force at {format_number(found.asked)}:")
    if found.at is None:
        print(f"{found.reason}.")
        return
    decided = "" if found.decides == found.policy.partition(":")[0] else f", by {found.decides}"
    end = "" if found.done is None else f", its turn until {format_number(found.done)}"
    print(f"number {found.number:,} of the run, made at {format_number(found.at)}{decided}{end}.")
    print(f"Chosen: {' + '.join(found.chosen or ['–'])}: {found.reason}.")
    names = [name for name in list_input_names([one.inputs for one in found.candidates]) if name != "pending"]
    columns = ("", "candidate", "priority", "pending", "oldest", *names, "why")
    shown = make_table("", columns, left=("", "candidate", "why"))
    for one in found.candidates:
        inputs = [format_cell(one.inputs[name]) if name in one.inputs else "–" for name in names]
        oldest = "–" if one.oldest is None else f"#{one.oldest:,}"
        row = [
            format_cell(" + ".join(one.stations)),
            format_cell(one.priority),
            format_cell(one.pending),
            oldest,
            *inputs,
            one.why,
        ]
        shown.add_row("►" if one.chosen else "", *row)
    show(shown)
    for said, segments in (("No work", found.idle), ("Waiting for an older tuple at another input", found.blocked)):
        if segments:
            print(f"{said}: {', '.join(' + '.join(names) for names in segments)}.")
