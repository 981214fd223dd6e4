"""How a plan is deployed: the `[live]` table of a plan file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dsms.errors import PlanError, existing
from dsms.reading import number
from dsms.wire import LIMIT
from dsms.wire.frames import HIGHEST_LIMIT
from dsms.wire.session import STRANGER

CLOCKS = ("wall", "paced", "virtual")
WHOLE = {  # with the least that each may be
    "domains": 1, "actors": 1, "gateways": 1, "port": 0, "metrics": 0, "connections": 1, "frame": STRANGER,
    "most_rows": 1, "most_bytes": 1, "most_stored": 1
}  # fmt: skip
POSITIVE = ("budget", "hello", "patience", "checkpoint")
PORT = 7411  # outside the range that Ray keeps for its workers
ACTORS = 24


@dataclass(frozen=True)
class Setup:
    """Who decides at first, by what clock, and over how many processes the work is spread."""

    policy: str = "fifo"
    clock: str = "wall"  # measured; or "paced": declared costs waited out; or "virtual"
    budget: float = 1.0  # paced: how much of a CPU there is; costs take 1/budget of their time
    domains: int = 1  # CPU budgets, each with a scheduler of its own
    actors: int = ACTORS  # station actors a domain may have: with more stations, several share one
    gateways: int = 1  # processes that take rows in and give results out, at ports one after the other
    host: str = "127.0.0.1"
    port: int = PORT  # of the first gateway; 0: any that is free
    metrics: int | None = None  # the port that metrics are served at; 0: any that is free; None: they are not
    metrics_host: str = "127.0.0.1"
    certificate: str = ""  # of TLS, and the file of its key; none: rows and tokens go as they are
    key: str = ""
    connections: int = 1000  # that a gateway keeps at once
    frame: int = LIMIT  # bytes of the largest frame that is taken
    hello: float = 10.0  # seconds that a client has to say who it is
    most_rows: int | None = None  # that a domain holds before ingest stops; None: any number
    most_bytes: int | None = None  # likewise, with operators' state; None: a quarter of its machine's, for all domains
    most_stored: int = 1024**3  # durable: bytes of a gateway's log that are not admitted before it reads no more
    patience: float = 30.0  # seconds without progress, though there is work, until the watchdog says so
    dead_letters: str = ""  # the folder for rows that operators fail on, on each scheduler's node; none: the plan's
    record: str = ""  # the folder that runs are recorded to, on each scheduler's node; none: they are not
    durable: str = ""  # the folder for the log and checkpoints, where gateways are; none: a crash loses what was there
    checkpoint: float = 1.0  # seconds between two checkpoints, where there are any

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Setup:
        """The setup of a plan file's `[live]` table."""
        names = [field.name for field in fields(cls)]
        for key, value in table.items():
            if key not in names:
                raise PlanError(f"no setting {key!r}{existing(key, names)}", key)
            if key in WHOLE:
                if not isinstance(value, int) or isinstance(value, bool) or value < WHOLE[key]:
                    raise PlanError(f"{value!r} is not a whole number from {WHOLE[key]}", key)
            elif key in POSITIVE:
                number(value, key, positive=True)
            elif not isinstance(value, str):
                raise PlanError(f"{value!r} is not a text", key)
        setup = cls(**table)
        if setup.frame > HIGHEST_LIMIT:
            raise PlanError(f"{setup.frame} bytes are too many for a frame: at most {HIGHEST_LIMIT}", "frame")
        if setup.clock not in CLOCKS:
            raise PlanError(f"{setup.clock!r} is no clock{existing(setup.clock, CLOCKS)}", "clock")
        if setup.durable and setup.clock == "virtual":
            raise PlanError("a virtual clock begins anew with every process: wall or paced is wanted", "durable")
        for key, port in (("port", setup.port), ("metrics", setup.metrics or 0)):
            if port > 65_535 or 0 < port < 1024 or 10_002 <= port <= 19_999:
                raise PlanError(f"{port} cannot be the port: 10002 to 19999 are Ray's, below 1024 the system's", key)
        return setup
