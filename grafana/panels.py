"""The kinds of panels our dashboards use, built with Grafana's SDK; units and descriptions come from the metrics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import common, prometheus
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import stat as stat_builder
from grafana_foundation_sdk.builders import statetimeline as timeline_builder
from grafana_foundation_sdk.builders import table as table_builder
from grafana_foundation_sdk.builders import timeseries as timeseries_builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat, QueryEditorMode

from grafana.expressions import find_metrics

Json = dict[str, Any]
Thresholds = Sequence[tuple[float, str]]  # the colour from each value upward
Panel = timeseries_builder.Panel | stat_builder.Panel | timeline_builder.Panel | table_builder.Panel

DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {"seconds": "s", "bytes": "bytes", "ratio": "percentunit"}  # all others are plain numbers
RATES = {"rows": "rowsps", "bytes": "Bps", "seconds": "percentunit", "frames": "cps"}  # of counters; others: "cps"
GOOD, FAIR, BAD, PLAIN = "green", "yellow", "red", "transparent"
SHARE_THRESHOLDS: Thresholds = ((0.8, FAIR), (0.95, BAD))


@dataclass(frozen=True)
class Target:
    """One expression of a panel and the legend of its series."""

    expression: str
    legend: str = ""
    dashed: bool = False  # a limit or a bound rather than a measurement
    instant: bool = False  # the current value only, for a table


def timeseries(
    title: str,
    *targets: Target,
    unit: str | None = None,
    stacked: bool = False,
    limits: Thresholds = (),
    most: float | None = None,
    floor: float | None = 0.0,
) -> Json:
    """Lines over time."""
    legend = common.VizLegendOptions().display_mode(kinds.LegendDisplayMode.LIST).calcs([])
    stacking = kinds.StackingMode.NORMAL if stacked else kinds.StackingMode.NONE
    style = kinds.GraphThresholdsStyleMode.DASHED if limits else kinds.GraphThresholdsStyleMode.OFF
    panel = (
        timeseries_builder.Panel()
        .draw_style(kinds.GraphDrawStyle.LINE)
        .line_interpolation(kinds.LineInterpolation.LINEAR)
        .line_width(1)
        .fill_opacity(40 if stacked else 8)
        .show_points(kinds.VisibilityMode.NEVER)
        .span_nulls(False)
        .stacking(common.StackingConfig().mode(stacking).group("A"))
        .thresholds_style(common.GraphThresholdsStyleConfig().mode(style))
        .color_scheme(build.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC))
        .legend(legend.placement(kinds.LegendPlacement.BOTTOM).show_legend(True))
        .tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING))
    )
    if floor is not None:
        panel.min(floor)
    if most is not None:
        panel.max(most)
    for ref, target in _by_ref(targets):
        if target.dashed:
            line = model.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]})
            panel.override_by_query(ref, [line, model.DynamicConfigValue("custom.lineWidth", 2)])
    return _finish(panel, title, targets, unit, limits)


def stat(title: str, target: Target, unit: str | None = None, limits: Thresholds = (), base: str = GOOD) -> Json:
    """The last value as a number, over a small line."""
    panel = (
        stat_builder.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
        .color_mode(kinds.BigValueColorMode.VALUE if limits else kinds.BigValueColorMode.NONE)
        .graph_mode(kinds.BigValueGraphMode.AREA)
        .justify_mode(kinds.BigValueJustifyMode.AUTO)
        .orientation(kinds.VizOrientation.AUTO)
        .text_mode(kinds.BigValueTextMode.AUTO)
        .wide_layout(True)
        .color_scheme(build.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
    )
    return _finish(panel, title, (target,), unit, limits, base)


def state_timeline(title: str, *targets: Target, names: Sequence[tuple[str, str]]) -> Json:
    """Bands over time: the text and the colour of the states 0, 1, …"""
    states = {
        str(value): model.ValueMappingResult(text=text or " ", color=color, index=value)
        for value, (text, color) in enumerate(names)
    }
    legend = common.VizLegendOptions().display_mode(kinds.LegendDisplayMode.LIST).calcs([])
    panel = (
        timeline_builder.Panel()
        .mappings([model.ValueMap(options=states)])
        .color_scheme(build.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
        .fill_opacity(80)
        .line_width(0)
        .merge_values(True)
        .show_value(kinds.VisibilityMode.AUTO)
        .align_value(kinds.TimelineValueAlignment.LEFT)
        .row_height(0.9)
        .legend(legend.placement(kinds.LegendPlacement.BOTTOM).show_legend(False))
        .tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.SINGLE).sort(kinds.SortOrder.NONE))
    )
    return _finish(panel, title, targets, "short", ())


def table(title: str, columns: Sequence[tuple[str, str, str | None]], by: Sequence[str]) -> Json:
    """One row for each combination of these labels; a column is a name, an expression and a unit.

    A column without a name shows its labels only.
    """
    targets = tuple(Target(expression, instant=True) for _, expression, _ in columns)
    headings = {f"Value #{ref}": name for (ref, _), (name, _, _) in zip(_by_ref(targets), columns, strict=True)}
    hidden = ["Time", *(value for value, name in headings.items() if not name)]
    layout = {
        "excludeByName": dict.fromkeys(hidden, True),
        "indexByName": {name: place for place, name in enumerate([*by, *headings])},
        "renameByName": {value: name for value, name in headings.items() if name},
    }
    panel = (
        table_builder.Panel()
        .transformations(
            [model.DataTransformerConfig("merge", options={}), model.DataTransformerConfig("organize", options=layout)]
        )
        .align(kinds.FieldTextAlignment.AUTO)
        .cell_options(kinds.TableAutoCellOptions())
        .filterable(True)
        .cell_height(kinds.TableCellHeight.SM)
        .show_header(True)
    )
    for name, _, unit in columns:
        if unit is not None:
            panel.override_by_name(name, [model.DynamicConfigValue("unit", unit)])
    return _finish(panel, title, targets, "short", ())


def _finish(
    panel: Panel, title: str, targets: Sequence[Target], unit: str | None, limits: Thresholds, base: str = GOOD
) -> Json:
    """What all panels have: title, description, queries, unit and thresholds; as JSON."""
    expressions = [target.expression for target in targets]
    steps = [model.Threshold(None, base), *(model.Threshold(value, color) for value, color in limits)]
    panel.title(title).description(describe(expressions))
    panel.datasource(model.DataSourceRef(DATASOURCE["type"], DATASOURCE["uid"]))
    panel.targets([_query(ref, target) for ref, target in _by_ref(targets)])
    panel.unit(find_unit(expressions[0]) if unit is None else unit)
    panel.thresholds(build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))
    made: Json = json.loads(JSONEncoder().encode(panel.build()))
    return made


def describe(expressions: Sequence[str]) -> str:
    """The help texts of the metrics in these expressions."""
    found = find_metrics(expressions)
    if len(found) == 1:
        return found[0].help
    return "\n\n".join(f"`{metric.name}`: {metric.help}" for metric in found)


def find_unit(expression: str) -> str:
    """Grafana's name for the unit of an expression's first metric, or of its rate."""
    found = find_metrics([expression])
    if not found:
        return "short"
    if "rate(" in expression and "histogram_quantile" not in expression:
        return RATES.get(found[0].unit, "cps")
    return UNITS.get(found[0].unit, "short")


def _query(ref: str, target: Target) -> prometheus.Dataquery:
    query = prometheus.Dataquery().ref_id(ref).datasource(model.DataSourceRef(DATASOURCE["type"], DATASOURCE["uid"]))
    query.expr(target.expression).legend_format(target.legend or "__auto").editor_mode(QueryEditorMode.CODE)
    return query.instant().format(PromQueryFormat.TABLE) if target.instant else query.range()


def _by_ref(targets: Sequence[Target]) -> list[tuple[str, Target]]:
    """Grafana's letters for the queries of a panel: A, B, …"""
    return [(chr(ord("A") + place), target) for place, target in enumerate(targets)]
