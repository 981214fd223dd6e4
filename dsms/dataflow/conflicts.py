"""The conflict matrix: two operations conflict if they use the same window and one of them modifies it."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.dataflow.operation import Dataflow, Operation

Matrix = tuple[tuple[bool, ...], ...]


def number_operations(plan: Sequence[Dataflow]) -> tuple[tuple[str, Operation], ...]:
    """Return all operations of a plan with their streams: the rows and columns of the matrix."""
    return tuple((flow.stream, operation) for flow in plan for operation in flow.operations)


def has_conflict(one: Operation, other: Operation, settled: frozenset[str] = frozenset(), checked: bool = True) -> bool:
    """Whether two operations use the same window and at least one modifies it.

    In a `settled` window timestamps decide what is read, whenever it is written. Unless `checked`, -right is as printed
    in the paper: it does not check whether an equal item of its own stream has already removed the results.
    """
    crossed = one.writes & _windows_read(other, checked) | other.writes & _windows_read(one, checked)
    return bool(one.writes & other.writes or crossed - settled)


def conflict_matrix(
    plan: Sequence[Dataflow], *, timestamps: bool = False, checked: bool = True, by_arrival: bool = False
) -> Matrix:
    """Return the matrix whose entry i, j is true if operations i and j conflict.

    Each operation conflicts with itself, which keeps the items of a stream in order. With `timestamps` an item matches
    only items recorded before it, so a read of an input window waits for no writer. A result in an intermediate window
    has no timestamp until it is written, so a read of that window does wait. These waits follow the order of arrival,
    so timestamps must follow it too: then all recorders of inputs conflict, or results would be lost. They also
    conflict with `by_arrival`, where the result of each item must be that of the order of arrival.
    """
    operations = [operation for _, operation in number_operations(plan)]
    arrivals = frozenset(flow.operations[0].window for flow in plan)
    settled = arrivals if timestamps else frozenset()
    stored = any(operation.writes for flow in plan for operation in flow.operations[1:-1])
    stamping = settled if stored or by_arrival else frozenset()
    return tuple(
        tuple(
            i == j
            or bool(one.writes & stamping and other.writes & stamping)
            or has_conflict(one, other, settled, checked)
            for j, other in enumerate(operations)
        )
        for i, one in enumerate(operations)
    )


def conflicting_pairs(matrix: Matrix) -> list[tuple[int, int]]:
    """Return the conflicts of different operations, each once, numbered from 1 as in the paper."""
    return [(i, j) for i, row in enumerate(matrix, 1) for j, held in enumerate(row, 1) if held and i < j]


def _windows_read(operation: Operation, checked: bool) -> frozenset[str]:
    """Return the windows that an operation reads."""
    return operation.reads if checked else operation.reads & {operation.window}
