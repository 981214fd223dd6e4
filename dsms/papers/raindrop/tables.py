"""Tables 1.1 and 1.2: queue sizes and throughput of FIFO and MTIQ at each time unit; and the workload rule."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.runners.runner import Step
from dsms.papers.claim import Claim, band_above, band_near, band_up_to
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale
from dsms.papers.measurements import Measurements
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment
from dsms.policies.registry import policy_named
from dsms.query.plan_file import plan_from
from dsms.simulation import simulate

OPERATORS = (("o1", 1.0, 0.9), ("o2", 0.25, 0.1), ("o3", 0.75, 1.0))  # name, time, selectivity
LABELS = {"fifo": "FIFO", "mtiq": "MTIQ"}
QUEUED = {"fifo": (1.0, 1.9, 2.0, 2.9, 3.0, 3.9), "mtiq": (1.0, 1.9, 2.8, 1.9, 1.9, 1.9)}
OUT = {"fifo": (0.0, 0.0, 0.09, 0.09, 0.18, 0.18), "mtiq": (0.0,) * 6}
SHOWN_INSTANTS = 6  # instants in the tables
TAKEN = {50: 50, 200: 60, 166: 166, 167: 50}  # tuples queued: tuples that a run takes; RATIO 0.3, THRESHOLD 50


def points(scale: Scale) -> list[dict[str, Any]]:
    """FIFO and MTIQ by the printed rules and at twice the rate; MTIQ with O1's queue capped, and with whole queues."""
    units = scale.of(3000, 600)
    cases = [("fifo", "plain"), ("mtiq", "plain"), ("mtiq", "capped"), ("mtiq", "whole queues"),
             ("fifo", "twice"), ("mtiq", "twice")]  # fmt: skip
    return [
        {"policy": policy, "case": case, "units": units, "seed": seed}
        for seed in scale.numbers()
        for policy, case in cases
    ]


def measure(point: Point) -> dict[str, Any]:
    """Queue sizes and throughput at each unit, the times of results, and how often operators ran."""
    case, units = point["case"], point["units"]
    if case == "capped":
        return _outputs(_run_capped(units), units)
    arrivals = {"kind": "constant", "every": 0.5 if case == "twice" else 1.0}
    observer = TableObserver()
    plan = _plan(arrivals, take=None if case == "whole queues" else 1)
    run = simulate(plan, point["policy"], until=units, cut=True, sample=1.0, observers=[observer])
    return {"queued": [held for _, held in run.memory.samples[:SHOWN_INSTANTS]], **_outputs(observer, units)}


def _plan(arrivals: Mapping[str, Any], take: int | None) -> Plan:
    """Three operators in a row: a run always takes its full time, and a tuple in service does not count as queued."""
    rows = [{"name": name, "startup": time, "selectivity": s, **({"take": take} if take else {})}
            for name, time, s in OPERATORS]  # fmt: skip
    return plan_from({
        "streams": {"s": {"arrivals": arrivals}},
        "queries": {"q": {"from": "s", "operators": rows}},
        "run": {"tuples": "fractional", "in_service": False},
    })  # fmt: skip


def _run_capped(units: int) -> TableObserver:
    """Run MTIQ with an arrival every unit, which is dropped while a whole tuple waits before O1."""
    observer = TableObserver()
    engine = Engine(_plan({"kind": "push"}, take=1), policy_named("mtiq"), observers=[observer])
    due = 0
    while engine.clock.now() < units:
        while due <= engine.clock.now():
            if engine.ledger.queues[0].count < 1:
                engine.push("s", 1)
            due += 1
        if not engine.step():
            engine.clock.wait_until(due)
    return observer


class TableObserver(Observer):
    """Records when results left and how much, how often each operator ran, and the queues at the end."""

    trusted = True

    def __init__(self) -> None:
        self.left: list[tuple[float, float]] = []
        self.runs = dict.fromkeys((name for name, _, _ in OPERATORS), 0)

    def attach(self, engine: Engine) -> None:
        self._queues = engine.ledger.queues

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        for queue, _, made, cost, *_ in steps:
            start += cost
            self.runs[queue.station.name] += 1
            if queue.station.sink and made:
                self.left.append((start, made))

    def waiting(self) -> tuple[float, ...]:
        """The tuples in each queue now."""
        return tuple(queue.count for queue in self._queues)


