"""The history of a table, from groups of a log: what it is made of, and when there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from binlane.binlogs.routing.routing_memory import TableBirth
from binlane.binlogs.routing.table_births import ComingTable
from binlane.binlogs.routing.table_history import HistoryError, TableHistory
from binlane.binlogs.routing.table_links import TableLinks
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import DeleteRowsV1Event, RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ColumnType, EventType, GtidFlag, RowsFlag
from binlane.log.grouping.event_group import EventGroup
from binlane.names import TableName
from binlane.positions import Gtid
from binlane.statements.sql.schema import ForeignKey
from tests.build import rows, table_map
from tests.groups import event, source_format
from tests.routed_files import definitions

OLD, NEW = TableName("shop", "_orders_new"), TableName("shop", "orders")
FILLING = TableName("shop", "binlane_filling_1")
MADE = "CREATE TABLE shop._orders_new (id INT PRIMARY KEY) DEFAULT CHARSET=utf8mb4"


def history(clauses: str = "LOG(shop.orders)", old: TableName = OLD) -> TableHistory:
    (definition,) = definitions(clauses)
    birth = TableBirth(name=old, gtid="0-1-1", since="0-1-0")
    return TableHistory(ComingTable(birth=birth, new=NEW), definition.scope)


def gtid_event(flags: int) -> Event:
    body = GtidEvent(sequence=1, domain_id=0, flags=flags, flags_extra=0, padding=bytes(5))
    return event(EventType.GTID, body)


def statement(text: str, *, error_code: int = 0) -> EventGroup:
    body = QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=error_code,
        status_vars=b"",
        database=b"",
        query=text.encode(),
    )
    events = gtid_event(GtidFlag.STANDALONE), event(EventType.QUERY, body)
    return EventGroup(gtid=Gtid(0, 1, 1), events=events, file="log.000001")


def changes(*tables: str, end: str = "XID") -> EventGroup:
    middle: list[Event] = []
    for number, name in enumerate(tables, 1):
        mapped = table_map(ColumnType.LONG, table=name, table_id=number)
        middle.append(event(EventType.TABLE_MAP, mapped))
        body = rows(1, bytes((0, number, 0, 0, 0)), table_id=number)
        middle.append(event(EventType.WRITE_ROWS_V1, body))
    last = event(EventType.XID, XidEvent(xid=1))
    if end != "XID":
        last = statement(end).events[1]
    events = (gtid_event(GtidFlag.TRANSACTIONAL), *middle, last)
    return EventGroup(gtid=Gtid(0, 1, 2), events=events, file="log.000001")


def deletes(table: str, *mapped: str) -> EventGroup:
    """A DELETE of a table's row, which maps others as MariaDB does for its foreign keys."""
    group = changes(table)
    others = [
        event(EventType.TABLE_MAP, table_map(ColumnType.LONG, table=name, table_id=number))
        for number, name in enumerate(mapped, 7)
    ]
    first, owner, last = group.events[0], group.events[1], group.events[-1]
    body = rows(1, bytes((0, 1, 0, 0, 0)), kind=DeleteRowsV1Event, table_id=1)
    gone = event(EventType.DELETE_ROWS_V1, body)
    return replace(group, events=(first, owner, *others, gone, last))


def source() -> FormatDescriptionEvent:
    return source_format()


def told(groups: Sequence[EventGroup], of: TableHistory | None = None) -> list[object]:
    """Texts of statements, names of tables with rows, and words for what is void."""
    found: list[object] = []
    reader = of or history()
    for group in groups:
        part = reader.read(group, source().format)
        found += ["begins"] if part.begins else []
        found += ["empty"] if part.empties else []
        if part.statement is not None:
            body = part.statement.body
            assert isinstance(body, QueryEvent)
            found.append(body.query.decode())
        for one in part.rows:
            if isinstance(one.body, TableMapEvent):
                found.append(one.body.name)
            else:
                assert isinstance(one.body, RowsEvent)
                assert one.body.flags & RowsFlag.NO_FOREIGN_KEY_CHECKS
    return found


def test_statements_and_rows_have_the_name_that_the_table_is_filled_under() -> None:
    groups = [
        statement(MADE),
        statement("ALTER TABLE `shop`.`_orders_new` ADD x INT"),
        changes("orders", "_orders_new"),
        statement("DROP TABLE shop.other"),
        changes("orders"),
        changes("_orders_new", end="COMMIT"),
    ]
    made, altered, *others = told(groups)
    assert "_orders_new" not in f"{made}{altered}{others}"
    assert made == "begins"
    assert str(altered).startswith("CREATE TABLE `shop`.`binlane_filling_1` (id")
    altered = "ALTER TABLE `shop`.`binlane_filling_1` ADD x INT"
    assert others == [altered, FILLING, FILLING]


def test_a_table_that_is_made_anew_or_emptied_begins_anew() -> None:
    groups = [
        *(statement(MADE), changes("_orders_new"), statement("DROP TABLE shop._orders_new")),
        *(statement(MADE), changes("_orders_new"), statement("TRUNCATE shop._orders_new")),
        statement("CREATE INDEX i ON shop._orders_new (id)"),
    ]
    words = [one for one in told(groups) if one in ("begins", "empty")]
    assert words == ["begins", "begins", "begins", "empty"]


