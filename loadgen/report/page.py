"""Renders the report as one HTML page with tables and embedded pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from dsms.cli.tables import format_number, format_percent
from dsms.recording.prediction import Prediction
from loadgen.report import figures
from loadgen.report.analysis import Analysis
from loadgen.report.figures import Colours
from loadgen.report.flow import SHOWN_SCALES_LOG2
from loadgen.report.periods import RecordedRun
from loadgen.report.tally import Figures

EXPANDED_RUNS = 4  # with more runs their pictures are collapsed
LEFT_ALIGNED_COLUMNS = ("policy", "policies", "run", "query", "flow", "clock", "reason")
Cell = Callable[[Figures], str]  # renders a row's cell
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #22304a; background: #fbfcfd; max-width: 76rem; margin: 2rem auto;
  padding: 0 1.2rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; } p { margin: .4rem 0; } .quiet { color: #6b7688; font-size: .87rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .8rem; margin: .6rem 0; }
th, td { padding: .22rem .5rem; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
th { border-bottom: 1.5px solid #33415c; font-weight: 600; vertical-align: bottom; }
td { border-bottom: 1px solid #e8ebf0; } .text { text-align: left; }
svg { width: 100%; height: auto; } details { margin: .5rem 0; } summary { cursor: pointer; font-weight: 600; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .45em; }
.warn { background: #fff4dc; border-left: 3px solid #c98a1b; padding: .4rem .8rem; }
"""


def render_page(
    runs: Sequence[RecordedRun],
    analysis: Analysis,
    comparison: Sequence[Figures],
    differences: Sequence[Figures],
    predictions: Sequence[Prediction | None],
) -> str:
    """The whole page as HTML."""
    colours = Colours([row["policy"] for row in comparison])
    unit = time_unit(runs)
    parts = [
        f"<h1>{'Recorded run' if len(runs) == 1 else f'{len(runs)} recorded runs'}</h1>",
        f'<p class="quiet">{escape(", ".join(dict.fromkeys(str(run.recording.about["plan"]) for run in runs)))}</p>',
        *_warnings(runs),
        *_comparison(comparison, colours, unit),
        *_differences(differences, unit),
        *_runs(analysis, unit),
        *_predictions(runs, predictions, unit),
        *_over_time(runs, analysis, colours, unit),
        *_queries(runs, analysis, unit),
        *_burstiness(runs, analysis, colours, unit),
        *_notes(unit),
    ]
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><title>dsms report</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def time_unit(runs: Iterable[RecordedRun]) -> str:
    """The unit of times: seconds, or the plan's own units for virtual time."""
    return "units" if any(run.recording.about["clock"] == "virtual" for run in runs) else "s"


def _warnings(runs: Sequence[RecordedRun]) -> list[str]:
    incomplete = [run.label for run in runs if not run.recording.complete]
    if not incomplete:
        return []
    names = escape(", ".join(incomplete))
    return [f'<p class="warn">Incomplete recordings, shown up to their last row: {names}</p>']


def _comparison(rows: Sequence[Figures], colours: Colours, unit: str) -> list[str]:
    columns: dict[str, Cell] = {
        "policy": lambda row: _key(colours[row["policy"]]) + escape(row["policy"]),
        "samples": lambda row: format_number(row["samples"]),
        "memory mean<br>(tuples)": _with_half("memory_mean"),
        "least possible<br>(tuples)": _with_half("bound_mean"),
        "gap<br>(tuples)": _with_half("gap_mean"),
        "memory max<br>(tuples)": _with_half("memory_max"),
        f"latency mean<br>({unit})": _with_half("latency_mean"),
        f"p50<br>({unit})": _with_half("latency_p50"),
        f"p90<br>({unit})": _with_half("latency_p90"),
        f"p99<br>({unit})": _with_half("latency_p99"),
        f"max<br>({unit})": _with_half("latency_max"),
        "stale<br>(% of time)": _with_half("staleness", 100),
        f"results<br>(a {'second' if unit == 's' else 'unit'})": _with_half("output_rate"),
    }
    once = sorted({row["batches"] for row in rows if row["by"] == "batch means"})
    text = "Means over runs and phases under each policy, ± half of a 95 % confidence interval (Student's t)."
    if once:
        text += (
            " For a policy with one sample the interval is by batch means over stretches of its own time: it shows "
            "how steady this run was, not how other runs would be."
        )
    picture = figures.plot_intervals(rows, colours, unit)
    return ["<h2>Policies compared</h2>", f'<p class="quiet">{text}</p>', _table(rows, columns), picture]


