"""Tables 1.1 and 1.2: three operators unit by unit, the output rates claimed for them, and the workload rule."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dsms.engine import Engine
from dsms.observers import Observer
from dsms.papers.claim import Claim, above, at_most, near
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale
from dsms.papers.measured import Measured
from dsms.plan import Plan
from dsms.planfile import plan_from
from dsms.policies.registry import policy_named
from dsms.runners.base import Step
from dsms.segment import Segment
from dsms.simulate import simulate

OPERATORS = (("o1", 1.0, 0.9), ("o2", 0.25, 0.1), ("o3", 0.75, 1.0))
LABELS = {"fifo": "FIFO", "mtiq": "MTIQ"}
QUEUED = {"fifo": (1.0, 1.9, 2.0, 2.9, 3.0, 3.9), "mtiq": (1.0, 1.9, 2.8, 1.9, 1.9, 1.9)}
OUT = {"fifo": (0.0, 0.0, 0.09, 0.09, 0.18, 0.18), "mtiq": (0.0,) * 6}
SHOWN = 6  # instants in the tables
TAKEN = {50: 50, 200: 60, 166: 166, 167: 50}  # by the workload rule, of so many queued: RATIO 0.3, THRESHOLD 50


def points(scale: Scale) -> list[dict[str, Any]]:
    """By the rules as they stand; with O1's queue held down; with runs that take all; at twice the rate."""
    units = scale.of(3000, 600)
    cases = [("fifo", "plain"), ("mtiq", "plain"), ("mtiq", "capped"), ("mtiq", "whole queues"),
             ("fifo", "twice"), ("mtiq", "twice")]  # fmt: skip
    return [
        {"policy": policy, "case": case, "units": units, "seed": seed}
        for seed in scale.numbers()
        for policy, case in cases
    ]


def measure(point: Point) -> dict[str, Any]:
    """Queue sizes and throughput at each unit, when results left, and who ran."""
    case, units = point["case"], point["units"]
    if case == "capped":
        return _outputs(_capped(units), units)
    arrivals = {"kind": "constant", "every": 0.5 if case == "twice" else 1.0}
    watch = Watch()
    plan = _plan(arrivals, take=None if case == "whole queues" else 1)
    run = simulate(plan, point["policy"], until=units, cut=True, sample=1.0, observers=[watch])
    return {"queued": [held for _, held in run.memory.samples[:SHOWN]], **_outputs(watch, units)}


def _plan(arrivals: Mapping[str, Any], take: int | None) -> Plan:
    """A run takes its full time whatever it handles, and a tuple in processing is not counted."""
    rows = [{"name": name, "startup": time, "selectivity": s, **({"take": take} if take else {})}
            for name, time, s in OPERATORS]  # fmt: skip
    return plan_from({
        "streams": {"s": {"arrivals": arrivals}},
        "queries": {"q": {"from": "s", "operators": rows}},
        "run": {"tuples": "fractional", "in_service": False},
    })  # fmt: skip


def _capped(units: int) -> Watch:
    """An arrival every unit, turned away while a whole tuple waits before O1."""
    watch = Watch()
    engine = Engine(_plan({"kind": "push"}, take=1), policy_named("mtiq"), observers=[watch])
    due = 0
    while engine.clock.now() < units:
        while due <= engine.clock.now():
            if engine.ledger.queues[0].count < 1:
                engine.push("s", 1)
            due += 1
        if not engine.step():
            engine.clock.wait_until(due)
    return watch


class Watch(Observer):
    """When results left and how much, how often each operator ran, and what waits before the first two at the end."""

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
        return tuple(queue.count for queue in self._queues)


def _outputs(watch: Watch, units: int) -> dict[str, Any]:
    left = [(at, made) for at, made in watch.left if at <= units]
    instants = [at for at, _ in left]
    gaps = [after - before for before, after in itertools.pairwise(instants)]
    return {
        "out": [sum(made for at, made in left if at <= t) for t in range(SHOWN)],
        "first": instants[0] if instants else None,
        "gap": gaps[0] if gaps else None,
        "rate": sum(made for _, made in left) / units,
        # By the time between results, so that the wait for the first does not count.
        "pace": sum(made for _, made in left[1:]) / sum(gaps) if gaps else 0.0,
        "others ran": watch.runs["o2"] + watch.runs["o3"],
        "q1 grows": watch.waiting()[0] / units,
        "q2 grows": watch.waiting()[1] / units,
    }


def _off(figure: str, policy: str, printed: Sequence[float]) -> Callable[[Measured], float]:
    """The greatest difference from what is printed."""

    def off(measured: Measured) -> float:
        found = measured.series(figure, policy=policy, case="plain")
        return max(abs(mine - theirs) for mine, theirs in zip(found, printed, strict=True))

    return off


def _of(figure: str, policy: str, case: str) -> Callable[[Measured], float]:
    return lambda measured: measured.value(figure, policy=policy, case=case)


def _sooner(case: str) -> Callable[[Measured], float]:
    def sooner(measured: Measured) -> float:
        mine = measured.where(policy="mtiq", case=case)
        return mine.value("gap") / mine.value("first")

    return sooner


