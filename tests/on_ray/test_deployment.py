"""A deployment calls its actors in the right order; on Ray it starts completely or leaves nothing behind."""

from __future__ import annotations

import socket

import pytest

from actors.cluster import cluster
from actors.control.deploy import up
from actors.control.deployment import Deployment
from actors.deployment.actor_handles import (
    DeploymentActors,
    DomainActors,
    list_actor_names,
    list_placement_groups,
    wait_until,
)
from actors.deployment.launch import DeploymentSpec
from actors.rpc.messages import get_result, send
from actors.transport.address import Address
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError
from dsms.live.monitor.status import DomainStatus, GatewayStatus
from dsms.live.query_placement import place_queries
from dsms.live.query_set import QuerySet

STREAM = {"schema": {"k": "int64"}}
TABLE = {
    "streams": {"a": STREAM, "b": STREAM},
    "queries": {
        "low": {"cql": "SELECT k FROM a WHERE k < 10"},
        "lower": {"cql": "SELECT k FROM low WHERE k < 5"},
        "high": {"cql": "SELECT k FROM b WHERE k > 10"},
    },
}


class FakeActor:
    """A fake actor: records calls, and refuses chosen ones."""

    def __init__(self, name, log):
        self._name, self._log = name, log
        self.refuses, self.answers = set(), {}

    def __getattr__(self, method):
        if method.startswith("_") or method == "remote":
            raise AttributeError(method)

        def call(*arguments):
            self._log.append((self._name, method, *arguments))
            if method in self.refuses:
                raise DsmsError(f"{self._name} refuses to {method}")
            return self.answers.get(method)

        return call

    def listen_address(self):
        return Address("elsewhere", self._name, b"")

    def addresses(self):
        return self.listen_address(), []


class FakeScheduler(FakeActor):
    """Knows which streams its queries read, like a domain."""

    def __init__(self, name, log, queries):
        super().__init__(name, log)
        self.query_set = QuerySet(TABLE, queries=queries)

    def routes(self):
        return {stream.name: [0] if stream.consumers else [] for stream in self.query_set.plan.streams}

    def add(self, table, folder, file):
        self._log.append((self._name, "add", sorted(table["queries"])))
        if "add" in self.refuses:
            raise DsmsError("no")
        self.query_set = self.query_set.add(table)
        return list(table["queries"])

    def remove(self, query):
        self._log.append((self._name, "remove", query))
        self.query_set = self.query_set.remove(query)

    def release(self, queries):
        self._log.append((self._name, "release", queries))
        self.query_set, gone = self.query_set.split(queries)
        return gone

    def adopt(self, transfer):
        self._log.append((self._name, "adopt", sorted(transfer.table["queries"])))
        if "adopt" in self.refuses:
            raise DsmsError(f"{self._name} refuses to adopt")
        self.query_set = self.query_set.merge(transfer)


class FakeSystem:
    """A deployment of fake actors, and the calls they received."""

    def __init__(self, domains=2, gateways=1, **setup):
        self.log = []
        shares = place_queries(QuerySet(TABLE).plan, domains)
        self.schedulers = [FakeScheduler(f"s{n}", self.log, names) for n, names in enumerate(shares)]
        self.gateways = [FakeActor(f"g{n}", self.log) for n in range(gateways)]
        for n, gateway in enumerate(self.gateways):
            gateway.answers = {"listen": ("127.0.0.1", 7000 + n), "status": {"address": f"127.0.0.1:{7000 + n}"}}
        self.outlet = FakeActor("o", self.log)
        self.outlet.answers = {"status": {"queries": []}}
        actors_by_domain = {str(n): DomainActors(str(n), s, (f"host-{n}",)) for n, s in enumerate(self.schedulers)}
        exporter = FakeActor("m", self.log) if "metrics" in setup else None
        if exporter is not None:
            exporter.answers = {"listen": ("127.0.0.1", 9471)}
        everyone = DeploymentActors(actors_by_domain, tuple(self.gateways), self.outlet, exporter)
        live = LiveConfig(domains=domains, **setup)
        self.deployment = Deployment(DeploymentSpec("d", TABLE, "", "p.toml", live, shares, [1] * domains), everyone)
        self.deployment.begin()
        self.begun, self.log[:] = list(self.log), []

    def asked(self, log=None):
        """The calls as (actor, method), in order."""
        return (
            [entry[:2] for entry in self.log if entry[1] != "routes"] if log is None else [entry[:2] for entry in log]
        )

    def ways(self, gateway="g0"):
        """By stream: its readers, as last sent to a gateway."""
        routes = [entry[2] for entry in [*self.begun, *self.log] if entry[:2] == (gateway, "serve")][-1]
        return {name: [(t.scheduler._name, t.hosts) for t in way.targets] for name, way in routes.streams.items()}