def _key(colour: str) -> str:
    return f'<span class="key" style="background:{colour}"></span>'


def _with_half(name: str, times: float = 1) -> Cell:
    def cell(row: Figures) -> str:
        value, half = row[name], row.get(f"{name}_half")
        if value is None:
            return "–"
        return format_number(value * times) + ("" if half is None else f" ± {_brief(half * times)}")

    return cell


def _brief(value: float) -> str:
    return f"{value:,.2g}" if abs(value) < 100 else f"{value:,.0f}"


def _differences(rows: Sequence[Figures], unit: str) -> list[str]:
    if not rows:
        return []
    by_policy: dict[str, Figures] = {}
    for row in rows:
        of_policy = by_policy.setdefault(row["policy"], {"policy": row["policy"], "pairs": row["pairs"]})
        of_policy[row["measure"]] = row
    columns: dict[str, Cell] = {
        f"policy, against {escape(rows[0]['against'])}": lambda row: escape(row["policy"]),
        "pairs": lambda row: format_number(row["pairs"]),
        "memory mean<br>(tuples)": _difference("memory_mean"),
        f"latency mean<br>({unit})": _difference("latency_mean"),
        "stale<br>(% of time)": _difference("staleness", 100),
        f"results<br>(a {'second' if unit == 's' else 'unit'})": _difference("output_rate"),
    }
    text = "Runs with the same arrivals compared in pairs: this is more precise, as both have the same load."
    if rows[0]["by"] == "batch means":
        text += " With one pair, intervals are by batch means over the same stretches of time."
    text += " Bold: the interval does not include 0."
    return ["<h3>Differences</h3>", f'<p class="quiet">{text}</p>', _table(list(by_policy.values()), columns)]


def _difference(name: str, times: float = 1) -> Cell:
    def cell(row: Figures) -> str:
        entry = row[name]
        if entry["difference"] is None:
            return "–"
        half = "" if entry["half"] is None else f" ± {_brief(entry['half'] * times)}"
        text = f"{entry['difference'] * times:+,.4g}{half}"
        return f"<b>{text}</b>" if entry["certain"] else text

    return cell


def _runs(analysis: Analysis, unit: str) -> list[str]:
    columns: dict[str, Cell] = {
        "run": lambda row: escape(row["run"]),
        "policies": lambda row: escape(row["policy"]),
        "clock": lambda row: escape(row["clock"]),
        f"lasted<br>({unit})": lambda row: format_number(row["seconds"]),
        "arrivals<br>(rows)": lambda row: format_number(row["arrived"]),
        "results<br>(rows)": lambda row: format_number(row["results"]),
        "arrival lag<br>(mean, s)": lambda row: format_number(row["lag_mean"]),
        **_measure_columns(unit),
    }
    return ["<h2>Runs</h2>", _table(analysis.runs, columns)]


