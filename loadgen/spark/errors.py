"""Translates Spark's errors into ours: the message of our own code, without Java and Python call stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from dsms.errors import DsmsError, FailedError

OUR_ERROR_PATTERN = re.compile(r"(?:dsms|loadgen)\.[\w.]+: (.*)")
PYTHON_ERROR_PATTERN = re.compile(r"[\w.]+(?:Error|Exception|Interrupt): ")


def extract_message(error: BaseException) -> str:
    """The message of our own error, or else the last Python error, or else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [match[1] for line in lines if (match := OUR_ERROR_PATTERN.match(line))]
    pythons = [line for line in lines if PYTHON_ERROR_PATTERN.match(line)]
    return [*lines[:1], *pythons[-1:], *ours[-1:]][-1] if lines else type(error).__name__


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Raise an error of Spark as a FailedError, whose text no longer needs the Java process."""
    try:
        yield
    except DsmsError:
        raise
    except Exception as error:
        if type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise FailedError(f"{what}: {extract_message(error)}") from None
        raise


@contextmanager
def ignore_spark_exit() -> Iterator[None]:
    """Ignore that the Java process is gone already: a signal to the process group reaches Java, too."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, ConnectionError | EOFError) and not type(error).__module__.startswith("py4j."):
            raise