def test_gateways_open_last():
    system = FakeSystem(gateways=2)
    asked = [f"{who} {what}" for who, what in system.asked(system.begun)]
    assert asked == ["o open", "s0 open", "s1 open", "g0 serve", "g1 serve", "g0 listen", "g1 listen"]
    assert [entry[3] for entry in system.begun if entry[1] == "listen"] == [7411, 7412]


def test_a_stream_goes_to_the_domains_that_read_it():
    assert FakeSystem().ways() == {"a": [("s0", ("host-0",))], "b": [("s1", ("host-1",))]}


def test_a_stream_that_several_domains_read_goes_once_to_each():
    system = FakeSystem()
    system.deployment.add(
        {"queries": {"more": {"cql": "SELECT a.k FROM a [ROWS 2], high [ROWS 2] WHERE a.k = high.k"}}}, "", ""
    )
    assert system.ways() == {"a": [("s0", ("host-0",)), ("s1", ("host-1",))], "b": [("s1", ("host-1",))]}


def test_a_new_query_goes_to_the_domain_of_the_queries_it_reads():
    system = FakeSystem()
    assert system.deployment.add({"queries": {"top": {"cql": "SELECT k FROM high WHERE k > 90"}}}, "", "") == ["top"]
    assert system.asked() == [("o", "open"), ("g0", "hold"), ("s1", "add"), ("g0", "serve")]


def test_a_new_query_that_shares_nothing_goes_to_the_least_loaded_domain():
    system = FakeSystem()
    table = {"streams": {"c": STREAM}, "queries": {"other": {"cql": "SELECT k FROM c WHERE k > 90"}}}
    system.deployment.add(table, "", "")
    assert ("s1", "add") in system.asked()
    assert system.ways()["c"] == [("s1", ("host-1",))]


def test_a_refused_query_leaves_no_output():
    system = FakeSystem()
    system.schedulers[1].refuses = {"add"}
    with pytest.raises(DsmsError, match="no"):
        system.deployment.add({"queries": {"top": {"cql": "SELECT k FROM high WHERE k > 90"}}}, "", "")
    assert system.asked() == [("o", "open"), ("g0", "hold"), ("s1", "add"), ("o", "close_query"), ("g0", "serve")]
    with pytest.raises(DsmsError, match="no query 'top'"):
        system.deployment.weigh("top", 2.0)


def test_a_removed_query_gets_no_rows_and_its_file_is_finished():
    system = FakeSystem()
    system.deployment.remove("high")
    assert system.asked() == [
        ("g0", "hold"),
        ("s1", "remove"),
        ("g0", "serve"),
        ("o", "find_incomplete"),
        ("o", "close_query"),
    ]
    assert system.ways()["b"] == []


def test_queries_that_read_each_other_move_together_while_their_rows_wait():
    system = FakeSystem()
    answer = system.deployment.move("lower", "1")
    assert (answer["queries"], answer["from"], answer["to"]) == (["low", "lower"], "0", "1")
    assert system.log[0] == ("g0", "hold", ["a"], True)
    assert system.asked() == [("g0", "hold"), ("s0", "release"), ("s1", "adopt"), ("g0", "serve")]
    assert system.ways() == {"a": [("s1", ("host-1",))], "b": [("s1", ("host-1",))]}
    assert system.deployment.move("high", "0")["queries"] == ["high"]


def test_queries_that_are_refused_return_to_their_domain():
    system = FakeSystem()
    system.schedulers[1].refuses = {"adopt"}
    with pytest.raises(DsmsError, match="s1 refuses to adopt"):
        system.deployment.move("low", "1")
    assert system.asked() == [("g0", "hold"), ("s0", "release"), ("s1", "adopt"), ("s0", "adopt"), ("g0", "serve")]
    assert system.ways() == {"a": [("s0", ("host-0",))], "b": [("s1", ("host-1",))]}


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda d: d.move("lowest", "1"), "no query 'lowest' .did you mean 'lower'"),
        (lambda d: d.move("low", "0"), "query 'low' is in domain '0' already"),
        (lambda d: d.move("low", "7"), "no domain '7'; there are .'0', '1'."),
        (lambda d: d.swap("fifo", domain="x"), "no domain 'x'"),
        (lambda d: d.remove("low"), "query 'low' cannot be removed: .'lower'. read it"),
        (lambda d: d.add({"queries": {"low": {"cql": "SELECT k FROM a"}}}, "", ""), "there is a query 'low' already"),
    ],
)
def test_an_impossible_change_is_refused_before_any_actor_is_called(ask, message):
    system = FakeSystem()
    with pytest.raises(DsmsError, match=message):
        ask(system.deployment)
    assert system.asked() == []