def _predictions(runs: Sequence[RecordedRun], predictions: Sequence[Prediction | None], unit: str) -> list[str]:
    """By run: what a simulation predicts, what each cause adds to it, and what happened."""
    columns: dict[str, Cell] = {
        "": lambda row: escape(row["title"]),
        "memory mean<br>(tuples)": _signed("memory_mean"),
        f"latency mean<br>({unit})": _signed("latency_mean"),
        f"p99<br>({unit})": _signed("latency_p99"),
        "stale<br>(% of time)": _signed("staleness", 100),
    }
    text = (
        "Predicted: a simulation of the recorded rows at the instants at which they were due, with their measured "
        "costs and turns of one tuple. Each line below adds one cause: the slice of turns, rows that were admitted "
        "late, dead time between turns, hops between hosts, and work that took longer than its cost."
    )
    parts = ["<h2>Predicted and happened</h2>", f'<p class="quiet">{text}</p>']
    for run, prediction in zip(runs, predictions, strict=True):
        if prediction is not None:
            rows = [{**figures, "title": title, "added": added} for title, figures, added in prediction.rows()]
            opened = " open" if len(runs) <= EXPANDED_RUNS else ""
            parts.append(f"<details{opened}><summary>{escape(run.label)}</summary>{_table(rows, columns)}</details>")
    return parts


def _signed(name: str, times: float = 1) -> Cell:
    def cell(row: Figures) -> str:
        if row[name] is None:
            return "–"
        return f"{row[name] * times:+,.4g}" if row["added"] else format_number(row[name] * times)

    return cell


def _measure_columns(unit: str) -> dict[str, Cell]:
    return {
        "memory mean<br>(tuples)": lambda row: format_number(row["memory_mean"]),
        "gap<br>(tuples)": lambda row: format_number(row["gap_mean"]),
        "max<br>(tuples)": lambda row: format_number(row["memory_max"]),
        "max<br>(bytes)": lambda row: format_number(row["bytes_max"]),
        **_latency_columns(unit),
    }


def _latency_columns(unit: str) -> dict[str, Cell]:
    names = {"latency mean": "latency_mean"} | {name: f"latency_{name}" for name in ("p50", "p90", "p99", "max")}
    columns: dict[str, Cell] = {f"{title}<br>({unit})": _plain(name) for title, name in names.items()}
    return columns | {"stale<br>(% of time)": lambda row: format_percent(row["staleness"])}


def _plain(name: str) -> Cell:
    return lambda row: format_number(row[name])


def _over_time(runs: Sequence[RecordedRun], analysis: Analysis, colours: Colours, unit: str) -> list[str]:
    windows: dict[str, list[Figures]] = {}
    for row in analysis.windows:
        windows.setdefault(row["run"], []).append(row)
    parts = ["<h2>Over time</h2>"]
    by_arrivals: dict[str, list[RecordedRun]] = {}
    for run in runs:
        if len(run.phases) == 1:
            by_arrivals.setdefault(run.arrivals, []).append(run)
    groups = [group for group in by_arrivals.values() if len(group) > 1]
    for place, group in enumerate(groups):
        title = f"the same arrivals: {escape(', '.join(run.label for run in group))}"
        picture = figures.plot_runs(group, windows, colours, unit)
        parts.append(f"<details{' open' if place == 0 else ''}><summary>{title}</summary>{picture}</details>")
    columns: dict[str, Cell] = {
        f"from<br>({unit})": lambda row: format_number(row["from"]),
        "policy": lambda row: escape(row["policy"]),
        "reason": lambda row: escape(row["reason"]),
        f"lasted<br>({unit})": lambda row: format_number(row["seconds"]),
        "results<br>(rows)": lambda row: format_number(row["results"]),
        **_measure_columns(unit),
    }
    for run in runs:
        picture = figures.plot_over_time(run, windows[run.label], colours, unit)
        phases = [row | {"from": row["since"] - run.since} for row in analysis.phases if row["run"] == run.label]
        opened = " open" if len(runs) <= EXPANDED_RUNS else ""
        table = _table(phases, columns) if len(phases) > 1 else ""
        parts.append(f"<details{opened}><summary>{escape(run.label)}</summary>{picture}{table}</details>")
    return parts


