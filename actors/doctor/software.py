"""What is installed: Python, Ray, Spark with its Java, and what is nice to have."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from actors.doctor.finding import ERROR, OK, WARNING, Finding
from dsms.errors import DsmsError
from loadgen.java import java_home, version_of

PACKAGES = {  # what they are for, and the extra that brings them
    "ray": ("`dsms up` and all that is live", "ray"),
    "pyspark": ("`dsms load` and `dsms report`", "spark"),
    "nicegui": ("`dsms console`", "console"),
}
PROGRAMS = {"prometheus": "deploy/prometheus", "chromium": "`make pictures` and the tests of the console"}


def software() -> Iterator[Finding]:
    """All of it; nothing that is not installed is an error."""
    yield Finding(OK, "Python", ".".join(map(str, sys.version_info[:3])))
    for name in PACKAGES:
        yield package(name)
    yield java()
    for name in PROGRAMS:
        yield program(name)


def package(name: str) -> Finding:
    """Whether a package is there, and is the one that this version was made with."""
    purpose, extra = PACKAGES[name]
    remedy = f"pip install 'dsms[{extra}]'"
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(WARNING, name, f"not installed; {purpose} need it", remedy)
    wanted = pinned(name)
    if wanted is not None and found != wanted:
        return Finding(ERROR, name, f"{found} is installed; {wanted} is wanted", remedy)
    return Finding(OK, name, found)


def pinned(name: str) -> str | None:
    """The only version that will do, where there is one."""
    try:
        lines = requires("dsms") or []
    except PackageNotFoundError:
        return None
    found = (re.match(rf"{re.escape(name)}(?:\[[^]]*\])?==([^;\s]+)", line) for line in lines)
    return next((match[1] for match in found if match), None)


def java() -> Finding:
    """The one that Spark would run on."""
    try:
        home = java_home()
    except DsmsError as error:
        return Finding(WARNING, "Java", "none that Spark can run on", str(error).partition(": ")[2] or str(error))
    except OSError as error:
        return Finding(WARNING, "Java", f"cannot be made fit for Spark: {error}", "let XDG_CACHE_HOME be writable")
    found = version_of(home / "bin" / "java")
    if found is None:
        return Finding(ERROR, "Java", f"{home / 'bin' / 'java'} does not run", f"remove {home}, and try again")
    return Finding(OK, "Java", f"{found}, by {home}")


def program(name: str) -> Finding:
    """Whether one that can be done without is there."""
    path = shutil.which(name)
    return Finding(OK, name, path or f"not there: only {PROGRAMS[name]} would use it")
