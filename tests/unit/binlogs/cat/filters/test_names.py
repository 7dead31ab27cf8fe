"""Printing by the servers' tools' `--database` and `--table`."""

from __future__ import annotations

import pytest

from binlane.binlogs.cat.name_filter import NameFilter
from binlane.log.codec.transaction import XidEvent
from tests.build import event, format_description
from tests.unit.binlogs.filters.test_events import change, gtid, query


def names_kept(found: NameFilter, *bodies: object) -> list[object]:
    events = [event(body) for body in bodies]  # type: ignore[arg-type]
    return [each.body for item in events for each in found.feed(item, file="f")]


def test_database_and_table_of_the_tools_keep_every_group() -> None:
    begin, commit = query("BEGIN", database="other"), XidEvent(xid=1)
    inside, outside = query("INSERT INTO other.x VALUES (1)"), query("DROP TABLE x", database="x")
    group = [gtid(), begin, inside, outside, *change("t", 7), commit]
    by_database = NameFilter(database="shop", table=None, rewrites={})
    assert names_kept(by_database, *group) == [item for item in group if item is not outside]
    by_table = NameFilter(database=None, table="s", rewrites={})
    assert names_kept(by_table, *group) == [gtid(), begin, inside, outside, commit]


@pytest.mark.parametrize(("version", "name"), [("9.7.4", "new"), ("10.11.19-MariaDB", "shop")])
def test_a_rewritten_database_has_its_new_name_for_mysql_only(version: str, name: str) -> None:
    found = NameFilter(database=name, table=None, rewrites={"shop": "new"})
    head = event(format_description(server_version=version))
    list(found.feed(head, file="f"))
    statement = query("INSERT INTO t VALUES (1)")
    assert names_kept(found, statement, *change("t", 7)) == [statement, *change("t", 7)]
    other = NameFilter(database="new" if name == "shop" else "shop", table=None, rewrites={})
    assert names_kept(other, query("DROP TABLE x", database="other")) == []
