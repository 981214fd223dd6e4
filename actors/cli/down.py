"""End a deployment: stop its actors and gateways; the cluster stays.

A durable deployment saves a checkpoint first; all others drop the rows in their queues. The command kills a deployment
that does not answer.
"""

from __future__ import annotations

import argparse

from actors.control.client import ControlClient, add_common_options, import_runtime, join_cluster, log
from dsms.errors import DsmsError


def options(parser: argparse.ArgumentParser) -> None:
    add_common_options(parser)


def run(given: argparse.Namespace) -> int:
    with join_cluster(given) as cluster:
        try:
            if unsaved := ControlClient(given.name, cluster.get_deployment(given.name)).ask("down"):
                log.warning("%s", unsaved)
        except DsmsError as error:
            if given.name not in cluster.list_deployments():
                raise
            log.warning("%s; killing its remaining actors", error)
        import_runtime("deployment.actor_handles").tear_down(given.name)
    print(f"{given.name} is down")
    return 0
