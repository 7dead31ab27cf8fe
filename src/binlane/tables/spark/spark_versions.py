"""Differences between Spark 4.1 and 4.2: limits of a micro-batch, and the promise to end with it.

On 4.1 the stand-ins here are never used by Spark: its readers answer with everything there is.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # Spark 4.1

    class ReadAllAvailable:  # type: ignore[no-redef]  # stands in for Spark 4.2's
        """Stands for a stream without a limit."""

    class ReadMaxBytes:  # type: ignore[no-redef]  # stands in for Spark 4.2's
        """Bytes of a micro-batch."""

        def __init__(self, max_bytes: int) -> None:
            self.max_bytes = max_bytes

    class ReadMaxRows:  # type: ignore[no-redef]  # stands in for Spark 4.2's
        """Rows of a micro-batch."""

        def __init__(self, max_rows: int) -> None:
            self.max_rows = max_rows

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]  # stands in for Spark 4.2's
        """Marks readers that can end with the present end of the log."""


__all__ = [
    "ReadMaxBytes",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema_of",
    "read_everything",
]


def read_everything() -> Any:
    """Spark's word for no limit."""
    return ReadAllAvailable()


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Return the schema that Spark compares a reader's batches with: moments are in UTC."""
    zone: dict[str, Any] = (
        {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    )
    return to_arrow_schema(schema, **zone)
