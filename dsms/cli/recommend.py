"""Run every policy on a plan's arrivals, with several seeds, and recommend one for the quality of service wanted.

J = Σ w·c/c*: w by --qos, c the mean queued tuples (memory), the mean delay, the time per result (rate) and, where it is
named, the staleness (freshness); c* the best of all policies. Policies that know the future are a bound, not a choice.
Columns: means over the seeds; J with its standard deviation.
"""

from __future__ import annotations

import argparse
import json

from dsms.advice import figures
from dsms.advice.recommend import SEEDS, SHOWN, Recommendation, recommend
from dsms.cli.arguments import number, several
from dsms.cli.bar import runs_bar
from dsms.cli.tables import cell, figure, show, table
from dsms.errors import DsmsError
from dsms.policies.registry import policy_names
from dsms.qos import TEMPLATES

COLUMNS = ("policy", "memory mean", "max", "latency", "p99", "stale", "J")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", help="a plan file (TOML)")
    parser.add_argument(
        "--qos",
        metavar="NAME=WEIGHT,…",
        help="what is wanted, as in memory=0.5,delay=0.3,rate=0.2 (also: freshness), weights adding up to 1; or one "
        f"of {', '.join(TEMPLATES)} (default: the plan's [qos], or memory, delay and rate alike)",
    )
    parser.add_argument(
        "--policies",
        metavar="NAME,…",
        action="append",
        help="those to compare; repeat the option for one with several parameters, as in fas-mcq:beta=0.5,ties=query "
        f"(default: all that can run the plan). There are: {', '.join(policy_names())}",
    )
    parser.add_argument("--seeds", type=several, metavar="N", default=SEEDS, help=f"runs of each (default: {SEEDS})")
    parser.add_argument("--until", type=number, metavar="T", help="arrivals after T are not admitted")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--plot", metavar="FILE", help="draw memory against latency: .png or .svg; needs dsms[plot]")


def run(given: argparse.Namespace) -> int:
    if given.plot is not None:
        figures.check(given.plot)
    chosen = [name for text in given.policies for name in listed(text)] if given.policies else None
    with runs_bar() as tell:
        found = recommend(given.plan, given.qos, policies=chosen, seeds=given.seeds, until=given.until, progress=tell)
    if given.plot:
        figures.draw_comparison(found, given.plot)
    if given.json:
        print(json.dumps(found.to_json(), allow_nan=False))
        return 0
    _show(found)
    return 0


def listed(text: str) -> list[str]:
    """Policies between commas; a comma before a parameter belongs to the policy before it."""
    found: list[str] = []
    for part in text.split(","):
        if "=" in part and ":" not in part and found:
            found[-1] += f",{part}"
        elif part:
            found.append(part)
    if not found:
        raise DsmsError(f"--policies {text!r}: names of policies are wanted, as in chain,fifo,rr:tuples=30")
    return found


def _show(found: Recommendation) -> None:
    several_seeds = f"means over {len(found.seeds)} seeds" if len(found.seeds) > 1 else f"seed {found.seeds[0]}"
    caption = f"memory in tuples, times in the plan's unit, {several_seeds}; `dsms recommend --help` explains J"
    shown = table(found.plan, COLUMNS, left=("policy",), caption=caption)
    for trial, following in zip(found.trials, [*found.trials[1:], None], strict=True):
        means = {name: trial.over_seeds(get).mean for name, get in SHOWN.items()}
        stale, score = means["staleness"], trial.score
        spread = "" if score.deviation is None else f" ± {score.deviation:.3f}"
        last = following is not None and following.yardstick != trial.yardstick
        shown.add_row(
            cell(trial.policy + (" (knows the future)" if trial.yardstick else "")),
            *(figure(means[name]) for name in ("memory_mean", "memory_max", "latency_mean", "latency_p99")),
            "–" if stale is None else f"{stale:.1%}",
            f"{score.mean:.3f}{spread}",
            end_section=last,
        )
    show(shown)
    print(f"Recommended: {found.policy}")
    for sentence in found.reasons:
        print(sentence)
    if found.left_out:
        print(f"Not tried, as they cannot run this plan: {', '.join(found.left_out)}.")
