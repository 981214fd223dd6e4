"""Getta and Vossough, SIGMOD Record 2004: dataflow expressions, their cost, their windows and their concurrency."""

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
        "The paper has no measurements. It prints formulas, examples and statements; we check each by running dataflow "
        "expressions item by item and counting. Numbers marked “by hand” are the paper's formula for values we chose."
    ),
)
