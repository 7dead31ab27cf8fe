"""Failures of a Spark job as errors of binlane: one line and a hint.

A worker's failure reaches the driver as the text of a traceback, inside of an exception of the JVM.
An error that binlane raised there is found again in the text; the other usual troubles of a cluster
are told apart, each with advice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it tells no types
from pyspark.errors import PySparkException

from binlane import errors
from binlane.errors import BinlaneError, CodecError, ConfigError, SchemaChangedError

_OWN_ERROR: Final = re.compile(r"binlane\.errors\.(\w+): (.+)")
_HINT: Final = re.compile(r"^\s*hint: (.+)", re.MULTILINE)
_PYTHON_ERROR: Final = re.compile(
    r"^(?:[A-Za-z_][\w.]*(?:Error|Exception)|MemoryError)\b.*", re.MULTILINE
)
_GUIDE: Final = "docs/how-to/cluster.md"

_PYTHON_VERSION: Final = re.compile(
    r"different version: (\d+\.\d+)[^.\d]*than that in driver:? (\d+\.\d+)"
)
_NO_MODULE: Final = re.compile(r"No module named '([\w.]+)'")
_NO_PROGRAM: Final = re.compile(r'Cannot run program "([^"]+)"')
_LOST: Final = re.compile(r"ExecutorLostFailure \((.+?)\)(?: Reason: (.+))?")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise in place of PySpark's exceptions the errors that they mean, which end with their hint.

    PySpark's exception is the new one's `__context__`.

    Raises:
        BinlaneError: As `readable` makes it of the exception.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        plain = readable(error)
        if plain.hint:
            plain.add_note(f"hint: {plain.hint}")
        raise plain from None


def readable(error: BaseException) -> BinlaneError:
    """The error that a failed job means.

    Args:
        error: The exception that PySpark raised, of its own classes or of py4j's.

    Returns:
        The error that binlane raised in a worker, if there is one; else what is known of the
        failure, with a hint.
    """
    text = str(error)
    if found := _OWN_ERROR.findall(text):
        name, message = found[-1]
        hints = _HINT.findall(text)
        kind = getattr(errors, name)
        # These errors need nothing beside their text, which already says file and position.
        is_whole = issubclass(kind, CodecError | SchemaChangedError)
        return (kind if is_whole else BinlaneError)(
            message.strip(), hint=hints[-1] if hints else ""
        )
    for pattern, told in _KNOWN:
        if match := pattern.search(text):
            return told(match)
    lines = _PYTHON_ERROR.findall(text)
    first = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    return BinlaneError(
        f"a Spark job failed: {lines[-1] if lines else first}",
        hint="the executors' logs hold the whole story",
    )


def _of_version(match: re.Match[str]) -> BinlaneError:
    worker, driver = match.groups()
    return ConfigError(
        f"the workers run Python {worker}, this is Python {driver}",
        key="spark.pyspark.python",
        hint=f"name a Python {driver} of the workers: --conf spark.pyspark.python=PATH",
    )


def _of_module(match: re.Match[str]) -> BinlaneError:
    name = match[1].partition(".")[0]
    if name in {"binlane", "pyspark_binlane"}:
        return ConfigError(
            "the workers' Python has no binlane",
            key="spark.submit.pyFiles",
            hint=f"ship it: binlane.tables.spark.spark_engine.ship(spark), or --py-files; see {_GUIDE}",
        )
    return ConfigError(
        f"the workers' Python has no {name}",
        key="spark.pyspark.python",
        hint=f"install {name} there, or name a Python that has it; see {_GUIDE}",
    )


def _of_program(match: re.Match[str]) -> BinlaneError:
    return ConfigError(
        f"the workers have no {match[1]}",
        key="spark.pyspark.python",
        hint="name a Python of the workers: --conf spark.pyspark.python=PATH",
    )


def _of_loss(match: re.Match[str]) -> BinlaneError:
    why = (match[2] or "").strip() or match[1]
    return BinlaneError(
        f"executors were lost again and again: {why}",
        hint="if they ran out of memory, give them more (--conf spark.executor.memory=4g, "
        "spark.executor.memoryOverhead) or make batches smaller (--batch-bytes)",
    )


_KNOWN: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], BinlaneError]], ...]] = (
    (_PYTHON_VERSION, _of_version),
    (_NO_MODULE, _of_module),
    (_NO_PROGRAM, _of_program),
    (_LOST, _of_loss),
)
