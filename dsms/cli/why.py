"""One decision of a run on the console: who was chosen, over whom, and why."""

from __future__ import annotations

from dsms.advice.why import Decision
from dsms.cli.tables import cell, figure, input_names, show, table


def show_decision(found: Decision) -> None:
    print(f"The decision of {found.policy} in force at {figure(found.asked)}:")
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
