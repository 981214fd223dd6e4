"""Sharaf, Chrysanthis and Labrinidis, "Tuning QoD": FAS-MCQ, a policy that schedules queries for freshness."""

from dsms.papers.experiment import Paper
from dsms.papers.fas_mcq.beta import BETA
from dsms.papers.fas_mcq.bursts import BURSTS
from dsms.papers.fas_mcq.scheduling_cost import SCHEDULING
from dsms.papers.fas_mcq.skew import SKEW
from dsms.papers.fas_mcq.traces import TRACES
from dsms.papers.fas_mcq.utilisation import UTILISATION
from dsms.papers.fas_mcq.weights import WEIGHTS

PAPER = Paper(
    name="fas-mcq",
    citation='Sharaf, Chrysanthis, Labrinidis: "Tuning QoD in Stream Processing Engines"',
    experiments=(UTILISATION, BETA, SKEW, BURSTS, TRACES, SCHEDULING, WEIGHTS),
    notes=(
        "A query is stale while an update that will become a result waits or is processed; staleness is the share of "
        "time, as a mean over the 250 queries. Response is the mean over results. "
        "With the uniform selectivities that the paper names as its default, most levels of figures 3 to 7 are not "
        "reproduced. Selectivities skewed towards 1, by an exponent chosen after the fact, bring four of them near "
        "the paper's numbers at once."
    ),
)
