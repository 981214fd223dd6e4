"""The experiments over one stream: two operators, four operators, and a join with a stored relation."""

from __future__ import annotations

from collections.abc import Callable

from dsms.papers.chain import thresholds as words
from dsms.papers.chain.data import ARRIVALS_TEXT, BURSTY, FLOW, LARGE_FLOW, data_sets
from dsms.papers.chain.plots import queues
from dsms.papers.chain.queries import CHARTS, LOAD
from dsms.papers.chain.runs import BY_TUPLE, POLICIES, VISITS, memory, sweep
from dsms.papers.chain.thresholds import MEANT, OneSet, apart, farthest, least, most, only, over, over_others, way
from dsms.papers.claim import Claim, Figure
from dsms.papers.experiment import Experiment, Point, Scale

TUPLES, QUICK = 120_000, 8_000  # run length: the tuples that the CPU can process in it
SHORT = "four, short end"


def _points(*queries: str) -> Callable[[Scale], list[Point]]:
    def points(scale: Scale) -> list[Point]:
        return [
            each
            for seed in scale.numbers()
            for query in queries
            for data in (*data_sets(scale), {"data": BURSTY})
            for each in sweep(
                {"seed": seed, "query": query, "tuples": scale.of(TUPLES, QUICK), **data}, (*POLICIES, BY_TUPLE)
            )
        ]

    return points


def _setup(query: str, shape: str) -> str:
    chart = ", ".join(f"({time:g}, {size:g})" for time, size in CHARTS[query])
    return (
        f"{shape} Its progress chart is {chart}; the paper's is lost, and this one was chosen. Tuples are individual "
        f"and pass at random; the stream takes {LOAD:.0%} of the CPU. Memory is the number of tuples in all queues, "
        f"the one in service included. {VISITS} {ARRIVALS_TEXT}"
    )


LARGE = f"flows of {LARGE_FLOW:g} times the CPU instead of {FLOW:g}"


def _bursty(of: OneSet, query: str) -> dict[str, Figure]:
    return {LARGE: only(of, BURSTY, query=query)}


TWO = Experiment(
    name="two-operators",
    title="A fast and very selective operator, then a slow one",
    setup=_setup("two", "One query: a fast operator that drops most tuples, and a slow one behind it."),
    points=_points("two"),
    measure=memory,
    plots=queues("two-operators", "Two operators", query="two"),
    claims=(
        Claim(
            "greedy-equals-chain",
            "Greedy and Chain are equal, as the first operator is also the steeper one.",
            "no number: one line in the figure",
            apart("greedy", "chain", query="two"),
            words.EQUAL,
            reading=MEANT["equal"],
            form=".2%",
        ),
        Claim(
            "rr-almost-as-good",
            "Round-robin does almost as well as Chain.",
            "no number",
            most(way("rr"), query="two"),
            words.ALMOST,
            words.ALMOST_DIRECTION,
            reading=MEANT["almost"] + " " + VISITS,
            because="With small bursts all queues are short, and arrivals during a visit to the slow operator matter.",
            others={"visits of one tuple": most(way(BY_TUPLE), query="two"), **_bursty(way("rr"), "two")},
        ),
        Claim(
            "fifo-bad",
            "FIFO needs much more memory than the others.",
            "no number",
            least(over_others("fifo"), query="two"),
            words.FAR,
            words.FAR_DIRECTION,
            reading="Ours: FIFO's memory over that of the worst other policy. " + MEANT["far"],
            others={
                "by the peak": least(over_others("fifo", "max"), query="two"),
                **_bursty(over_others("fifo"), "two"),
            },
        ),
    ),
)

NOT_GREEDY = (
    "On the chosen chart Greedy is not bad, but equals Chain. The last operator frees 0.1 in 9 units (0.011 a "
    "unit), less than the first two (0.05 in 3, 0.017), so Greedy postpones it just as Chain does. In the paper's "
    "chart the last operator must have freed more per unit than the first. With 3 units instead of 9 it does: then "
    "Greedy finishes tuples, as FIFO does, instead of bringing others to the selective operator."
)

