"""Which operations of a plan must not overtake one another: those that use one window, if one of them modifies it."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.dataflow.operation import Dataflow, Operation

Matrix = tuple[tuple[bool, ...], ...]


def numbered(plan: Sequence[Dataflow]) -> tuple[tuple[str, Operation], ...]:
    """The operations of all streams in a row, each with its stream: the rows and columns of the matrix."""
    return tuple((flow.stream, operation) for flow in plan for operation in flow.operations)


def conflict(one: Operation, other: Operation, settled: frozenset[str] = frozenset(), checked: bool = True) -> bool:
    """Whether two operations use the same window and at least one modifies it.

    In a `settled` window it is decided by timestamps what is read, whenever it is written. Unless `checked`, -right is
    the paper's as printed, which does not look whether an equal item of its own stream has already taken away.
    """
    crossed = one.writes & _read(other, checked) | other.writes & _read(one, checked)
    return bool(one.writes & other.writes or crossed - settled)


def conflict_matrix(
    plan: Sequence[Dataflow], *, timestamps: bool = False, checked: bool = True, by_arrival: bool = False
) -> Matrix:
    """Entry i, j: whether operations i and j conflict; each does with itself, which keeps a stream's items in order.

    With `timestamps` an item meets only items recorded before it: reading an input window then waits for no writer. A
    result in an intermediate window has no timestamp of its own until it is written, so there it does; and as those
    edges go by arrival, timestamps have to as well: then all recorders of inputs conflict, or results are lost. They
    also do with `by_arrival`, where not only the final result but each item's has to be that of the order of arrival.
    """
    operations = [operation for _, operation in numbered(plan)]
    arrivals = frozenset(flow.operations[0].window for flow in plan)
    settled = arrivals if timestamps else frozenset()
    stored = any(operation.writes for flow in plan for operation in flow.operations[1:-1])
    stamping = settled if stored or by_arrival else frozenset()
    return tuple(
        tuple(
            i == j or bool(one.writes & stamping and other.writes & stamping) or conflict(one, other, settled, checked)
            for j, other in enumerate(operations)
        )
        for i, one in enumerate(operations)
    )


def pairs(matrix: Matrix) -> list[tuple[int, int]]:
    """The conflicts of different operations, each once, counted from 1 as the paper does."""
    return [(i, j) for i, row in enumerate(matrix, 1) for j, held in enumerate(row, 1) if held and i < j]


def _read(operation: Operation, checked: bool) -> frozenset[str]:
    """The windows an operation looks into."""
    return operation.reads if checked else operation.reads & {operation.window}