def _outputs(observer: TableObserver, units: int) -> dict[str, Any]:
    left = [(at, made) for at, made in observer.left if at <= units]
    instants = [at for at, _ in left]
    gaps = [after - before for before, after in itertools.pairwise(instants)]
    return {
        "out": [sum(made for at, made in left if at <= t) for t in range(SHOWN_INSTANTS)],
        "first": instants[0] if instants else None,
        "gap": gaps[0] if gaps else None,
        "rate": sum(made for _, made in left) / units,
        # Per time since the first result, so that the wait for it does not count.
        "pace": sum(made for _, made in left[1:]) / sum(gaps) if gaps else 0.0,
        "others ran": observer.runs["o2"] + observer.runs["o3"],
        "q1 grows": observer.waiting()[0] / units,
        "q2 grows": observer.waiting()[1] / units,
    }


def _difference(figure: str, policy: str, printed: Sequence[float]) -> Callable[[Measurements], float]:
    """The greatest difference from the printed table."""

    def difference(measured: Measurements) -> float:
        ours = measured.series(figure, policy=policy, case="plain")
        return max(abs(mine - theirs) for mine, theirs in zip(ours, printed, strict=True))

    return difference


def _of(figure: str, policy: str, case: str) -> Callable[[Measurements], float]:
    return lambda measured: measured.value(figure, policy=policy, case=case)


def _second_wait(case: str) -> Callable[[Measurements], float]:
    """MTIQ's wait for its second result over that for its first."""

    def ratio(measured: Measurements) -> float:
        runs = measured.where(policy="mtiq", case=case)
        return runs.value("gap") / runs.value("first")

    return ratio


def _mtiq(figure: Callable[[str], Callable[[Measurements], float]]) -> dict[str, Callable[[Measurements], float]]:
    return {
        "O1's queue silently capped at one tuple": figure("capped"),
        "a run takes the whole queue in the time of one tuple": figure("whole queues"),
    }


def _table(figure: str) -> Callable[[Measurements], list[PlotLine]]:
    def lines(measured: Measurements) -> list[PlotLine]:
        units = list(map(float, range(SHOWN_INSTANTS)))
        return [
            PlotLine(label, units, measured.series(figure, policy=policy, case="plain"), steps=True)
            for policy, label in LABELS.items()
        ]

    return lines


NEVER = (
    "By its own rules MTIQ never lets O3 run: O1 alone needs all of the CPU, so the queues before O1 and O2 grow "
    "faster than the one before O3, which is never the fullest."
)

