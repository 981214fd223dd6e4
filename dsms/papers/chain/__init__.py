"""Babcock et al., "Chain", SIGMOD 2003: example 1, the experiments of section 5, and claims made without data."""

from dsms.papers.chain.example import EXAMPLE
from dsms.papers.chain.falling import AS_CHAIN
from dsms.papers.chain.joins import JOINED, SEVERAL
from dsms.papers.chain.paths import FOUR, RELATION, TWO
from dsms.papers.chain.switches import SWITCHES
from dsms.papers.chain.throughput import THROUGHPUT
from dsms.papers.chain.uniform import UNIFORM
from dsms.papers.experiment import Paper

PAPER = Paper(
    name="chain",
    citation="B. Babcock, S. Babu, M. Datar, R. Motwani: Chain: Operator Scheduling for Memory Minimization in Data "
    "Stream Systems. SIGMOD 2003.",
    experiments=(EXAMPLE, TWO, FOUR, RELATION, JOINED, SEVERAL, SWITCHES, UNIFORM, THROUGHPUT, AS_CHAIN),
    notes="Our copy of the text has lost every digit. The numbers of the example are recovered: only they agree with "
    "the sentences about them. Progress charts, costs, loads and arrivals are chosen. One file defines in numbers "
    "what words such as “far better” mean (dsms/papers/chain/thresholds.py).",
)