FOUR = Experiment(
    name="four-operators",
    title="A fast and selective operator behind two unproductive ones",
    setup=_setup("four", "One query: two operators that drop little, a fast one that drops much, and a slow one.")
    + " Run also with a last operator of 3 units instead of 9, as another reading of what is lost.",
    points=_points("four", SHORT),
    measure=memory,
    plots=(
        *queues("four-operators", "Four operators", query="four"),
        queues("four-operators-short-end", "Four operators, the last of 3 units", query=SHORT)[0],
    ),
    claims=(
        Claim(
            "chain-far-better-than-greedy",
            "Chain is far better than Greedy, which does not see the selective operator behind unproductive ones.",
            "no number",
            least(over("greedy", "chain"), query="four"),
            words.FAR,
            words.FAR_DIRECTION,
            reading=MEANT["far"],
            because=NOT_GREEDY,
            others={
                "the last operator 3 units instead of 9": least(over("greedy", "chain"), query=SHORT),
                "by the peak": least(over("greedy", "chain", "max"), query="four"),
                **_bursty(over("greedy", "chain"), "four"),
            },
        ),
        Claim(
            "fifo-nearly-as-bad-as-greedy",
            "FIFO is nearly as bad as Greedy.",
            "no number",
            farthest(over("fifo", "greedy"), query="four"),
            words.AS_BAD,
            reading=MEANT["as bad"],
            because="FIFO is bad, Greedy is not. " + NOT_GREEDY,
            others={
                "the last operator 3 units instead of 9": farthest(over("fifo", "greedy"), query=SHORT),
                **_bursty(over("fifo", "greedy"), "four"),
            },
        ),
        Claim(
            "rr-nearly-as-bad-as-greedy",
            "Round-robin is nearly as bad as Greedy.",
            "no number",
            farthest(over("rr", "greedy"), query="four"),
            words.AS_BAD,
            reading=MEANT["as bad"] + " " + VISITS,
            because="Greedy is not bad here. " + NOT_GREEDY,
            others={
                "the last operator 3 units instead of 9": farthest(over("rr", "greedy"), query=SHORT),
                "that, and visits of one tuple": farthest(over(BY_TUPLE, "greedy"), query=SHORT),
                f"the last operator 3 units instead of 9, and {LARGE}": only(over("rr", "greedy"), BURSTY, query=SHORT),
            },
        ),
        Claim(
            "chain-far-better-than-fifo",
            "Chain is far better than FIFO, too.",
            "no number",
            least(over("fifo", "chain"), query="four"),
            words.FAR,
            words.FAR_DIRECTION,
            reading=MEANT["far"],
            others={"the last operator 3 units instead of 9": least(over("fifo", "chain"), query=SHORT)},
        ),
    ),
)

RELATION = Experiment(
    name="join-with-relation",
    title="A join with a stored relation, of selectivity above 1",
    setup=_setup(
        "relation",
        "One query: a weak selection, a join with a stored relation that multiplies tuples, a selective operator, and "
        "a slow one. The first three are one chain.",
    ),
    points=_points("relation"),
    measure=memory,
    plots=queues("join-with-relation", "Join with a relation", query="relation"),
    claims=(
        Claim(
            "greedy-bad",
            "Greedy, which postpones the operator that multiplies tuples, is bad.",
            "no number",
            least(over("greedy", "chain"), query="relation"),
            words.FAR,
            words.FAR_DIRECTION,
            reading=MEANT["far"],
            others={"by the peak": least(over("greedy", "chain", "max"), query="relation")},
        ),
        Claim(
            "rr-bad",
            "Round-robin is bad.",
            "no number",
            least(over("rr", "chain"), query="relation"),
            words.FAR,
            words.FAR_DIRECTION,
            reading=MEANT["far"] + " " + VISITS,
            because="Round-robin gives every operator with work the same time, and so keeps up with bursts that are "
            "not far above capacity. It falls behind in large bursts, or if a visit is one tuple.",
            others={
                "visits of one tuple": least(over(BY_TUPLE, "chain"), query="relation"),
                **_bursty(over("rr", "chain"), "relation"),
            },
        ),
    ),
)
