"""How a plan is deployed: the `[live]` table of a plan file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from dsms.clock import Clock, PacedClock, VirtualClock, WallClock
from dsms.config.fields import ChoiceField, IntegerField, NumberField, TextField, read_dataclass
from dsms.config.frame_limits import FRAME_LIMIT_BYTES, FRAME_LIMIT_MAX_BYTES, UNAUTHENTICATED_FRAME_LIMIT_BYTES
from dsms.errors import PlanError

CLOCKS = ("wall", "paced", "virtual")
DEFAULT_PORT = 7411  # outside the range that Ray keeps for its workers
DEFAULT_ACTORS = 24

Text = Annotated[str, TextField(may_be_empty=True)]
Count = Annotated[int, IntegerField(least=1)]
Limit = Annotated[int | None, IntegerField(least=1)]
Seconds = Annotated[float, NumberField(above=0)]


@dataclass(frozen=True)
class LiveConfig:
    """The first policy, the clock, the number of processes, and the limits of a deployment."""

    policy: Text = "fifo"
    # wall: measured costs; paced: declared costs, waited for; virtual: declared costs, not waited for
    clock: Annotated[str, ChoiceField(CLOCKS)] = "wall"
    budget: Annotated[float, NumberField(above=0)] = 1.0  # paced: the share of a CPU; costs take 1/budget of their time
    domains: Count = 1  # CPU budgets, each with its own scheduler
    actors: Count = DEFAULT_ACTORS  # station actors a domain may have; with more stations, several share one
    gateways: Count = 1  # processes that take rows in and send results out, at consecutive ports
    host: Text = "127.0.0.1"
    port: Annotated[int, IntegerField(least=0)] = DEFAULT_PORT  # of the first gateway; 0: any free port
    metrics: Annotated[int | None, IntegerField(least=0)] = (
        None  # port of the metrics; 0: any free port; None: no metrics
    )
    metrics_host: Text = "127.0.0.1"
    certificate: Text = ""  # the file of the TLS certificate; empty: rows and tokens are not encrypted
    key: Text = ""  # the file of the certificate's private key
    connections: Count = 1000  # open at once, for each gateway
    frame: Annotated[int, IntegerField(UNAUTHENTICATED_FRAME_LIMIT_BYTES, FRAME_LIMIT_MAX_BYTES)] = FRAME_LIMIT_BYTES
    hello: Seconds = 10.0  # time that a client has to send its hello
    most_rows: Limit = None  # that a domain holds before ingest stops; None: any number
    most_bytes: Limit = None  # likewise, with operators' state; None: all domains share a quarter of the machine's
    most_stored: Count = 1024**3  # durable: bytes in a gateway's log, not admitted yet, before it stops reading
    patience: Seconds = 30.0  # without progress, though there is work, until the watchdog reports a stall
    dead_letters: Text = (
        ""  # folder for rows that operators fail on, on each scheduler's node; empty: the plan's folder
    )
    record: Text = ""  # folder for recordings of runs, on each scheduler's node; empty: runs are not recorded
    durable: Text = ""  # folder for the log and checkpoints, on the gateways' node; empty: a crash loses all rows
    checkpoint: Seconds = 1.0  # between two checkpoints of a durable deployment

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> LiveConfig:
        """Read the `[live]` table of a plan file."""
        config = read_dataclass(cls, table)
        if config.durable and config.clock == "virtual":
            raise PlanError("a virtual clock restarts at 0 with every process: use a wall or paced clock", "durable")
        for key, port in (("port", config.port), ("metrics", config.metrics or 0)):
            if port > 65_535 or 0 < port < 1024 or 10_002 <= port <= 19_999:
                raise PlanError(f"{port} cannot be the port: 10002 to 19999 are Ray's, below 1024 the system's", key)
        return config


def make_clock(setup: LiveConfig, epoch: float | None, sleep: Callable[[float], object]) -> Clock:
    """The clock named in the configuration."""
    if setup.clock == "virtual":
        return VirtualClock()
    return PacedClock(epoch, sleep, budget=setup.budget) if setup.clock == "paced" else WallClock(epoch, sleep)


def apply_live_defaults(table: Mapping[str, Any], setup: LiveConfig) -> dict[str, Any]:
    """A plan's table with the defaults of a live system: costs are measured, bad rows become dead letters.

    Rows of streams with a schema come from clients, so the plan's `arrivals` of these streams are dropped.
    """
    live = {"on_error": "dead-letter", **({"statistics": "average"} if setup.clock == "wall" else {})}
    streams = {
        name: {key: value for key, value in each.items() if key != "arrivals"} if "schema" in each else each
        for name, each in table.get("streams", {}).items()
    }
    return {**table, "streams": streams, "run": {**live, **table.get("run", {})}}
