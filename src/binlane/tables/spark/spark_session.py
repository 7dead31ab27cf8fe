"""A Spark session that behaves: this Python, UTC, quiet, small."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from binlane.errors import ConfigError

JAVA_VERSION_MIN: Final = 17
_STDERR: Final = 2
_JAVA_FOLDERS: Final = ("/usr/lib/jvm", "/opt/java", "/Library/Java/JavaVirtualMachines")
_VERSION: Final = re.compile(r'version "(\d+)')
_DRIVER_MEMORY: Final = "spark.driver.memory"
_PACKAGES: Final = "spark.jars.packages"
_PYTHON: Final = "spark.pyspark.python"
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.caseSensitive": "true",
    "spark.log.level": "ERROR",
    _DRIVER_MEMORY: "1g",
}


def build_session(
    master: str = "local[2]",
    *,
    app_name: str = "binlane",
    settings: Mapping[str, str] | None = None,
    log_file: Path | None = None,
) -> SparkSession:
    """A Spark session, the running one if there is one.

    Sets JAVA_HOME and PYSPARK_PYTHON of this process: Spark's launcher looks nowhere else for Java,
    and for the Python of the workers. The workers' Python is this one where they are processes of
    this machine. On a cluster it is the one that `spark.pyspark.python` names, or PYSPARK_PYTHON,
    else `python3`; binlane need not be there (see `shipping.ship`).

    Args:
        master: Spark's master URL, such as `local[4]`.
        app_name: The application's name as cluster managers show it.
        settings: Spark settings beside and above those of binlane.
        log_file: Takes the standard error of Spark and its workers, which write to it from the
            first line of their start on.

    Raises:
        ConfigError: If there is no Java that Spark can use.
    """
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ["PYSPARK_PYTHON"] = _worker_python(master, settings or {})
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    with _standard_error(log_file) if log_file else nullcontext():
        session: SparkSession = builder.getOrCreate()
    return session


def session_settings(
    assignments: Sequence[str], *, driver_memory: str = "", packages: Sequence[str] = ()
) -> dict[str, str]:
    """Return a session's settings from the options of a command line.

    Args:
        assignments: `KEY=VALUE` each, as `--conf` takes them.
        driver_memory: Such as `4g`; it must be known before the JVM starts.
        packages: Maven coordinates that are needed beside those in `assignments`.

    Raises:
        ConfigError: If an assignment is no setting of Spark.
    """
    settings = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.startswith("spark."):
            raise ConfigError(
                f"{assignment!r} is no setting of Spark",
                key="conf",
                hint="write --conf spark.KEY=VALUE",
            )
        settings[key.strip()] = value.strip()
    if driver_memory:
        settings[_DRIVER_MEMORY] = driver_memory
    if packages:
        given = [name for name in settings.get(_PACKAGES, "").split(",") if name]
        settings[_PACKAGES] = ",".join(dict.fromkeys([*given, *packages]))
    return settings


def is_local(master: str | None) -> bool:
    """True if the workers of a master are processes of this machine, in this Python."""
    return master is not None and (master == "local" or master.startswith("local["))


def _worker_python(master: str, settings: Mapping[str, str]) -> str:
    if _PYTHON in settings:
        return settings[_PYTHON]
    if is_local(master):
        return sys.executable
    return os.environ.get("PYSPARK_PYTHON", "python3")


@contextmanager
def _standard_error(path: Path) -> Iterator[None]:
    """Send the standard error of programs that start meanwhile to a file."""
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
