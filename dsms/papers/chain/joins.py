"""Queries over several streams: a window join, alone and beside two queries over single streams."""

from __future__ import annotations

from collections.abc import Callable

from dsms.papers.chain import words
from dsms.papers.chain.data import SAID, kinds
from dsms.papers.chain.plots import queues
from dsms.papers.chain.queries import AFTER, BEFORE, CHARTS, JOIN, LAST, LOAD
from dsms.papers.chain.runs import BY_TUPLE, POLICIES, VISITS, memory, sweep
from dsms.papers.chain.words import MEANT, best_of_others, least, over
from dsms.papers.claim import Claim
from dsms.papers.experiment import Experiment, Point, Scale

TUPLES, QUICK = 120_000, 8_000  # the CPU could handle within the run, if they were all of R

SHAPE = (
    f"R passes a selection of selectivity {BEFORE[1]:g}, is joined with S in tuple-based windows in the order of "
    f"timestamps (the join waits while one of its inputs is empty), and what comes out passes a selection of "
    f"{AFTER[1]:g} and one of {LAST[1]:g}. The join gives {JOIN[1]:g} tuple for each it gets, and is run by this "
    f"figure rather than on values. Costs {BEFORE[0]:g}, {JOIN[0]:g}, {AFTER[0]:g} and {LAST[0]:g}. All of these "
    f"are lost in the paper, and chosen. "
)


def _points(query: str) -> Callable[[Scale], list[Point]]:
    def points(scale: Scale) -> list[Point]:
        return [
            each
            for seed in scale.numbers()
            for data in kinds(scale)
            for bounds, policies in ((False, (*POLICIES, BY_TUPLE)), (True, POLICIES))
            for each in sweep(
                {"seed": seed, "query": query, "tuples": scale.of(TUPLES, QUICK), "bounds": bounds, **data}, policies
            )
        ]

    return points


ASKED = "the join asks how old an empty input's next tuple can be"
HELD_UP = (
    "While one input of the join is empty, what comes by the other waits for it under every policy alike, which blurs "
    "the difference."
)


def _worse(name: str, policy: str, label: str) -> Claim:
    return Claim(
        f"{name}-much-worse",
        f"{label} is much worse than Chain.",
        "no number",
        least(over(policy, "chain"), bounds=False),
        words.FAR,
        words.FAR_DIRECTION,
        reading=MEANT["far"],
        because=HELD_UP,
        others={
            ASKED: least(over(policy, "chain"), bounds=True),
            "by the peak": least(over(policy, "chain", "max"), bounds=False),
        },
    )


JOINED = Experiment(
    name="window-join",
    title="A window join of two streams",
    setup=f"{SHAPE}Both streams take {LOAD / 2:.0%} of the CPU. {VISITS} {SAID}",
    points=_points("join"),
    measure=memory,
    plots=queues("window-join", "Window join", bounds=False),
    claims=(_worse("greedy", "greedy", "Greedy"), _worse("fifo", "fifo", "FIFO")),
)

SEVERAL = Experiment(
    name="multiple-queries",
    title="Three queries over four streams",
    setup=f"Three queries. The first: {SHAPE}The others are those with two operators, {CHARTS['two']}, and with four, "
    f"{CHARTS['four']}, each on a stream of its own. Each of the four streams takes {LOAD / 4:.1%} of the CPU. "
    f"{VISITS} {SAID}",
    points=_points("several"),
    measure=memory,
    plots=queues("multiple-queries", "Multiple queries", bounds=False),
    claims=(
        Claim(
            "chain-beats-all",
            "Chain beats all others by a wide margin.",
            "no number",
            least(best_of_others(), bounds=False),
            words.FAR,
            words.FAR_DIRECTION,
            reading=f"The best of the others, by Chain. {MEANT['far']} {VISITS}",
            because=HELD_UP + " Round-robin with long visits is the best of the others.",
            others={
                ASKED: least(best_of_others(), bounds=True),
                "round-robin with visits of one tuple": least(
                    lambda measured, at: min(
                        over(policy, "chain")(measured, at) for policy in ("fifo", BY_TUPLE, "greedy")
                    ),
                    bounds=False,
                ),
            },
        ),
    ),
)
