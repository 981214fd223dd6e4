"""Make Parquet of packet traces of the Internet Traffic Archive, to replay them as arrivals; or list the formats.

`dsms trace convert IN… OUT` reads text files, gzip files or folders of them, and writes a folder of Parquet parts: at
(seconds from the first packet), time (as in the file), source, destination, source_port, destination_port, size (null
where the format has none) and protocol, sorted by time. Lines that do not fit are left out, counted, and one of each
kind is shown; lines out of order are put in order.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dsms.cli.tables import cell, figure, seconds, show, table
from dsms.cli.telling import progress
from dsms.errors import DsmsError
from loadgen.cli.starting import master, spark
from loadgen.traces.files import trace_files
from loadgen.traces.layouts import FAMILIES

if TYPE_CHECKING:
    from loadgen.traces.convert import Conversion

WIDEST = 60  # characters of an example


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("convert", "formats"), help="what to do")
    parser.add_argument("paths", metavar="IN… OUT", nargs="*", type=Path, help="files or folders, and where to write")
    parser.add_argument("--format", metavar="NAME", choices=tuple(FAMILIES), help="default: by names and first lines")
    parser.add_argument(
        "--strict", action="store_true", help="a line that does not fit is an error; nothing is written"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it is there")
    master(parser)


def run(given: argparse.Namespace) -> int:
    if given.action == "formats":
        return _formats(given)
    if len(given.paths) < 2:
        raise DsmsError(f"`dsms trace convert` takes IN… OUT, and {len(given.paths)} of them are given")
    *sources, out = given.paths
    files = trace_files(sources, given.format)
    with progress() as tell, spark(given.master, tell) as session:
        from loadgen.traces.convert import convert

        tell(f"converting {len(files)} {'file' if len(files) == 1 else 'files'}")
        done = convert(session, files, out, strict=given.strict, overwrite=given.overwrite)
    _say(done, out)
    return 0


def _formats(given: argparse.Namespace) -> int:
    if given.paths:
        raise DsmsError(f"`dsms trace formats` takes nothing after it, and {str(given.paths[0])!r} is given")
    shown = table(
        "", ("format", "file", "columns of a line", "what"), left=("format", "file", "columns of a line", "what")
    )
    for name, family in FAMILIES.items():
        if given.format in (None, name):
            shown.add_row(name, "", "", cell(family.about))
            for layout in family.layouts.values():
                shown.add_row("", f".{layout.name}", cell(" ".join(layout.columns)), cell(layout.about))
    show(shown)
    return 0


def _say(done: Conversion, out: Path) -> None:
    print(f"{figure(done.packets)} packets in {seconds(done.seconds)}: {out}")
    if done.rejected:
        columns = ("file", "left out because", "lines", "the first")
        shown = table("", columns, left=("file", "left out because", "the first"))
        for one in done.rejected:
            text = one.example if len(one.example) <= WIDEST else f"{one.example[:WIDEST]}…"
            shown.add_row(cell(one.file.name), cell(one.reason), figure(one.lines), cell(text))
        show(shown)
