"""User code as an operator: a function of a batch, named in a plan as `module:name` or given as an object."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsms.batch import Batch
from dsms.errors import PlanError, existing
from dsms.operators.base import Operator


@dataclass(eq=False)
class Function(Operator):
    """Calls a function with each batch; it answers with a batch, or with a mask of the rows to keep."""

    function: Callable[[Batch], Any] = lambda batch: batch

    def process(self, batch: Batch, port: int = 0) -> Batch:
        answer = self.function(batch)
        if isinstance(answer, Batch):
            return answer
        if isinstance(answer, np.ndarray) and answer.dtype == bool and len(answer) == len(batch):
            return batch.pick(answer)
        raise TypeError(
            f"function {self.function.__name__!r} answered {type(answer).__name__}: "
            f"a Batch or a boolean mask of {len(batch)} rows is wanted"
        )


def function_named(text: str) -> Callable[[Batch], Any]:
    """The function that `module:name` stands for."""
    module, _, name = text.partition(":")
    if not module or not name:
        raise PlanError(f"function {text!r} is not of the form 'module:name'", "function")
    try:
        found = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise PlanError(f"function {text!r}: module {module!r} cannot be imported: {error}", "function") from None
    except AttributeError:
        names = [n for n in vars(importlib.import_module(module)) if not n.startswith("_")]
        raise PlanError(f"function {text!r}: no {name!r} in {module!r}{existing(name, names)}", "function") from None
    if not callable(found):
        raise PlanError(f"function {text!r} is a {type(found).__name__}, not a function", "function")
    return found  # type: ignore[no-any-return]
