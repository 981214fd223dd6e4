"""Takes over the name of an older deployment: ends it if the user asks for that, or if it no longer answers."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from actors.cluster.cluster import PREFIX, get_deployment
from actors.deployment.actor_handles import list_actor_names, tear_down
from actors.deployment.start_wait import ReportProgress
from actors.rpc.answers import await_answer
from actors.rpc.messages import send
from dsms.errors import DsmsError

IDENTITY_TIMEOUT_S = 30.0  # for a live deployment to answer, on a busy machine: one that does not is ended
SHUTDOWN_TIMEOUT_S = 120.0
NAMES_SHOWN = 5  # of actors left over


def take_over(name: str, replace: bool, progress: ReportProgress) -> None:
    """End an older deployment of this name; one that answers is ended only with `replace`."""
    if f"{PREFIX}{name}" in list_actor_names(name):
        handle = get_deployment(name)
        try:
            identity = await_answer(send(handle.identity), f"deployment {name!r}", IDENTITY_TIMEOUT_S)
        except DsmsError as error:
            progress(f"an older deployment {name!r} does not answer ({error})")
        else:
            since = datetime.fromtimestamp(identity["since"]).isoformat(sep=" ", timespec="seconds")
            if not replace:
                raise DsmsError(
                    f"deployment {name!r} exists already, since {since}, at {', '.join(identity['gateways'])}; "
                    f"`dsms down --name {name}` ends it, `dsms up --replace` replaces it"
                )
            progress(f"ending the deployment {name!r} of {since}")
            with suppress(DsmsError):
                if unsaved := await_answer(send(handle.down), f"deployment {name!r}", SHUTDOWN_TIMEOUT_S):
                    progress(unsaved)
            tear_down(name)
    if killed := tear_down(name):
        progress(
            f"{len(killed)} actors and groups of an older deployment {name!r} ended: {', '.join(killed[:NAMES_SHOWN])}"
        )
