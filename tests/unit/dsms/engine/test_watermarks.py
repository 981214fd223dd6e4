"""Time on streams: by arrival or by a column, told where they are silent; a window that closes is a reason to run."""

from __future__ import annotations

import pytest

from dsms import Batch, Engine, VirtualClock, plan_from, policy_named
from dsms.errors import DsmsError, PlanError

SECOND = 1_000_000
BY_ARRIVAL = {"schema": {"k": "int64"}}
BY_COLUMN = {"schema": {"k": "int64", "at": "int64"}, "timestamp": "at"}


class SteppedEngine:
    """An engine on a clock that goes only when told to, and what its query has put out since it was last asked."""

    def __init__(self, cql, policy="fifo", **streams):
        plan = plan_from({"streams": streams, "queries": {"q": {"cql": cql}}})
        self.clock, self._out = VirtualClock(), []
        self.dead_letters = []
        self.engine = Engine(
            plan,
            policy_named(policy),
            clock=self.clock,
            sink=lambda _, batch: self._out.append(batch),
            aside=lambda where, aside: self.dead_letters.append((where, aside.kind, aside.batch.records())),
        )

    def push(self, stream, **columns):
        self.engine.push(stream, Batch.of(columns))
        return self.out()

    def at(self, instant):
        self.clock.wait_until(instant)
        return self.out()

    def out(self):
        self.engine.run()
        rows = [
            (sign, *record.values())
            for batch in self._out
            for sign, record in zip(batch.each("sign").tolist(), batch.records(), strict=True)
        ]
        self._out.clear()
        return rows


def test_a_window_that_closes_is_a_reason_to_run():
    live = SteppedEngine("SELECT k FROM s [RANGE 2 SECONDS]", s=BY_ARRIVAL)
    assert live.push("s", k=[7]) == [(1, 7)]
    assert live.at(1.9) == []
    assert live.at(2.1) == [(-1, 7)]
    assert live.at(9) == []


def test_a_deadline_that_is_noticed_late_is_entered_when_it_is_noticed_and_counts_from_when_it_was():
    live = SteppedEngine("SELECT k FROM s [RANGE 2 SECONDS]", s=BY_ARRIVAL)
    live.push("s", k=[7])
    live.clock.wait_until(4)
    live.engine.push("s", Batch.of({"k": [8]}))
    live.clock.wait_until(5)
    assert live.out() == [(-1, 7), (1, 8)]
    instants = live.engine.journal.instants
    assert instants == sorted(instants)


def test_a_tumbling_count_comes_out_when_its_second_is_over_without_another_row():
    live = SteppedEngine("SELECT RSTREAM(count(*) AS n) FROM s [RANGE 1 SECOND SLIDE 1 SECOND]", s=BY_ARRIVAL)
    live.at(0.2)
    live.push("s", k=[1, 2])
    live.at(0.5)
    assert live.push("s", k=[3]) == []
    assert live.at(1.001) == [(1, 3)]
    assert live.at(2.001) == [(1, 0)]
    assert live.at(3.001) == []


def test_the_next_deadline_is_waited_for_before_the_next_arrival():
    plan = plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0.0, 10.0]}}, "t": BY_ARRIVAL},
        "queries": {
            "q": {"cql": "SELECT k FROM t [RANGE 2 SECONDS]"},
            "other": {"from": "s", "operators": [{"name": "o", "function": lambda batch: batch}]},
        },
    })  # fmt: skip
    left = []
    engine = Engine(
        plan,
        policy_named("fifo"),
        clock=(clock := VirtualClock()),
        sink=lambda query, batch: left.append((query, int(batch.first("sign")), round(clock.now()))),
    )
    engine.push("t", Batch.of({"k": [1]}))
    engine.run()
    assert left == [("q", 1, 0), ("other", 1, 0), ("q", -1, 2), ("other", 1, 10)]


def test_a_silent_stream_by_arrival_holds_nobody_up():
    live = SteppedEngine(
        "SELECT a.k FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k", a=BY_ARRIVAL, b=BY_ARRIVAL
    )
    assert live.push("a", k=[1, 2]) == []
    live.at(1)
    assert live.push("b", k=[2, 3]) == [(1, 2)]
    live.at(2)
    assert live.push("a", k=[3]) == [(1, 3)]
    assert live.push("a", k=[3]) == [(1, 3)]


