"""The commands that call one control verb and print a sentence: checkpoint, move, pause and resume."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from actors.control.client import add_common_options, add_verb_argument, open_client
from actors.control.status_tables import describe_checkpoint
from actors.scheduler.verbs import VERBS, VerbScope
from dsms.cli.tables import format_seconds
from dsms.live.monitor.status import CheckpointStatus

Describe = Callable[[argparse.Namespace, Any], str]  # from the options and the verb's answer to what is printed


class VerbCommand:
    """A command whose arguments are the arguments of a verb."""

    def __init__(self, verb: str, doc: str, describe: Describe) -> None:
        self._verb, self._describe, self.__doc__ = VERBS[verb], describe, doc

    def options(self, parser: argparse.ArgumentParser) -> None:
        for argument in self._verb.arguments:
            add_verb_argument(parser, argument)
        has_domain = self._verb.scope is VerbScope.EACH_DOMAIN
        add_common_options(parser, domain=f"the domain to {self._verb.name}" if has_domain else "")

    def run(self, given: argparse.Namespace) -> int:
        with open_client(given) as client:
            answer = client.ask(self._verb.name, *(getattr(given, name) for name in self._verb.signature.parameters))
        print(self._describe(given, answer))
        return 0


def _describe_target(given: argparse.Namespace) -> str:
    return f"{given.name}{'' if given.domain is None else f', domain {given.domain},'}"


def _describe_move(given: argparse.Namespace, answer: dict[str, Any]) -> str:
    others = [name for name in answer["queries"] if name != given.query]
    along = f" (with {', '.join(others)})" if others else ""
    return f"{given.query}{along} runs in domain {given.domain}; the move took {format_seconds(answer['seconds'])}"


checkpoint = VerbCommand(
    "checkpoint",
    "Save a durable deployment now, besides the periodic checkpoints; after a failure it continues from here.",
    lambda given, answer: f"{given.name}: {describe_checkpoint(CheckpointStatus(**answer))}",
)
move = VerbCommand(
    "move",
    "Move a query to another domain while it runs, with its queues and its state; no row is lost.\n\n"
    "Queries that share operators with it move too.",
    _describe_move,
)
pause = VerbCommand(
    "pause",
    "Stop all operators until `dsms resume`; the system still admits rows, which wait in the queues.",
    lambda given, _: f"{_describe_target(given)} is paused",
)
resume = VerbCommand("resume", "Continue after `dsms pause`.", lambda given, _: f"{_describe_target(given)} runs")
