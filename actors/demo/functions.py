"""What the operators of the demonstration's plan do to rows; what they cost is declared in the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.batch import Batch

Mask = NDArray[np.bool_]


def valid(clicks: Batch) -> Mask:
    """Not by the fifth of all visitors that are robots."""
    return np.asarray(clicks.columns["visitor"] % 5 != 0)


def topic(clicks: Batch) -> Batch:
    """With the part of the shop that the page is in."""
    return _with(clicks, topic=clicks.columns["page"] // 10)


def seen(clicks: Batch) -> Mask:
    """Looked at for a second at least: every other one."""
    return np.asarray(clicks.columns["stay"] >= 1.0)


def cart(clicks: Batch) -> Mask:
    """Something was put into a cart: one in ten."""
    return np.asarray(clicks.columns["page"] < 10)


def worth(clicks: Batch) -> Batch:
    """With what it will bring in the mean."""
    return _with(clicks, worth=np.round(clicks.columns["price"] * 0.35, 2))


def odd(clicks: Batch) -> Mask:
    """Faster than people are: three in twenty."""
    return np.asarray(clicks.columns["stay"] < 0.3)


def score(clicks: Batch) -> Batch:
    """The three in ten that are dear, with how sure we are that something is wrong."""
    dear = clicks.pick(clicks.columns["price"] >= 70.0)
    return _with(dear, score=dear.columns["price"] / (dear.columns["stay"] + 1.0))


def report(clicks: Batch) -> Batch:
    """Only what whoever looks into it needs."""
    return replace(clicks, columns={name: clicks.columns[name] for name in ("visitor", "score")})


def decode(logins: Batch) -> Batch:
    """With the network that the address is in."""
    return _with(logins, network=logins.columns["address"] >> 8)


def failed(logins: Batch) -> Mask:
    """The password was wrong: one in ten."""
    return np.asarray(logins.columns["outcome"] == 0)


def locate(logins: Batch) -> Batch:
    """The half that come from far away, with the distance."""
    distance = logins.columns["network"] % 200 * 100
    return _with(logins, distance=distance).pick(distance >= 10_000)


def alert(logins: Batch) -> Batch:
    """Only what a guard is told."""
    return replace(logins, columns={name: logins.columns[name] for name in ("visitor", "distance")})


def _with(batch: Batch, **columns: Any) -> Batch:
    """The same rows with more columns."""
    return replace(batch, columns={**batch.columns, **columns})
