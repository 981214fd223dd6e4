"""What is there of an older deployment under the same name: it is ended, if that is asked for or nobody answers."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from actors.cluster import PREFIX, deployment
from actors.launch import Tell
from actors.parts import named, settled, sweep
from dsms.errors import DsmsError

ALIVE = 5.0  # seconds in which a deployment that lives says so
ENDING = 120.0  # seconds for it to end
SHOWN = 5  # names of what was left over


def make_room(name: str, replace: bool, progress: Tell) -> None:
    """Nothing of this name may be there: what answers is not touched unless asked for, what does not is in the way."""
    there = named(name)
    if f"{PREFIX}{name}" in there:
        handle = deployment(name)
        try:
            identity = settled(handle.identity.remote(), f"deployment {name!r}", ALIVE)
        except DsmsError as error:
            progress(f"an older deployment {name!r} does not answer ({error})")
        else:
            since = datetime.fromtimestamp(identity["since"]).isoformat(sep=" ", timespec="seconds")
            if not replace:
                raise DsmsError(
                    f"there is a deployment {name!r} already, since {since}, at {', '.join(identity['gateways'])}; "
                    f"`dsms down --name {name}` ends it, `dsms up --replace` puts this one in its place"
                )
            progress(f"ending the deployment {name!r} of {since}")
            with suppress(DsmsError):
                settled(handle.down.remote(), f"deployment {name!r}", ENDING)
            sweep(name)
    if swept := sweep(name):
        progress(f"{len(swept)} left of an older deployment {name!r} ended: {', '.join(swept[:SHOWN])}")
