"""Chart colours for light and dark pages; colour-blind viewers can tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsms.policies.registry import policy_names

FONT = "Roboto, sans-serif"  # the page's font: charts measure text with it
BANDS = (
    "#0072b2", "#7a5195", "#5c6b73", "#b8860b", "#a6492c", "#d55e00", "#4d7c0f", "#8c6d46",
    "#b0407f", "#2f6f8f", "#00876c", "#c2437a", "#3f51b5", "#6d4c41", "#455a64", "#827717",
    "#7b1fa2", "#00695c", "#ad1457", "#1565c0",
)  # fmt: skip
COLD_LIGHT, COLD_DARK, HOT = (232, 238, 246), (44, 53, 66), (214, 69, 65)


@dataclass(frozen=True)
class Theme:
    """The colours of a chart."""

    back: str  # background
    ink: str  # text
    faint: str  # axes
    grid: str
    line: str  # first series
    second: str  # second series
    bound: str  # lower bound
    cold: tuple[int, int, int]  # an empty queue


LIGHT = Theme("#ffffff", "#2b3445", "#68758a", "#e4e8ef", "#0072b2", "#d55e00", "#00795a", COLD_LIGHT)
DARK = Theme("#1d1d1d", "#e3e8f0", "#9aa7ba", "#333d4b", "#56b4e9", "#f0934e", "#2fc49a", COLD_DARK)


def policy_colour(policy: str, known: Sequence[str] = ()) -> str:
    """A policy's colour, independent of its parameters."""
    names, name = list(known or policy_names()), policy.partition(":")[0]
    return BANDS[(names.index(name) if name in names else len(names)) % len(BANDS)]


def heat(share: float, theme: Theme) -> str:
    """The colour between an empty queue (0) and a full one (1)."""
    share = min(1.0, max(0.0, share))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(theme.cold, HOT, strict=True))
