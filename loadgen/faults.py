"""What goes wrong in Spark, in our words: what one of our own parts said there, without anybody's call stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from dsms.errors import DsmsError, FailedError

OURS = re.compile(r"(?:dsms|loadgen)\.[\w.]+: (.*)")
PYTHONS = re.compile(r"[\w.]+(?:Error|Exception|Interrupt): ")


def said(error: BaseException) -> str:
    """What one of our own parts said, or else Python's last word, or else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [found[1] for line in lines if (found := OURS.match(line))]
    pythons = [line for line in lines if PYTHONS.match(line)]
    return [*lines[:1], *pythons[-1:], *ours[-1:]][-1] if lines else type(error).__name__


@contextmanager
def in_our_words(what: str) -> Iterator[None]:
    """Raise what Spark raises as a failure of ours: it can be shown also when Spark is gone."""
    try:
        yield
    except DsmsError:
        raise
    except Exception as error:
        if type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise FailedError(f"{what}: {said(error)}") from None
        raise


@contextmanager
def gone() -> Iterator[None]:
    """Ending what may have ended already: a TERM for all processes of a group reaches Java, too."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, ConnectionError | EOFError) and not type(error).__module__.startswith("py4j."):
            raise
