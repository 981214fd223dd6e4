"""The console's page: its elements, and how they are updated from the last poll."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui import ui

from actors.console.control_panel import Panel
from actors.console.controls import Controls
from actors.console.facts import Fact, decisions, describe_outage, facts
from actors.console.graph import MIN_HEIGHT_PX, extent, graph
from actors.console.poller import PageState
from actors.console.progress import charts, progress
from actors.console.theme import DARK, LIGHT, Theme
from actors.console.timeline import HEIGHT_PX, timeline
from actors.control.status_tables import StatusTable, build_operators_table, build_queries_table, list_failures
from dsms.clock import monotonic_s
from dsms.live.monitor.status import DeploymentStatus, DomainStatus

PAGE_REFRESH_S = 0.25  # between two checks for a new poll
TABLE_ROWS_LIMIT = 40  # of a table
PRIMARY = "#1f6fb2"  # white text on it is easy to read
SYSTEM, LIGHT_NAME, DARK_NAME = "system", "light", "dark"
NO_DOMAIN = DomainStatus(domain="", state="")
FOLLOW_THEME_JS = """
const dark = window.matchMedia('(prefers-color-scheme: dark)');
dark.addEventListener('change', () => emitEvent('system_dark', dark.matches));
emitEvent('system_dark', dark.matches);
"""
CSS = """
.dsms-page { max-width: 1680px; margin: 0 auto; }
.dsms-page .q-table th { font-weight: 600; }
.dsms-page :focus-visible { outline: 2px solid var(--q-primary); outline-offset: 1px; }
.dsms-plan { overflow: auto; max-height: 480px; }
.dsms-decisions table { min-width: 42rem; }
.dsms-gone { filter: grayscale(1); opacity: 0.55; }
"""


class Page:
    """The page of one viewer."""

    def __init__(self, view: Callable[[], PageState], controls: Controls) -> None:
        self._view = view
        self._shown = -1  # the number of the poll that is on the page
        self._domain_name: str | None = None
        self._system_dark, self._wish = False, SYSTEM
        ui.add_css(CSS)
        ui.colors(primary=PRIMARY)
        self._dark = ui.dark_mode(None)
        with ui.column().classes("dsms-page w-full p-3 gap-3"):
            self._header()
            with _card("Controls", "w-full"):
                self._panel = Panel(controls, view, lambda: self._domain_name)
            with ui.column().classes("w-full gap-3") as self._body:
                self._charts()
                self._tables()
        ui.on("system_dark", lambda event: self._system(bool(event.args)))
        ui.timer(PAGE_REFRESH_S, self.refresh)

    def follow(self) -> None:
        """Ask the browser to report dark mode, now and after every change."""
        ui.run_javascript(FOLLOW_THEME_JS)

    def refresh(self) -> None:
        """Show the last poll, unless it is shown already."""
        view = self._view()
        self._gone.set_text(message := describe_outage(view, monotonic_s()) or "")
        self._gone.set_visibility(bool(message))
        if view.number == self._shown:
            return
        self._shown = view.number
        self._body.classes(**{"add" if view.error else "remove": "dsms-gone"})
        if view.status is not None and view.error is None:
            self._show(view, view.status)

    def _show(self, view: PageState, status: DeploymentStatus) -> None:
        domain = view.domain(self._domain_name) or NO_DOMAIN
        names = [one.domain for one in status.domains]
        if names != list(self._domains.options):
            self._domains.set_options(names, value=domain.domain or None)
        self._domains.set_visibility(len(names) > 1)
        self._name.set_text(status.name)
        for label, fact in zip(self._facts, facts(status, domain), strict=True):
            _show_fact(label, fact)
        failures = list_failures(status)
        self._failures.set_text("\n".join(failures))
        self._failures.set_visibility(bool(failures))
        self._draw(view, domain)
        mine = [one for one in view.decisions if one.get("domain") == domain.domain]
        _rows(self._decisions, decisions(mine))
        _rows(self._queries, _records(build_queries_table([domain])))
        _rows(self._stations, _records(build_operators_table([domain])))
        self._panel.refresh()

    def _draw(self, view: PageState, domain: DomainStatus) -> None:
        theme = self._theme
        _chart(self._timeline, timeline(view.history.get(domain.domain, ()), domain.phases, theme))
        wide, high = extent(domain)
        self._graph.style(f"min-width: {wide}px; height: {high}px")
        _chart(self._graph, graph(domain, theme))
        found = charts(domain)
        if list(found) != list(self._path.options):
            chosen = self._path.value if self._path.value in found else next(iter(found), None)
            self._path.set_options(list(found), value=chosen)
        _chart(self._progress, progress(found.get(str(self._path.value)), theme))

    def _header(self) -> None:
        with ui.row().classes("w-full items-center gap-x-5 gap-y-1"):
            self._name = ui.label("dsms").classes("text-xl font-bold").props('role="heading" aria-level="1"')
            self._facts = []
            for title in ("state", "policy", "up", "used", "held", "p50", "p99", "stale"):
                with ui.column().classes("gap-0"):
                    ui.label(title).classes("text-xs opacity-70")
                    self._facts.append(ui.label("–").classes("font-semibold").props(f'data-fact="{title}"'))
            ui.space()
            self._domains = ui.select([], label="Domain", on_change=self._choose).props("dense outlined")
            self._domains.classes("w-28").set_visibility(False)
            ui.toggle([SYSTEM, LIGHT_NAME, DARK_NAME], value=SYSTEM, on_change=self._choose_theme).props(
                'dense no-caps unelevated role="group" aria-label="Colours" padding="2px 10px"'
            )
        self._gone = _alert("bg-negative")
        self._failures = _alert("bg-negative")

    def _charts(self) -> None:
        with ui.element("div").classes("w-full grid grid-cols-1 lg:grid-cols-12 gap-3"):
            with _card("Over time", "lg:col-span-7"):
                self._timeline = _echart(timeline((), (), LIGHT), f"height: {HEIGHT_PX}px")
            with ui.column().classes("lg:col-span-5 gap-3 w-full"):
                with _card("Plan: rows queued before each operator", "w-full"), ui.element("div") as around:
                    around.classes("dsms-plan w-full").props("tabindex=0")  # so that arrow keys scroll it
                    self._graph = _echart(graph(NO_DOMAIN, LIGHT), f"height: {MIN_HEIGHT_PX}px")
                with _card("Progress chart", "w-full"):
                    self._path = ui.select([], label="Query and path", on_change=self._again).props("dense outlined")
                    self._path.classes("w-full")
                    self._progress = _echart(progress(None, LIGHT), "height: 204px")

    def _tables(self) -> None:
        with _card("Last decisions", "w-full"):
            self._decisions = _table(
                ("number", "at", "by", "chosen", "reason", "candidates"), ("by", "chosen", "reason")
            ).classes("dsms-decisions")
        with ui.element("div").classes("w-full grid grid-cols-1 lg:grid-cols-12 gap-3"):
            with _card("Queries", "lg:col-span-5"):
                self._queries = _grid_table(build_queries_table([]))
            with _card("Operators, the longest queue first", "lg:col-span-7"):
                self._stations = _grid_table(build_operators_table([]))

    @property
    def _theme(self) -> Theme:
        return DARK if self._wish == DARK_NAME or (self._wish == SYSTEM and self._system_dark) else LIGHT

    def _system(self, dark: bool) -> None:
        self._system_dark = dark
        self._again()

    def _choose_theme(self, event: Any) -> None:
        self._wish = event.value
        self._dark.value = {SYSTEM: None, LIGHT_NAME: False, DARK_NAME: True}[self._wish]
        self._again()

    def _choose(self, event: Any) -> None:
        self._domain_name = event.value
        self._again()

    def _again(self) -> None:
        """Redraw everything at the next refresh."""
        self._shown = -1


def _card(title: str, classes: str) -> ui.card:
    card = ui.card().classes(f"{classes} p-3 gap-2 min-w-0").props(f'flat bordered role="region" aria-label="{title}"')
    with card:
        ui.label(title).classes("text-sm font-semibold opacity-80").props('role="heading" aria-level="2"')
    return card


def _alert(colour: str) -> ui.label:
    label = (
        ui.label().classes(f"w-full {colour} text-white rounded px-3 py-2 whitespace-pre-line").props('role="alert"')
    )
    label.set_visibility(False)
    return label


def _echart(option: dict[str, Any], style: str) -> ui.echart:
    return ui.echart(option, renderer="svg").style(style).classes("w-full")


def _chart(chart: ui.echart, option: dict[str, Any]) -> None:
    """Replace a chart's option."""
    chart.options.clear()
    chart.options.update(option)
    chart.update()


def _show_fact(label: ui.label, fact: Fact) -> None:
    label.set_text(fact.text)
    label.classes(replace=f"font-semibold {fact.colour}".strip())


def _table(columns: Sequence[str], left: Sequence[str]) -> ui.table:
    shown = [
        {"name": name, "label": name, "field": name, "align": "left" if name in left else "right"} for name in columns
    ]
    made = ui.table(columns=shown, rows=[], row_key="key").props("flat dense hide-pagination wrap-cells")
    return made.classes("w-full")


def _grid_table(grid: StatusTable) -> ui.table:
    columns = [column for column in grid.columns if column]  # the column without a name is a bar
    return _table(columns, grid.left)


def _records(grid: StatusTable) -> list[dict[str, str]]:
    """A table's rows as records."""
    return [
        {"key": row[0], **{column: text for column, text in zip(grid.columns, row, strict=True) if column}}
        for row in grid.rows[:TABLE_ROWS_LIMIT]
    ]


def _rows(table: ui.table, rows: list[dict[str, str]]) -> None:
    """Send rows only if they have changed."""
    if table.rows != rows:
        table.rows = rows
