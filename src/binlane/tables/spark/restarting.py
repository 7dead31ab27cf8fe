"""Streams that restart when the columns of their table change."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from binlane.errors import SchemaChangedError
from binlane.tables.spark.failures import plain_errors


def restarted(start: Callable[[], StreamingQuery]) -> int:
    """Run a query to its end, and start it again each time its table's columns changed.

    Args:
        start: Loads the source anew, so that it has the table's columns of that time, and starts
            the query from its checkpoint.

    Returns:
        The number of times that the query was started again.

    Raises:
        BinlaneError: If the query ends for another reason, or starting it again did not help.
    """
    count, last = 0, ""
    while True:
        query = start()
        try:
            with plain_errors():
                query.awaitTermination()
        except SchemaChangedError as error:
            if str(error) == last:
                raise
            count, last = count + 1, str(error)
        else:
            return count
