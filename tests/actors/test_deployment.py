"""A deployment: what is asked of which part, in which order; and on Ray, that it stands or leaves nothing behind."""

from __future__ import annotations

import socket

import pytest

from actors import cluster, parts
from actors.deployment import Deployment, up
from actors.parts import Crew, Parts
from dsms.errors import DsmsError
from dsms.live.division import divided
from dsms.live.roster import Roster
from dsms.live.setup import Setup

STREAM = {"schema": {"k": "int64"}}
TABLE = {
    "streams": {"a": STREAM, "b": STREAM},
    "queries": {
        "low": {"cql": "SELECT k FROM a WHERE k < 10"},
        "lower": {"cql": "SELECT k FROM low WHERE k < 5"},
        "high": {"cql": "SELECT k FROM b WHERE k > 10"},
    },
}


class Log:
    """Stands in for an actor: notes what is asked of it, and refuses what it is told to."""

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


class Scheduler(Log):
    """Knows which of its streams are read, as a domain would."""

    def __init__(self, name, log, queries):
        super().__init__(name, log)
        self.roster = Roster(TABLE, queries=queries)

    def routes(self):
        return {stream.name: [0] if stream.consumers else [] for stream in self.roster.plan.streams}

    def add(self, table, folder, file):
        self._log.append((self._name, "add", sorted(table["queries"])))
        if "add" in self.refuses:
            raise DsmsError("no")
        self.roster = self.roster.adding(table)
        return list(table["queries"])

    def remove(self, query):
        self._log.append((self._name, "remove", query))
        self.roster = self.roster.removing(query)

    def release(self, queries):
        self._log.append((self._name, "release", queries))
        self.roster, gone = self.roster.leaving(queries)
        return gone

    def adopt(self, goods):
        self._log.append((self._name, "adopt", sorted(goods.table["queries"])))
        if "adopt" in self.refuses:
            raise DsmsError(f"{self._name} refuses to adopt")
        self.roster = self.roster.adopting(goods)


class System:
    """A deployment of stand-ins, and all that was asked of them."""

    def __init__(self, domains=2, gateways=1, **setup):
        self.log = []
        shares = divided(Roster(TABLE).plan, domains)
        self.schedulers = [Scheduler(f"s{n}", self.log, names) for n, names in enumerate(shares)]
        self.gateways = [Log(f"g{n}", self.log) for n in range(gateways)]
        for n, gateway in enumerate(self.gateways):
            gateway.answers = {"listen": ("127.0.0.1", 7000 + n), "status": {"address": f"127.0.0.1:{7000 + n}"}}
        self.outlet = Log("o", self.log)
        self.outlet.answers = {"status": {"queries": []}}
        crews = {str(n): Crew(str(n), s, (f"host-{n}",)) for n, s in enumerate(self.schedulers)}
        exporter = Log("m", self.log) if "metrics" in setup else None
        if exporter is not None:
            exporter.answers = {"listen": ("127.0.0.1", 9471)}
        everyone = Parts(crews, tuple(self.gateways), self.outlet, exporter)
        self.deployment = Deployment("d", TABLE, "", "p.toml", Setup(domains=domains, **setup), everyone)
        self.deployment.begin({str(n): names for n, names in enumerate(shares)})
        self.begun, self.log[:] = list(self.log), []

    def asked(self, log=None):
        """Who was asked for what, in order."""
        return (
            [entry[:2] for entry in self.log if entry[1] != "routes"] if log is None else [entry[:2] for entry in log]
        )

    def ways(self, gateway="g0"):
        """Who reads what, as a gateway was last told."""
        routes = [entry[2] for entry in [*self.begun, *self.log] if entry[:2] == (gateway, "serve")][-1]
        return {name: [(t.scheduler._name, t.hosts) for t in way.targets] for name, way in routes.streams.items()}


def test_rows_are_let_in_last():
    system = System(gateways=2)
    asked = [f"{who} {what}" for who, what in system.asked(system.begun)]
    assert asked == ["o open", "s0 open", "s1 open", "g0 listen", "g1 listen", "g0 serve", "g1 serve"]
    assert [entry[3] for entry in system.begun if entry[1] == "listen"] == [7411, 7412]


def test_a_stream_goes_to_the_domains_that_read_it():
    assert System().ways() == {"a": [("s0", ("host-0",))], "b": [("s1", ("host-1",))]}


def test_a_stream_that_several_domains_read_goes_once_to_each():
    system = System()
    system.deployment.add(
        {"queries": {"more": {"cql": "SELECT a.k FROM a [ROWS 2], high [ROWS 2] WHERE a.k = high.k"}}}, "", ""
    )
    assert system.ways() == {"a": [("s0", ("host-0",)), ("s1", ("host-1",))], "b": [("s1", ("host-1",))]}


def test_a_query_that_comes_goes_to_where_those_are_that_it_reads():
    system = System()
    assert system.deployment.add({"queries": {"top": {"cql": "SELECT k FROM high WHERE k > 90"}}}, "", "") == ["top"]
    assert system.asked() == [("o", "open"), ("g0", "hold"), ("s1", "add"), ("g0", "serve")]


def test_a_query_that_shares_nothing_goes_to_where_least_is_to_do():
    system = System()
    table = {"streams": {"c": STREAM}, "queries": {"other": {"cql": "SELECT k FROM c WHERE k > 90"}}}
    system.deployment.add(table, "", "")
    assert ("s1", "add") in system.asked()
    assert system.ways()["c"] == [("s1", ("host-1",))]


