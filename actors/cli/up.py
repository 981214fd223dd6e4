"""Start a plan's queries on a Ray cluster, to run until `dsms down`: rows come in, and results go out, over TCP.

Options override the plan's [live] table. With --address local a Ray of its own is started in this process, which stays
until Ctrl-C and then takes everything down.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from threading import Event
from typing import Any

from actors.cli.asking import SLOW, System, common, log, part, settings
from actors.cli.leaving import leaving
from dsms.cli.arguments import positive, recording, several, whole
from dsms.cli.stopping import stoppable, undisturbed
from dsms.cli.telling import progress
from dsms.errors import DsmsError, PlanError
from dsms.live.setup import CLOCKS, Setup
from dsms.live.terms import Terms
from dsms.planfile import plan_from, read_table
from dsms.policies.registry import policy_named, policy_names
from dsms.reading import table_of
from dsms.tokens import Tokens

SETTINGS = (
    "policy", "clock", "budget", "domains", "actors", "gateways", "host", "port", "metrics", "certificate", "key",
    "record", "durable", "checkpoint",
)  # fmt: skip
FILES = ("certificate", "key", "record", "durable")  # in the plan they are relative to the plan
LOOPBACK = ("127.0.0.1", "localhost", "::1")
DOWN = 30.0  # seconds to end in good order; after that Ray ends what is left


def options(parser: argparse.ArgumentParser) -> None:
    plan, names = Setup(), ", ".join(policy_names())
    parser.add_argument("plan", metavar="PLAN", nargs="?", help="a plan file (TOML)")
    common(parser, local=True)
    parser.add_argument("--policy", metavar="NAME[:key=value,…]", help=f"who decides at first. There are: {names}")
    parser.add_argument("--clock", choices=CLOCKS, help="wall: measured; paced: declared costs waited out; virtual")
    parser.add_argument("--budget", type=positive, metavar="B", help="paced: how much of a CPU a domain has")
    parser.add_argument("--domains", type=several, metavar="N", help="CPU budgets, each with a scheduler of its own")
    parser.add_argument("--actors", type=several, metavar="N", help="most station actors of a domain; more share one")
    parser.add_argument("--gateways", type=several, metavar="N", help="processes that take rows in")
    parser.add_argument("--host", metavar="H", help=f"address the gateways listen on (default: {plan.host})")
    parser.add_argument(
        "--port", type=whole, metavar="P", help=f"of the first gateway; 0: any that is free (default: {plan.port})"
    )
    parser.add_argument("--metrics", type=whole, metavar="P", help="serve metrics at this port; 0: any that is free")
    recording(parser, "DIR on the node where each domain's scheduler is, called like the domain")
    parser.add_argument(
        "--durable", metavar="DIR", type=Path, help="store what comes and checkpoints there: no crash loses anything"
    )
    parser.add_argument("--checkpoint", type=positive, metavar="S", help="seconds between two checkpoints (default: 1)")
    parser.add_argument("--resume", action="store_true", help="go on with what is stored in the durable folder")
    parser.add_argument("--yes", action="store_true", help="with --resume: do not ask if the plan is another now")
    parser.add_argument("--replace", action="store_true", help="take down a running one of this name first")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        type=Path,
        help="what clients must know to connect: a token, or lines `push|read|control TOKEN`; for its owner alone",
    )
    secure(parser)


def secure(parser: argparse.ArgumentParser) -> None:
    """The options for TLS."""
    parser.add_argument("--certificate", metavar="FILE", type=Path, help="speak TLS, with this certificate (PEM)")
    parser.add_argument("--key", metavar="FILE", type=Path, help="of the certificate; for its owner alone")


def run(given: argparse.Namespace) -> int:
    if given.plan is None:
        raise DsmsError(
            "`dsms up` needs a PLAN with at least one stream and one query; to add queries to a system that runs, "
            "`dsms queries add FILE`"
        )
    path = Path(given.plan)
    table = read_table(path)
    plan_from(table, folder=path.parent, file=str(path))  # what is wrong with it needs no cluster to be found
    setup = _setup(table_of(table.get("live", {}), "live"), given)
    tokens = None if given.token_file is None else Tokens.read(given.token_file)
    terms = Terms.of(setup, tokens, path.parent)
    if terms.certificate is not None:
        terms.certificate.context()
    _warn(setup.host, terms)
    if given.resume and not agreed(table, path, setup, given.yes):
        return 1
    cluster = part("cluster")
    with stoppable(), leaving(cluster):
        _start(cluster, given, table, setup, tokens)
    return 0


def _start(cluster: Any, given: argparse.Namespace, table: dict[str, Any], setup: Setup, tokens: Tokens | None) -> None:
    """Bring it up and, where the cluster is our own, stay."""
    path = Path(given.plan)
    with progress() as tell:
        tell("starting Ray" if given.address == "local" else "connecting to Ray")
        cluster.local(setup.domains) if given.address == "local" else cluster.connect(given.address)
        where = str(path.resolve().parent), str(path)
        how = {"name": given.name, "setup": setup, "replace": given.replace, "tokens": tokens, "progress": tell}
        how |= {"resume": True} if given.resume else {}
        running = System(given.name, part("deployment").up(table, *where, **how))
    _say(running.ask("status", timeout=SLOW), setup)
    if given.address == "local":
        _stay(cluster)


def agreed(table: dict[str, Any], path: Path, setup: Setup, yes: bool) -> bool:
    """Whether to go on with what is stored: asked only where the plan is not the one that it was stored with."""
    if not setup.durable:
        raise DsmsError("--resume needs --durable DIR, or `durable` in [live]: where it is stored")
    changes = part("succession").changes(setup.durable, table, str(path.resolve().parent), str(path))
    if changes is None:
        return True
    print(f"the plan is another than the one that is stored: {changes}")
    if yes:
        return True
    if not sys.stdin.isatty():
        raise DsmsError("the plan is another than the one that is stored: --yes goes on with it")
    return input("go on? [y/N] ").strip().lower() in ("y", "yes")


def _warn(host: str, terms: Terms) -> None:
    """Say what is open to others, where others can come."""
    if host in LOOPBACK:
        return
    if terms.tokens is None:
        log.warning("whoever reaches %s may push rows and read results: --token-file says who may", host)
    if terms.certificate is None:
        log.warning("rows, results and tokens go to and from %s unencrypted: --certificate and --key encrypt", host)


def _setup(live: Any, given: argparse.Namespace) -> Setup:
    """The plan's [live] table, and what the options say instead."""
    instead = {name: getattr(given, name) for name in SETTINGS if getattr(given, name) is not None}
    instead |= {name: str(instead[name].resolve()) for name in FILES if name in instead}
    try:
        setup = Setup.read({**live, **instead})
    except PlanError as error:
        raise DsmsError(f"--{error.place} {error.message}") from None
    policy_named(setup.policy)
    return setup