def _queries(runs: Sequence[RecordedRun], analysis: Analysis, unit: str) -> list[str]:
    columns: dict[str, Cell] = {
        "query": lambda row: escape(row["query"]),
        "weight": lambda row: format_number(row["weight"]),
        "results<br>(rows)": lambda row: format_number(row["results"]),
        **_latency_columns(unit),
    }
    parts = ["<h2>Queries</h2>"]
    for run in runs:
        rows = [row for row in analysis.queries if row["run"] == run.label]
        opened = " open" if len(runs) == 1 else ""
        parts.append(f"<details{opened}><summary>{escape(run.label)}</summary>{_table(rows, columns)}</details>")
    return parts


def _burstiness(runs: Sequence[RecordedRun], analysis: Analysis, colours: Colours, unit: str) -> list[str]:
    """A table and a plot of the flows of all runs; arrivals that several runs share are shown once."""
    rows: list[Figures] = []
    lines = []
    first = {run.arrivals: run.place for run in reversed(runs)}
    for run in runs:
        for name in ("arrivals", "outputs") if first[run.arrivals] == run.place else ("outputs",):
            flow, colour = analysis.flows[run.place, name], colours[run.phases[0].policy]
            rows.append({"flow": name, "run": run.label, "of": flow})
            lines.append((f"{name} {run.label}", figures.INK_COLOUR if name == "arrivals" else colour, flow))
    columns: dict[str, Cell] = {
        "flow": lambda row: row["flow"],
        "run": lambda row: escape(row["run"]),
        "peak over mean<br>(1/128 of the time)": lambda row: format_number(row["of"].peak),
        **{f"dispersion<br>{2**power} × bin": _dispersion(2**power) for power in SHOWN_SCALES_LOG2},
        f"bin<br>({unit})": lambda row: format_number(row["of"].width),
        "Hurst": lambda row: format_number(row["of"].hurst),
    }
    text = (
        "Dispersion: the variance of a count over its mean, 1 for Poisson arrivals at every scale; bursts raise it. "
        "Hurst: estimated from how slowly the variance falls with the length of the counting interval; 0.5 for "
        "arrivals without memory, near 1 for self-similar ones."
    )
    picture = figures.plot_variance_time(lines[:12], unit)
    return ["<h2>Burstiness</h2>", f'<p class="quiet">{text}</p>', _table(rows, columns), picture]


def _dispersion(scale: int) -> Cell:
    return lambda row: format_number(row["of"].dispersion.get(scale))


def _notes(unit: str) -> list[str]:
    times = "Times are in the plan's unit" if unit == "units" else "Times are in seconds"
    return [
        "<h2>How it was measured</h2>",
        f'<p class="quiet">{times}. Memory: tuples in queues; its mean over time is exact, and its maximum ignores '
        "values that lasted no time. Least possible: the memory that any scheduler needs, even one that knows the "
        "future (Chain on lower envelopes, computed during the run on the same arrivals); an estimate from measured "
        "costs and selectivities. The gap is the distance to it. "
        "Latency: from when all input of a result was due to when the result left; percentiles are exact, "
        "interpolated between the two nearest results. Stale: the share of time in which a result of a query was in "
        "progress, from the arrival of its input until it left, as a mean over queries; results still in progress at "
        "the end are not counted. Results count in the phase in which they left.</p>",
    ]


def _table(rows: Sequence[Figures], columns: dict[str, Cell]) -> str:
    """An HTML table, without columns that have no values."""
    cells = {title: [cell(row) for row in rows] for title, cell in columns.items()}
    shown = {title: texts for title, texts in cells.items() if set(texts) != {"–"}}
    left = [' class="text"' if not title or title.startswith(LEFT_ALIGNED_COLUMNS) else "" for title in shown]

    def line(texts: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}{how}>{text}</{tag}>" for text, how in zip(texts, left, strict=True)) + "</tr>"

    body = "".join(line(texts, "td") for texts in zip(*shown.values(), strict=True))
    return f'<div class="wide"><table><thead>{line(shown, "th")}</thead><tbody>{body}</tbody></table></div>'
