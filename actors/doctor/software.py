"""Checks of installed software: Python, Ray, Spark with its Java, and optional programs."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from actors.doctor.finding import ERROR, OK, WARNING, Finding
from dsms.errors import DsmsError
from loadgen.spark.java import find_java_home, read_version

PACKAGES = {  # which commands need them, and the extra that installs them
    "ray": ("`dsms up` and all live commands", "ray"),
    "pyspark": ("`dsms load` and `dsms report`", "spark"),
    "nicegui": ("`dsms console`", "console"),
}
PROGRAMS = {"prometheus": "deploy/prometheus", "chromium": "`make pictures` and the tests of the console"}


def check_software() -> Iterator[Finding]:
    """All checks of software; a missing package is only a warning."""
    yield Finding(OK, "Python", ".".join(map(str, sys.version_info[:3])))
    for name in PACKAGES:
        yield check_package(name)
    yield check_java()
    for name in PROGRAMS:
        yield check_program(name)


def check_package(name: str) -> Finding:
    """Whether a package is installed, in the version that dsms requires."""
    purpose, extra = PACKAGES[name]
    remedy = f"pip install 'dsms[{extra}]'"
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Finding(WARNING, name, f"not installed; {purpose} need it", remedy)
    expected = read_pinned_version(name)
    if expected is not None and installed != expected:
        return Finding(ERROR, name, f"{installed} is installed; {expected} is expected", remedy)
    return Finding(OK, name, installed)


def read_pinned_version(name: str) -> str | None:
    """The exact version that dsms requires; None if it requires none."""
    try:
        lines = requires("dsms") or []
    except PackageNotFoundError:
        return None
    found = (re.match(rf"{re.escape(name)}(?:\[[^]]*\])?==([^;\s]+)", line) for line in lines)
    return next((match[1] for match in found if match), None)


def check_java() -> Finding:
    """The Java that Spark would use."""
    try:
        home = find_java_home()
    except DsmsError as error:
        return Finding(WARNING, "Java", "none that Spark can run on", str(error).partition(": ")[2] or str(error))
    except OSError as error:
        return Finding(WARNING, "Java", f"cannot be prepared for Spark: {error}", "make XDG_CACHE_HOME writable")
    found = read_version(home / "bin" / "java")
    if found is None:
        return Finding(ERROR, "Java", f"{home / 'bin' / 'java'} does not run", f"remove {home}, and try again")
    return Finding(OK, "Java", f"{found}, by {home}")


def check_program(name: str) -> Finding:
    """Whether an optional program is installed."""
    path = shutil.which(name)
    return Finding(OK, name, path or f"not installed: only {PROGRAMS[name]} uses it")
