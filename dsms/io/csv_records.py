"""Splits CSV text into blocks of whole records that can be parsed independently, and into records with line numbers."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

QUOTE = ord('"')
MAX_QUOTED_BYTES = 1 << 24  # within which an open quote must be closed


class CsvBlock(NamedTuple):
    """Some whole records of a file."""

    data: bytes
    line: int  # number of its first line in the file
    open: bool = False  # it is one line with a quote that is never closed


class CsvRecord(NamedTuple):
    """One record of a block."""

    line: int
    text: bytes  # without its line end


@dataclass(frozen=True)
class CsvSplitter:
    """Splits CSV text into records; a quote counts only at the start of a field, as in pyarrow."""

    delimiter: str = ","

    def blocks(self, chunks: Iterable[bytes]) -> Iterator[CsvBlock]:
        """Yield blocks of whole records, as many as are complete after each chunk."""
        data, line = b"", 1
        for chunk in chunks:
            data += chunk
            data, line = yield from self._cut_blocks(data, line, final=False)
        yield from self._cut_blocks(data, line, final=True)

    def _cut_blocks(self, data: bytes, line: int, final: bool) -> Generator[CsvBlock, None, tuple[bytes, int]]:
        """Yield the blocks at the front of this text; return the rest and its line number."""
        while data:
            cut = self._find_end(data, final)
            is_open = not cut and (final or len(data) > MAX_QUOTED_BYTES)
            if is_open:
                cut = _line_end(data)
            if not cut:
                break
            block = CsvBlock(data[:cut], line, is_open)
            yield block
            data, line = data[cut:], line + count_lines(block.data)
        return data, line

    def _find_end(self, data: bytes, final: bool) -> int:
        """Return the end of the last record that is certainly complete; 0: there is none."""
        quotes = _count_byte(data, QUOTE)
        if quotes and not self._has_regular_quotes(data):
            return self._scan_end(data, final)
        if final:
            return self._scan_end(data, final) if quotes % 2 else len(data)
        end = data.rfind(b"\n") + 1
        if not end and not quotes:
            return data.rfind(b"\r", 0, len(data) - 1) + 1  # lines end in \r only; the last may be half of \r\n
        quotes -= data.count(QUOTE, end)
        while end and quotes % 2:
            before = data.rfind(b"\n", 0, end - 1) + 1
            quotes -= data.count(QUOTE, before, end)
            end = before
        return end

    def _has_regular_quotes(self, data: bytes) -> bool:
        """Whether quotes alternately open and close a field, so that counting them is enough."""
        codes = np.frombuffer(data, dtype=np.uint8)
        quotes = np.flatnonzero(codes == QUOTE)
        opening, closing = quotes[0::2], quotes[1::2]
        around = np.array([ord(self.delimiter), ord("\n"), ord("\r"), QUOTE], dtype=np.uint8)
        before = codes[opening[opening > 0] - 1]
        after = codes[closing[closing < len(codes) - 1] + 1]
        return bool(np.isin(before, around).all() and np.isin(after, around).all())

    def _scan_end(self, data: bytes, final: bool) -> int:
        """Do as `_find_end` where quotes may be anywhere: record by record."""
        end = 0
        while end < len(data) and (match := self._pattern.match(data, end)):
            sure = match["end"] and not (match["end"] == b"\r" and match.end() == len(data))
            if not final and not sure:
                break
            end = match.end()
        return end

    def first(self, block: CsvBlock) -> tuple[CsvRecord, CsvBlock]:
        """Return the first record of a block that is not empty, and the rest of the block."""
        record, end = CsvRecord(block.line, b""), 0
        while not record.text and end < len(block.data) and (match := self._pattern.match(block.data, end)):
            record = CsvRecord(block.line + count_lines(block.data[:end]), match["record"])
            end = match.end()
        return record, CsvBlock(block.data[end:], block.line + count_lines(block.data[:end]))

    def split(self, block: CsvBlock) -> list[CsvRecord]:
        """Return the records of a block that are not empty, with their line numbers."""
        records, line = [], block.line
        for match in self._pattern.finditer(block.data):
            text = match["record"]
            if text:
                records.append(CsvRecord(line, text))
            within = count_lines(text) if b"\n" in text or b"\r" in text else 0  # rare: only in quotes
            line += within + bool(match["end"])
        return records

    @property
    def _pattern(self) -> re.Pattern[bytes]:
        """The pattern of one record, without backtracking, so that a quote that is never closed costs one scan."""
        delimiter = re.escape(self.delimiter.encode())
        field = rb'(?:"(?:[^"]++|"")*+"|(?!"))[^' + delimiter + rb"\r\n]*+"
        return re.compile(rb"(?P<record>" + field + rb"(?:" + delimiter + field + rb")*+)(?P<end>\r\n?|\n|\Z)")


def count_lines(data: bytes) -> int:
    r"""Count the line ends, \n, \r\n or \r."""
    alone = data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else 0
    return _count_byte(data, ord("\n")) + alone


def _count_byte(data: bytes, code: int) -> int:
    """Do as `data.count`, but several times as fast if there are many matches."""
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == code))


def _line_end(data: bytes) -> int:
    """Return the end of the first line, or of the text."""
    match = re.search(rb"\r\n?|\n|\Z", data)
    return match.end() if match else len(data)
