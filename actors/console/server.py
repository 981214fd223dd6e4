"""Serves the console's page in its own thread until it is stopped."""

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

from actors.console.controls import Controls
from actors.console.guard import Guard
from actors.console.page import Page
from actors.console.poller import PageState, Poller
from actors.console.source import DeploymentSource
from actors.control.client import ControlClient
from dsms.errors import DsmsError, FailedError
from dsms.net.certificate import Certificate
from dsms.net.tokens import Tokens

START_TIMEOUT_S = 30.0  # seconds
STOP_TIMEOUT_S = 10.0
HIDDEN_STATE = PageState(hidden=True)  # shown before a viewer has entered a token for reading
RECONNECT_TIMEOUT_S = 10.0  # for which a disconnected browser finds its page unchanged


class Server:
    """The web server; one per process, since NiceGUI has one application."""

    present: ClassVar[Server | None] = None

    def __init__(
        self,
        source: DeploymentSource,
        host: str,
        port: int,
        tokens: Tokens | None = None,
        certificate: Certificate | None = None,
    ) -> None:
        self._socket = _bind(host, port)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http{'s' if certificate else ''}://{shown}:{self._socket.getsockname()[1]}"
        self._poller, self._guard, self._source = Poller(source.poll), Guard(tokens), source
        secure: dict[str, Any] = {}
        if certificate is not None:
            certificate.context()  # fails here if it is invalid
            secure = {"ssl_certfile": certificate.chain, "ssl_keyfile": certificate.key}
        config = uvicorn.Config(
            application(), log_level="error", timeout_graceful_shutdown=1, lifespan="on", access_log=False, **secure
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="console", daemon=True)

    def start(self) -> None:
        """Start polling and serving; returns when pages can be loaded."""
        if Server.present is not None:
            raise DsmsError(f"this process already serves a console, at {Server.present.url}: it can serve only one")
        Server.present = self
        self._poller.start()
        self._thread.start()
        ready = threading.Event()
        for _ in range(int(START_TIMEOUT_S / 0.05)):
            if self._server.started or not self._thread.is_alive():
                break
            ready.wait(0.05)
        if not self._server.started:
            self.stop()
            raise FailedError(f"the console did not start within {START_TIMEOUT_S:g} s at {self.url}")

    def stop(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        self._poller.stop()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)
        self._socket.close()
        if Server.present is self:
            Server.present = None

    def page(self) -> Page:
        """A new viewer's page, with its own controls."""
        controls = Controls(self._source.ask, self._guard)
        return Page(lambda: self._poller.view if controls.visible else HIDDEN_STATE, controls)


@cache
def application() -> FastAPI:
    """The process's only application; its page belongs to the present server."""
    app = FastAPI(openapi_url=None)

    @ui.page("/", title="dsms console")
    async def index() -> None:
        if Server.present is not None:
            page = Server.present.page()
            await ui.context.client.connected()
            page.follow()

    ui.run_with(app, dark=None, show_welcome_message=False, reconnect_timeout=RECONNECT_TIMEOUT_S)
    return app


@contextmanager
def serve(
    find: Callable[[], ControlClient],
    host: str,
    port: int,
    tokens: Tokens | None = None,
    certificate: Certificate | None = None,
) -> Iterator[str]:
    """Serve a deployment's console meanwhile; yields its address."""
    server = Server(DeploymentSource(find), host, port, tokens, certificate)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def _bind(host: str, port: int) -> socket.socket:
    """Bind the socket before anything starts, so that a taken port is reported at once."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        why = str(getattr(error, "strerror", None) or error).partition(" (while")[
            0
        ]  # the message has the address already
        raise DsmsError(f"the console cannot be served at {host}:{port}: {why}; --port takes another, or 0") from None
