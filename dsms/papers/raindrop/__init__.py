"""Sutherland's Raindrop thesis: scheduling algorithms alone, and a selector that chooses among them by a QoS."""

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
        "The numbers of the plans and of the figures are lost; what is compared is what the text says of them. Where "
        "the selector is meant, the wheel of the thesis and selection by looking ahead (ours) stand side by side."
    ),
)