def test_a_silent_stream_with_timestamps_of_its_own_is_waited_for_until_it_is_told_how_far_it_has_come():
    live = SteppedEngine("SELECT k FROM a UNION ALL SELECT k FROM b", a=BY_COLUMN, b=BY_COLUMN)
    assert live.push("a", k=[1, 2], at=[10, 20]) == []
    assert live.push("b", k=[3], at=[15]) == [(1, 1)]
    live.engine.advance("b", 21)
    assert live.out() == [(1, 3)]
    live.engine.advance("a", 21)
    assert live.out() == [(1, 2)]


def test_at_the_end_nobody_waits_and_time_stops_at_the_last_row():
    live = SteppedEngine("SELECT k FROM a [RANGE 5 MICROSECONDS] UNION ALL SELECT k FROM b", a=BY_COLUMN, b=BY_COLUMN)
    live.push("a", k=[1, 2], at=[10, 20])
    assert live.push("b", k=[3], at=[24]) == [(1, 1), (-1, 1)]
    live.engine.end()
    assert live.out() == [(1, 2), (1, 3)]
    with pytest.raises(DsmsError, match=r"push into 'a' after `end\(\)`"):
        live.push("a", k=[1], at=[30])


def test_rows_too_late_are_told_and_counted():
    live = SteppedEngine("SELECT k FROM s", s={**BY_COLUMN, "late": "10us"})
    assert live.push("s", k=[1, 2, 3], at=[100, 95, 80]) == []
    assert live.dead_letters == [("q.arrange", "late", [{"k": 3, "at": 80}])]
    assert live.engine.runner.rejected_rows == {("q.arrange", "late"): 1}
    live.engine.end()
    assert live.out() == [(1, 2), (1, 1)]


@pytest.mark.parametrize(("columns", "message"), [
    ({"k": [1]}, "push into 's': no column 'at'"),
    ({"k": ["x"], "at": [1]}, "push into 's': column 'k' is <U1: expected int64"),
    ({"k": [1.5], "at": [1]}, "push into 's': column 'k' is float64: expected int64"),
    ({"k": [[1, 2]], "at": [1]}, "column 'k' has 2 dimensions: expected 1"),
    ({"k": [1], "at": [1], "k?": [0]}, r"column 'k\?' is int64: expected bool"),
    ({"k": [1], "at": [1], "kk": [1]}, r"push into 's': no column 'kk' is declared \(did you mean 'k'\?\)"),
])  # fmt: skip
def test_rows_that_do_not_fit_the_schema_are_refused_and_nothing_is_taken_in(columns, message):
    live = SteppedEngine("SELECT k FROM s", s=BY_COLUMN)
    with pytest.raises(DsmsError, match=message):
        live.push("s", **columns)
    assert live.engine.admitted == 0
    assert live.push("s", k=[1], at=[1]) == [(1, 1)]


def test_numbers_of_abstract_tuples_are_not_pushed_into_a_stream_of_rows():
    live = SteppedEngine("SELECT k FROM s", s=BY_COLUMN)
    with pytest.raises(DsmsError, match="the stream has a schema; expected a Batch of rows"):
        live.engine.push("s", 3)
    with pytest.raises(DsmsError, match="'x': expected a timestamp in whole microseconds"):
        live.engine.advance("s", "x")


def test_a_stream_that_does_not_exist_cannot_be_advanced():
    live = SteppedEngine("SELECT k FROM s", s=BY_COLUMN)
    with pytest.raises(PlanError, match="no stream 'r'"):
        live.engine.advance("r", 1)


@pytest.mark.parametrize("policy", ["fifo", "chain", "greedy", "rr", "fas-mcq", "mtiq"])
def test_time_gets_through_under_every_kind_of_policy(policy):
    live = SteppedEngine("SELECT k, count(*) AS n FROM s [RANGE 1 SECOND] WHERE k > 0 GROUP BY k", policy, s=BY_ARRIVAL)
    assert live.push("s", k=[1, 0, 1]) == [(1, 1, 2)]
    assert live.at(1.5) == [(-1, 1, 2)]
