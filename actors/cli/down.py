"""End a deployment: its actors, its gateways and the rows in its queues; the cluster stays.

A deployment that does not answer is killed.
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
            log.warning("%s; its remaining actors are killed", error)
        import_runtime("deployment.actor_handles").tear_down(given.name)
    print(f"{given.name} is down")
    return 0
