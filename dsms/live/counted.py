"""What a domain shows to have counted since it began, by name: so that one that is rebuilt goes on with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsms.live.phases import Phases
from dsms.live.tally import Tally


@dataclass(frozen=True)
class Counted:
    """Copies: what is counted later is not in them."""

    rows: Mapping[str, int]  # by stream
    results: Mapping[str, int]  # by query
    tally: Tally
    turns: int
    phases: Phases
    asides: Mapping[tuple[str, str], int]  # rows by station and kind
    reasons: Mapping[tuple[str, str], str]  # of the first of them
