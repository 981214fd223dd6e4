"""Waits for answers of actors within a time limit; every failure is a DsmsError that names what was asked."""

from __future__ import annotations

from collections.abc import Sequence

import ray
from ray.exceptions import RayError, RayTaskError

from actors.rpc.messages import Call, R
from actors.rpc.process_loss import translate_error, unwrap

ANSWER_TIMEOUT_S = 30.0  # for work between two turns


def await_answer(call: Call[R], what: str, timeout: float = ANSWER_TIMEOUT_S) -> R:
    """Wait for one call; `what` names it in errors."""
    return await_answers([call], what, timeout)[0]


def is_answered(call: Call[R], timeout: float) -> bool:
    """Whether a call is answered, or has failed, within the time limit."""
    return not isinstance(call, ray.ObjectRef) or bool(ray.wait([call], timeout=timeout)[0])


def await_answers(calls: Sequence[Call[R]], what: str, timeout: float = ANSWER_TIMEOUT_S) -> list[R]:
    """Wait for several calls, all within the time limit."""
    pending = [call for call in calls if isinstance(call, ray.ObjectRef)]
    try:
        answers = iter(ray.get(pending, timeout=timeout) if pending else ())  # Ray 2.60 starts itself to wait for none
        return [next(answers) if isinstance(call, ray.ObjectRef) else call for call in calls]
    except RayError as error:
        translated = translate_error(error, what, timeout)
        is_unexpected = isinstance(error, RayTaskError) and translated is not unwrap(error)
        raise translated from (error if is_unexpected else None)  # an error in code keeps its traceback
