"""The operator that calls a user's function with each batch; a plan names the function as `module:name`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dsms.data.batch import Batch
from dsms.errors import PlanError, existing
from dsms.operators.base import Operator

# Folders from which functions were loaded, in order: a process that unpickles them needs the same import path.
FUNCTION_FOLDERS: dict[str, None] = {}


@dataclass(eq=False)
class FunctionOperator(Operator):
    """Calls a function with each batch; the function returns a batch or a boolean mask of the rows to keep.

    A function with state of its own must leave that state unchanged when it raises.
    """

    function: Callable[[Batch], Any] = lambda batch: batch
    atomic: ClassVar[bool] = True

    def process(self, batch: Batch, port: int = 0) -> Batch:
        if not len(batch):
            return batch  # only a watermark: the function gets rows alone
        answer = self.function(batch)
        if isinstance(answer, np.ndarray) and answer.dtype == bool and len(answer) == len(batch):
            return batch.pick(answer)
        if not isinstance(answer, Batch):
            name = getattr(self.function, "__name__", repr(self.function))
            raise TypeError(
                f"function {name!r} returned {type(answer).__name__}: "
                f"it must return a Batch or a boolean mask of {len(batch)} rows"
            )
        if isinstance(answer.arrived, float) and answer.arrived == 0.0 and len(batch):
            # The function built a new batch instead of picking rows: it arrives with the last of its input rows.
            return replace(answer, arrived=float(np.max(batch.arrived)), seq=int(np.min(batch.seq)))
        return answer


def load_function(text: str, folder: Path = Path()) -> Callable[[Batch], Any]:
    """Import the function that `module:name` names; modules in the plan's folder can be imported too."""
    module, _, name = text.partition(":")
    if not module or not name:
        raise PlanError(f"function {text!r} is not of the form 'module:name'", "function")
    FUNCTION_FOLDERS[str(folder.absolute())] = None
    sys.path.insert(0, str(folder.absolute()))
    try:
        members = vars(importlib.import_module(module))
    except Exception as error:  # a module may raise anything while it is imported
        raise PlanError(f"function {text!r}: module {module!r} cannot be imported: {error}", "function") from None
    finally:
        sys.path.remove(str(folder.absolute()))
    if name not in members:
        names = [known for known in members if not known.startswith("_")]
        raise PlanError(f"function {text!r}: no {name!r} in {module!r}{existing(name, names)}", "function")
    function: Callable[[Batch], Any] = members[name]
    if not callable(function):
        raise PlanError(f"function {text!r} is a {type(function).__name__}, not a function", "function")
    return function