TABLES = Experiment(
    name="tables",
    title="Tables 1.1 and 1.2: FIFO and MTIQ unit by unit",
    setup=(
        "Three operators with times 1, 0.25, 0.75 and selectivities 0.9, 0.1, 1 (the third time follows from FIFO's "
        "cycle of two units). A tuple arrives every unit, or two. A run handles at most one tuple and always takes its "
        "full time; the tuple in service does not count as queued."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot("table-1.1", "Tuples in queues", "time (units)", "tuples", _table("queued")),
        Plot("table-1.2", "Throughput", "time (units)", "tuples put out", _table("out")),
    ),
    claims=(
        *(
            Claim(f"queues of {label}", f"Queue sizes of {label} at 0 to 5.",
                  ", ".join(map(str, QUEUED[policy])), _difference("queued", policy, QUEUED[policy]), band_up_to(1e-9),
                  reading="Ours is the greatest difference from the table.")
            for policy, label in LABELS.items()
        ),
        *(
            Claim(f"throughput of {label}", f"Tuples that {label} has put out at 0 to 5.",
                  ", ".join(f"{out:g}" for out in OUT[policy]), _difference("out", policy, OUT[policy]),
                  band_up_to(1e-9), reading="Ours is the greatest difference from the table.")
            for policy, label in LABELS.items()
        ),
        Claim("rate of FIFO", "FIFO puts out 0.09 of a tuple every two units.", "0.045 a unit",
              _of("rate", "fifo", "plain"), band_near(0.045, 5e-4)),
        Claim("first output of MTIQ", "MTIQ's first output appears after about 14 units.", "about 14",
              _of("first", "mtiq", "plain"), band_near(14.0, 1.5), because=NEVER,
              others=_mtiq(lambda case: _of("first", "mtiq", case))),
        Claim("next output of MTIQ", "MTIQ's second output takes slightly less time than the first.", "below 1",
              _second_wait("plain"), (0.8, 0.9999), reading="Ours is the wait for the second over that for the first.",
              because=NEVER, others=_mtiq(_second_wait)),
        Claim("rate of MTIQ", "MTIQ puts out 0.07 tuples a unit, more than FIFO.", "0.07 a unit",
              _of("pace", "mtiq", "plain"), band_near(0.07, 0.001), because=NEVER,
              others=_mtiq(lambda case: _of("pace", "mtiq", case))),
        Claim("MTIQ at twice the rate", "With two tuples a unit MTIQ runs O1 only, for ever.", "no run of O2 or O3",
              _of("others ran", "mtiq", "twice"), band_up_to(0.0)),
        *(
            Claim(f"queue of {name} at twice the rate", f"Then {name}'s queue grows by {grows:g} a unit.", f"{grows:g}",
                  _of(f"q{name[1]} grows", "mtiq", "twice"), band_near(grows, 0.01))
            for name, grows in (("O1", 1.0), ("O2", 0.9))
        ),
        Claim("FIFO at twice the rate", "FIFO puts out as much as before.", "0.045 a unit",
              _of("rate", "fifo", "twice"), band_near(0.045, 5e-4)),
        Claim("queue of FIFO at twice the rate", "But its queue grows faster than before.", "faster",
              lambda m: _of("q1 grows", "fifo", "twice")(m) / _of("q1 grows", "fifo", "plain")(m), band_above(1.0),
              reading="Ours is the growth over that with one tuple a unit."),
    ),
)  # fmt: skip


def _sizes(scale: Scale) -> list[dict[str, Any]]:
    return [{"queued": queued, "seed": seed} for seed in scale.numbers() for queued in TAKEN]


def measure_first_run(point: Point) -> dict[str, Any]:
    """How many of the queued tuples the first run takes."""
    plan = plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0] * point["queued"]}}},
        "queries": {"q": {"from": "s", "operators": [{"name": "o", "cost": 1.0}]}},
    })  # fmt: skip
    runs: list[int] = []

    class Runs(Observer):
        trusted = True

        def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
            runs.append(int(sum(step.taken for step in steps)))

    simulate(plan, "mtiq:ratio=0.3,threshold=50", observers=[Runs()])
    return {"taken": runs[0], "runs": len(runs)}


def _rule_difference(measured: Measurements) -> float:
    """The greatest difference of the tuples taken from the workload rule."""
    if set(measured.values("queued")) != set(TAKEN):
        return math.nan
    return max(abs(measured.value("taken", queued=queued) - expected) for queued, expected in TAKEN.items())


WORKLOAD = Experiment(
    name="workload-rule",
    title="How many queued tuples a run takes",
    setup="50 to 200 tuples wait when an operator runs; RATIO 0.3, THRESHOLD 50. A share is rounded down (chosen).",
    points=_sizes,
    measure=measure_first_run,
    plots=(
        Plot("workload", "The workload rule", "tuples queued", "tuples taken",
             lambda m: [PlotLine("taken", *m.line("taken", "queued"))]),
    ),
    claims=(
        Claim("workload", "A run takes 30 % of the queue if that is more than 50 tuples, else all of it.",
              ", ".join(f"{n}: {k}" for n, k in TAKEN.items()), _rule_difference, band_up_to(0.0),
              reading="Ours is the greatest difference."),
    ),
)  # fmt: skip
