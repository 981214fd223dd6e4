"""The functions of the demonstration's operators; their costs are declared in the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.data.batch import Batch

Mask = NDArray[np.bool_]


def valid(clicks: Batch) -> Mask:
    """Drop clicks of robots: every fifth visitor."""
    return np.asarray(clicks.columns["visitor"] % 5 != 0)


def topic(clicks: Batch) -> Batch:
    """Add the department of the page."""
    return _with(clicks, topic=clicks.columns["page"] // 10)


def seen(clicks: Batch) -> Mask:
    """Keep pages viewed for at least a second: half of them."""
    return np.asarray(clicks.columns["stay"] >= 1.0)


def cart(clicks: Batch) -> Mask:
    """Keep clicks on a cart: one in ten."""
    return np.asarray(clicks.columns["page"] < 10)


def worth(clicks: Batch) -> Batch:
    """Add the expected revenue."""
    return _with(clicks, worth=np.round(clicks.columns["price"] * 0.35, 2))


def odd(clicks: Batch) -> Mask:
    """Keep clicks faster than people: three in twenty."""
    return np.asarray(clicks.columns["stay"] < 0.3)


def score(clicks: Batch) -> Batch:
    """Keep expensive items, three in ten, and add a fraud score."""
    expensive = clicks.pick(clicks.columns["price"] >= 70.0)
    return _with(expensive, score=expensive.columns["price"] / (expensive.columns["stay"] + 1.0))


def report(clicks: Batch) -> Batch:
    """Keep only the columns of a report."""
    return replace(clicks, columns={name: clicks.columns[name] for name in ("visitor", "score")})


def decode(logins: Batch) -> Batch:
    """Add the network of the address."""
    return _with(logins, network=logins.columns["address"] >> 8)


def failed(logins: Batch) -> Mask:
    """Keep failed logins: one in ten."""
    return np.asarray(logins.columns["outcome"] == 0)


def locate(logins: Batch) -> Batch:
    """Keep logins from far away, one half, and add the distance."""
    distance = logins.columns["network"] % 200 * 100
    return _with(logins, distance=distance).pick(distance >= 10_000)


def alert(logins: Batch) -> Batch:
    """Keep only the columns of an alert."""
    return replace(logins, columns={name: logins.columns[name] for name in ("visitor", "distance")})


def _with(batch: Batch, **columns: Any) -> Batch:
    """The rows with more columns."""
    return replace(batch, columns={**batch.columns, **columns})
