"""Writes an experiment's measurements as CSV, and its measurements and claims as JSON."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dsms.papers.claim import ClaimValue, Judgement
from dsms.papers.measurements import Measurements
from dsms.papers.reproduce import ExperimentResult


def write_data(outcome: ExperimentResult, folder: Path) -> None:
    """Write NAME.csv, NAME.json and, for figures that are lists, NAME.series.csv with one number per line."""
    name = outcome.experiment.name
    scalars, series = _column_names(outcome.measured)
    parameters = list(dict.fromkeys(key for row in outcome.measured.rows for key in row.point))
    _write_csv(
        folder / f"{name}.csv",
        [*parameters, *scalars],
        (
            [*(row.point.get(key) for key in parameters), *(row.figures.get(key) for key in scalars)]
            for row in outcome.measured.rows
        ),
    )
    if series:
        _write_csv(
            folder / f"{name}.series.csv",
            [*parameters, "figure", "place", "value"],
            (
                [*(row.point.get(key) for key in parameters), key, place, value]
                for row in outcome.measured.rows
                for key in series
                for place, value in enumerate(row.figures.get(key) or ())
            ),
        )
    whole = {
        "paper": outcome.paper.citation,
        "experiment": outcome.experiment.title,
        "setup": outcome.experiment.setup,
        "claims": [describe_claim(judgement) for judgement in outcome.judgements],
        "runs": [{"point": dict(row.point), "figures": dict(row.figures)} for row in outcome.measured.rows],
    }
    (folder / f"{name}.json").write_text(json.dumps(whole, indent=1, allow_nan=False), encoding="utf-8")


def describe_claim(judgement: Judgement) -> dict[str, Any]:
    """A claim, our numbers and the verdict, as plain data for JSON."""
    claim = judgement.claim
    return {
        "name": claim.name,
        "claim": claim.text,
        "paper": claim.paper,
        **_describe_value(judgement.ours),
        "verdict": str(judgement.verdict),
        "why": judgement.why,
        "others": [
            {"reading": other.name, **_describe_value(other)} for other in judgement.others
        ],  # the nearest to the paper first
    }


def _describe_value(value: ClaimValue) -> dict[str, float | None]:
    return {"ours": _finite_or_none(value.mean), "spread": _finite_or_none(value.spread)}


def _finite_or_none(number: float | None) -> float | None:
    """None for NaN and infinity, which JSON cannot express."""
    return number if number is not None and math.isfinite(number) else None


def _column_names(measured: Measurements) -> tuple[list[str], list[str]]:
    scalars: dict[str, None] = {}
    series: dict[str, None] = {}
    for row in measured.rows:
        for key, value in row.figures.items():
            (series if isinstance(value, list) else scalars)[key] = None
    return [key for key in scalars if key not in series], list(series)


def _write_csv(file: Path, header: list[str], rows: Iterable[list[Any]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(header)
        writer.writerows(rows)
