"""Figure 10: staleness on recorded arrivals, from trace files or a synthetic ON/OFF stand-in."""

from __future__ import annotations

import json
from typing import Any

from dsms.papers.claim import Claim, band_above, band_from
from dsms.papers.experiment import Experiment, Plot, PlotLine, Scale, spread_line
from dsms.papers.fas_mcq.measuring import FAS, FCFS, LEGEND, RB, RR, STAND_IN, measure, point, ratio, size
from dsms.papers.measurements import Measurements
from dsms.papers.trace_file import digest_file

LOADS = (0.5, 0.7, 0.9, 0.95)
FEW = (0.5, 0.9)
USUAL = 0.9  # where staleness is compared with that of the synthetic streams


def points(scale: Scale) -> list[dict[str, Any]]:
    source = json.dumps([(path, digest_file(path)) for path in scale.traces]) if scale.traces else STAND_IN
    sweep = []
    for seed in scale.numbers():
        sweep += [
            point(seed, size(scale), policy, load, recorded=source)
            for load in scale.of(LOADS, FEW)
            for policy in LEGEND
        ]
        sweep += [point(seed, size(scale), policy, USUAL) for policy in LEGEND]
    return sweep


def of_trace(measured: Measurements) -> Measurements:
    """The runs on recorded arrivals, or on their stand-in."""
    return Measurements(row for row in measured.rows if row.point["recorded"])


def least_step(measured: Measurements) -> float:
    """The least factor by which a policy is staler than the next better one, at any load."""
    runs = of_trace(measured)
    return min(
        ratio(runs, "staleness", stale, less, utilisation=load)
        for load in runs.values("utilisation")
        for stale, less in ((RB, FAS), (RR, RB), (FCFS, RB))
    )


def least_excess(measured: Measurements) -> float:
    """The least factor by which a policy is staler than on synthetic streams of the same load."""
    runs, synthetic = of_trace(measured), measured.where(recorded="")
    return min(
        runs.value("staleness", policy=policy, utilisation=USUAL) / synthetic.value("staleness", policy=policy)
        for policy in LEGEND
    )


def lines(measured: Measurements) -> list[PlotLine]:
    """One line per policy, labelled as a stand-in where no trace was given."""
    runs = of_trace(measured)
    stand_in = bool(runs.where(recorded=STAND_IN).rows)
    return [
        spread_line(label + " (stand-in)" * stand_in, runs.where(policy=policy), "staleness", "utilisation")
        for policy, label in LEGEND.items()
    ]


READ = "Without trace files this is a synthetic ON/OFF stand-in, not the paper's LBL-PKT-4."

TRACES = Experiment(
    name="traces",
    title="Recorded arrivals: the trace files given, or a synthetic ON/OFF stand-in",
    setup=(
        "The 250 queries over one stream per trace file; the paper has the TCP and UDP packets of LBL-PKT-4 (Internet "
        "Traffic Archive, one line per packet, its timestamp first). The run takes the beginning of the hour, 10,000 "
        "packets per file on average, time stretched to the utilisation. WITHOUT FILES the two streams are a SYNTHETIC "
        "STAND-IN: each has ten sources that are ON and OFF for Pareto times (alpha 1.5; means of 10 and 30 mean gaps, "
        "chosen)."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot(
            "figure-10",
            "Staleness on recorded arrivals (if labelled stand-in, a synthetic ON/OFF process)",
            "utilisation",
            "average staleness",
            lines,
        ),
    ),
    claims=(
        Claim(
            "order",
            "On the real trace, or its synthetic stand-in, FAS-MCQ is least stale, then RB-MCQ, then RR and FCFS "
            "(ours: the least factor from one to the next, at any utilisation).",
            "FAS < RB < RR, FCFS",
            least_step,
            band_above(1.0),
            reading=READ,
            pooled=True,
        ),
        Claim(
            "high",
            "On the real trace, or its synthetic stand-in, all policies are very stale (ours: the least factor over "
            "synthetic Poisson streams and bursts of ten, at utilisation 0.9).",
            "high for all",
            least_excess,
            band_from(1.5),
            band_above(1.0),
            reading=READ,
            because="The arrivals, from the files given or from the ON/OFF sources, are less bursty than the paper's.",
            pooled=True,
        ),
    ),
)
