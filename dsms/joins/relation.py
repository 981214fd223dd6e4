"""An input whose rows are taken back in any order: an aggregate, a sub-query, another join."""

from __future__ import annotations

import numpy as np

from dsms.batch import Batch
from dsms.joins.events import COMES, INSTANT, Events
from dsms.joins.keys import Ints, Mask
from dsms.joins.mortal import BORN, Mortals
from dsms.joins.sides import ARRIVED, InputSide, Layout
from dsms.schema import DTYPES


class RelationSide(InputSide):
    """A relation by its changes; rows that agree in all columns that are kept stand for one another."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        types = {name: DTYPES[layout.schema[name]] for name in layout.columns}
        self._mortals = Mortals(types, {ARRIVED: np.dtype(np.float64)})
        self.rows = self._mortals.rows
        self._new = 0  # rows from here on have not come yet
        self._taken: Events | None = None

    def record(self, batch: Batch) -> Batch | None:
        """Rows whose instants are complete; those taken back that are not there."""
        comes = batch.each("sign") > 0
        orders = batch.each("ts") * INSTANT + COMES * comes + self.layout.port
        arrived = batch.each("arrived")
        rows, which = self._mortals.record({**batch.columns, ARRIVED: arrived}, orders, comes)
        by_order = np.argsort(which, kind="stable")
        rows, which = rows[by_order], which[by_order]
        self._taken = Events(rows, orders[which], arrived[which])
        if len(rows) == len(comes) - np.count_nonzero(comes):
            return None
        comes[which] = True
        return batch.pick(~comes)

    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        return self._mortals.span(orders)

    def there(self, which: Ints, rows: Ints, orders: Ints) -> Mask | None:
        return self._mortals.there(which, rows, orders)

    def lasting(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        return self._mortals.there(which, rows, orders)

    def births(self) -> Events:
        """The rows recorded since the last time."""
        positions = np.arange(self._new, self.rows.end)
        self._new = self.rows.end
        return self._events(positions, self.rows.take(BORN, positions))

    def deaths(self) -> Events:
        """The rows taken back since the last time."""
        nothing = np.zeros(0, dtype=np.int64)
        taken, self._taken = self._taken or Events(nothing, nothing, np.zeros(0)), None
        return taken

    @property
    def crowded(self) -> bool:
        """Whether it is time to let go what has gone."""
        return self._mortals.crowded()

    def release(self) -> Ints | None:
        """Let go what has gone, now and then; the old positions of what is left, if they have changed."""
        if not self.crowded:
            return None
        kept = self._mortals.left()
        self.rows.keep(kept)
        self._mortals.renumber()
        self._new = self.rows.end
        self.forget()
        return kept
