"""Where the records of CSV text end: blocks that can be parsed by themselves, and the lines of their records."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

QUOTE = ord('"')
LONGEST = 1 << 24  # bytes in which a quote that was opened has to be closed


class Block(NamedTuple):
    """Some whole records; `open` is the one line of a quote that is never closed."""

    data: bytes
    line: int  # of the file, on which it begins
    open: bool = False


class Record(NamedTuple):
    """One record of a block."""

    line: int
    text: bytes  # without its line end


@dataclass(frozen=True)
class Records:
    """CSV text cut into records: quotes count only where a field begins, as pyarrow has it."""

    delimiter: str = ","

    def blocks(self, chunks: Iterable[bytes]) -> Iterator[Block]:
        """The text in blocks of whole records, each as much as is known when a chunk has come in."""
        data, line = b"", 1
        for chunk in chunks:
            data += chunk
            data, line = yield from self._whole(data, line, final=False)
        yield from self._whole(data, line, final=True)

    def _whole(self, data: bytes, line: int, final: bool) -> Generator[Block, None, tuple[bytes, int]]:
        """The blocks that can be cut from the front of this text; what is left, and on which line."""
        while data:
            cut = self._cut(data, final)
            opened = not cut and (final or len(data) > LONGEST)
            if opened:
                cut = _line_end(data)
            if not cut:
                break
            block = Block(data[:cut], line, opened)
            yield block
            data, line = data[cut:], line + lines(block.data)
        return data, line

    def _cut(self, data: bytes, final: bool) -> int:
        """Where the last record ends of which the end is certain; 0 if there is none."""
        quotes = _count(data, QUOTE)
        if quotes and not self._regular(data):
            return self._scanned(data, final)
        if final:
            return self._scanned(data, final) if quotes % 2 else len(data)
        end = data.rfind(b"\n") + 1
        if not end and not quotes:
            return data.rfind(b"\r", 0, len(data) - 1) + 1  # lines end in \r alone; the last may be half of \r\n
        quotes -= data.count(QUOTE, end)
        while end and quotes % 2:
            before = data.rfind(b"\n", 0, end - 1) + 1
            quotes -= data.count(QUOTE, before, end)
            end = before
        return end

    def _regular(self, data: bytes) -> bool:
        """Whether every second quote opens a field and the others close one, so that counting them is enough."""
        codes = np.frombuffer(data, dtype=np.uint8)
        quotes = np.flatnonzero(codes == QUOTE)
        opening, closing = quotes[0::2], quotes[1::2]
        around = np.array([ord(self.delimiter), ord("\n"), ord("\r"), QUOTE], dtype=np.uint8)
        before = codes[opening[opening > 0] - 1]
        after = codes[closing[closing < len(codes) - 1] + 1]
        return bool(np.isin(before, around).all() and np.isin(after, around).all())

    def _scanned(self, data: bytes, final: bool) -> int:
        """The same cut where quotes stand anywhere: record by record."""
        end = 0
        while end < len(data) and (match := self._pattern.match(data, end)):
            sure = match["end"] and not (match["end"] == b"\r" and match.end() == len(data))
            if not final and not sure:
                break
            end = match.end()
        return end

    def first(self, block: Block) -> tuple[Record, Block]:
        """The first record of a block that is not empty, and what comes after it."""
        record, end = Record(block.line, b""), 0
        while not record.text and end < len(block.data) and (match := self._pattern.match(block.data, end)):
            record = Record(block.line + lines(block.data[:end]), match["record"])
            end = match.end()
        return record, Block(block.data[end:], block.line + lines(block.data[:end]))

    def split(self, block: Block) -> list[Record]:
        """The records of a block that are not empty, with their lines."""
        records, line = [], block.line
        for match in self._pattern.finditer(block.data):
            text = match["record"]
            if text:
                records.append(Record(line, text))
            within = lines(text) if b"\n" in text or b"\r" in text else 0  # only in quotes, so hardly ever
            line += within + bool(match["end"])
        return records

    @property
    def _pattern(self) -> re.Pattern[bytes]:
        """One record: possessive all through, so that a quote never closed costs one look and no more."""
        delimiter = re.escape(self.delimiter.encode())
        field = rb'(?:"(?:[^"]++|"")*+"|(?!"))[^' + delimiter + rb"\r\n]*+"
        return re.compile(rb"(?P<record>" + field + rb"(?:" + delimiter + field + rb")*+)(?P<end>\r\n?|\n|\Z)")


def lines(data: bytes) -> int:
    """How many lines end in it, by \\n, \\r\\n or \\r."""
    alone = data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else 0
    return _count(data, ord("\n")) + alone


def _count(data: bytes, code: int) -> int:
    """As `data.count`, but several times as fast where much is found."""
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == code))


def _line_end(data: bytes) -> int:
    """Where the first line ends, or the text."""
    match = re.search(rb"\r\n?|\n|\Z", data)
    return match.end() if match else len(data)
