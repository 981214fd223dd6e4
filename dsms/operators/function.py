"""User code as an operator: a function of a batch, named in a plan as `module:name` or given as an object."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dsms.batch import Batch
from dsms.errors import PlanError, existing
from dsms.operators.base import Operator

FOLDERS: dict[str, None] = {}  # where functions were looked for: another process that gets them must look there too


@dataclass(eq=False)
class Function(Operator):
    """Calls a function with each batch; it answers with a batch, or with a mask of the rows to keep.

    A function that keeps something of its own has to leave it as it was when it raises.
    """

    function: Callable[[Batch], Any] = lambda batch: batch
    atomic: ClassVar[bool] = True

    def process(self, batch: Batch, port: int = 0) -> Batch:
        if not len(batch):
            return batch  # only time: the user's code is for rows
        answer = self.function(batch)
        if isinstance(answer, np.ndarray) and answer.dtype == bool and len(answer) == len(batch):
            return batch.pick(answer)
        if not isinstance(answer, Batch):
            name = getattr(self.function, "__name__", repr(self.function))
            raise TypeError(
                f"function {name!r} answered {type(answer).__name__}: "
                f"a Batch or a boolean mask of {len(batch)} rows is wanted"
            )
        if isinstance(answer.arrived, float) and answer.arrived == 0.0 and len(batch):
            # Built anew rather than from the rows given: it needed all of them, so it is as late as the last.
            return replace(answer, arrived=float(np.max(batch.arrived)), seq=int(np.min(batch.seq)))
        return answer


def function_named(text: str, folder: Path = Path()) -> Callable[[Batch], Any]:
    """The function that `module:name` stands for; modules in the plan's folder are found too."""
    module, _, name = text.partition(":")
    if not module or not name:
        raise PlanError(f"function {text!r} is not of the form 'module:name'", "function")
    FOLDERS[str(folder.absolute())] = None
    sys.path.insert(0, str(folder.absolute()))
    try:
        found = vars(importlib.import_module(module))
    except Exception as error:  # whatever a module does while it is imported
        raise PlanError(f"function {text!r}: module {module!r} cannot be imported: {error}", "function") from None
    finally:
        sys.path.remove(str(folder.absolute()))
    if name not in found:
        names = [known for known in found if not known.startswith("_")]
        raise PlanError(f"function {text!r}: no {name!r} in {module!r}{existing(name, names)}", "function")
    function: Callable[[Batch], Any] = found[name]
    if not callable(function):
        raise PlanError(f"function {text!r} is a {type(function).__name__}, not a function", "function")
    return function
