"""Run every policy on a plan's arrivals, with several seeds, and recommend one for a required quality of service.

J = Σ w·c/c*: w is the weight in --qos; c is the policy's mean number of queued tuples (memory), mean delay, time per
result (rate) or, if named, staleness (freshness); c* is the best c of all policies. The command never
recommends a policy that knows the future: it shows how good any policy could be. Columns: means over the seeds; J with
its standard deviation.
"""

from __future__ import annotations

import argparse
import json

from dsms.advice import figures
from dsms.advice.recommend import DEFAULT_SEEDS, SHOWN_FIGURES, Recommendation, recommend
from dsms.cli.arguments import parse_nonnegative, parse_policy_list, parse_positive_int
from dsms.cli.progress import show_runs_bar
from dsms.cli.tables import format_cell, format_number, make_table, show
from dsms.config.qos import TEMPLATES
from dsms.policies.registry import policy_names

COLUMNS = ("policy", "memory mean", "max", "latency", "p99", "stale", "J")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", help="a plan file (TOML)")
    parser.add_argument(
        "--qos",
        metavar="NAME=WEIGHT,…",
        help="required quality of service: weights that add up to 1, as in memory=0.5,delay=0.3,rate=0.2 (also: "
        f"freshness), or one of {', '.join(TEMPLATES)} (default: the plan's [qos], else memory, delay and rate alike)",
    )
    parser.add_argument(
        "--policies",
        metavar="NAME,…",
        action="append",
        help="policies to compare; repeat the option for one with several parameters, as in fas-mcq:beta=0.5,ties=query"
        f" (default: all that can run the plan). There are: {', '.join(policy_names())}",
    )
    parser.add_argument(
        "--seeds",
        type=parse_positive_int,
        metavar="N",
        default=DEFAULT_SEEDS,
        help=f"runs of each policy (default: {DEFAULT_SEEDS})",
    )
    parser.add_argument("--until", type=parse_nonnegative, metavar="T", help="admit no arrivals after T")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--plot", metavar="FILE", help="draw memory against latency: .png or .svg; needs dsms[plot]")


def run(given: argparse.Namespace) -> int:
    if given.plot is not None:
        figures.check_image_file(given.plot)
    chosen = [name for text in given.policies for name in parse_policy_list(text)] if given.policies else None
    with show_runs_bar() as tell:
        found = recommend(given.plan, given.qos, policies=chosen, seeds=given.seeds, until=given.until, progress=tell)
    if given.plot:
        figures.draw_comparison(found, given.plot)
    if given.json:
        print(json.dumps(found.to_json(), allow_nan=False))
        return 0
    _show(found)
    return 0


def _show(found: Recommendation) -> None:
    several_seeds = f"means over {len(found.seeds)} seeds" if len(found.seeds) > 1 else f"seed {found.seeds[0]}"
    caption = f"memory in tuples, times in the plan's unit, {several_seeds}; `dsms recommend --help` explains J"
    shown = make_table(found.plan, COLUMNS, left=("policy",), caption=caption)
    for trial, following in zip(found.trials, [*found.trials[1:], None], strict=True):
        means = {name: trial.over_seeds(get).mean for name, get in SHOWN_FIGURES.items()}
        stale, score = means["staleness"], trial.score
        spread = "" if score.deviation is None else f" ± {score.deviation:.3f}"
        last = following is not None and following.yardstick != trial.yardstick
        shown.add_row(
            format_cell(trial.policy + (" (knows the future)" if trial.yardstick else "")),
            *(format_number(means[name]) for name in ("memory_mean", "memory_max", "latency_mean", "latency_p99")),
            "–" if stale is None else f"{stale:.1%}",
            f"{score.mean:.3f}{spread}",
            end_section=last,
        )
    show(shown)
    print(f"Recommended: {found.policy}")
    for sentence in found.reasons:
        print(sentence)
    if found.left_out:
        print(f"Not tried, because they cannot run this plan: {', '.join(found.left_out)}.")