def _mtiq(figure: Callable[[str], Callable[[Measured], float]]) -> dict[str, Callable[[Measured], float]]:
    return {
        "O1's queue silently held at one tuple": figure("capped"),
        "a run takes the whole queue for the time of one tuple": figure("whole queues"),
    }


def _table(figure: str) -> Callable[[Measured], list[Line]]:
    def lines(measured: Measured) -> list[Line]:
        units = list(map(float, range(SHOWN)))
        return [
            Line(label, units, measured.series(figure, policy=policy, case="plain"), steps=True)
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
        "Three operators of times 1, 0.25, 0.75 and selectivities 0.9, 0.1, 1 (the third time follows from FIFO's "
        "cycle of two units); a tuple every unit; a run takes at most one tuple and always its full time; the tuple "
        "being processed is not counted. Also with two tuples a unit."
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
                  ", ".join(map(str, QUEUED[policy])), _off("queued", policy, QUEUED[policy]), at_most(1e-9),
                  reading="Ours is the greatest difference from the table.")
            for policy, label in LABELS.items()
        ),
        *(
            Claim(f"throughput of {label}", f"What {label} has put out at 0 to 5.",
                  ", ".join(f"{out:g}" for out in OUT[policy]), _off("out", policy, OUT[policy]), at_most(1e-9),
                  reading="Ours is the greatest difference from the table.")
            for policy, label in LABELS.items()
        ),
        Claim("rate of FIFO", "FIFO puts out 0.09 of a tuple every two units.", "0.045 a unit",
              _of("rate", "fifo", "plain"), near(0.045, 5e-4)),
        Claim("first output of MTIQ", "MTIQ's first output comes after about 14 units.", "about 14",
              _of("first", "mtiq", "plain"), near(14.0, 1.5), because=NEVER,
              others=_mtiq(lambda case: _of("first", "mtiq", case))),
        Claim("next output of MTIQ", "MTIQ's next output comes slightly sooner than the first did.", "below 1",
              _sooner("plain"), (0.8, 0.9999), reading="Ours is the wait for the second by that for the first.",
              because=NEVER, others=_mtiq(_sooner)),
        Claim("rate of MTIQ", "MTIQ puts out 0.07 tuples a unit, more than FIFO.", "0.07 a unit",
              _of("pace", "mtiq", "plain"), near(0.07, 0.001), because=NEVER,
              others=_mtiq(lambda case: _of("pace", "mtiq", case))),
        Claim("MTIQ at twice the rate", "With two tuples a unit MTIQ runs O1 only, for ever.", "no run of O2 or O3",
              _of("others ran", "mtiq", "twice"), at_most(0.0)),
        *(
            Claim(f"queue of {name} at twice the rate", f"Then {name}'s queue grows by {grows:g} a unit.", f"{grows:g}",
                  _of(f"q{name[1]} grows", "mtiq", "twice"), near(grows, 0.01))
            for name, grows in (("O1", 1.0), ("O2", 0.9))
        ),
        Claim("FIFO at twice the rate", "FIFO puts out as much as before.", "0.045 a unit",
              _of("rate", "fifo", "twice"), near(0.045, 5e-4)),
        Claim("queue of FIFO at twice the rate", "But its queue grows faster than before.", "faster",
              lambda m: _of("q1 grows", "fifo", "twice")(m) / _of("q1 grows", "fifo", "plain")(m), above(1.0),
              reading="Ours is the growth by that with one tuple a unit."),
    ),
)  # fmt: skip


def _sizes(scale: Scale) -> list[dict[str, Any]]:
    return [{"queued": queued, "seed": seed} for seed in scale.numbers() for queued in TAKEN]


def taken(point: Point) -> dict[str, Any]:
    """How many of so many queued tuples the first run takes."""
    plan = plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0] * point["queued"]}}},
        "queries": {"q": {"from": "s", "operators": [{"name": "o", "cost": 1.0}]}},
    })  # fmt: skip
    runs: list[int] = []

    class Runs(Observer):
        trusted = True

        def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
            runs.append(int(sum(step[1] for step in steps)))

    simulate(plan, "mtiq:ratio=0.3,threshold=50", observers=[Runs()])
    return {"taken": runs[0], "runs": len(runs)}


def _rule(measured: Measured) -> float:
    if set(measured.values("queued")) != set(TAKEN):
        return math.nan
    return max(abs(measured.value("taken", queued=queued) - wanted) for queued, wanted in TAKEN.items())


WORKLOAD = Experiment(
    name="workload-rule",
    title="How many queued tuples a run takes",
    setup="So many tuples wait when an operator runs; RATIO 0.3, THRESHOLD 50. A share is rounded down (chosen).",
    points=_sizes,
    measure=taken,
    plots=(
        Plot("workload", "The workload rule", "tuples queued", "tuples taken",
             lambda m: [Line("taken", *m.line("taken", "queued"))]),
    ),
    claims=(
        Claim("workload", "A run takes 30 % of the queue if that is more than 50 tuples, else all of it.",
              ", ".join(f"{n}: {k}" for n, k in TAKEN.items()), _rule, at_most(0.0),
              reading="Ours is the greatest difference."),
    ),
)  # fmt: skip
