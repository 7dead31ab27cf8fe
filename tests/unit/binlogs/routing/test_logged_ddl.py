"""DDL among the rows of recorded logs is found in runs, in groups that are held and that are not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from binlane.binlogs.routing.logged_ddl import logged_ddl
from binlane.binlogs.store.byte_source import FileBytes
from binlane.log.codec.query import QueryEvent
from binlane.log.grouping.event_group import group_events, whole_group
from binlane.log.grouping.raw import LargeGroup, raw_groups
from binlane.log.grouping.walk import walk
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.statement_kinds import DDL_KINDS
from tests.fixture_sets import fixture_names, fixture_set
from tests.routed_files import written

SETS = [
    name
    for name in (*fixture_names("md"), *fixture_names("my97"))
    if not name.endswith(("encrypted", "netstream", "bigrow", "bigcommit"))
]
WINDOWS = ((1 << 20, 1 << 26), (64, 200))


@pytest.mark.parametrize("name", SETS)
def test_all_ddl_is_found(name: str, tmp_path: Path) -> None:
    expected = [
        (event.body.query, group.gtid)
        for file, data in fixture_set(name).binlogs
        for group in group_events(walk([data], file=file), file=file)
        for event in group.events
        if isinstance(event.body, QueryEvent) and _is_ddl(event.body)
    ]
    paths = written(name, tmp_path)
    for window_bytes, held_bytes_max in WINDOWS:
        found = []
        for path in paths:
            with closing(FileBytes(path)) as source:
                for item in raw_groups(
                    source,
                    file=path,
                    name=Path(path).name,
                    window_bytes=window_bytes,
                    held_bytes_max=held_bytes_max,
                ):
                    found += [(body, gtid) for body, gtid in logged_ddl(item) if _is_ddl(body)]
                    if isinstance(item, LargeGroup):
                        (*_, last) = whole_group(item.events())
                        item.end = last.next_position
        assert [body.query for body, _ in found] == [query for query, _ in expected]
        if held_bytes_max > 200:
            assert [gtid for _, gtid in found] == [gtid for _, gtid in expected]


def test_rows_cost_nothing_to_be_looked_through(tmp_path: Path) -> None:
    (path, *_) = written("md1011_txn", tmp_path)
    with closing(FileBytes(path)) as source:
        texts = [
            body.query
            for item in raw_groups(source, file=path, name="binlog.000001")
            for body, _ in logged_ddl(item)
        ]
    assert texts
    assert not any(text.startswith((b"BEGIN", b"COMMIT", b"INSERT")) for text in texts)


def _is_ddl(body: QueryEvent) -> bool:
    return logged_statement(body).facts().effects.kind in DDL_KINDS
