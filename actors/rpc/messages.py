"""Calls methods of Ray actors, by socket or through Ray, or of plain objects in their place; makes actors of classes.

A handle to an actor has the type of the actor's class, or of a protocol with the methods that its caller uses. `send`
and `Calls` check a call against it. Nothing else calls a method of a handle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Generic, ParamSpec, TypeVar, TypeVarTuple, Union

import ray
from ray import cloudpickle
from ray.exceptions import RayError

from actors.rpc.process_loss import is_process_gone, process_gone
from actors.rpc.ray_workarounds import skip_unused_serializers
from actors.transport.handle import SocketMethod, get_actor
from dsms.data.batch import Batch

skip_unused_serializers()  # here: every actor's module imports this one before Ray serializes anything

# The concurrency groups of actors: each has threads of its own.
BATCHES = "batches"  # of a host: receives batches while a turn runs
STATE_COPIES = "state_copies"  # of a host: hands out the copy made for a checkpoint while a turn runs
ARRIVALS = "arrivals"  # of a scheduler: rows are announced
CONTROL = "control"  # of a scheduler or gateway: commands and status
RESULTS = "results"  # of a gateway: results for its subscribers

SHARED_OBJECT_MIN_BYTES = 100_000  # from this size on, a value for several readers goes once through the object store
Result = tuple[str, int, Batch]  # a query, the number of this batch among its results, and the batch
PlanTable = dict[str, Any]  # a plan as parsed from TOML
JsonObject = dict[str, Any]  # plain data for `--json` and status tables

R = TypeVar("R")
T = TypeVar("T")
Parameters = ParamSpec("Parameters")
Arguments = TypeVarTuple("Arguments")
Call = Union["ray.ObjectRef[R]", "Future[R]", R]  # a call under way, or the answer of a plain object


class ActorClass(Generic[Parameters, T]):
    """A class whose instances run as Ray actors; `remote` takes the arguments of the plain class."""

    def __init__(self, remote_class: object) -> None:
        self._remote_class: Any = remote_class

    def options(self, **options: object) -> ActorClass[Parameters, T]:
        """The same class with Ray's options for the next actor."""
        return ActorClass(self._remote_class.options(**options))

    def remote(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> T:
        """Start an actor and return its handle."""
        handle: T = self._remote_class.remote(*arguments, **named)
        return handle


def make_actor_class(
    plain: Callable[Parameters, T], *groups: str, max_concurrency: int | None = None, **threads: int
) -> ActorClass[Parameters, T]:
    """Make an actor of a class, with one thread for each of `groups` and the given number for each of `threads`.

    It takes none of Ray's CPUs: schedulers share out the simulated CPU. Without `max_concurrency` Ray 2.60 keeps the
    order of the calls of one caller; with it, it does not.
    """
    options: dict[str, Any] = {"num_cpus": 0}
    if groups or threads:
        options["concurrency_groups"] = dict.fromkeys(groups, 1) | threads
    if max_concurrency is not None:
        options["max_concurrency"] = max_concurrency
    return ActorClass(ray.remote(**options)(plain))


def is_remote(method: object) -> bool:
    """Whether a method belongs to an actor's handle."""
    return hasattr(method, "remote")


def is_actor() -> bool:
    """Whether this process is an actor's."""
    return ray.is_initialized() and ray.get_runtime_context().get_actor_id() is not None


def is_restarted_actor() -> bool:
    """Whether Ray has restarted this actor after its process had ended."""
    return is_actor() and bool(ray.get_runtime_context().was_current_actor_reconstructed)


def get_own_handle(actor: T) -> T | None:
    """The handle by which others call this actor; None for a plain object."""
    if not is_actor():
        return None
    handle: T = ray.get_runtime_context().current_actor
    return handle


def send(method: Callable[[*Arguments], R], *arguments: *Arguments, group: str | None = None) -> Call[R]:
    """Call a method, in a concurrency group of its actor; `get_result` or `await_answer` waits for the answer."""
    if isinstance(method, SocketMethod):
        answer: Future[R] = method.call(*arguments)
        return answer
    if not is_remote(method):
        return method(*arguments)
    remote: Any = method
    call: Call[R] = (remote if group is None else remote.options(concurrency_group=group)).remote(*arguments)
    return call


def cast(method: Callable[[*Arguments], None], *arguments: *Arguments, group: str | None = None) -> None:
    """Call a method whose answer nobody waits for."""
    if isinstance(method, SocketMethod):
        method.cast(*arguments)
    else:
        send(method, *arguments, group=group)


def get_result(call: Call[R]) -> R:
    """Wait for a call inside a domain; OperatorError where a process has ended, else the error as it was raised."""
    if isinstance(call, Future):
        return call.result()
    if not isinstance(call, ray.ObjectRef):
        return call
    try:
        answer: R = ray.get(call)
        return answer
    except RayError as error:
        if is_process_gone(error):
            raise process_gone(error) from None
        # An error that an actor raised says in many lines where; its cause is what went wrong.
        raise getattr(error, "cause", None) or error from None


def get_results(calls: Sequence[Call[R]]) -> list[R]:
    """Wait for several calls; see `get_result`."""
    return [get_result(call) for call in calls]


def check_ready(handle: object) -> ray.ObjectRef[object]:
    """Ask an actor's process to answer, whatever its class; Ray 2.60 has this method in every handle."""
    actor: Any = get_actor(handle)
    call: ray.ObjectRef[object] = actor.__ray_ready__.remote()
    return call


def kill(handle: object) -> None:
    """End an actor's process; Ray does not start it again."""
    actor: Any = get_actor(handle)
    ray.kill(actor, no_restart=True)


def serialize(value: object) -> bytes:
    """Pickle a value, with the code it needs where no module has it."""
    dumps: Any = cloudpickle.dumps
    return bytes(dumps(value))


def deserialize(data: bytes) -> Any:
    """Unpickle a value; its arrays are writeable, unlike those of Ray 2.60's own transfer."""
    loads: Any = cloudpickle.loads
    return loads(data)
