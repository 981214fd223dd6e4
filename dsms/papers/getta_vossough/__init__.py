"""Getta, Vossough: dataflow expressions, their cost, their windows, and how many may run at once."""

from dsms.papers.experiment import Paper
from dsms.papers.getta_vossough.orders import ORDERS, PLANS
from dsms.papers.getta_vossough.transit import TRANSIT

PAPER = Paper("getta-vossough", "", (TRANSIT, ORDERS, PLANS))
