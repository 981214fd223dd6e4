"""Arguments that several commands have: a plan, policies, a folder for recordings, checked numbers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeVar

from dsms.config.fields import DurationField, Field, IntegerField, NumberField
from dsms.errors import DsmsError, PlanError
from dsms.policies.registry import policy_names

T = TypeVar("T")


def add_plan_and_policy(parser: argparse.ArgumentParser, about: str, required: bool = False) -> None:
    """Add the arguments PLAN and --policy."""
    help_text = f"{about}. There are: {', '.join(policy_names())}"
    parser.add_argument("plan", metavar="PLAN", help="a plan file (TOML)")
    parser.add_argument("--policy", metavar="NAME[:key=value,…]", action="append", required=required, help=help_text)


def parse_policy_list(text: str) -> list[str]:
    """Split policies at commas, but not at the commas between a policy's parameters."""
    policies: list[str] = []
    for piece in text.split(","):
        if policies and "=" in piece and piece.partition(":")[0] not in policy_names():
            policies[-1] += f",{piece}"
        elif piece:
            policies.append(piece)
    if not policies:
        raise DsmsError(f"{text!r}: expected names of policies, as in chain,fifo,rr:tuples=30")
    return policies


def add_record_option(parser: argparse.ArgumentParser, where: str = "DIR") -> None:
    """Add the option --record."""
    parser.add_argument(
        "--record",
        metavar="DIR",
        type=Path,
        help=f"write turns, arrivals, outputs and memory to a folder in {where}, as Parquet: for `dsms whatif` and "
        "`dsms report`",
    )


def parse_dead_time(text: str) -> float:
    """A number from 0 or a duration."""
    return _parse(DurationField(), text)


def parse_nonnegative(text: str) -> float:
    """A number from 0."""
    return _parse(NumberField(least=0), text)


def parse_positive(text: str) -> float:
    """A number above 0."""
    return _parse(NumberField(above=0), text)


def parse_nonnegative_int(text: str) -> int:
    """A whole number from 0."""
    return _parse(IntegerField(least=0), text)


def parse_positive_int(text: str) -> int:
    """A whole number from 1."""
    return _parse(IntegerField(least=1), text)


def _parse(field: Field[T], text: str) -> T:
    try:
        return field.parse(text)
    except PlanError as error:
        raise argparse.ArgumentTypeError(error.message) from None
