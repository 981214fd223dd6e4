"""Deploy a plan's queries on a Ray cluster until `dsms down`; rows and results travel over TCP.

Options override the plan's [live] table. With --address local the command starts its own Ray, stays until Ctrl-C and
then ends everything.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from actors.control.client import (
    ControlClient,
    add_common_options,
    describe_environment,
    import_runtime,
    log,
)
from dsms.cli.arguments import add_record_option, parse_nonnegative_int, parse_positive, parse_positive_int
from dsms.cli.progress import show_progress
from dsms.cli.signals import ignore_signals, wait_for_signal
from dsms.config.fields import check_table
from dsms.config.live import CLOCKS, LiveConfig
from dsms.errors import DsmsError, PlanError
from dsms.live.monitor.status import DeploymentStatus
from dsms.net.access import AccessPolicy
from dsms.net.tokens import Tokens
from dsms.policies.registry import policy_named, policy_names
from dsms.query.plan_file import plan_from, read_table

SETTINGS = (
    "policy", "clock", "budget", "domains", "actors", "gateways", "host", "port", "metrics", "certificate", "key",
    "record", "durable", "checkpoint",
)  # fmt: skip
FILES = ("certificate", "key", "record", "durable")  # paths; in a plan they are relative to the plan's folder
LOOPBACK = ("127.0.0.1", "localhost", "::1")
START_STATUS_TIMEOUT_S = 120.0  # for the first status of a new deployment
SHUTDOWN_TIMEOUT_S = 30.0  # to end in order; after that Ray kills what remains


def options(parser: argparse.ArgumentParser) -> None:
    plan, names = LiveConfig(), ", ".join(policy_names())
    parser.add_argument("plan", metavar="PLAN", nargs="?", help="a plan file (TOML)")
    add_common_options(parser, local=True)
    parser.add_argument(
        "--policy", metavar="NAME[:key=value,…]", help=f"the first policy in charge. There are: {names}"
    )
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        help="wall: measure costs; paced: wait the declared costs out; virtual: simulate them",
    )
    parser.add_argument(
        "--budget", type=parse_positive, metavar="B", help="with --clock paced: share of a CPU that a domain has"
    )
    parser.add_argument(
        "--domains", type=parse_positive_int, metavar="N", help="CPU budgets, each with its own scheduler"
    )
    parser.add_argument(
        "--actors",
        type=parse_positive_int,
        metavar="N",
        help="host processes of a domain, at most; operators share them",
    )
    parser.add_argument("--gateways", type=parse_positive_int, metavar="N", help="processes that accept rows")
    parser.add_argument("--host", metavar="H", help=f"address the gateways listen on (default: {plan.host})")
    parser.add_argument(
        "--port",
        type=parse_nonnegative_int,
        metavar="P",
        help=f"port of the first gateway; 0: any free port (default: {plan.port})",
    )
    parser.add_argument(
        "--metrics", type=parse_nonnegative_int, metavar="P", help="serve metrics at this port; 0: any free port"
    )
    add_record_option(parser, "DIR, named after the domain, on the node of its scheduler")
    parser.add_argument(
        "--durable",
        metavar="DIR",
        type=Path,
        help="store rows and checkpoints in this folder, so that no crash loses a row or result",
    )
    parser.add_argument(
        "--checkpoint", type=parse_positive, metavar="S", help="seconds between two checkpoints (default: 1)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue from the last checkpoint in the folder of --durable"
    )
    parser.add_argument("--yes", action="store_true", help="with --resume: do not ask before changing the plan")
    parser.add_argument("--replace", action="store_true", help="first end a running deployment of this name")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        type=Path,
        help="tokens that clients need: one token, or lines `push|read|control TOKEN`; readable by its owner only",
    )
    add_security_options(parser)


def add_security_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for TLS."""
    parser.add_argument("--certificate", metavar="FILE", type=Path, help="use TLS with this certificate (PEM)")
    parser.add_argument("--key", metavar="FILE", type=Path, help="key of the certificate; readable by its owner only")


def run(given: argparse.Namespace) -> int:
    if given.plan is None:
        raise DsmsError(
            "`dsms up` needs a PLAN with at least one stream and one query; to add queries to a deployment, use "
            "`dsms queries add FILE`"
        )
    path = Path(given.plan)
    table = read_table(path)
    plan_from(table, folder=path.parent, file=str(path))  # what is wrong with it needs no cluster to be found
    setup = _setup(check_table(table.get("live", {}), "live"), given)
    tokens = None if given.token_file is None else Tokens.read(given.token_file)
    terms = AccessPolicy.of(setup, tokens, path.parent)
    if terms.certificate is not None:
        terms.certificate.context()
    _warn(setup.host, terms)
    if given.resume and not confirm_plan_change(table, path, setup, given.yes):
        return 1
    cluster = import_runtime("cluster.cluster")
    with import_runtime("cluster.cluster_exit").leave_cluster_on_exit(cluster):
        _start(cluster, given, table, setup, tokens)
    return 0


