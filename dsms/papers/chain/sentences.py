"""What the paper says in passing: even arrivals, throughput, and where Greedy is Chain."""

from __future__ import annotations

from typing import Any

import dsms
from dsms.papers.chain.data import SYNTHETIC
from dsms.papers.chain.plots import sizes
from dsms.papers.chain.queries import CHARTS, horizon, path, table
from dsms.papers.chain.runs import LABELS, POLICIES, SAMPLES, VISITS, Leaving, memory, policy_text, sweep
from dsms.papers.claim import Claim, Figure, at_least, at_most
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale
from dsms.papers.measured import Measured

ROUNDING = 1e-9
SINGLE = ("two", "four", "relation")  # queries over one stream
LOADS = (0.5, 0.8, 1.0)


# --- even arrivals


def _even_points(scale: Scale) -> list[Point]:
    return [
        each
        for seed in scale.numbers()
        for query in (*SINGLE, "several")
        for load in LOADS
        for tuples in ("fractional", "individual")
        if query in SINGLE or tuples == "individual"  # a join has whole tuples only
        for each in sweep(
            {
                "seed": seed,
                "query": query,
                "tuples": scale.of(4000, 400),
                "data": "uniform",
                "load": load,
                "model": tuples,
            }
        )
    ]


def _even(point: Point) -> dict[str, Any]:
    plan = table(point)
    plan["run"]["tuples"] = point["model"]
    level = dsms.simulate(plan, policy_text(point)).memory.tuples
    return {"mean": level.mean, "max": level.max}


def _best_by_fifo(measured: Measured) -> float:
    """The least that another policy holds on average, by what FIFO holds: at the query and load where it is least."""
    return min(
        case.value("mean", policy=policy) / case.value("mean", policy="fifo")
        for query in measured.values("query")
        for load in LOADS
        for case in (measured.where(query=query, load=load),)
        for policy in POLICIES
    )


def _single(measured: Measured, model: str) -> Measured:
    return Measured(row for row in measured.where(model=model).rows if row.point["query"] in SINGLE)


def _even_lines(measured: Measured) -> list[Line]:
    found = measured.where(model="fractional", query="four")
    return [Line(label, *found.line("mean", "load", policy=policy)) for policy, label in LABELS.items()]


EVEN = Experiment(
    name="uniform-arrivals",
    title="Uniform arrivals within capacity",
    setup=f"One tuple every so long, at {', '.join(f'{load:.0%}' for load in LOADS)} of capacity, into the queries "
    f"over one stream. Tuples are fractional, so that each takes the same time: with individual tuples, which pass by "
    f"chance, the load is within capacity only on average. {VISITS}",
    points=_even_points,
    measure=_even,
    plots=(
        Plot("uniform-arrivals", "Four operators, uniform arrivals", "load", "mean queue size (tuples)", _even_lines),
    ),
    claims=(
        Claim(
            "fifo-least",
            "If arrivals are uniform and within capacity, FIFO needs the least memory.",
            "no number",
            lambda measured: _best_by_fifo(_single(measured, "fractional")),
            at_least(1 - ROUNDING),
            reading="The best other policy's mean memory by FIFO's, where that is least: from 1 on. Each tuple is gone "
            "before the next comes, so that all policies do the same.",
            others={
                "individual tuples": lambda measured: _best_by_fifo(_single(measured, "individual")),
                "several streams at once": lambda measured: _best_by_fifo(measured.where(query="several")),
            },
        ),
    ),
)

# --- throughput

BURST = 3  # times what the CPU can handle


def _throughput_points(scale: Scale) -> list[Point]:
    return [
        each
        for seed in scale.numbers()
        for data, tuples in (("burst", scale.of(3000, 600)), (SYNTHETIC, scale.of(40_000, 4000)))
        for each in sweep({"seed": seed, "query": "two", "data": data, "tuples": tuples})
    ]


def _throughput(point: Point) -> dict[str, Any]:
    if point["data"] == "burst":
        points = CHARTS[point["query"]]
        arrivals = {"kind": "constant", "utilisation": BURST, "count": point["tuples"]}
        plan: dict[str, Any] = {
            "streams": {"s": {"arrivals": arrivals}},
            "queries": {"q": {"from": "s", "operators": path(points)}},
            "run": {"seed": point["seed"]},
        }
    else:
        plan = table(point)
    at = [place * horizon(point) / SAMPLES for place in range(SAMPLES + 1)]
    leaving = Leaving(at)
    run = dsms.simulate(plan, policy_text(point), observers=[leaving])
    return {"rate": run.output_rate, "outputs": run.outputs, "at": at, "left": leaving.left}


