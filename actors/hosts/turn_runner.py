"""Runs a host's part of turns: of the granted one and, while the scheduler would have no choice, of those after it.

A scheduler decides whenever it has a choice. It has none if only one queue has tuples and nothing has come since: then
the segment that reads this queue is next under every policy, and asking would cost a message each way.
"""

from __future__ import annotations

from actors.hosts.grant import BegunTurn, Grant
from actors.hosts.host_turn import HostTurn
from actors.hosts.segment_layout import SegmentCursors, SegmentLayout
from actors.transport.epoch import EpochReader
from dsms.clock import monotonic_s
from dsms.engine.runners.turn_cursor import CursorState, TurnCursor


class TurnRunner:
    """Knows the segments of the plan as the scheduler has described them."""

    def __init__(self) -> None:
        self.epoch: EpochReader | None = None  # of the scheduler, which raises it when something comes
        self._segments: dict[int, SegmentCursors] = {}  # by number of the layout
        self._readers: dict[int, tuple[int, int]] = {}  # by queue: layout of the segment that reads it, and its place

    def learn(self, layout: SegmentLayout, forget: bool) -> None:
        """Remember a segment; `forget`: drop those learned before."""
        if forget:
            self._segments, self._readers = {}, {}
        self._segments[layout.number] = SegmentCursors(layout)
        if layout.is_whole:
            self._readers.update((queue.number, (layout.number, queue.place)) for queue in layout.queues)

    def run(self, grant: Grant, host_turn: HostTurn, started: float) -> tuple[int, Grant] | None:
        """Run turns until one continues at another host: return its place and the grant for it."""
        now = started if grant.origin is None else started - grant.origin
        while True:
            segment = self._segments[grant.layout]
            state = self._begin(grant, segment, now)
            if state is None:
                return None
            cursor = TurnCursor.restore(state, segment.by_index, segment.after)
            following = cursor.run_until_remote(host_turn)
            if following is not None:
                heads, produced = segment.heads()
                return following.place, grant._replace(cursor=cursor.snapshot(), heads=heads, produced=produced)
            forced = self._find_forced(grant, segment)
            if forced is None:
                return None
            number, place = forced
            grant = grant._replace(layout=number, cursor=None)
            if place != host_turn.place:
                return place, grant
            now = monotonic_s() - (grant.origin or 0.0)

    def _begin(self, grant: Grant, segment: SegmentCursors, now: float) -> CursorState | None:
        """Where the turn begins, or goes on; None: the scheduler has not granted this segment to this host before."""
        if grant.cursor is None:
            state = segment.begin(grant.filled, now)
            if state is not None:
                grant.turns.append(BegunTurn(grant.layout, now, len(grant.steps)))
                grant.filled.clear()
            return state
        segment.set_heads(grant.heads, grant.produced, grant.has_ended)
        if not grant.cursor.has_moved:
            segment.began = grant.cursor
        # On the wall clock the way to this host took time, too.
        return grant.cursor if grant.origin is None else grant.cursor._replace(at=now)

    def _find_forced(self, grant: Grant, segment: SegmentCursors) -> tuple[int, int] | None:
        """The layout and place of the only segment that can be next; None if there is a choice, or none is known."""
        if grant.epoch is None or self.epoch is None or self.epoch.read() != grant.epoch:
            return None
        if len(grant.filled) != 1 or not segment.is_empty:
            return None
        return self._readers.get(next(iter(grant.filled)))