def test_a_table_like_one_in_scope_needs_it_unchanged() -> None:
    both = "LOG(shop.orders, shop.model)"
    like = statement("CREATE TABLE shop._orders_new LIKE shop.model")
    assert "LIKE" in str(told([like, changes("model")], history(both)))
    with pytest.raises(HistoryError, match="made like was altered"):
        told([like, statement("ALTER TABLE shop.model ADD y INT")], history(both))
    own = statement("CREATE TABLE shop._orders_new LIKE shop.orders")
    assert "LIKE" in str(told([own, statement("ALTER TABLE shop._orders_new MODIFY id BIGINT")]))
    with pytest.raises(HistoryError, match="outside of the scope"):
        told([statement("CREATE TABLE shop._orders_new LIKE shop.other")])


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        (statement("RENAME TABLE shop._orders_new TO shop.x"), "about other tables"),
        (statement("DROP TABLE shop._orders_new, shop.y"), None),
        (statement("DROP DATABASE shop"), "its database was dropped"),
        (statement("ALTER DATABASE shop CHARACTER SET latin1"), "its database was altered"),
        (statement("FROBNICATE _orders_new"), "could not be analysed"),
        (statement("FROBNICATE other"), "could not be analysed"),
        (statement("ALTER TABLE shop._orders_new ADD x INT", error_code=1), "failed"),
        (statement("INSERT INTO shop._orders_new VALUES (5)"), "cannot have: insert"),
        (statement("CREATE TABLE shop._orders_new LIKE shop._orders_new"), "under another name"),
        (changes("_orders_new", end="ROLLBACK"), "not committed"),
        (statement("CREATE TABLE crm.m (id INT) ENGINE=MERGE UNION=(shop._orders_new)"), "MERGE"),
        (statement("SELECT f()"), "calls stored code"),
    ],
)
def test_what_is_not_certain_is_no_history(group: EventGroup, reason: str | None) -> None:
    reader = history()
    told([statement(MADE)], reader)
    if reason is None:
        told([group], reader)
        return
    with pytest.raises(HistoryError, match=reason):
        told([group], reader)


def test_rows_that_a_foreign_key_may_have_changed_are_no_history() -> None:
    key = statement(
        "ALTER TABLE shop._orders_new ADD FOREIGN KEY (id) REFERENCES shop.orders (id) "
        "ON DELETE CASCADE"
    )
    reader = history()
    assert not reader.concerns(NEW)
    told([statement(MADE), key, changes("_orders_new"), changes("orders")], reader)
    assert reader.concerns(NEW)
    with pytest.raises(HistoryError, match="foreign key"):
        told([deletes("orders", "_orders_new")], reader)
    with pytest.raises(HistoryError, match="foreign keys refer to was altered"):
        told([statement("ALTER TABLE shop.orders ADD y INT")], reader)


def test_keys_of_its_parents_count() -> None:
    above = ForeignKey(
        table=NEW,
        columns=("id",),
        parent=TableName("crm", "customers"),
        on_delete="CASCADE",
        parent_columns=("id",),
    )
    (definition,) = definitions("LOG(shop.orders)")
    coming = ComingTable(birth=TableBirth(name=OLD, gtid="0-1-1", since="0-1-0"), new=NEW)
    reader = TableHistory(coming, definition.scope, TableLinks(keys=frozenset({above})))
    made = MADE.replace(
        ")", ", FOREIGN KEY (id) REFERENCES shop.orders (id) ON DELETE SET NULL)", 1
    )
    told([statement(made)], reader)
    assert reader.concerns(above.parent)


def test_a_table_with_rows_is_not_altered() -> None:
    reader = history()
    told([statement(MADE), changes("_orders_new")], reader)
    with pytest.raises(HistoryError, match="had rows already"):
        told([statement("ALTER TABLE shop._orders_new ADD x INT")], reader)


def test_a_table_of_another_database_names_its_character_set() -> None:
    old = TableName("crm", "orders_new")
    text = "CREATE TABLE crm.orders_new (n VARCHAR(9))"
    named = statement(f"{text} DEFAULT CHARSET=latin1")
    assert "shop" in str(told([named], history("LOG(shop)", old)))
    with pytest.raises(HistoryError, match="character set comes from its database"):
        told([statement(text)], history("LOG(shop)", old))


def test_rows_before_the_table_was_made_are_no_history() -> None:
    with pytest.raises(HistoryError, match="before it was made"):
        told([changes("_orders_new")])


def test_names_that_the_server_makes_for_constraints_are_those_of_the_filled_table() -> None:
    key = "CONSTRAINT `{}` FOREIGN KEY (id) REFERENCES `shop`.`orders` (id)"
    own, kept = "_orders_new_ibfk_1", "_orders_new_ibfk_x"
    text = MADE.replace("KEY)", f"KEY, {key.format(own)}, {key.format(kept)})")
    dropped = f"ALTER TABLE shop._orders_new DROP FOREIGN KEY IF EXISTS {own}"
    _, made, altered = told([statement(text), statement(dropped)])
    assert key.format("binlane_filling_1_ibfk_1") in str(made)
    assert key.format(kept) in str(made)
    begin = "ALTER TABLE `shop`.`binlane_filling_1` DROP FOREIGN KEY IF EXISTS"
    assert altered == f"{begin} `binlane_filling_1_ibfk_1`"
