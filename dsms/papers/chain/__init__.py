"""Babcock et al., "Chain": the experiments of section 5, the example, and what is said in passing."""

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
    notes="In the text at hand every digit is lost. The numbers of the example are recovered, as only they agree with "
    "what is said of them; progress charts, costs, loads and arrivals are chosen, and what words such as "
    "“far better” mean is set in one place (dsms/papers/chain/words.py).",
)
