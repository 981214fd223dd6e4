"""The state of a join input with retractions in any order: an aggregate, a subquery, another join."""

from __future__ import annotations

import numpy as np

from dsms.data.batch import Batch
from dsms.data.schema import DTYPES
from dsms.operators.joins.state.event_order import INSERT_BIT, ORDERS_PER_INSTANT, RowEvents
from dsms.operators.joins.state.key_codes import Ints, Mask
from dsms.operators.joins.state.retractable_rows import INSERTED_AT, RetractableRows
from dsms.operators.joins.state.window_state import ARRIVED_AT, InputLayout, InputState


class RetractableState(InputState):
    """A relation built from its changes; rows that agree in all stored columns are interchangeable."""

    def __init__(self, layout: InputLayout) -> None:
        super().__init__(layout)
        types = {name: DTYPES[layout.schema[name]] for name in layout.columns}
        self._retractable = RetractableRows(types, {ARRIVED_AT: np.dtype(np.float64)})
        self.rows = self._retractable.rows
        self._new = 0  # rows from here on are not returned by `insertions` yet
        self._retracted: RowEvents | None = None

    def record(self, batch: Batch) -> Batch | None:
        """Record rows of complete instants; return the retractions of rows that it does not hold."""
        inserted = batch.each("sign") > 0
        orders = batch.each("ts") * ORDERS_PER_INSTANT + INSERT_BIT * inserted + self.layout.port
        arrived = batch.each("arrived")
        rows, which = self._retractable.record({**batch.columns, ARRIVED_AT: arrived}, orders, inserted)
        by_order = np.argsort(which, kind="stable")
        rows, which = rows[by_order], which[by_order]
        self._retracted = RowEvents(rows, orders[which], arrived[which])
        if len(rows) == len(inserted) - np.count_nonzero(inserted):
            return None
        is_applied = inserted
        is_applied[which] = True
        return batch.pick(~is_applied)

    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        return self._retractable.span(orders)

    def is_visible(self, which: Ints, rows: Ints, orders: Ints) -> Mask | None:
        return self._retractable.is_visible(which, rows, orders)

    def is_alive(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        return self._retractable.is_visible(which, rows, orders)

    def insertions(self) -> RowEvents:
        """Return the rows inserted since the last call."""
        positions = np.arange(self._new, self.rows.end)
        self._new = self.rows.end
        return self._events(positions, self.rows.take(INSERTED_AT, positions))

    def deletions(self) -> RowEvents:
        """Return the rows retracted since the last call."""
        nothing = np.zeros(0, dtype=np.int64)
        retracted, self._retracted = self._retracted or RowEvents(nothing, nothing, np.zeros(0)), None
        return retracted

    @property
    def needs_compaction(self) -> bool:
        """Whether enough rows are deleted to free them."""
        return self._retractable.needs_compaction()

    def release(self) -> Ints | None:
        """Free deleted rows if there are enough; return the old positions of the other rows, None if unchanged."""
        if not self.needs_compaction:
            return None
        kept = self._retractable.left()
        self.rows.keep(kept)
        self._retractable.renumber()
        self._new = self.rows.end
        self.forget()
        return kept
