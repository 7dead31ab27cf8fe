"""A summary as one JSON object; pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from binlane.binlogs.cat.summary.counts import FileCount, GroupSummary

if TYPE_CHECKING:
    from binlane.binlogs.cat.summary.collect import Summary

_BUCKETS: Final = 240


def summary_json(summary: Summary) -> dict[str, object]:
    """Make the object of `--summary --format=json` from a finished one; sizes in bytes, times in UTC."""
    width, buckets = summary.timeline.buckets(_BUCKETS)
    return {
        "files": [_file(file) for file in summary.files],
        "first_time": time_text(summary.timeline.first),
        "last_time": time_text(summary.timeline.last),
        "size_bytes": summary.size_bytes,
        "logged_as": summary.logged_as or None,
        "gtids": summary.gtids.texts(),
        "transactions": summary.transactions,
        "unfinished_transactions": summary.unfinished,
        "uncounted_rows_events": summary.uncounted,
        "events": [
            {"type": name, "inner": is_inner, "count": count.count, "size_bytes": count.size_bytes}
            for (name, is_inner), count in sorted(
                summary.events.items(), key=lambda item: (item[0][1], -item[1].size_bytes)
            )
        ],
        "tables": [
            {
                "database": name.database,
                "table": name.table,
                "inserts": table.inserts,
                "updates": table.updates,
                "deletes": table.deletes,
                "events": table.events,
                "size_bytes": table.size_bytes,
            }
            for name, table in sorted(summary.tables.items(), key=lambda item: -item[1].size_bytes)
        ],
        "statements": dict(summary.statements.most_common()),
        "biggest_transactions": _transactions(summary.biggest),
        "widest_transactions": _transactions(summary.widest),
        "longest_transactions": _transactions(summary.longest),
        "bucket_seconds": width,
        "buckets": [
            {
                "time": time_text(time),
                "size_bytes": bucket.size_bytes,
                "rows": bucket.rows,
                "transactions": bucket.transactions,
            }
            for time, bucket in buckets
        ],
    }


def time_text(time: int | None) -> str | None:
    """`2026-11-20 10:00:00`, in UTC."""
    return None if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S}"


def _file(file: FileCount) -> dict[str, object]:
    return {
        "file": file.name,
        "size_bytes": file.size_bytes,
        "server_version": file.server_version,
        "checksum": file.checksum,
        "is_marked_in_use": file.is_marked_in_use,
        "is_closed": file.is_closed,
    }


def _transactions(transactions: Iterable[GroupSummary]) -> list[dict[str, object]]:
    return [
        {
            "gtid": transaction.gtid,
            "file": transaction.file,
            "position": transaction.position,
            "size_bytes": transaction.size_bytes,
            "rows": transaction.rows,
            "events": transaction.events,
            "first_time": time_text(transaction.first_time),
            "duration_seconds": transaction.duration,
        }
        for transaction in transactions
    ]
