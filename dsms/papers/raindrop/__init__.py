"""Sutherland's Raindrop thesis: single scheduling algorithms, and a selector that switches between them by a QoS."""

from dsms.papers.experiment import Paper
from dsms.papers.raindrop.mixed_qos import CHANGED_QOS, MIXED_QOS
from dsms.papers.raindrop.one_qos import ONE_QOS
from dsms.papers.raindrop.single import SINGLES
from dsms.papers.raindrop.tables import TABLES, WORKLOAD

PAPER = Paper(
    name="raindrop",
    citation=(
        'Sutherland: "An Adaptive Multi-Objective Scheduling Selection Framework for Continuous Query Processing" '
        "(Raindrop), thesis, Worcester Polytechnic Institute"
    ),
    experiments=(TABLES, WORKLOAD, SINGLES, ONE_QOS, MIXED_QOS, CHANGED_QOS),
    notes=(
        "The numbers of the plans and of the figures are lost; we check the statements of the text. Claims about the "
        "selector are checked twice: for the thesis's roulette wheel, and for our selection by looking ahead."
    ),
)
