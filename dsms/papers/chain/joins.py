"""The experiments over several streams: a window join alone, and together with two queries over single streams."""

from __future__ import annotations

from collections.abc import Callable

from dsms.papers.chain import thresholds as words
from dsms.papers.chain.data import ARRIVALS_TEXT, data_sets
from dsms.papers.chain.plots import queues
from dsms.papers.chain.queries import AFTER, BEFORE, CHARTS, JOIN, LAST, LOAD
from dsms.papers.chain.runs import BY_TUPLE, POLICIES, VISITS, memory, sweep
from dsms.papers.chain.thresholds import MEANT, best_of_others, least, over
from dsms.papers.claim import Claim
from dsms.papers.experiment import Experiment, Point, Scale

TUPLES, QUICK = 120_000, 8_000  # run length: the tuples of R that the CPU can process in it

SHAPE = (
    f"R passes a selection of selectivity {BEFORE[1]:g} and is joined with S in tuple-based windows, in the order of "
    f"timestamps: the join waits while one of its inputs is empty. Its output passes a selection of {AFTER[1]:g} and "
    f"one of {LAST[1]:g}. The join is abstract: it yields {JOIN[1]:g} tuple for each input tuple. Costs are "
    f"{BEFORE[0]:g}, {JOIN[0]:g}, {AFTER[0]:g} and {LAST[0]:g}. The paper's numbers are lost; these are chosen. "
)


def _points(query: str) -> Callable[[Scale], list[Point]]:
    def points(scale: Scale) -> list[Point]:
        return [
            each
            for seed in scale.numbers()
            for data in data_sets(scale)
            for bounds, policies in ((False, (*POLICIES, BY_TUPLE)), (True, POLICIES))
            for each in sweep(
                {"seed": seed, "query": query, "tuples": scale.of(TUPLES, QUICK), "bounds": bounds, **data}, policies
            )
        ]

    return points


BOUNDS = "the join knows a lower bound of an empty input's next timestamp"
WAITING = (
    "While one input of the join is empty, tuples of the other wait for it under every policy, which blurs the "
    "difference."
)


def _much_worse(name: str, policy: str, label: str) -> Claim:
    return Claim(
        f"{name}-much-worse",
        f"{label} is much worse than Chain.",
        "no number",
        least(over(policy, "chain"), bounds=False),
        words.FAR,
        words.FAR_DIRECTION,
        reading=MEANT["far"],
        because=WAITING,
        others={
            BOUNDS: least(over(policy, "chain"), bounds=True),
            "by the peak": least(over(policy, "chain", "max"), bounds=False),
        },
    )


JOINED = Experiment(
    name="window-join",
    title="A window join of two streams",
    setup=f"{SHAPE}Both streams take {LOAD / 2:.0%} of the CPU. {VISITS} {ARRIVALS_TEXT}",
    points=_points("join"),
    measure=memory,
    plots=queues("window-join", "Window join", bounds=False),
    claims=(_much_worse("greedy", "greedy", "Greedy"), _much_worse("fifo", "fifo", "FIFO")),
)

SEVERAL = Experiment(
    name="multiple-queries",
    title="Three queries over four streams",
    setup=f"Three queries. The first: {SHAPE}The others are those with two operators, {CHARTS['two']}, and with four, "
    f"{CHARTS['four']}, each on a stream of its own. Each of the four streams takes {LOAD / 4:.1%} of the CPU. "
    f"{VISITS} {ARRIVALS_TEXT}",
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
            reading=f"Ours: the memory of the best other policy over Chain's. {MEANT['far']} {VISITS}",
            because=WAITING + " Round-robin with long visits is the best of the others.",
            others={
                BOUNDS: least(best_of_others(), bounds=True),
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
