"""Waits for answers of actors within a time limit; every failure is a DsmsError that names what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

import ray
from ray.exceptions import RayError, RayTaskError

from actors.rpc.messages import Call, R, get_result
from actors.rpc.process_loss import translate_error, unwrap

ANSWER_TIMEOUT_S = 30.0  # for work between two turns


def await_answer(call: Call[R], what: str, timeout: float = ANSWER_TIMEOUT_S) -> R:
    """Wait for one call; `what` names it in errors."""
    return await_answers([call], what, timeout)[0]


def is_answered(call: Call[R], timeout: float) -> bool:
    """Whether a call is answered, or has failed, within the time limit."""
    return not drop_answered([call], timeout)


def drop_answered(calls: Sequence[Call[R]], timeout: float) -> list[Call[R]]:
    """The calls that are not answered yet, after waiting for one of them at most this long."""
    futures = [call for call in calls if isinstance(call, Future)]
    references = [call for call in calls if isinstance(call, ray.ObjectRef)]
    if futures:
        wait(futures, timeout, FIRST_COMPLETED)
    if references:
        _, references = ray.wait(references, num_returns=1 if timeout else len(references), timeout=timeout)
    return [*(future for future in futures if not future.done()), *references]


def await_answers(calls: Sequence[Call[R]], what: str, timeout: float = ANSWER_TIMEOUT_S) -> list[R]:
    """Wait for several calls, all within the time limit."""
    pending = [call for call in calls if isinstance(call, ray.ObjectRef)]
    try:
        answers = iter(ray.get(pending, timeout=timeout) if pending else ())  # Ray 2.60 starts itself to wait for none
        return [next(answers) if isinstance(call, ray.ObjectRef) else get_result(call) for call in calls]
    except RayError as error:
        translated = translate_error(error, what, timeout)
        is_unexpected = isinstance(error, RayTaskError) and translated is not unwrap(error)
        raise translated from (error if is_unexpected else None)  # an error in code keeps its traceback
