"""Streams that go on when the columns of their table change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from binlane.errors import SchemaChangedError

_NAME: Final = f"{SchemaChangedError.__module__}.{SchemaChangedError.__qualname__}"


def restarted(start: Callable[[], StreamingQuery]) -> int:
    """Run a query to its end, and start it again each time its table's columns changed.

    Args:
        start: Loads the source anew, so that it has the table's columns of that time, and starts
            the query from its checkpoint.

    Returns:
        How many times it was started again.

    Raises:
        StreamingQueryException: If the query ends for another reason, or starting it again did not
            help.
    """
    count, last = 0, ""
    while True:
        query = start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            reason = _reason(error)
            if not reason or reason == last:
                raise
            count, last = count + 1, reason
        else:
            return count


def _reason(error: StreamingQueryException) -> str:
    """What of a table changed; empty if that is not why the query ended."""
    lines = str(error).splitlines()
    return next((line for line in reversed(lines) if _NAME in line), "")
