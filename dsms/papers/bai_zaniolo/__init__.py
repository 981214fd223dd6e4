"""Bai and Zaniolo, SSPS 2008: chart partitioning for latency and memory, compared with the per-tuple optimum MSS."""

from dsms.papers import Paper
from dsms.papers.bai_zaniolo.components import COMPONENTS
from dsms.papers.bai_zaniolo.latency import FIGURE_12
from dsms.papers.bai_zaniolo.latency_fork import LATENCY_FORK
from dsms.papers.bai_zaniolo.memory import FIGURE_13
from dsms.papers.bai_zaniolo.memory_fork import MEMORY_FORK
from dsms.papers.bai_zaniolo.nested_fork import NESTED_FORK
from dsms.papers.bai_zaniolo.queues import TWO_QUEUES

PAPER = Paper(
    name="bai-zaniolo",
    citation=(
        "Yijian Bai, Carlo Zaniolo: Minimizing Latency and Memory in DSMS: a Unified Approach to Quasi-Optimal "
        "Scheduling. SSPS 2008."
    ),
    experiments=(COMPONENTS, LATENCY_FORK, NESTED_FORK, MEMORY_FORK, TWO_QUEUES, FIGURE_12, FIGURE_13),
    notes=(
        "In every experiment a batch of tuples waits at time 0. The paper's charts of forks, figures 5 to 9, are "
        "drawn with numbers that we chose, in the order of the text. Two formulas are misprinted: the area of "
        "a broken fork, and the order of branches (twice)."
    ),
)