def _say(status: dict[str, Any], setup: Setup) -> None:
    """Where rows go, and what runs."""
    domains, doors = status["domains"], [str(gateway["address"]) for gateway in status["gateways"]]
    queries = [query["name"] for one in domains for query in one["queries"]]
    stations, streams = ({each["name"] for one in domains for each in one[key]} for key in ("stations", "streams"))
    print(f"{status['name']} runs: {setup.policy} decides, by the {setup.clock} clock")
    spread = ", ".join((many(len(stations), "station"), many(len(streams), "stream"), many(len(domains), "domain")))
    print(f"queries: {', '.join(queries)} ({spread})")
    print(f"rows to: {', '.join(doors)}")
    if status.get("metrics"):
        print(f"metrics at: {status['metrics']}")
    if recorded := [str(one["recorded"]["folder"]) for one in domains if one.get("recorded")]:
        print(f"recorded to: {', '.join(recorded)}")
    sys.stdout.flush()


def many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _stay(cluster: Any) -> None:
    """Wait for Ctrl-C (or TERM), then end in good order."""
    print(f"elsewhere: export {settings()}", file=sys.stderr)
    print("Ctrl-C takes it down", file=sys.stderr)

    try:
        Event().wait()
    except KeyboardInterrupt:
        with undisturbed():  # whatever runs on this Ray by now, it ends with it
            for name in cluster.deployments():
                try:
                    System(name, cluster.deployment(name)).ask("down", timeout=DOWN)
                except DsmsError as error:
                    log.warning("%s", error)
