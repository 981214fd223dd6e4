"""Show how a policy sees a plan: the segments by priority and why, and the progress chart of every path.

A path's progress chart plots the bytes left of a tuple against the time spent on it; its lower envelope cuts the path
into Chain's segments. Each has a slope, and a delta: how far the actual chart rises above the envelope.

With --dataflow, for CQL queries: the operations that a row of each stream passes, the time T that they take (block: an
operation starts when the one before has ended; item: as soon as it has a row), what the planner has changed in the
query and what that saves, and the dashed edges: how many operations of a later row must wait for one of an earlier row
when a row of each stream is pending.
"""

from __future__ import annotations

import argparse
import json

from dsms.advice import figures
from dsms.advice.explain import Explanation, explain
from dsms.advice.reasons import PathChart
from dsms.cli.arguments import add_plan_and_policy, parse_positive_int
from dsms.cli.tables import format_cell, format_number, format_seconds, list_input_names, make_table, show
from dsms.errors import PolicyError

CHART_LIMIT = 24  # charts as text
SAMPLE_ROWS = 100_000


def options(parser: argparse.ArgumentParser) -> None:
    add_plan_and_policy(parser, "a scheduling policy; not with --dataflow")
    parser.add_argument("--dataflow", action="store_true", help="show CQL queries as dataflow expressions")
    parser.add_argument(
        "--sample",
        type=parse_positive_int,
        metavar="N",
        default=SAMPLE_ROWS,
        help=f"with --dataflow: measure operations on N rows of the plan's sources (default: {SAMPLE_ROWS:,})",
    )
    parser.add_argument(
        "--backlog",
        metavar="NAME=COUNT,…",
        help="tuples that wait at an operator, or at each first operator of a query, for policies whose priorities "
        "depend on them; all other operators have none (default: one tuple at every segment)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--plot", metavar="FILE", help="draw the progress charts: .png or .svg; needs dsms[plot]")


def run(given: argparse.Namespace) -> int:
    if given.dataflow:
        return _run_dataflow(given)
    if not given.policy:
        raise PolicyError("explain shows how a policy sees the plan: give one as --policy NAME, or --dataflow")
    if len(given.policy) > 1:
        raise PolicyError(f"explain shows how one policy sees the plan: give one --policy, not {len(given.policy)}")
    if given.plot is not None:
        figures.check_image_file(given.plot)
    found = explain(given.plan, given.policy[0], given.backlog)
    if given.plot:
        figures.draw_charts(found.charts, given.plot, f"{given.plan}: progress charts")
    if given.json:
        print(json.dumps(found.to_json(), allow_nan=False))
        return 0
    _show_segments(given.plan, found, given.backlog)
    for chart in found.charts[:CHART_LIMIT]:
        _show_chart(chart)
    if len(found.charts) > CHART_LIMIT:
        print(f"and {len(found.charts) - CHART_LIMIT} more paths")
    return 0


def _run_dataflow(given: argparse.Namespace) -> int:
    from dsms.advice.dataflows import dataflows  # pyarrow loads slowly

    if given.policy or given.backlog or given.plot:
        raise PolicyError("--dataflow does not depend on a policy: remove --policy, --backlog and --plot")
    found = dataflows(given.plan, sample=given.sample)
    if given.json:
        print(json.dumps(found.to_json(), allow_nan=False))
        return 0
    measured = f"measured on {found.rows:,} rows" if found.rows else "as declared: there are no rows to measure"
    print(f"{found.plan}: order {found.order}; times {measured}")
    for query in found.queries:
        print(f"\n{query.query}")
        for line in query.lines:
            print(f"  {line.expression}")
            print(f"    T = {format_seconds(line.block)} in block mode, {format_seconds(line.item)} in item mode")
        for change in query.changes:
            print(f"  changed: {change}")
        for window in query.windows:
            print(f"  {window}")
        for join in query.joins:
            because = "" if join.because is None else f", as {join.because}"
            print(f"  {join.station}: order {join.order}{because}")
            print(f"  dashed edges: {join.dashed_edges}; without timestamps {join.without_timestamps}")
    return 0


def _show_segments(plan: str, found: Explanation, backlog: str | None) -> None:
    begins = "" if found.decides == found.policy.partition(":")[0] else f" ({found.decides} decides first)"
    parameters = ", ".join(f"{name} = {format_value(value)}" for name, value in found.parameters.items())
    print(f"{found.policy}{begins} on {plan}")
    print(found.rule)
    if parameters:
        print(f"Parameters: {parameters}.")
    print(f"A turn takes {found.turn}.")
    if found.dynamic:
        print(f"Priorities depend on the backlog: here {backlog or 'one tuple before every segment'}, all of one age.")
    elif backlog:
        print("Priorities do not depend on the backlog: --backlog has no effect.")
    names = list_input_names([segment.inputs for segment in found.segments])
    shown = make_table("", ("", "segment", "priority", *names, "why"), left=("segment", "why"))
    for place, segment in enumerate(found.segments):
        inputs = [format_cell(segment.inputs[name]) if name in segment.inputs else "–" for name in names]
        shown.add_row(
            str(place + 1),
            format_cell(" + ".join(segment.stations)),
            format_cell(segment.priority),
            *inputs,
            segment.why,
        )
    show(shown)


def _show_chart(chart: PathChart) -> None:
    rows = make_table(
        chart.title, ("after", "time", "bytes left", "envelope", "slope", "delta"), left=("after", "envelope")
    )
    for place, (time, size) in enumerate(chart.points):
        row = [format_cell(chart.path[place - 1] if place else ""), format_number(time), format_number(size)]
        if place in chart.envelope:
            piece = chart.envelope.index(place) - 1
            fall = [format_number(chart.slopes[piece]), format_number(chart.deltas[piece])] if place else ["", ""]
            row += [format_cell(" + ".join(chart.chains[piece]) if place else "starts"), *fall]
        rows.add_row(*row)
    show(rows)


def format_value(value: object) -> str:
    return format_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
