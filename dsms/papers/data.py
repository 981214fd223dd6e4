"""What was measured, written down: CSV for spreadsheets, JSON with the claims for programs."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dsms.papers.claim import Judgement, Reading
from dsms.papers.measured import Measured
from dsms.papers.reproduce import Outcome


def write(outcome: Outcome, folder: Path) -> None:
    """An experiment's files; figures that are lists have a file of their own, a number a line."""
    name = outcome.experiment.name
    scalars, series = _columns(outcome.measured)
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
        "claims": [claim_data(judgement) for judgement in outcome.judgements],
        "runs": [{"point": dict(row.point), "figures": dict(row.figures)} for row in outcome.measured.rows],
    }
    (folder / f"{name}.json").write_text(json.dumps(whole, indent=1, allow_nan=False), encoding="utf-8")


def claim_data(judgement: Judgement) -> dict[str, Any]:
    """A claim and what came of it, as plain data."""
    claim = judgement.claim
    return {
        "name": claim.name,
        "claim": claim.text,
        "paper": claim.paper,
        **_numbers(judgement.ours),
        "verdict": str(judgement.verdict),
        "why": judgement.why,
        "others": [{"reading": other.name, **_numbers(other)} for other in judgement.others],  # the nearest first
    }


def _numbers(reading: Reading) -> dict[str, float | None]:
    return {"ours": _finite(reading.mean), "spread": _finite(reading.spread)}


def _finite(number: float | None) -> float | None:
    """JSON has no word for others."""
    return number if number is not None and math.isfinite(number) else None


def _columns(measured: Measured) -> tuple[list[str], list[str]]:
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
