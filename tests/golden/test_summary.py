"""What `Summary` counts is what the servers and their tools list, in every set."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from binlane.binlogs.cat.summary import Summary
from binlane.binlogs.cat.summary.summary_json import summary_json
from binlane.errors import UnsupportedError
from binlane.log.codec.columns import decode_rows
from binlane.log.codec.row_count import count_rows
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import Flavor
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.walk import walk
from tests.fixture_sets import fixture_names, fixture_set

SETS = [
    name for name in fixture_names() if not name.startswith("corrupt") and "encrypted" not in name
]
LISTED = [name for name in SETS if "rows.jsonl" in fixture_set(name)]
# The tools do not print rows of MariaDB 5.3's types and of MySQL's GEOMETRY, nor a file that is
# still written to its end.
_NOT_LISTED = {
    "md1011_types_temporal_hires53",
    "md1011_live_copy",
    "my97_live_copy",
    "my97_metadata_full",
    "my97_metadata_minimal",
    "my97_types_geometry",
}


def summary_of(name: str) -> Summary:
    summary = Summary()
    for file, data in fixture_set(name).binlogs:
        for event in expanded_all(walk([data], file=file), file=file):
            summary.feed(event, file=file)
    summary.finish()
    return summary


@pytest.mark.parametrize("name", SETS)
def test_events_and_bytes_are_those_of_the_files(name: str) -> None:
    figures: Any = summary_json(summary_of(name))
    binlogs = fixture_set(name).binlogs
    assert figures["size_bytes"] == sum(len(data) - 4 for _, data in binlogs)
    assert [file["size_bytes"] for file in figures["files"]] == [len(data) for _, data in binlogs]
    counted = sum(event["count"] for event in figures["events"] if not event["inner"])
    assert counted == sum(len(list(walk([data], file=file))) for file, data in binlogs)


@pytest.mark.parametrize("name", [name for name in LISTED if name not in _NOT_LISTED])
def test_rows_are_those_that_the_tools_print(name: str) -> None:
    expected = Counter((row["db"], row["table"], row["op"]) for row in fixture_set(name).rows())
    figures: Any = summary_json(summary_of(name))
    found = {
        (table["database"], table["table"], operation[0].upper()): table[operation]
        for table in figures["tables"]
        for operation in ("inserts", "updates", "deletes")
        if table[operation]
    }
    assert found == expected


@pytest.mark.parametrize("name", SETS)
def test_rows_are_counted_as_they_are_decoded(name: str) -> None:
    for file, data in fixture_set(name).binlogs:
        events = list(expanded_all(walk([data], file=file), file=file))
        flavor = Flavor.MYSQL if name.startswith("my") else Flavor.MARIADB
        for event, body, table_map in rows_with_tables(events, file=file):
            columns = table_columns(table_map, flavor=flavor)
            assert isinstance(event.body, RowsEvent)
            try:
                expected = sum(1 for _ in decode_rows(body, columns))
            except UnsupportedError:
                with pytest.raises(UnsupportedError):
                    count_rows(body, columns)
                continue
            assert count_rows(body, columns) == expected > 0
