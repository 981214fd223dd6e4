"""What a gateway brings to a domain in one go, and where in its log that ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dsms.batch import Batch
from dsms.parcel import Parcel


class Delivery(NamedTuple):
    """All of a gateway's log from one offset to another, as far as the domain reads it."""

    gateway: str
    after: int  # where the domain must stand,
    upto: int  # and where it stands then
    contents: Sequence[tuple[str, Batch | Parcel | int]] = ()  # by stream, in order: rows, or how far it has come
    ends: bool = False  # whether nothing comes any more by all that the domain reads
