"""The page: one file with its tables and pictures in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from dsms.cli.tables import figure, percent
from loadgen.report import figures
from loadgen.report.analysis import Analysis
from loadgen.report.figures import Colours
from loadgen.report.flow import SCALES
from loadgen.report.periods import Run
from loadgen.report.tally import Figures

OPEN = 4  # runs whose pictures are shown unasked
TEXTS = ("policy", "policies", "run", "query", "flow", "clock", "reason")  # columns that stand on the left
Cell = Callable[[Figures], str]
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


def page(runs: Sequence[Run], found: Analysis, compared: Sequence[Figures], differences: Sequence[Figures]) -> str:
    """All of it as HTML."""
    colours = Colours([row["policy"] for row in compared])
    unit = unit_of(runs)
    parts = [
        f"<h1>{'Recorded run' if len(runs) == 1 else f'{len(runs)} recorded runs'}</h1>",
        f'<p class="quiet">{escape(", ".join(dict.fromkeys(str(run.recording.about["plan"]) for run in runs)))}</p>',
        *_warnings(runs),
        *_comparison(compared, colours, unit),
        *_differences(differences, unit),
        *_runs(found, unit),
        *_over_time(runs, found, colours, unit),
        *_queries(runs, found, unit),
        *_burstiness(runs, found, colours, unit),
        *_notes(unit),
    ]
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><title>dsms report</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def unit_of(runs: Iterable[Run]) -> str:
    """What times are in: seconds, unless virtual time has units of the plan's own."""
    return "units" if any(run.recording.about["clock"] == "virtual" for run in runs) else "s"


def _warnings(runs: Sequence[Run]) -> list[str]:
    cut_short = [run.label for run in runs if not run.recording.complete]
    if not cut_short:
        return []
    names = escape(", ".join(cut_short))
    return [f'<p class="warn">Not closed in good order, so shown up to the last that was recorded: {names}</p>']


