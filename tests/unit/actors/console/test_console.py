"""The console without a browser: polls, history, texts, the token, and which changes it allows."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.live.fake_deployment import FakeDeployment, domain, status_of

from actors.console.controls import (
    WEIGHTED_METRICS,
    Controls,
    list_policies,
    parameter_names,
    policy_text,
    qos_text,
    qos_weights,
)
from actors.console.facts import decisions, describe_outage, facts
from actors.console.guard import FIRST_DELAY_S, MAX_DELAY_S, Guard
from actors.console.history import History, sample
from actors.console.poller import PageState, Poller
from actors.console.source import DECISIONS_SHOWN, DeploymentSource, Observation
from actors.control.client import ControlClient
from actors.deployment.actor_handles import wait_until
from dsms.config.qos import DEFAULT, Qos
from dsms.errors import DsmsError, FailedError
from dsms.live.monitor.status import DomainStatus
from dsms.net.tokens import CONTROL, Permission, Tokens


class Asked(ControlClient):
    """A client that calls a plain object, until it is broken."""

    def __init__(self, deployment):
        super().__init__("dsms", deployment)
        self.deployment, self.broken = deployment, None

    def ask(self, verb, *arguments, timeout=None, **named):
        if self.broken:
            raise self.broken
        return getattr(self.deployment, verb)(*arguments, **named)


def test_a_poll_asks_for_the_status_and_the_last_decisions():
    deployment = FakeDeployment()
    look = DeploymentSource(lambda: Asked(deployment)).poll()
    assert look.status.name == "dsms"
    assert len(look.decisions) == DECISIONS_SHOWN
    assert deployment.asked == [("why", DECISIONS_SHOWN, None)]


def test_a_deployment_that_does_not_answer_is_looked_up_again():
    systems = [Asked(FakeDeployment(name="first")), Asked(FakeDeployment(name="second"))]
    waiting = iter(systems)
    source = DeploymentSource(lambda: next(waiting))
    assert [source.poll().status.name for _ in range(3)] == ["first"] * 3
    systems[0].broken = FailedError("it has ended")
    with pytest.raises(FailedError):
        source.poll()
    assert source.poll().status.name == "second"


def test_a_refused_call_does_not_look_up_the_deployment_again():
    system, found = Asked(FakeDeployment()), []
    source = DeploymentSource(lambda: found.append(1) or system)
    source.poll()
    system.broken = DsmsError("no query 'x'")
    with pytest.raises(DsmsError):
        source.ask("weigh", "x", 1.0)
    system.broken = None
    source.poll()
    assert found == [1]


def looking(*statuses):
    """A poller that gets these statuses in turn; errors are raised."""
    waiting = iter(statuses)

    def look():
        seen = next(waiting)
        if isinstance(seen, BaseException):
            raise seen
        return Observation(seen, [])

    return Poller(look)


def test_every_poll_adds_a_sample_of_each_domain():
    poller = looking(*(status_of(domain("a", now=t), domain("b", now=t, held=t)) for t in (1.0, 2.0, 3.0)))
    for _ in range(3):
        poller.once()
    assert [one.at for one in poller.view.history["a"]] == [1.0, 2.0, 3.0]
    assert [one.held for one in poller.view.history["b"]] == [1.0, 2.0, 3.0]
    assert poller.view.number == 3


def test_a_failed_poll_says_why_and_keeps_the_last_status():
    poller = looking(status_of(domain(now=1.0)), FailedError("it has ended"), status_of(domain(now=5.0)))
    poller.once()
    before = poller.view
    poller.once()
    assert poller.view.error == "it has ended"
    assert poller.view.status is before.status
    assert poller.view.number == 2
    poller.once()
    assert poller.view.error is None
    assert [one.at for one in poller.view.history["0"]] == [1.0, 5.0]


def test_polling_continues_after_rays_system_exit():
    poller = looking(SystemExit(0), status_of(domain(now=1.0)))
    poller.once()
    assert poller.view.error == "0"
    poller.once()
    assert poller.view.error is None


def test_another_deployment_of_the_same_name_starts_a_new_history():
    poller = looking(status_of(domain(now=1.0)), replace(status_of(domain(now=9.0)), since=2e9))
    poller.once()
    poller.once()
    assert [one.at for one in poller.view.history["0"]] == [9.0]


def test_a_poller_polls_until_it_is_stopped():
    poller = Poller(lambda: Observation(status_of(domain()), []), every=0.001)
    poller.start()
    assert wait_until(lambda: poller.view.number > 3, 10.0)
    poller.stop()
    seen = poller.view.number
    time.sleep(0.05)
    assert poller.view.number == seen


@given(st.lists(st.floats(0, 100), max_size=40), st.integers(1, 10))
def test_a_history_keeps_the_last_samples_in_the_order_of_time(instants, kept):
    history = History(kept)
    for now in instants:
        history.add(domain(now=now))
    times = [one.at for one in history.samples()]
    assert len(times) <= kept
    assert times == sorted(set(times))
    assert times[-1:] == instants[-1:]


def test_a_sample_is_fresh_where_a_query_is_not_stale():
    found = sample(200.0, domain(bound=900.0))
    assert (found.held, found.bound, found.p50, found.p99) == (1500, 900.0, 0.0015, 0.02)
    assert (found.fresh, found.least_fresh) == (0.75, 0.9)


def test_a_silent_domain_adds_no_sample():
    history = History()
    history.add(DomainStatus.silent("0", "no answer"))
    assert history.samples() == ()


def test_the_header_shows_a_domains_figures():
    one = domain(state="paused")
    assert [fact.text for fact in facts(status_of(one), one)] == [
        "paused", "chain", "3 min 20 s", "71.0%", "1,500", "1.5 ms", "20 ms", "25.0%",
    ]  # fmt: skip
    assert facts(status_of(one), one)[0].colour == "text-warning"


def test_a_decision_is_said_with_its_reason_and_what_speaks_for_the_chosen():
    [found] = decisions(FakeDeployment().why(1))
    assert found["chosen"] == "o1"
    assert found["by"] == "chain"
    assert "the envelope turns" in found["reason"]


def test_an_outage_is_shown_with_its_reason_and_duration():
    assert describe_outage(PageState(), 0.0) == "Connecting …"
    assert describe_outage(PageState(status=status_of(domain()), heard=5.0), 6.0) is None
    said = describe_outage(PageState(status=status_of(domain()), error="it has ended", heard=5.0), 30.0)
    assert said == "The deployment does not answer: it has ended. Last answer 25 s ago. Reconnecting …"


def admitted(guard, *shown):
    async def each():
        return [await guard.authenticate(one) for one in shown]

    return asyncio.run(each())


def slowed():
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    return waits, sleep


def test_only_the_token_is_admitted_and_each_wrong_one_takes_longer():
    waits, sleep = slowed()
    tried = ("", "guess", "Secret", "secret2", "secret1", " ", "secret", "guess", "secret\n")
    found = admitted(Guard(Tokens.of(control="secret"), sleep), *tried)
    assert found == [None] * 6 + [Permission(CONTROL), None, Permission(CONTROL)]
    assert waits == [FIRST_DELAY_S, 1.0, 2.0, MAX_DELAY_S, MAX_DELAY_S, MAX_DELAY_S, FIRST_DELAY_S]


def test_attempts_at_the_same_time_are_looked_at_one_by_one():
    waits, inside, most = [], [], []

    async def sleep(seconds):
        waits.append(seconds)
        inside.append(1)
        most.append(len(inside))
        await asyncio.sleep(0)
        inside.pop()

    async def all_at_once():
        guard = Guard(Tokens.of(control="secret"), sleep)
        return await asyncio.gather(*(guard.authenticate("guess") for _ in range(4)))

    assert asyncio.run(all_at_once()) == [None] * 4
    assert max(most) == 1
    assert waits == sorted(waits)


def test_without_a_token_file_no_token_is_accepted():
    guard = Guard(None)
    assert guard.is_read_only
    assert admitted(guard, "", "None", "secret") == [None] * 3


def controls(token="secret", shown="secret"):
    deployment = FakeDeployment()
    _, sleep = slowed()
    made = Controls(Asked(deployment).ask, Guard(None if token is None else Tokens.of(control=token), sleep))
    asyncio.run(made.unlock(shown))
    return deployment, made


CHANGES = [
    lambda c: c.swap("chain", "", "", None),
    lambda c: c.require({"memory": 1.0}, None),
    lambda c: c.weigh("high0", 2.0),
    lambda c: c.pause(None),
    lambda c: c.resume(None),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("token", "shown"), [("secret", "guess"), ("secret", ""), (None, "secret"), (None, "")])
def test_without_the_token_nothing_can_be_changed(change, token, shown):
    deployment, made = controls(token, shown)
    with pytest.raises(DsmsError, match="read-only"):
        change(made)
    assert deployment.asked == []


def test_with_the_token_changes_are_asked_for():
    deployment, made = controls()
    assert made.swap("rr", "tuples=30", "a burst", "0") == "chain → rr:tuples=30 in 12.3 ms"
    assert made.require({"memory": 2.0, "delay": 2.0, "rate": None}, None) == "QoS: memory=0.5,delay=0.5"
    assert made.weigh("high0", 3) == "weight of high0: 3"
    made.pause("0")
    made.resume("0")
    assert deployment.asked == [
        ("swap", "rr:tuples=30", "a burst", "0"),
        ("require", "memory=0.5,delay=0.5", None),
        ("weigh", "high0", 3.0),
        ("pause", "0"),
        ("resume", "0"),
    ]


def test_a_wrong_token_after_the_right_one_locks_again():
    _, made = controls()
    asyncio.run(made.unlock("guess"))
    with pytest.raises(DsmsError, match="read-only"):
        made.pause(None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.swap("fifo", "tuples=3", "", None), "no parameter 'tuples'"),
        (lambda c: c.swap("fifoo", "", "", None), "no policy 'fifoo'"),
        (lambda c: c.require({}, None), "at least one above 0"),
        (lambda c: c.require({"memory": 2.0, "delay": -1.0}, None), "numbers from 0"),
        (lambda c: c.weigh(None, 1.0), "a query and a positive number"),
        (lambda c: c.weigh("high0", 0.0), "a query and a positive number"),
    ],
)
def test_invalid_changes_are_refused_before_the_deployment_is_called(change, said):
    deployment, made = controls()
    with pytest.raises(DsmsError, match=said):
        change(made)
    assert deployment.asked == []


@given(
    st.dictionaries(st.sampled_from(["memory", "delay", "rate", "freshness", "age"]), st.floats(0.01, 1e6), min_size=1)
)
def test_weights_in_any_proportion_become_ones_that_add_up_to_one(weights):
    wanted = Qos.parse(qos_text(weights))
    total = sum(weights.values())
    for name, weight in weights.items():
        assert wanted.weight_of(name) == pytest.approx(weight / total)


def test_the_weights_in_force_are_found_in_a_status():
    assert {name: w for name, w in qos_weights("memory=0.7,delay=0.3").items() if w} == {"memory": 0.7, "delay": 0.3}
    assert not any(qos_weights(None).values())
    equal = qos_text(dict.fromkeys(WEIGHTED_METRICS, 1.0))
    for qos in (DEFAULT, Qos.parse(equal)):  # a status rounds what does not end
        assert sum(qos_weights(str(qos)).values()) == pytest.approx(1, abs=1e-5)


def test_policies_are_offered_that_a_running_system_can_have():
    assert {"fifo", "chain", "adaptive"} <= set(list_policies())
    assert not {"mss", "tuple-greedy"} & set(list_policies())
    assert "tuples" in parameter_names("rr")
    assert policy_text("rr", " :tuples=30 ") == "rr:tuples=30"
