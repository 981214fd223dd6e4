"""Convert packet traces of the Internet Traffic Archive to Parquet, to replay them as arrivals; or list the formats.

`dsms trace convert IN… OUT` reads text files, gzip files or folders of them, and writes a folder of Parquet parts: at
(seconds from the first packet), time (as in the file), source, destination, source_port, destination_port, size (null
where the format has none) and protocol, sorted by time. Malformed lines are skipped and counted, and one of each kind
is shown.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dsms.cli.progress import show_progress
from dsms.cli.tables import format_cell, format_number, format_seconds, make_table, show
from dsms.errors import DsmsError
from loadgen.cli.spark_session import add_master_option, start_spark
from loadgen.traces.files import find_trace_files
from loadgen.traces.layouts import FAMILIES

if TYPE_CHECKING:
    from loadgen.traces.convert import Conversion

EXAMPLE_CHARACTERS = 60  # shown of a malformed line


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("convert", "formats"), help="convert traces, or list the formats")
    parser.add_argument(
        "paths", metavar="IN… OUT", nargs="*", type=Path, help="the trace files or folders, and the output folder"
    )
    parser.add_argument(
        "--format",
        metavar="NAME",
        choices=tuple(FAMILIES),
        help="the format of the traces (default: recognised by file names and first lines)",
    )
    parser.add_argument("--strict", action="store_true", help="fail on a malformed line, and write nothing")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")
    add_master_option(parser)


def run(given: argparse.Namespace) -> int:
    if given.action == "formats":
        return _print_formats(given)
    if len(given.paths) < 2:
        raise DsmsError(f"`dsms trace convert` takes IN… OUT: expected two paths or more, got {len(given.paths)}")
    *sources, out = given.paths
    files = find_trace_files(sources, given.format)
    with show_progress() as progress, start_spark(given.master, progress) as session:
        from loadgen.traces.convert import convert  # it imports PySpark

        progress(f"converting {len(files)} {'file' if len(files) == 1 else 'files'}")
        conversion = convert(session, files, out, strict=given.strict, overwrite=given.overwrite)
    _print_summary(conversion, out)
    return 0


def _print_formats(given: argparse.Namespace) -> int:
    if given.paths:
        raise DsmsError(f"`dsms trace formats` takes no paths, got {str(given.paths[0])!r}")
    columns = ("format", "file", "columns of a line", "description")
    table = make_table("", columns, left=columns)
    for name, family in FAMILIES.items():
        if given.format in (None, name):
            table.add_row(name, "", "", format_cell(family.about))
            for layout in family.layouts.values():
                table.add_row("", f".{layout.name}", format_cell(" ".join(layout.columns)), format_cell(layout.about))
    show(table)
    return 0


def _print_summary(conversion: Conversion, out: Path) -> None:
    print(f"{format_number(conversion.packets)} packets in {format_seconds(conversion.seconds)}: {out}")
    if conversion.rejected:
        columns = ("file", "skipped because", "lines", "first")
        table = make_table("", columns, left=("file", "skipped because", "first"))
        for one in conversion.rejected:
            text = one.example if len(one.example) <= EXAMPLE_CHARACTERS else f"{one.example[:EXAMPLE_CHARACTERS]}…"
            table.add_row(
                format_cell(one.file.name), format_cell(one.reason), format_number(one.lines), format_cell(text)
            )
        show(table)