def _comparison(rows: Sequence[Figures], colours: Colours, unit: str) -> list[str]:
    columns: dict[str, Cell] = {
        "policy": lambda row: _key(colours[row["policy"]]) + escape(row["policy"]),
        "samples": lambda row: figure(row["samples"]),
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
    said = "Means over runs and phases under each policy, ± half of a 95 % confidence interval (Student's t)."
    if once:
        said += (
            " Of a policy with one sample the interval is by batch means: over stretches of its own time, so it says "
            "how steady this run was, not how others would turn out."
        )
    drawn = figures.intervals(rows, colours, unit)
    return ["<h2>Policies compared</h2>", f'<p class="quiet">{said}</p>', _table(rows, columns), drawn]


def _key(colour: str) -> str:
    return f'<span class="key" style="background:{colour}"></span>'


def _with_half(name: str, times: float = 1) -> Cell:
    def cell(row: Figures) -> str:
        value, half = row[name], row.get(f"{name}_half")
        if value is None:
            return "–"
        return figure(value * times) + ("" if half is None else f" ± {_brief(half * times)}")

    return cell


def _brief(value: float) -> str:
    return f"{value:,.2g}" if abs(value) < 100 else f"{value:,.0f}"


def _differences(rows: Sequence[Figures], unit: str) -> list[str]:
    if not rows:
        return []
    by_policy: dict[str, Figures] = {}
    for row in rows:
        mine = by_policy.setdefault(row["policy"], {"policy": row["policy"], "pairs": row["pairs"]})
        mine[row["measure"]] = row
    columns: dict[str, Cell] = {
        f"policy, against {escape(rows[0]['against'])}": lambda row: escape(row["policy"]),
        "pairs": lambda row: figure(row["pairs"]),
        "memory mean<br>(tuples)": _difference("memory_mean"),
        f"latency mean<br>({unit})": _difference("latency_mean"),
        "stale<br>(% of time)": _difference("staleness", 100),
        f"results<br>(a {'second' if unit == 's' else 'unit'})": _difference("output_rate"),
    }
    said = "Runs with the same arrivals, compared with each other: more precise, as what the load did is in both."
    if rows[0]["by"] == "batch means":
        said += " One pair each: intervals are by batch means over the same stretches of time."
    said += " Bold: the interval does not reach 0."
    return ["<h3>Differences</h3>", f'<p class="quiet">{said}</p>', _table(list(by_policy.values()), columns)]


def _difference(name: str, times: float = 1) -> Cell:
    def cell(row: Figures) -> str:
        found = row[name]
        if found["difference"] is None:
            return "–"
        half = "" if found["half"] is None else f" ± {_brief(found['half'] * times)}"
        text = f"{found['difference'] * times:+,.4g}{half}"
        return f"<b>{text}</b>" if found["certain"] else text

    return cell


def _runs(found: Analysis, unit: str) -> list[str]:
    columns: dict[str, Cell] = {
        "run": lambda row: escape(row["run"]),
        "policies": lambda row: escape(row["policy"]),
        "clock": lambda row: escape(row["clock"]),
        f"lasted<br>({unit})": lambda row: figure(row["seconds"]),
        "arrivals<br>(rows)": lambda row: figure(row["arrived"]),
        "results<br>(rows)": lambda row: figure(row["results"]),
        "late in<br>(mean, s)": lambda row: figure(row["lag_mean"]),
        **_measured(unit),
    }
    return ["<h2>Runs</h2>", _table(found.runs, columns)]


def _measured(unit: str) -> dict[str, Cell]:
    return {
        "memory mean<br>(tuples)": lambda row: figure(row["memory_mean"]),
        "gap<br>(tuples)": lambda row: figure(row["gap_mean"]),
        "max<br>(tuples)": lambda row: figure(row["memory_max"]),
        "max<br>(bytes)": lambda row: figure(row["bytes_max"]),
        **_late(unit),
    }


def _late(unit: str) -> dict[str, Cell]:
    names = {"latency mean": "latency_mean"} | {name: f"latency_{name}" for name in ("p50", "p90", "p99", "max")}
    columns: dict[str, Cell] = {f"{title}<br>({unit})": _plain(name) for title, name in names.items()}
    return columns | {"stale<br>(% of time)": lambda row: percent(row["staleness"])}


def _plain(name: str) -> Cell:
    return lambda row: figure(row[name])


def _over_time(runs: Sequence[Run], found: Analysis, colours: Colours, unit: str) -> list[str]:
    windows: dict[str, list[Figures]] = {}
    for row in found.windows:
        windows.setdefault(row["run"], []).append(row)
    parts = ["<h2>Over time</h2>"]
    alike: dict[str, list[Run]] = {}
    for run in runs:
        if len(run.phases) == 1:
            alike.setdefault(run.arrivals, []).append(run)
    groups = [group for group in alike.values() if len(group) > 1]
    for place, group in enumerate(groups):
        title = f"the same arrivals: {escape(', '.join(run.label for run in group))}"
        drawn = figures.together(group, windows, colours, unit)
        parts.append(f"<details{' open' if place == 0 else ''}><summary>{title}</summary>{drawn}</details>")
    columns: dict[str, Cell] = {
        f"from<br>({unit})": lambda row: figure(row["from"]),
        "policy": lambda row: escape(row["policy"]),
        "reason": lambda row: escape(row["reason"]),
        f"lasted<br>({unit})": lambda row: figure(row["seconds"]),
        "results<br>(rows)": lambda row: figure(row["results"]),
        **_measured(unit),
    }
    for run in runs:
        drawn = figures.over_time(run, windows[run.label], colours, unit)
        phases = [row | {"from": row["since"] - run.since} for row in found.phases if row["run"] == run.label]
        opened = " open" if len(runs) <= OPEN else ""
        table = _table(phases, columns) if len(phases) > 1 else ""
        parts.append(f"<details{opened}><summary>{escape(run.label)}</summary>{drawn}{table}</details>")
    return parts


def _queries(runs: Sequence[Run], found: Analysis, unit: str) -> list[str]:
    columns: dict[str, Cell] = {
        "query": lambda row: escape(row["query"]),
        "weight": lambda row: figure(row["weight"]),
        "results<br>(rows)": lambda row: figure(row["results"]),
        **_late(unit),
    }
    parts = ["<h2>Queries</h2>"]
    for run in runs:
        rows = [row for row in found.queries if row["run"] == run.label]
        opened = " open" if len(runs) == 1 else ""
        parts.append(f"<details{opened}><summary>{escape(run.label)}</summary>{_table(rows, columns)}</details>")
    return parts


def _burstiness(runs: Sequence[Run], found: Analysis, colours: Colours, unit: str) -> list[str]:
    """Arrivals that several runs share are shown once."""
    shown: list[Figures] = []
    drawn = []
    first = {run.arrivals: run.place for run in reversed(runs)}
    for run in runs:
        for name in ("arrivals", "outputs") if first[run.arrivals] == run.place else ("outputs",):
            of, colour = found.flows[run.place, name], colours[run.phases[0].policy]
            shown.append({"flow": name, "run": run.label, "of": of})
            drawn.append((f"{name} {run.label}", figures.INK if name == "arrivals" else colour, of))
    columns: dict[str, Cell] = {
        "flow": lambda row: row["flow"],
        "run": lambda row: escape(row["run"]),
        "peak by mean<br>(1/128 of the time)": lambda row: figure(row["of"].peak),
        **{f"dispersion<br>{2**power} × bin": _dispersion(2**power) for power in SCALES},
        f"bin<br>({unit})": lambda row: figure(row["of"].width),
        "Hurst": lambda row: figure(row["of"].hurst),
    }
    said = (
        "Dispersion: the variance of a count by its mean, 1 for Poisson arrivals at every scale; bursts raise it. "
        "Hurst: from how slowly the variance falls as counts are taken over longer times; 0.5 without memory, towards "
        "1 self-similar."
    )
    picture = figures.variance_time(drawn[:12], unit)
    return ["<h2>Burstiness</h2>", f'<p class="quiet">{said}</p>', _table(shown, columns), picture]


def _dispersion(scale: int) -> Cell:
    return lambda row: figure(row["of"].dispersion.get(scale))


def _notes(unit: str) -> list[str]:
    times = "Times are in the plan's unit" if unit == "units" else "Times are in seconds"
    return [
        "<h2>How it was measured</h2>",
        f'<p class="quiet">{times}. Memory: tuples in queues, its mean over time exact, its maximum the most that '
        "lasted any time at all. Least possible: what any scheduler, even one that knows the future, would have had to "
        "hold (Chain on lower envelopes, beside the run on the same arrivals); an estimate, from measured cost and "
        "selectivity. The gap is the distance to it. "
        "Latency: from when all that a result needs was due to arrive to when it left, percentiles "
        "exact, between the two nearest results. Stale: the share of time in which a query's output was behind its "
        "input, the union of the times in which a result was on its way, mean over queries; what was still on its way "
        "at the end is not counted. Results count in the phase in which they left.</p>",
    ]


def _table(rows: Sequence[Figures], columns: dict[str, Cell]) -> str:
    """As HTML; columns of which nothing is known are left out."""
    cells = {title: [cell(row) for row in rows] for title, cell in columns.items()}
    shown = {title: texts for title, texts in cells.items() if set(texts) != {"–"}}
    left = [' class="text"' if title.startswith(TEXTS) else "" for title in shown]

    def line(texts: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}{how}>{text}</{tag}>" for text, how in zip(texts, left, strict=True)) + "</tr>"

    body = "".join(line(texts, "td") for texts in zip(*shown.values(), strict=True))
    return f'<div class="wide"><table><thead>{line(shown, "th")}</thead><tbody>{body}</tbody></table></div>'
