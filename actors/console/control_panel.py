"""The controls on the page: locked until a token is entered; Enter does what the button does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import run, ui

from actors.console.controls import WEIGHTED_METRICS, Controls, list_policies, parameter_names, qos_weights
from actors.console.poller import PageState
from dsms.errors import DsmsError

FIELD = "dense outlined"
Say = Callable[..., str]


class Panel:
    """Fields and buttons of one page; `domain` answers the selected domain."""

    def __init__(self, controls: Controls, view: Callable[[], PageState], domain: Callable[[], str | None]) -> None:
        self._controls, self._view, self._domain = controls, view, domain
        self._box = ui.row().classes("w-full items-end gap-x-6 gap-y-2")
        self._seen_qos: str | None = None
        self._fill()

    def refresh(self) -> None:
        """Show the present queries, QoS weights and pause state."""
        if not self._controls.open:
            return
        domain = self._view().domain(self._domain())
        if domain is None:
            return
        names = [query.name for query in domain.queries]
        if names != list(self._query.options):
            self._query.set_options(names, value=self._query.value if self._query.value in names else None)
        if domain.qos != self._seen_qos:  # only after a change, so that a field being filled in stays
            self._seen_qos = domain.qos
            for name, weight in qos_weights(self._seen_qos).items():
                self._weights[name].value = round(weight, 3)
        self._pause.set_text("Resume" if domain.state == "paused" else "Pause")

    def _fill(self) -> None:
        self._box.clear()
        with self._box:
            if self._controls.open:
                self._policy_fields()
                self._qos_fields()
                self._weight_fields()
                self._pause = _button("Pause", self._pause_or_resume)
                self.refresh()
            elif self._controls.is_read_only and self._controls.visible:
                ui.label("Read-only: the console was started without a token for control.").props('role="note"')
            else:
                self._token_fields()

    def _token_fields(self) -> None:
        prompt = "Read-only. Enter a token to make changes:" if self._controls.visible else "Enter a token to look:"
        ui.label(prompt).classes("self-center")
        token = ui.input("Token", password=True).props(f"{FIELD} autocomplete=off").classes("w-64")
        button = _button("Unlock", lambda: None)
        message = ui.label().props('role="alert"').classes("self-center text-negative")

        async def unlock() -> None:
            button.disable()
            message.set_text("")
            if await self._controls.unlock(token.value or ""):
                self._fill()
                if self._controls.open:
                    self._policy.run_method("focus")
                return
            button.enable()
            token.value = ""
            message.set_text("authentication failed: unknown token")

        button.on_click(unlock)
        token.on("keydown.enter", unlock)

    def _policy_fields(self) -> None:
        with _group("Policy"):
            known, domain = list_policies(), self._view().domain(self._domain())
            now = "" if domain is None else str(domain.policy).partition(":")[0]
            chosen = now if now in known else known[0]
            self._policy = ui.select(known, value=chosen, label="Policy", on_change=self._hint).props(FIELD)
            self._policy.classes("w-44")
            self._given = ui.input("Parameters").props(FIELD).classes("w-52")
            self._reason = ui.input("Reason").props(FIELD).classes("w-40")
            for field in (self._given, self._reason):
                field.on("keydown.enter", self._swap)
            _button("Swap", self._swap)
        self._hint()

    def _qos_fields(self) -> None:
        self._weights: dict[str, Any] = {}
        with _group("QoS weights"):
            for name in WEIGHTED_METRICS:
                field = ui.number(name, min=0, step=0.1).props(FIELD).classes("w-24")
                field.on("keydown.enter", self._require)
                self._weights[name] = field
            _button("Set QoS", self._require)

    def _weight_fields(self) -> None:
        with _group("Query weights"):
            self._query = ui.select([], label="Query", on_change=self._weight_of).props(FIELD).classes("w-36")
            self._weight = ui.number("Weight", min=0, step=0.5).props(FIELD).classes("w-24")
            self._weight.on("keydown.enter", self._weigh)
            _button("Set weight", self._weigh)

    def _hint(self) -> None:
        names = parameter_names(str(self._policy.value))
        self._given.props["placeholder"] = ", ".join(f"{name}=…" for name in names) or "no parameters"

    def _weight_of(self) -> None:
        """Fill in the query's present weight."""
        domain = self._view().domain(self._domain())
        queries = () if domain is None else domain.queries
        self._weight.value = next((query.weight for query in queries if query.name == self._query.value), None)

    async def _swap(self) -> None:
        policy, given, reason = str(self._policy.value), self._given.value or "", self._reason.value or ""
        await self._do(self._controls.swap, policy, given, reason, self._domain())

    async def _require(self) -> None:
        weights = {name: field.value for name, field in self._weights.items()}
        await self._do(self._controls.require, weights, self._domain())

    async def _weigh(self) -> None:
        await self._do(self._controls.weigh, self._query.value, self._weight.value)

    async def _pause_or_resume(self) -> None:
        domain = self._view().domain(self._domain())
        is_paused = domain is not None and domain.state == "paused"
        await self._do(self._controls.resume if is_paused else self._controls.pause, self._domain())

    async def _do(self, change: Say, *given: Any) -> None:
        """Make a change in another thread, since it may take a while, and show its outcome."""
        try:
            ui.notify(await run.io_bound(change, *given), type="positive")
        except DsmsError as error:
            ui.notify(str(error), type="negative", multi_line=True, close_button="Close", timeout=0)


def _group(title: str) -> ui.row:
    """A group of fields, labelled for screen readers too."""
    return ui.row().classes("items-center gap-2").props(f'role="group" aria-label="{title}"')


def _button(text: str, action: Any) -> ui.button:
    return ui.button(text, on_click=action).props("no-caps unelevated dense padding='6px 14px'")
