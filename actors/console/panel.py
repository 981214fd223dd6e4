"""The controls on the page: locked until the token is shown; fields have labels, and Enter does what a button does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import run, ui

from actors.console.controls import WANTED, Controls, parameter_names, qos_weights, usable
from actors.console.poller import View
from dsms.errors import DsmsError

FIELD = "dense outlined"
Say = Callable[..., str]


class Panel:
    """Fields and buttons of one page; `domain` says which domain is meant."""

    def __init__(self, controls: Controls, view: Callable[[], View], domain: Callable[[], str | None]) -> None:
        self._controls, self._view, self._domain = controls, view, domain
        self._box = ui.row().classes("w-full items-end gap-x-6 gap-y-2")
        self._seen_qos: str | None = None
        self._fill()

    def refresh(self) -> None:
        """What runs may have changed: other queries, other wishes, paused or not."""
        if not self._controls.open:
            return
        domain = self._view().domain(self._domain())
        if domain is None:
            return
        names = [query["name"] for query in domain["queries"]]
        if names != list(self._query.options):
            self._query.set_options(names, value=self._query.value if self._query.value in names else None)
        if domain.get("qos") != self._seen_qos:  # whoever has changed it; a field that is being filled in stays else
            self._seen_qos = domain.get("qos")
            for name, weight in qos_weights(self._seen_qos).items():
                self._weights[name].value = round(weight, 3)
        self._pause.set_text("Resume" if domain.get("state") == "paused" else "Pause")

    def _fill(self) -> None:
        self._box.clear()
        with self._box:
            if self._controls.open:
                self._policy_fields()
                self._qos_fields()
                self._weight_fields()
                self._pause = _button("Pause", self._pause_or_resume)
                self.refresh()
            elif self._controls.strict and self._controls.visible:
                ui.label("Read-only: the console was started without a token for control.").props('role="note"')
            else:
                self._token_fields()

    def _token_fields(self) -> None:
        wish = "Read-only. Show the token to change what runs:" if self._controls.visible else "Show a token to look:"
        ui.label(wish).classes("self-center")
        token = ui.input("Token", password=True).props(f"{FIELD} autocomplete=off").classes("w-64")
        button = _button("Unlock", lambda: None)
        said = ui.label().props('role="alert"').classes("self-center text-negative")

        async def unlock() -> None:
            button.disable()
            said.set_text("")
            right = await self._controls.unlock(token.value or "")
            if right:
                self._fill()
                if self._controls.open:
                    self._policy.run_method("focus")
                return
            button.enable()
            token.value = ""
            said.set_text("That is not the token.")

        button.on_click(unlock)
        token.on("keydown.enter", unlock)

    def _policy_fields(self) -> None:
        with _group("Policy"):
            known, domain = usable(), self._view().domain(self._domain()) or {}
            now = str(domain.get("policy")).partition(":")[0]
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
            for name in WANTED:
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
        self._given.props["placeholder"] = ", ".join(f"{name}=…" for name in names) or "it has none"

    def _weight_of(self) -> None:
        """The query's present weight is where to begin."""
        domain = self._view().domain(self._domain()) or {"queries": []}
        self._weight.value = next((q["weight"] for q in domain["queries"] if q["name"] == self._query.value), None)

    async def _swap(self) -> None:
        policy, given, reason = str(self._policy.value), self._given.value or "", self._reason.value or ""
        await self._do(self._controls.swap, policy, given, reason, self._domain())

    async def _require(self) -> None:
        weights = {name: field.value for name, field in self._weights.items()}
        await self._do(self._controls.require, weights, self._domain())

    async def _weigh(self) -> None:
        await self._do(self._controls.weigh, self._query.value, self._weight.value)

    async def _pause_or_resume(self) -> None:
        domain = self._view().domain(self._domain()) or {}
        paused = domain.get("state") == "paused"
        await self._do(self._controls.resume if paused else self._controls.pause, self._domain())

    async def _do(self, change: Say, *given: Any) -> None:
        """Have it done elsewhere, since an answer may take a while, and say what has come of it."""
        try:
            ui.notify(await run.io_bound(change, *given), type="positive")
        except DsmsError as error:
            ui.notify(str(error), type="negative", multi_line=True, close_button="Close", timeout=0)


def _group(title: str) -> ui.row:
    """Fields that belong together, said so to those who hear the page too."""
    return ui.row().classes("items-center gap-2").props(f'role="group" aria-label="{title}"')


def _button(text: str, action: Any) -> ui.button:
    return ui.button(text, on_click=action).props("no-caps unelevated dense padding='6px 14px'")
