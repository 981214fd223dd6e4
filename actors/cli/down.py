"""Take a running system down: all its actors, its gateways' ports, what waits in its queues; the cluster stays.

One that does not answer is ended all the same, without its parts being asked to finish.
"""

from __future__ import annotations

import argparse

from actors.cli.asking import SLOW, System, common, joined, log, part
from dsms.errors import DsmsError


def options(parser: argparse.ArgumentParser) -> None:
    common(parser)


def run(given: argparse.Namespace) -> int:
    with joined(given) as cluster:
        try:
            System(given.name, cluster.deployment(given.name)).ask("down", timeout=SLOW)
        except DsmsError as error:
            if given.name not in cluster.deployments():
                raise
            log.warning("%s; what is left of it is ended without being asked", error)
        part("parts").sweep(given.name)
    print(f"{given.name} is down")
    return 0
