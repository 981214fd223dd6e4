"""Getta, Vossough: dataflow expressions, their cost, their windows, and how many may run at once."""

from dsms.papers.experiment import Paper
from dsms.papers.getta_vossough.concurrent import CONCURRENT, INVARIANCE
from dsms.papers.getta_vossough.difference import DIFFERENCE_FIRST
from dsms.papers.getta_vossough.edges import EDGES
from dsms.papers.getta_vossough.orders import ORDERS, PLANS
from dsms.papers.getta_vossough.rates import RATES
from dsms.papers.getta_vossough.transit import TRANSIT
from dsms.papers.getta_vossough.waiting import WAITING

PAPER = Paper(
    name="getta-vossough",
    citation="Getta, Vossough: Optimization of data stream processing. SIGMOD Record 33(3), 2004",
    experiments=(TRANSIT, ORDERS, PLANS, DIFFERENCE_FIRST, WAITING, RATES, EDGES, CONCURRENT, INVARIANCE),
    notes=(
        "The paper measures nothing and prints formulas, examples and statements: each is worked out here by running "
        "dataflow expressions item by item and counting. Numbers by hand are the formula's for values we chose."
    ),
)
