"""How actors are spoken to: which of an actor's threads takes a call, and plain objects where there is no Ray."""

from __future__ import annotations

from typing import Any

import ray
from ray import cloudpickle
from ray.exceptions import RayActorError, RayTaskError

from dsms.batch import Batch
from dsms.errors import OperatorError

GOODS = "goods"  # of a host: batches come in while it works
ARRIVALS = "arrivals"  # of a scheduler: rows are announced
CONTROL = "control"  # of a scheduler: whoever steers it
KEPT = "kept"  # of a host: what was kept for a checkpoint is fetched while it works

LARGE = 100_000  # bytes from which what several read goes once through Ray's object store
Result = tuple[str, int, Batch]  # of a query, the so-manieth, and its rows


def is_remote(method: Any) -> bool:
    """Whether a method is an actor's."""
    return hasattr(method, "remote")


def myself() -> Any:
    """The handle by which others call the actor that this is; None where it is none."""
    if not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    return context.current_actor if context.get_actor_id() is not None else None


def send(method: Any, *arguments: Any, group: str | None = None) -> Any:
    """Call a method of an actor, or of a plain object in its place; answers what the call will have come to."""
    if not is_remote(method):
        return method(*arguments)
    return (method if group is None else method.options(concurrency_group=group)).remote(*arguments)


def answered(calls: Any) -> Any:
    """What a call, or each of a list of them, has come to."""
    if isinstance(calls, list):
        return [answered(call) for call in calls]
    if not isinstance(calls, ray.ObjectRef):
        return calls
    try:
        return ray.get(calls)
    except RayTaskError as error:  # says in many lines where it was; what was raised there is what went wrong
        raise getattr(error, "cause", None) or error from None
    except RayActorError as error:
        raise OperatorError(f"a process is gone with the stations in it: {str(error).splitlines()[0]}") from None


def pickled(value: Any) -> bytes:
    """A value with the code it needs, where that is not in a module that others can import."""
    dumps: Any = cloudpickle.dumps
    return bytes(dumps(value))


def unpickled(data: bytes) -> Any:
    """The value again, and writeable: what Ray brings as it is cannot be written to."""
    loads: Any = cloudpickle.loads
    return loads(data)


def actor(plain: type[Any], *groups: str, **threads: int) -> Any:
    """A class as an actor that takes none of Ray's CPUs: the one simulated CPU is what schedulers grant."""
    options: Any = {"num_cpus": 0, "concurrency_groups": dict.fromkeys(groups, 1) | threads}
    return ray.remote(**options)(plain)