def _rates_apart(measured: Measured) -> float:
    """By which share a policy's throughput differs from FIFO's, at most."""
    return max(
        abs(case.value("rate", policy=policy) / case.value("rate", policy="fifo") - 1)
        for data in ("burst", SYNTHETIC)
        for case in (measured.where(data=data),)
        for policy in POLICIES
    )


def _by_the_end_of_the_burst(other: str) -> Figure:
    """FIFO's results by then, by another policy's."""

    def found(measured: Measured) -> float:
        case = measured.where(data="burst")
        fifo, theirs = (case.series("left", policy=policy)[SAMPLES // BURST] for policy in ("fifo", other))
        return fifo / theirs if theirs else float("inf")

    return found


def _ahead(measured: Measured) -> float:
    """Of the instants at which FIFO and Chain have given different numbers of results, those where FIFO is ahead."""
    case = measured.where(data=SYNTHETIC)
    pairs = zip(case.series("left", policy="fifo"), case.series("left", policy="chain"), strict=True)
    different = [fifo > chain for fifo, chain in pairs if fifo != chain]
    return sum(different) / len(different) if different else float("nan")


def _left(measured: Measured) -> list[Line]:
    case = measured.where(data="burst")
    return [
        Line(label, case.series("at", policy=policy), case.series("left", policy=policy))
        for policy, label in LABELS.items()
    ]


THROUGHPUT = Experiment(
    name="throughput",
    title="Throughput in the long run and in bursts",
    setup=f"The query with two operators: one burst at {BURST} times what the CPU can handle, then nothing until all "
    f"is done; and synthetic data as in the experiment with two operators. {VISITS}",
    points=_throughput_points,
    measure=_throughput,
    plots=(Plot("throughput", "Results of one burst", "time", "results so far", _left),),
    claims=(
        Claim(
            "same-in-the-long-run",
            "Throughput is the same under all policies in the long run (the largest difference).",
            "the same",
            _rates_apart,
            at_most(0.001),
            form=".2%",
            reading="Results by the time it takes to give them all; the same is less than 0.1 % apart.",
        ),
        Claim(
            "fifo-more-in-a-burst",
            "During a burst FIFO yields more results than Chain.",
            "more; no number",
            _by_the_end_of_the_burst("chain"),
            at_least(1.05),
            at_least(1.0),
            reading="FIFO's results when the burst ends, by Chain's; more is 5 % or more.",
        ),
        Claim(
            "fifo-ahead",
            "Whenever there is a difference, it is FIFO that has given more results.",
            "no number",
            _ahead,
            at_least(0.95),
            at_least(0.5),
            reading="On synthetic data, of the instants at which the numbers of results so far differ.",
            form=".1%",
        ),
    ),
)

# --- where Greedy is Chain

FALLING = ("two", "falling", "two falling")


def _falling_points(scale: Scale) -> list[Point]:
    return [
        each
        for seed in scale.numbers()
        for query in (*FALLING, "relation")
        for each in sweep(
            {"seed": seed, "query": query, "tuples": scale.of(40_000, 4000), "data": SYNTHETIC}, ("greedy", "chain")
        )
    ]


def _differ(measured: Measured, query: str) -> float:
    """The largest difference at any instant looked at, in tuples."""
    case = measured.where(query=query)
    pairs = zip(case.series("held", policy="greedy"), case.series("held", policy="chain"), strict=True)
    return max(abs(greedy - chain) for greedy, chain in pairs)


WHERE_GREEDY = Experiment(
    name="greedy-as-chain",
    title="Where priorities fall along the path",
    setup=f"Queries in which each operator frees less memory a unit of time than the one before: {CHARTS['two']}, "
    f"{CHARTS['falling']}, and both at once, each on a stream of its own; for comparison the join with a relation, "
    f"where they do not fall. Synthetic data.",
    points=_falling_points,
    measure=memory,
    plots=(
        Plot(
            "greedy-as-chain", "Priorities that fall", "time", "queue size (tuples)", sizes(SYNTHETIC, query="falling")
        ),
    ),
    claims=(
        Claim(
            "greedy-is-chain",
            "Where selective operators come first, so that priorities fall along the path, Greedy is Chain.",
            "the same",
            lambda measured: max(_differ(measured, query) for query in FALLING),
            at_most(ROUNDING),
            reading="The largest difference in tuples held, at any of some 280 instants.",
        ),
        Claim(
            "and-not-elsewhere",
            "Where they do not fall, Greedy is not Chain.",
            "not the same",
            lambda measured: _differ(measured, "relation"),
            at_least(1),
            reading="The largest difference in tuples held, on the join with a relation.",
        ),
    ),
)