def test_a_swap_goes_to_all_domains_or_to_one():
    system = FakeSystem()
    system.deployment.swap("chain")
    system.deployment.swap("fifo", "tired", domain="1")
    assert system.log == [
        ("s0", "control", "swap", "chain", "asked for"),
        ("s1", "control", "swap", "chain", "asked for"),
        ("s1", "control", "swap", "fifo", "tired"),
    ]


def test_an_actor_that_does_not_answer_has_an_error_in_the_status():
    system = FakeSystem()
    system.schedulers[0].refuses = {"status"}
    system.schedulers[1].answers = {"status": DomainStatus(domain="1")}
    status = system.deployment.status()
    assert (status.name, status.gateways) == ("d", [GatewayStatus("127.0.0.1:7000")])
    assert status.domains[0].error == "s0 refuses to status"
    assert status.domains[1] == DomainStatus(domain="1")


def test_gateways_end_first_and_dead_actors_delay_no_other():
    system = FakeSystem()
    system.schedulers[0].refuses = {"close"}
    system.deployment.down()
    system.deployment.down()
    closing = [("g0", "close"), ("s0", "close"), ("s1", "close"), ("o", "find_incomplete"), ("o", "close")]
    assert system.asked() == closing * 2


def test_metrics_are_served_from_before_rows_come_in_until_the_end():
    system = FakeSystem(domains=1, metrics=9471)
    asked = [f"{who} {what}" for who, what in system.asked(system.begun)]
    assert asked == ["o open", "s0 open", "g0 serve", "g0 listen", "m listen"]
    assert ("m", "listen", "127.0.0.1", 9471) in system.begun
    system.schedulers[0].answers = {"status": DomainStatus(domain="0")}
    assert system.deployment.status().metrics == "http://127.0.0.1:9471/metrics"
    system.log.clear()
    system.deployment.down()
    assert [f"{who} {what}" for who, what in system.asked()][:3] == ["g0 close", "m close", "s0 close"]
    assert FakeSystem().deployment.status().metrics is None


def small(**settings):
    return LiveConfig(actors=1, port=0, **settings)


def nothing_left(name):
    return wait_until(lambda: not list_actor_names(name) and not list_placement_groups(name), 10)


@pytest.mark.ray
def test_more_domains_than_there_are_budgets_are_refused_at_once(ray_cluster, tmp_path):
    with pytest.raises(DsmsError, match=r"domains = 5 takes 5 CPU budgets \(dsms_cpu\); free: 4 on"):
        up(TABLE, str(tmp_path), "p.toml", "large", small(domains=5))
    assert nothing_left("large")


@pytest.mark.ray
def test_a_port_that_is_taken_is_refused_at_once(ray_cluster, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DsmsError, match=f"no gateway can listen at 127.0.0.1:{port}: Address already in use"):
            up(TABLE, str(tmp_path), "p.toml", "deaf", LiveConfig(port=port))
    assert nothing_left("deaf")


@pytest.mark.ray
def test_an_invalid_deployment_name_is_refused(ray_cluster):
    with pytest.raises(DsmsError, match="'a:b' cannot be the name of a deployment"):
        up(TABLE, "", "p.toml", "a:b")


@pytest.mark.ray
def test_a_deployment_is_found_again_not_started_twice_and_its_remains_are_replaced(ray_cluster, tmp_path):
    messages = []
    handle = up(TABLE, str(tmp_path), "p.toml", "twice", small(), progress=messages.append)
    assert "5 of 5 actors are up" in messages
    assert get_result(send(cluster.get_deployment("twice").identity))["name"] == "twice"
    with pytest.raises(DsmsError, match=r"deployment 'twice' exists already, since .* at 127.0.0.1:.*--replace"):
        up(TABLE, str(tmp_path), "p.toml", "twice", small())
    ray_cluster.kill(handle)
    wait_until(lambda: "dsms:twice" not in list_actor_names("twice"), 10)
    handle = up(TABLE, str(tmp_path), "p.toml", "twice", small(), progress=messages.append)
    ended = "5 actors and groups of an older deployment 'twice' ended: dsms:twice:gateway-0"
    assert any(entry.startswith(ended) for entry in messages)
    status = get_result(send(handle.status))
    assert [query.name for query in status.domains[0].queries] == ["low", "lower", "high"]
    get_result(send(handle.down))
    assert nothing_left("twice")
