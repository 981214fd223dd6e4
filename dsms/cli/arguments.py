"""What commands ask for in common: a plan and policies; and numbers, checked."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TypeVar

from dsms.policies.registry import policy_names

Number = TypeVar("Number", int, float)


def plan_and_policy(parser: argparse.ArgumentParser, about: str, required: bool = False) -> None:
    """A plan, and policies by their names."""
    there_are = f"{about}. There are: {', '.join(policy_names())}"
    parser.add_argument("plan", metavar="PLAN", help="a plan file (TOML)")
    parser.add_argument("--policy", metavar="NAME[:key=value,…]", action="append", required=required, help=there_are)


def policy_list(text: str) -> list[str]:
    """Policies with commas between them, of which each may have parameters with commas between those."""
    found: list[str] = []
    for piece in text.split(","):
        if found and "=" in piece and piece.partition(":")[0] not in policy_names():
            found[-1] += f",{piece}"
        else:
            found.append(piece)
    return found


def recording(parser: argparse.ArgumentParser, where: str = "DIR") -> None:
    """Whether the run is written down."""
    parser.add_argument(
        "--record",
        metavar="DIR",
        type=Path,
        help=f"write turns, arrivals, outputs and memory to a folder in {where}, as Parquet: for `dsms whatif` and "
        "`dsms report`",
    )


def number(text: str) -> float:
    """From 0."""
    value = _parsed(float, text, "a number from 0")
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0")
    return value


def positive(text: str) -> float:
    """Above 0."""
    value = _parsed(float, text, "a positive number")
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def whole(text: str) -> int:
    """A whole number from 0."""
    value = _parsed(int, text, "a whole number from 0")
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return value


def several(text: str) -> int:
    """A whole number from 1."""
    value = _parsed(int, text, "a whole number from 1")
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return value


def _parsed(kind: type[Number], text: str, wanted: str) -> Number:
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}") from None
