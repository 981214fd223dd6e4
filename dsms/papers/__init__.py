"""The five papers as experiments that can be run, with what they claim beside what comes out here."""

from dsms.papers.claim import Claim, Judgement, Verdict, above, at_least, at_most, below, near
from dsms.papers.experiment import Experiment, Line, Paper, Plot, Point, Scale
from dsms.papers.measured import Measured

__all__ = [
    "Claim",
    "Experiment",
    "Judgement",
    "Line",
    "Measured",
    "Paper",
    "Plot",
    "Point",
    "Scale",
    "Verdict",
    "above",
    "at_least",
    "at_most",
    "below",
    "near",
]
