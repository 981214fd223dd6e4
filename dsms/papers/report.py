"""Writes the reproduction report as HTML and Markdown: a table of claims and the figures of each experiment."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from dsms.errors import DsmsError
from dsms.papers import export as data
from dsms.papers.claim import ClaimValue, Judgement, Verdict
from dsms.papers.experiment import Scale
from dsms.papers.figures import save_plot
from dsms.papers.reproduce import ExperimentResult

COLUMNS = ("claim", "paper", "ours", "verdict", "why")
COLOURS = {Verdict.REPRODUCED: "#2a7d4f", Verdict.DIRECTION: "#b07a12", Verdict.NOT: "#b3372f"}
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #22304a; background: #fbfcfd; max-width: 72rem; margin: 2rem auto;
  padding: 0 1.2rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; } h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
.quiet { color: #5b677b; font-size: .9rem; } table { border-collapse: collapse; font-size: .85rem; margin: .6rem 0; }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid #e2e6ec; }
th { border-bottom: 1.5px solid #33415c; } td:nth-child(2), td:nth-child(3), td:nth-child(4) { white-space: nowrap; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; } .figures img { width: 32rem; max-width: 100%; }
"""


def write_report(outcomes: Sequence[ExperimentResult], scale: Scale, command: str, date: str, out: Path) -> None:
    """Write the data and figures of each experiment, then report.md and report.html."""
    try:
        for outcome in outcomes:
            folder = out / outcome.paper.name
            folder.mkdir(parents=True, exist_ok=True)
            data.write_data(outcome, folder)
            for plot in outcome.experiment.plots:
                save_plot(plot, outcome.measured, out / plot_path(outcome, plot.name))
        (out / "report.md").write_text(render_markdown(outcomes, scale, command, date), encoding="utf-8")
        (out / "report.html").write_text(render_html(outcomes, scale, command, date, out), encoding="utf-8")
    except OSError as error:
        raise DsmsError(f"the report cannot be written to {str(out)!r}: {error.strerror}") from None


def plot_path(outcome: ExperimentResult, plot: str) -> str:
    """A figure's path inside the output folder."""
    return f"{outcome.paper.name}/{plot}.svg"


def claim_row(judgement: Judgement) -> tuple[str, str, str, str, str]:
    """A claim's cells, one for each of COLUMNS."""
    claim = judgement.claim
    why = f"{judgement.why} {_explain_alternatives(judgement)}".strip()
    return claim.text, claim.paper, format_value(judgement.ours, claim.form), str(judgement.verdict), why


def _explain_alternatives(judgement: Judgement) -> str:
    """One sentence on other readings of the paper.

    For a claim that is not reproduced: the nearest one. For a reproduced one: the farthest outside the band, if any.
    """
    others, band = judgement.others, judgement.band
    if not others:
        return ""
    if judgement.verdict is not Verdict.REPRODUCED:
        shown, label = others[0], "Nearest other reading"
        if shown.off(band) >= judgement.ours.off(band):
            label = "No other reading that was tried is nearer; the nearest"
    elif others[-1].off(band):
        shown, label = others[-1], "It depends on the reading"
    else:
        return ""
    return f"{label}: {shown.name}, {format_value(shown, judgement.claim.form)}."


def format_value(value: ClaimValue, form: str) -> str:
    """The mean and, over several seeds, ± the standard deviation; a dash for NaN."""
    if math.isnan(value.mean):
        return "–"
    return f"{value.mean:{form}}" + ("" if value.spread is None else f" ± {value.spread:{form}}")


def format_summary(outcomes: Iterable[ExperimentResult]) -> str:
    """The number of claims, in all and by verdict."""
    counts = Counter(judgement.verdict for outcome in outcomes for judgement in outcome.judgements)
    return f"{counts.total()} claims: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)


def _render_heading(outcomes: Sequence[ExperimentResult], scale: Scale, command: str, date: str) -> str:
    size = "short runs" if scale.quick else "the papers' sizes"
    seeds = f"{scale.seeds} seeds" if scale.seeds > 1 else "one seed"
    return f"{format_summary(outcomes)}. Made on {date} by {{}} ({size}, {seeds}; ours ± deviation over seeds)."


def render_markdown(outcomes: Sequence[ExperimentResult], scale: Scale, command: str, date: str) -> str:
    """The report as Markdown, which links to the figures."""
    lines = ["# The papers, reproduced", "", _render_heading(outcomes, scale, command, date).format(f"`{command}`"), ""]
    for paper, mine in _group_by_paper(outcomes):
        lines += [f"## {mine[0].paper.citation}", ""]
        lines += [mine[0].paper.notes, ""] if mine[0].paper.notes else []
        for outcome in mine:
            lines += [f"### {paper}/{outcome.experiment.name}: {outcome.experiment.title}", ""]
            lines += [outcome.experiment.setup, ""]
            if outcome.judgements:
                lines += [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
                for judgement in outcome.judgements:
                    lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in claim_row(judgement)) + " |")
                lines.append("")
            lines += [f"![{plot.title}]({plot_path(outcome, plot.name)})\n" for plot in outcome.experiment.plots]
    return "\n".join(lines)


def render_html(outcomes: Sequence[ExperimentResult], scale: Scale, command: str, date: str, out: Path) -> str:
    """The report as one HTML file with the figures embedded."""
    heading = escape(_render_heading(outcomes, scale, command, date)).format(f"<code>{escape(command)}</code>")
    parts = ["<h1>The papers, reproduced</h1>", f'<p class="quiet">{heading}</p>']
    for paper, mine in _group_by_paper(outcomes):
        parts.append(f"<h2>{escape(mine[0].paper.citation)}</h2>")
        if mine[0].paper.notes:
            parts.append(f"<p>{escape(mine[0].paper.notes)}</p>")
        for outcome in mine:
            parts.append(f"<h3>{escape(f'{paper}/{outcome.experiment.name}: {outcome.experiment.title}')}</h3>")
            parts.append(f'<p class="quiet">{escape(outcome.experiment.setup)}</p>')
            if outcome.judgements:
                parts.append(_render_table(outcome.judgements))
            images = [
                _embed_image(out / plot_path(outcome, plot.name), plot.title) for plot in outcome.experiment.plots
            ]
            parts.append(f'<div class="figures">{"".join(images)}</div>')
    head = f'<meta charset="utf-8"><title>The papers, reproduced</title><style>{STYLE}</style>'
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _render_table(judgements: Iterable[Judgement]) -> str:
    rows = []
    for judgement in judgements:
        text, paper, ours, verdict, why = map(escape, claim_row(judgement))
        colour = COLOURS[judgement.verdict]
        cells = (text, paper, ours, f'<b style="color:{colour}">{verdict}</b>', why)
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{column}</th>" for column in COLUMNS)
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _embed_image(file: Path, title: str) -> str:
    coded = base64.b64encode(file.read_bytes()).decode()
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{coded}">'


def _group_by_paper(outcomes: Sequence[ExperimentResult]) -> Iterator[tuple[str, list[ExperimentResult]]]:
    for name, mine in groupby(outcomes, key=lambda outcome: outcome.paper.name):
        yield name, list(mine)
