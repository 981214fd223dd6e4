"""Figure 10: recorded arrivals, the user's or what stands in for them."""

from __future__ import annotations

import json
from typing import Any

from dsms.papers.claim import Claim, above, at_least
from dsms.papers.experiment import Experiment, Line, Plot, Scale, spread_line
from dsms.papers.fas_mcq.measuring import FAS, FCFS, LEGEND, RB, RR, STAND_IN, measure, point, ratio, size
from dsms.papers.measured import Measured
from dsms.papers.trace_file import digest

LOADS = (0.5, 0.7, 0.9, 0.95)
FEW = (0.5, 0.9)
USUAL = 0.9  # where staleness is compared with that of the synthetic streams


def points(scale: Scale) -> list[dict[str, Any]]:
    source = json.dumps([(path, digest(path)) for path in scale.traces]) if scale.traces else STAND_IN
    found = []
    for seed in scale.numbers():
        found += [
            point(seed, size(scale), policy, load, recorded=source)
            for load in scale.of(LOADS, FEW)
            for policy in LEGEND
        ]
        found += [point(seed, size(scale), policy, USUAL) for policy in LEGEND]
    return found


def of_trace(measured: Measured) -> Measured:
    return Measured(row for row in measured.rows if row.point["recorded"])


def least_step(measured: Measured) -> float:
    """By what factor at least one policy is staler than the one before it, at any load."""
    mine = of_trace(measured)
    return min(
        ratio(mine, "staleness", stale, less, utilisation=load)
        for load in mine.values("utilisation")
        for stale, less in ((RB, FAS), (RR, RB), (FCFS, RB))
    )


def least_excess(measured: Measured) -> float:
    """How much staler at least a policy is than with synthetic streams of the same load."""
    mine, synthetic = of_trace(measured), measured.where(recorded="")
    return min(
        mine.value("staleness", policy=policy, utilisation=USUAL) / synthetic.value("staleness", policy=policy)
        for policy in LEGEND
    )


def lines(measured: Measured) -> list[Line]:
    """Labelled by what was run."""
    mine = of_trace(measured)
    stand_in = bool(mine.where(recorded=STAND_IN).rows)
    return [
        spread_line(label + " (stand-in)" * stand_in, mine.where(policy=policy), "staleness", "utilisation")
        for policy, label in LEGEND.items()
    ]


READ = "Without trace files this is a synthetic ON/OFF stand-in, not the paper's LBL-PKT-4."

TRACES = Experiment(
    name="traces",
    title="Recorded arrivals: the trace files given, or a synthetic ON/OFF stand-in",
    setup=(
        "The 250 queries over as many streams as trace files are given; the paper's are the TCP and UDP packets of "
        "LBL-PKT-4 (Internet Traffic Archive, a line for each packet, its timestamp first). Used is the beginning of "
        "the hour, 10,000 packets for each file, time stretched to the utilisation. WITHOUT FILES the two streams are "
        "a SYNTHETIC STAND-IN: each ten sources that are ON and OFF for Pareto times (alpha 1.5; means of 10 and 30 "
        "mean gaps, chosen)."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot(
            "figure-10",
            "Staleness on recorded arrivals (where so labelled, a synthetic ON/OFF stand-in)",
            "utilisation",
            "average staleness",
            lines,
        ),
    ),
    claims=(
        Claim(
            "order",
            "On the real trace, or its synthetic stand-in, FAS-MCQ is least stale, then RB-MCQ, then RR and FCFS: at "
            "every utilisation the next by this factor at least.",
            "FAS < RB < RR, FCFS",
            least_step,
            above(1.0),
            reading=READ,
            pooled=True,
        ),
        Claim(
            "high",
            "On the real trace, or its synthetic stand-in, all policies are very stale: at utilisation 0.9 by this "
            "factor at least above Poisson streams and bursts of ten.",
            "high for all",
            least_excess,
            at_least(1.5),
            above(1.0),
            reading=READ,
            because="What arrives, by the files given or the ON/OFF sources chosen, is less bursty than in the paper.",
            pooled=True,
        ),
    ),
)
