"""Tables that are made outside of a scope: which are remembered, and which RENAMEs ask for their rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.binlogs.routing.routing_memory import NOTHING, Memory, TableBirth
from binlane.binlogs.routing.table_births import BIRTHS_MAX, TableArrival, arrival, births_after
from binlane.binlogs.routing.table_links import TableLinks
from binlane.log.codec.query import QueryEvent
from binlane.names import TableName
from binlane.positions import Gtid, GtidPosition
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from tests.routed_files import definitions

NEW = TableName("shop", "_orders_new")
RENAME = "RENAME TABLE shop.orders TO shop._orders_old, shop._orders_new TO shop.orders"


def effects_of(statement: str) -> StatementEffects:
    return read(statement, database="crm", dialect=Dialect()).effects


def scope_of(clauses: str = "LOG(shop.orders)") -> Scope:
    (definition,) = definitions(clauses)
    return definition.scope


def behind(*statements: str, scope: Scope | None = None) -> Memory:
    memory = NOTHING
    for number, statement in enumerate(statements, 1):
        memory = births_after(
            memory,
            effects_of(statement),
            scope or scope_of(),
            Gtid(0, 1, number),
            since=GtidPosition((Gtid(0, 1, number - 1),)) if number > 1 else GtidPosition(),
        )
    return memory


def query(statement: str) -> QueryEvent:
    return QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=b"",
        query=statement.encode(),
    )


def arriving(
    statement: str, memory: Memory, clauses: str = "LOG(shop.orders)"
) -> TableArrival | None:
    return arrival(query(statement), effects_of(statement), scope_of(clauses), memory)


MADE = ("SELECT 1", "CREATE TABLE shop._orders_new (id INT)")


@pytest.mark.parametrize(
    ("statements", "is_known"),
    [
        ((), True),
        (
            (
                "ALTER TABLE shop._orders_new ADD x INT",
                "INSERT INTO shop._orders_new VALUES (1, 1)",
            ),
            True,
        ),
        (("DROP TABLE shop._orders_new",), False),
        (("DROP DATABASE shop",), False),
        (("RENAME TABLE shop._orders_new TO shop.b",), False),
        (("RENAME TABLE shop.b TO shop._orders_new",), False),
        (("CREATE TABLE IF NOT EXISTS shop._orders_new (id INT)",), True),
        (("CREATE TEMPORARY TABLE shop._orders_new (id INT)",), True),
        (("DROP TABLE shop.other",), True),
    ],
)
def test_a_table_is_remembered_until_it_is_another_one(
    statements: tuple[str, ...], *, is_known: bool
) -> None:
    memory = behind(*MADE, *statements)
    known = TableBirth(name=NEW, gtid="0-1-2", since="0-1-1")
    assert memory.births == ((known,) if is_known else ())


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE shop._orders_new LIKE shop.orders",
        "CREATE TABLE shop._orders_new (id INT) SELECT * FROM shop.orders",
        "CREATE OR REPLACE TABLE shop._orders_new (id INT)",
    ],
)
def test_each_way_to_make_a_table_counts(statement: str) -> None:
    assert [one.gtid for one in behind(*MADE, statement).births] == ["0-1-3"]


def test_tables_in_scope_and_too_many_are_not_remembered() -> None:
    assert behind("SELECT 1", "CREATE TABLE shop.orders (id INT)").births == ()
    many = [f"CREATE TABLE crm.t{number} (id INT)" for number in range(BIRTHS_MAX + 5)]
    births = behind("SELECT 1", *many).births
    assert len(births) == BIRTHS_MAX
    assert births[-1].name == TableName("crm", f"t{BIRTHS_MAX + 4}")


@pytest.mark.parametrize(
    ("statement", "clauses", "made", "left"),
    [
        (
            RENAME,
            "LOG(shop.orders)",
            "shop.orders TO shop.binlane_leaving_1, shop.binlane_coming_1 TO shop.orders",
            ["shop.binlane_leaving_1"],
        ),
        (
            "RENAME TABLE shop.b TO crm.b, shop._orders_new TO shop.orders",
            "LOG(shop.orders, shop.b)",
            "shop.b TO shop.binlane_leaving_1, shop.binlane_coming_1 TO shop.orders",
            ["shop.binlane_leaving_1"],
        ),
        (
            "RENAME TABLE shop.orders TO t, shop._orders_new TO shop.orders, t TO shop._orders_new",
            "LOG(shop.orders)",
            (
                "shop.orders TO shop.binlane_leaving_1, shop.binlane_coming_1 TO shop.orders, "
                "shop.binlane_leaving_1 TO shop.binlane_coming_1"
            ),
            ["shop.binlane_coming_1"],
        ),
        (
            "RENAME TABLE shop.a TO shop.b, crm.x TO crm.y, shop._orders_new TO shop.orders",
            "LOG(shop.orders, shop.a, shop.b)",
            "shop.a TO shop.b, shop.binlane_coming_1 TO shop.orders",
            [],
        ),
        (
            "RENAME TABLE IF EXISTS shop.a TO t, shop._orders_new TO shop.orders, t TO shop.a",
            "LOG(shop.orders, shop.a)",
            (
                "IF EXISTS shop.a TO shop.binlane_leaving_1, shop.binlane_coming_1 TO shop.orders, "
                "shop.binlane_leaving_1 TO shop.a"
            ),
            [],
        ),
        (
            "RENAME TABLE shop._orders_new TO shop.orders, crm.other TO crm.b",
            "LOG(shop.orders, crm.b)",
            "shop.binlane_coming_1 TO shop.orders, crm.binlane_coming_2 TO crm.b",
            [],
        ),
        (
            "ALTER TABLE shop._orders_new RENAME TO shop.orders",
            "LOG(shop.orders)",
            "shop.binlane_coming_1 TO shop.orders",
            [],
        ),
    ],
)
def test_a_rename_that_brings_tables_in_is_done_by_names_within_the_scope(
    statement: str, clauses: str, made: str, left: list[str]
) -> None:
    found = arriving(statement, behind(*MADE, "CREATE TABLE crm.other (id INT)"), clauses)
    assert found is not None
    assert found.query.query.decode().replace("`", "") == f"RENAME TABLE {made}"
    assert [str(one).replace("`", "") for one in found.left] == left
    assert {one.birth.name for one in found.tables} >= {NEW}


def test_a_table_whose_history_may_not_tell_its_rows_has_no_place() -> None:
    links = TableLinks(unions=frozenset({(TableName("shop", "all_orders"), NEW)}))
    merged = arriving(RENAME, replace(behind(*MADE), links=links))
    assert merged is not None
    assert [one.birth for one in merged.tables] == [TableBirth(name=NEW)]
    several = "RENAME TABLE shop.unknown TO shop.b, shop._orders_new TO shop.orders"
    found = arriving(several, behind(*MADE), "LOG(shop.orders, shop.b)")
    assert found is not None
    unknown, known = (one.birth for one in found.tables)
    assert unknown == TableBirth(name=TableName("shop", "unknown"))
    assert (known.gtid, known.since) == ("0-1-2", "0-1-1")


def test_a_rename_within_the_scope_brings_nothing_in() -> None:
    clauses = "LOG(shop.orders, shop.a, shop.b)"
    assert arriving("RENAME TABLE shop.a TO shop.b", behind(*MADE), clauses) is None
