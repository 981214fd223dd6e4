"""Reruns the experiments of five scheduling papers and compares each claim's number with ours."""

from dsms.papers.claim import Claim, Judgement, Verdict, band_above, band_below, band_from, band_near, band_up_to
from dsms.papers.experiment import Experiment, Paper, Plot, PlotLine, Point, Scale
from dsms.papers.measurements import Measurements

__all__ = [
    "Claim",
    "Experiment",
    "Judgement",
    "Measurements",
    "Paper",
    "Plot",
    "PlotLine",
    "Point",
    "Scale",
    "Verdict",
    "band_above",
    "band_below",
    "band_from",
    "band_near",
    "band_up_to",
]
