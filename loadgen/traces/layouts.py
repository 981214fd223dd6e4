"""The known layouts of trace files, and how a file's layout is recognised by its name or its first lines.

The archive's LBL and DEC traces were reduced by its `sanitize` scripts, one for each kind of packet; the Bellcore
traces have a format of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dsms.errors import DsmsError, existing

HOST_COLUMNS = ("time", "source", "destination", "source_port", "destination_port")


@dataclass(frozen=True)
class TraceLayout:
    """The columns of a line, dropped ones included, and the protocol of all packets."""

    name: str
    columns: tuple[str, ...]
    protocol: str
    about: str
    stamped: bool  # the first line's time may count from 1970, the others' from its whole second


@dataclass(frozen=True)
class Family:
    """Traces that were written by the same tools."""

    pattern: str  # of file names, without the suffix
    about: str
    layouts: Mapping[str, TraceLayout]  # by suffix


SANITIZED = {
    layout.name: layout
    for layout in (
        TraceLayout(
            "tcp", (*HOST_COLUMNS, "size"), "tcp", "TCP packets; size: bytes of data, 0 for bare acknowledgements", True
        ),
        TraceLayout("udp", HOST_COLUMNS, "udp", "UDP packets; the archive has no sizes of them", True),
        TraceLayout(
            "sf",
            (*HOST_COLUMNS, "flags", "sequence", "acknowledged"),
            "tcp",
            "TCP SYN, FIN and RST packets; no sizes",
            True,
        ),
        TraceLayout("encap", ("time",), "encap", "encapsulated IP (MBone); times only", True),
        TraceLayout("other", ("time",), "other", "all other packets; times only", True),
    )
}
BELLCORE = TraceLayout("TL", ("time", "size"), "ethernet", "Ethernet packets; size: bytes of data", False)
FAMILIES = {
    "lbl-pkt": Family(r"lbl-(pkt|tcp)-\d+", "Lawrence Berkeley Laboratory, 1994: LBL-PKT-4, LBL-PKT-5", SANITIZED),
    "dec-pkt": Family(r"dec-pkt-\d+", "Digital Equipment Corporation, 1995: DEC-PKT-1 to 4", SANITIZED),
    "bc": Family(
        r"(bc-)?[op]?(aug|oct)(89)?(ext4?)?", "Bellcore, 1989: BC-pAug89, BC-pOct89 and others", {"tl": BELLCORE}
    ),
}
BY_FIELDS = {len(layout.columns): layout for layout in (BELLCORE, *(SANITIZED[name] for name in ("tcp", "udp", "sf")))}


def find_layout(path: Path, first: list[list[str]], family: str | None = None) -> TraceLayout:
    """Recognise a file's layout by its name, or else by the number of fields in its first lines."""
    if family is not None and family not in FAMILIES:
        raise DsmsError(f"no trace format {family!r}{existing(family, FAMILIES)}")
    stem, _, suffix = path.name.lower().removesuffix(".gz").rpartition(".")
    for name, known in FAMILIES.items():
        if suffix in known.layouts and (name == family or (family is None and re.fullmatch(known.pattern, stem))):
            return known.layouts[suffix]
    counts = {len(fields) for fields in first}
    guess = BY_FIELDS.get(counts.pop()) if len(counts) == 1 else None
    layouts = [layout for known in FAMILIES.values() for layout in known.layouts.values()]
    if guess is None or (family is not None and guess not in FAMILIES[family].layouts.values()):
        raise DsmsError(
            f"{path}: neither its name nor its first lines are those of {'a' if family is None else f'an {family!r}'} "
            f"trace; expected a name like lbl-pkt-4.tcp, dec-pkt-1.udp or BC-pAug89.TL, or lines of "
            f"{', '.join(str(n) for n in sorted({len(layout.columns) for layout in layouts}))} fields (a file of times "
            "alone is recognised by its name only)"
        )
    return guess
