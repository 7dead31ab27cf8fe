"""Texts of failures as Spark 4.2.1 gives them, and what a user reads of them."""

from __future__ import annotations

import pytest

from binlane.errors import BinlaneError, ChecksumError, ConfigError
from binlane.tables.spark.failures import readable

_STAGE = (
    "An error occurred while calling o82.collectToPython.\n: org.apache.spark.SparkException: Job "
    "aborted due to stage failure: Task 1 in stage 0.0 failed 4 times, most recent failure: Lost "
    "task 1.3 in stage 0.0 (TID 7) (127.0.0.1 executor 0): "
)
_TRACEBACK = (
    'org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File "/opt/'
    'spark/python/lib/pyspark.zip/pyspark/worker.py", line 1926, in main\n    process()\n'
)


@pytest.mark.parametrize(
    "text, kind, message, hint",
    [
        (
            (
                f"{_STAGE}{_TRACEBACK}binlane.errors.ChecksumError: the CRC32 of the event does not "
                "match its bytes (shop.000001:256)\nhint: see `binlane verify`\n\n\tat org.apache.spark"
            ),
            ChecksumError,
            "the CRC32 of the event does not match its bytes (shop.000001:256)",
            "see `binlane verify`",
        ),
        (
            f"{_STAGE}{_TRACEBACK}ModuleNotFoundError: No module named 'binlane'\n\n\tat org.apache",
            ConfigError,
            "the workers' Python has no binlane (spark.submit.pyFiles)",
            "ship it",
        ),
        (
            f"{_STAGE}{_TRACEBACK}ModuleNotFoundError: No module named 'pyarrow.compute'\n",
            ConfigError,
            "the workers' Python has no pyarrow (spark.pyspark.python)",
            "install pyarrow there",
        ),
        (
            (
                f"{_STAGE}{_TRACEBACK}pyspark.errors.exceptions.base.PySparkRuntimeError: "
                "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in "
                "driver: 3.11, PySpark cannot run with different minor versions.\n"
            ),
            ConfigError,
            "the workers run Python 3.12, this is Python 3.11 (spark.pyspark.python)",
            "name a Python 3.11 of the workers",
        ),
        (
            f'{_STAGE}java.io.IOException: Cannot run program "/opt/py/bin/python": error=2, No such',
            ConfigError,
            "the workers have no /opt/py/bin/python (spark.pyspark.python)",
            "name a Python of the workers",
        ),
        (
            (
                f"{_STAGE}ExecutorLostFailure (executor 0 exited caused by one of the running tasks) "
                "Reason: Command exited with code 137\nDriver stacktrace:\n\tat org.apache.spark"
            ),
            BinlaneError,
            "executors were lost again and again: Command exited with code 137",
            "spark.executor.memory",
        ),
        (
            f"{_STAGE}{_TRACEBACK}OSError: [Errno 28] No space left on device: '/data/x'\n\n\tat org",
            BinlaneError,
            "a Spark job failed: OSError: [Errno 28] No space left on device: '/data/x'",
            "executors' logs",
        ),
        (
            "Connection refused\nand more",
            BinlaneError,
            "a Spark job failed: Connection refused",
            "logs",
        ),
    ],
    ids=["own", "binlane", "pyarrow", "version", "program", "lost", "other", "unknown"],
)
def test_what_a_user_reads(text: str, kind: type[BinlaneError], message: str, hint: str) -> None:
    error = readable(RuntimeError(text))
    assert type(error) is kind
    assert str(error) == message
    assert hint in error.hint
