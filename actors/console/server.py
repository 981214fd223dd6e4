"""Serves the page, in a thread of its own, until it is stopped: for the command, and inside of others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from actors.cli.asking import System
from actors.console.controls import Controls
from actors.console.guard import Guard
from actors.console.page import Page
from actors.console.poller import Poller, View
from actors.console.source import Source
from dsms.certificate import Certificate
from dsms.errors import DsmsError, FailedError
from dsms.tokens import Tokens

STARTING = 30.0  # seconds
STOPPING = 10.0
NOTHING = View(hidden=True)  # what is seen by whoever may not look
RECONNECT = 10.0  # seconds for which a browser that is away finds its page as it was


class Server:
    """One at a time in a process: NiceGUI has one application."""

    present: ClassVar[Server | None] = None

    def __init__(
        self, source: Source, host: str, port: int, tokens: Tokens | None = None, certificate: Certificate | None = None
    ) -> None:
        self._socket = _bound(host, port)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http{'s' if certificate else ''}://{shown}:{self._socket.getsockname()[1]}"
        self._poller, self._guard, self._source = Poller(source.look), Guard(tokens), source
        secure: dict[str, Any] = {}
        if certificate is not None:
            certificate.context()  # what is wrong with it is said here
            secure = {"ssl_certfile": certificate.chain, "ssl_keyfile": certificate.key}
        config = uvicorn.Config(
            application(), log_level="error", timeout_graceful_shutdown=1, lifespan="on", access_log=False, **secure
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="console", daemon=True)

    def start(self) -> None:
        """Begin to look and to serve; a page can be asked for from then on."""
        if Server.present is not None:
            raise DsmsError(f"this process serves a console already, at {Server.present.url}: it can serve one")
        Server.present = self
        self._poller.start()
        self._thread.start()
        ready = threading.Event()
        for _ in range(int(STARTING / 0.05)):
            if self._server.started or not self._thread.is_alive():
                break
            ready.wait(0.05)
        if not self._server.started:
            self.stop()
            raise FailedError(f"the console has not begun to serve at {self.url}")

    def stop(self) -> None:
        """Serve no more."""
        self._server.should_exit = True
        self._poller.stop()
        if self._thread.is_alive():
            self._thread.join(STOPPING)
        self._socket.close()
        if Server.present is self:
            Server.present = None

    def page(self) -> Page:
        """One more viewer's, with controls of its own."""
        controls = Controls(self._source.ask, self._guard)
        return Page(lambda: self._poller.view if controls.visible else NOTHING, controls)


@cache
def application() -> FastAPI:
    """The only one: its page is that of whoever serves at present."""
    app = FastAPI(openapi_url=None)

    @ui.page("/", title="dsms console")
    async def index() -> None:
        if Server.present is not None:
            page = Server.present.page()
            await ui.context.client.connected()
            page.follow()

    ui.run_with(app, dark=None, show_welcome_message=False, reconnect_timeout=RECONNECT)
    return app


@contextmanager
def served(
    find: Callable[[], System],
    host: str,
    port: int,
    tokens: Tokens | None = None,
    certificate: Certificate | None = None,
) -> Iterator[str]:
    """The console of a system, for as long as it is needed; answers where it is."""
    server = Server(Source(find), host, port, tokens, certificate)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def _bound(host: str, port: int) -> socket.socket:
    """A socket at this address: who asks for one that is taken is told before anything has begun."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        why = str(getattr(error, "strerror", None) or error).partition(" (while")[0]  # the address is said once
        raise DsmsError(f"the console cannot be served at {host}:{port}: {why}; --port takes another, or 0") from None
