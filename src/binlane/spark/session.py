"""A Spark session that behaves: this Python, UTC, quiet, small."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from binlane.errors import ConfigError

JAVA_VERSION_MIN: Final = 17
_STDERR: Final = 2
_JAVA_FOLDERS: Final = ("/usr/lib/jvm", "/opt/java", "/Library/Java/JavaVirtualMachines")
_VERSION: Final = re.compile(r'version "(\d+)')
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.caseSensitive": "true",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "1g",
}


def build_session(
    master: str = "local[2]",
    *,
    app_name: str = "binlane",
    settings: Mapping[str, str] | None = None,
    log_file: Path | None = None,
) -> SparkSession:
    """A Spark session, the running one if there is one.

    Sets JAVA_HOME and PYSPARK_PYTHON of this process: Spark's workers must run in the environment
    that has binlane, and its launcher looks nowhere else for Java.

    Args:
        master: Spark's master URL.
        app_name: As shown by cluster managers.
        settings: Spark settings beside and above those of binlane.
        log_file: Takes what Spark and its workers write to standard error, which they do from the
            first line of their start on.

    Raises:
        ConfigError: If there is no Java that Spark can use.
    """
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    with _standard_error(log_file) if log_file else nullcontext():
        session: SparkSession = builder.getOrCreate()
    return session


@contextmanager
def _standard_error(path: Path) -> Iterator[None]:
    """Let programs that are started meanwhile write their standard error to a file."""
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(file, _STDERR)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, _STDERR)
        os.close(kept)
        os.close(file)


def find_java_home() -> Path:
    """The directory of a Java that is new enough: JAVA_HOME, else of PATH, else an installed one.

    Raises:
        ConfigError: If there is none.
    """
    for home in _java_homes():
        if (_java_version(home / "bin" / "java") or 0) >= JAVA_VERSION_MIN:
            return home
    raise ConfigError(
        f"Spark needs Java {JAVA_VERSION_MIN} or later, and none is found",
        key="JAVA_HOME",
        hint="apt-get install openjdk-17-jre-headless, or set JAVA_HOME",
    )


def _java_homes() -> Iterator[Path]:
    if "JAVA_HOME" in os.environ:
        yield Path(os.environ["JAVA_HOME"])
    if java := shutil.which("java"):
        yield Path(java).resolve().parent.parent
    for folder in map(Path, _JAVA_FOLDERS):
        if folder.is_dir():
            yield from sorted(folder.iterdir())


def _java_version(java: Path) -> int | None:
    try:
        # Java writes its version to standard error.
        shown = subprocess.run(  # noqa: S603 - a path that was found, no text of a user
            [java, "-version"], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(shown.stderr)
    return int(match[1]) if match else None