def test_a_query_that_is_refused_leaves_no_outlet():
    system = System()
    system.schedulers[1].refuses = {"add"}
    with pytest.raises(DsmsError, match="no"):
        system.deployment.add({"queries": {"top": {"cql": "SELECT k FROM high WHERE k > 90"}}}, "", "")
    assert system.asked() == [("o", "open"), ("g0", "hold"), ("s1", "add"), ("o", "shut"), ("g0", "serve")]
    with pytest.raises(DsmsError, match="no query 'top'"):
        system.deployment.weigh("top", 2.0)


def test_a_query_that_goes_is_read_by_no_gateway_and_its_file_is_finished():
    system = System()
    system.deployment.remove("high")
    assert system.asked() == [("g0", "hold"), ("s1", "remove"), ("g0", "serve"), ("o", "lacks"), ("o", "shut")]
    assert system.ways()["b"] == []


def test_queries_that_read_each_other_move_together_while_their_rows_wait():
    system = System()
    answer = system.deployment.move("lower", "1")
    assert (answer["queries"], answer["from"], answer["to"]) == (["low", "lower"], "0", "1")
    assert system.log[0] == ("g0", "hold", ["a"], True)
    assert system.asked() == [("g0", "hold"), ("s0", "release"), ("s1", "adopt"), ("g0", "serve")]
    assert system.ways() == {"a": [("s1", ("host-1",))], "b": [("s1", ("host-1",))]}
    assert system.deployment.move("high", "0")["queries"] == ["high"]


def test_queries_that_are_refused_go_back_to_where_they_were():
    system = System()
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
        (lambda d: d.remove("low"), "query 'low' cannot go: .'lower'. read it"),
        (lambda d: d.add({"queries": {"low": {"cql": "SELECT k FROM a"}}}, "", ""), "there is a query 'low' already"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anybody_is_asked(ask, message):
    system = System()
    with pytest.raises(DsmsError, match=message):
        ask(system.deployment)
    assert system.asked() == []


def test_a_swap_is_asked_of_all_domains_or_of_one():
    system = System()
    system.deployment.swap("chain")
    system.deployment.swap("fifo", "tired", domain="1")
    assert system.log == [
        ("s0", "swap", "chain", "asked for"),
        ("s1", "swap", "chain", "asked for"),
        ("s1", "swap", "fifo", "tired"),
    ]


def test_a_part_that_does_not_answer_says_so_in_the_status():
    system = System()
    system.schedulers[0].refuses = {"status"}
    system.schedulers[1].answers = {"status": {"domain": "1"}}
    status = system.deployment.status()
    assert (status["name"], status["gateways"]) == ("d", [{"address": "127.0.0.1:7000"}])
    assert status["domains"][0]["error"] == "s0 refuses to status"
    assert status["domains"][1] == {"domain": "1"}


def test_what_lets_rows_in_ends_first_and_dead_parts_keep_nobody():
    system = System()
    system.schedulers[0].refuses = {"close"}
    system.deployment.down()
    system.deployment.down()
    closing = [("g0", "close"), ("s0", "close"), ("s1", "close"), ("o", "lacks"), ("o", "close")]
    assert system.asked() == closing * 2


def test_metrics_are_served_where_asked_for_before_rows_are_let_in_and_until_the_end():
    system = System(domains=1, metrics=9471)
    asked = [f"{who} {what}" for who, what in system.asked(system.begun)]
    assert asked == ["o open", "s0 open", "g0 listen", "m listen", "g0 serve"]
    assert ("m", "listen", "127.0.0.1", 9471) in system.begun
    system.schedulers[0].answers = {"status": {"domain": "0"}}
    assert system.deployment.status()["metrics"] == "http://127.0.0.1:9471/metrics"
    system.log.clear()
    system.deployment.down()
    assert [f"{who} {what}" for who, what in system.asked()][:3] == ["g0 close", "m close", "s0 close"]
    assert System().deployment.status()["metrics"] is None


def small(**settings):
    return Setup(actors=1, port=0, **settings)


def nothing_left(name):
    return parts.wait_for(lambda: not parts.named(name) and not parts.groups(name), 10)


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
            up(TABLE, str(tmp_path), "p.toml", "deaf", Setup(port=port))
    assert nothing_left("deaf")


@pytest.mark.ray
def test_a_name_that_names_of_actors_cannot_be_made_of_is_refused(ray_cluster):
    with pytest.raises(DsmsError, match="'a:b' cannot be the name of a deployment"):
        up(TABLE, "", "p.toml", "a:b")


@pytest.mark.ray
def test_a_deployment_is_found_again_not_started_twice_and_what_is_left_of_it_is_replaced(ray_cluster, tmp_path):
    told = []
    handle = up(TABLE, str(tmp_path), "p.toml", "twice", small(), progress=told.append)
    assert told[-1] == "4 of 4 actors are up"
    assert ray_cluster.get(cluster.deployment("twice").identity.remote())["name"] == "twice"
    with pytest.raises(DsmsError, match=r"there is a deployment 'twice' already, since .* at 127.0.0.1:.*--replace"):
        up(TABLE, str(tmp_path), "p.toml", "twice", small())
    ray_cluster.kill(handle)
    parts.wait_for(lambda: "dsms:twice" not in parts.named("twice"), 10)
    handle = up(TABLE, str(tmp_path), "p.toml", "twice", small(), progress=told.append)
    assert any(entry.startswith("5 left of an older deployment 'twice' ended: dsms:twice:gateway-0") for entry in told)
    status = ray_cluster.get(handle.status.remote())
    assert [query["name"] for query in status["domains"][0]["queries"]] == ["low", "lower", "high"]
    ray_cluster.get(handle.down.remote())
    assert nothing_left("twice")
