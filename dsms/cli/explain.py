"""Show how a policy sees a plan: the segments by priority and why, and the progress chart of every path.

A path's chart is the time spent on what is left of one tuple against the bytes that are left of it; its lower envelope
cuts the path into Chain's segments, each with a slope, and a delta: how far the actual chart gets above it.

With --dataflow, of queries on rows: per query and stream the operations that a row goes through, the time T that takes
(block: an operation starts when the one before is done; item: as soon as there is a row for it), what was changed in
the query and what that saves, and how many dashed edges the scheduling graph has with a row of each stream pending.
"""

from __future__ import annotations

import argparse
import json

from dsms.advice import figures
from dsms.advice.explain import Explanation, explain
from dsms.advice.reasons import PathChart
from dsms.cli.arguments import plan_and_policy, several
from dsms.cli.tables import cell, figure, input_names, seconds, show, table
from dsms.errors import PolicyError

MOST = 24  # charts as text
SAMPLE = 100_000


def options(parser: argparse.ArgumentParser) -> None:
    plan_and_policy(parser, "a scheduling policy; not with --dataflow")
    parser.add_argument("--dataflow", action="store_true", help="show queries on rows as dataflow expressions")
    parser.add_argument(
        "--sample",
        type=several,
        metavar="N",
        default=SAMPLE,
        help=f"with --dataflow: rows of the plan's sources to measure operations by (default: {SAMPLE:,})",
    )
    parser.add_argument(
        "--backlog",
        metavar="NAME=COUNT,…",
        help="tuples that wait before an operator, or before each of a query's first ones, for priorities that depend "
        "on it; what is not named has none (default: one tuple before every segment)",
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
        figures.check(given.plot)
    found = explain(given.plan, given.policy[0], given.backlog)
    if given.plot:
        figures.draw_charts(found.charts, given.plot, f"{given.plan}: progress charts")
    if given.json:
        print(json.dumps(found.to_json(), allow_nan=False))
        return 0
    _show_segments(given.plan, found, given.backlog)
    for chart in found.charts[:MOST]:
        _show_chart(chart)
    if len(found.charts) > MOST:
        print(f"and {len(found.charts) - MOST} more paths")
    return 0


def _run_dataflow(given: argparse.Namespace) -> int:
    from dsms.advice.dataflows import dataflows  # it reads files, and pyarrow takes its time

    if given.policy or given.backlog or given.plot:
        raise PolicyError("--dataflow shows what queries do, whoever decides: no --policy, --backlog or --plot with it")
    found = dataflows(given.plan, sample=given.sample)
    if given.json:
        print(json.dumps(found.to_json(), allow_nan=False))
        return 0
    measured = f"measured on {found.rows:,} rows" if found.rows else "as declared: there are no rows to measure by"
    print(f"{found.plan}: order {found.order}; times {measured}")
    for query in found.queries:
        print(f"\n{query.query}")
        for line in query.lines:
            print(f"  {line.expression}")
            print(f"    T = {seconds(line.block)} in block mode, {seconds(line.item)} in item mode")
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
    parameters = ", ".join(f"{name} = {figure_or_text(value)}" for name, value in found.parameters.items())
    print(f"{found.policy}{begins} on {plan}")
    print(found.rule)
    if parameters:
        print(f"Parameters: {parameters}.")
    if found.dynamic:
        print(f"Priorities depend on the backlog: here {backlog or 'one tuple before every segment'}, all of one age.")
    elif backlog:
        print("Priorities do not depend on the backlog: what is given changes nothing.")
    names = input_names([segment.inputs for segment in found.segments])
    shown = table("", ("", "segment", "priority", *names, "why"), left=("segment", "why"))
    for place, segment in enumerate(found.segments):
        inputs = [cell(segment.inputs[name]) if name in segment.inputs else "–" for name in names]
        shown.add_row(str(place + 1), cell(" + ".join(segment.stations)), cell(segment.priority), *inputs, segment.why)
    show(shown)


def _show_chart(chart: PathChart) -> None:
    rows = table(chart.title, ("after", "time", "bytes left", "envelope", "slope", "delta"), left=("after", "envelope"))
    for place, (time, size) in enumerate(chart.points):
        row = [cell(chart.path[place - 1] if place else ""), figure(time), figure(size)]
        if place in chart.envelope:
            piece = chart.envelope.index(place) - 1
            fall = [figure(chart.slopes[piece]), figure(chart.deltas[piece])] if place else ["", ""]
            row += [cell(" + ".join(chart.chains[piece]) if place else "starts"), *fall]
        rows.add_row(*row)
    show(rows)


def figure_or_text(value: object) -> str:
    return figure(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