def _start(
    cluster: Any, given: argparse.Namespace, table: dict[str, Any], setup: LiveConfig, tokens: Tokens | None
) -> None:
    """Bring it up and, where the cluster is our own, stay."""
    path = Path(given.plan)
    with show_progress() as tell:
        tell("starting Ray" if given.address == "local" else "connecting to Ray")
        cluster.start_local_ray(setup.domains) if given.address == "local" else cluster.connect(given.address)
        where = str(path.resolve().parent), str(path)
        how = {"name": given.name, "setup": setup, "replace": given.replace, "tokens": tokens, "progress": tell}
        how |= {"resume": True} if given.resume else {}
        client = ControlClient(given.name, import_runtime("control.deploy").up(table, *where, **how))
    _print_started(client.status(START_STATUS_TIMEOUT_S), setup)
    if given.address == "local":
        _wait_until_stopped(cluster)


def confirm_plan_change(table: dict[str, Any], path: Path, setup: LiveConfig, yes: bool) -> bool:
    """Whether to continue from the checkpoint; asks the user if the plan has changed since."""
    if not setup.durable:
        raise DsmsError("--resume needs --durable DIR, or `durable` in [live]: the folder of the checkpoint")
    changes = import_runtime("checkpoints.plan_diff").diff_with_checkpoint(
        setup.durable, table, str(path.resolve().parent), str(path)
    )
    if changes is None:
        return True
    print(f"the plan differs from the stored one: {changes}")
    if yes:
        return True
    if not sys.stdin.isatty():
        raise DsmsError("the plan differs from the stored one: --yes continues with the new plan")
    return input("continue? [y/N] ").strip().lower() in ("y", "yes")


def _warn(host: str, terms: AccessPolicy) -> None:
    """Warn about missing tokens or TLS if other machines can connect."""
    if host in LOOPBACK:
        return
    if terms.tokens is None:
        log.warning("any client that reaches %s may push rows and read results: --token-file restricts this", host)
    if terms.certificate is None:
        log.warning(
            "rows, results and tokens travel to and from %s unencrypted: --certificate and --key enable TLS", host
        )


def _setup(live: Any, given: argparse.Namespace) -> LiveConfig:
    """The plan's [live] table, overridden by the options."""
    overrides = {name: getattr(given, name) for name in SETTINGS if getattr(given, name) is not None}
    overrides |= {name: str(overrides[name].resolve()) for name in FILES if name in overrides}
    try:
        setup = LiveConfig.read({**live, **overrides})
    except PlanError as error:
        raise DsmsError(f"--{error.place} {error.message}") from None
    policy_named(setup.policy)
    return setup


def _print_started(status: DeploymentStatus, setup: LiveConfig) -> None:
    """Print what runs, and where to send rows."""
    domains = status.domains
    queries = [query.name for one in domains for query in one.queries]
    operators = {each.name for one in domains for each in one.stations}
    streams = {each.name for one in domains for each in one.streams}
    print(f"{status.name} runs: policy {setup.policy}, {setup.clock} clock")
    counts = ((operators, "operator"), (streams, "stream"), (domains, "domain"))
    print(f"queries: {', '.join(queries)} ({', '.join(pluralize(len(parts), noun) for parts, noun in counts)})")
    print(f"rows to: {', '.join(str(gateway.address) for gateway in status.gateways)}")
    if status.metrics:
        print(f"metrics at: {status.metrics}")
    if recorded := [one.recorded.folder for one in domains if one.recorded is not None]:
        print(f"recorded to: {', '.join(recorded)}")
    sys.stdout.flush()


def pluralize(count: int, noun: str) -> str:
    """A count with its noun, as in `2 streams`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _wait_until_stopped(cluster: Any) -> None:
    """Wait for Ctrl-C (or TERM), then end all deployments in order."""
    print(f"for other terminals: export {describe_environment()}", file=sys.stderr)
    print("Ctrl-C ends it", file=sys.stderr)

    try:
        wait_for_signal()
    except KeyboardInterrupt:
        with ignore_signals():  # every deployment on this Ray ends with it
            for name in cluster.list_deployments():
                try:
                    if unsaved := ControlClient(name, cluster.get_deployment(name)).ask(
                        "down", timeout=SHUTDOWN_TIMEOUT_S
                    ):
                        log.warning("%s", unsaved)
                except DsmsError as error:
                    log.warning("%s", error)
