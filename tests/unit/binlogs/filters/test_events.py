"""Printing by tables: what passes, what is left out, and what a rename does (seed 003)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from binlane.binlogs.filters.events import EventFilter, GroupFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.schema_objects import SchemaObjects
from binlane.binlogs.filters.terms import FilterTerms, parse_terms
from binlane.errors import CodecError
from binlane.log.codec.event import Event
from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent, TransactionXid, XaPrepareEvent, XidEvent
from binlane.log.codec.types import ColumnType, GtidFlag, RowsFlag
from binlane.log.codec.variables import IntvarEvent
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from tests.build import event, format_description, rows, table_map
from tests.fixture_sets import fixture_set

T, S, U = "shop.t", "shop.s", "shop.u"
ROW = b"\xfe\x01\x00\x00\x00"


def query(text: str, *, database: str = "shop", tables: bytes | None = None) -> QueryEvent:
    return QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=database.encode(),
        query=text.encode(),
        tables_info=tables,
    )


def gtid(*, standalone: bool = False) -> GtidEvent:
    return GtidEvent(
        sequence=1, domain_id=0, flags=GtidFlag.STANDALONE if standalone else GtidFlag(0)
    )


def terms(*do: str, rename: str = "name", **more: object) -> FilterTerms:
    """Rules with tables to do, and others."""
    kinds, keeps = more.pop("kinds", ()), bool(more.pop("keeps_empty_groups", False))
    given = {"do_table": do, **more}
    return parse_terms(given, rename=rename, kinds=kinds, keeps_empty_groups=keeps)  # type: ignore[arg-type]


def new_filter(made: FilterTerms, notes: list[str] | None = None) -> EventFilter:
    return EventFilter(FilterState(made), (lambda _: None) if notes is None else notes.append)


def passing(made: FilterTerms, *statements: str, notes: list[str] | None = None) -> list[str]:
    """The statements, each a group of its own, that pass."""
    found = new_filter(made, notes)
    texts = []
    for text in statements:
        for item in (event(gtid(standalone=True)), event(query(text))):
            texts += [
                kept.body.query.decode()
                for kept in found.feed(item, file="f")
                if isinstance(kept.body, QueryEvent)
            ]
    return texts


def kept(made: FilterTerms, *bodies: object) -> list[object]:
    """The bodies that are left of one group."""
    found = new_filter(made)
    events = [event(body) for body in bodies]  # type: ignore[arg-type]
    result = [each.body for item in events for each in found.feed(item, file="f")]
    return [*result, *(each.body for each in found.finish())]


def change(table: str, table_id: int, *, ends: bool = True) -> list[object]:
    """A table map, and a rows event for it."""
    made = rows(1, ROW, table_id=table_id)
    flags = RowsFlag.STMT_END if ends else 0
    return [
        table_map(ColumnType.LONG, table=table, table_id=table_id),
        replace(made, flags=flags),
    ]


@pytest.mark.rule("003:filter-do")
def test_with_do_table_a_statement_passes_only_if_all_its_tables_are_named() -> None:
    statements = [
        "INSERT INTO t VALUES (1)",
        "INSERT INTO s VALUES (1)",
        "INSERT INTO t SELECT * FROM s",
        "INSERT INTO other.t VALUES (1)",
        "DROP TABLE t, u",
        "CREATE TABLE t (a INT)",
    ]
    assert passing(terms(T), *statements) == [statements[0], statements[5]]
    assert passing(terms(T, S), *statements) == [*statements[:3], statements[5]]
    assert passing(terms(do_db=["other"]), *statements) == [statements[3]]


@pytest.mark.rule("003:filter-ignore")
def test_with_ignore_table_a_statement_is_left_out_if_it_involves_an_ignored_table() -> None:
    statements = [
        "INSERT INTO t VALUES (1)",
        "INSERT INTO s VALUES (1)",
        "INSERT INTO s SELECT * FROM t",
        "CREATE DATABASE d",
        "FLUSH TABLES",
    ]
    assert passing(terms(ignore_table=[T]), *statements) == [statements[1], *statements[3:]]
    assert passing(terms(ignore_db=["shop"]), *statements) == statements[3:]


@pytest.mark.rule("003:filter-create-like")
@pytest.mark.parametrize("made_of", ["LIKE t", "SELECT * FROM t"])
def test_a_table_whose_create_was_left_out_is_ignored_from_then_on(made_of: str) -> None:
    statements = [f"CREATE TABLE s {made_of}", "INSERT INTO s VALUES (1)", "DROP TABLE u"]
    assert passing(terms(ignore_table=[T]), *statements) == ["DROP TABLE u"]
    assert passing(terms(S), *statements) == []
    assert passing(terms(T, S), *statements) == statements[:2]


@pytest.mark.rule("003:rename-follow")
def test_a_renamed_table_is_followed() -> None:
    statements = ["RENAME TABLE t TO s", "INSERT INTO s VALUES (1)", "INSERT INTO u VALUES (1)"]
    assert passing(terms(T, rename="follow"), *statements) == statements[:2]
    assert passing(terms(rename="follow", ignore_table=[T]), *statements) == statements[2:]
    moved = ["ALTER TABLE t RENAME TO other.t", "INSERT INTO other.t VALUES (1)"]
    assert passing(terms(do_db=["shop"], rename="follow"), *moved) == moved


@pytest.mark.rule("003:rename-name")
def test_by_name_a_renamed_table_is_another_one() -> None:
    statements = ["RENAME TABLE t TO s", "INSERT INTO s VALUES (1)", "INSERT INTO t VALUES (1)"]
    assert passing(terms(T), *statements) == [statements[0], statements[2]]


@pytest.mark.rule("003:rename-back")
def test_by_name_a_rename_back_is_traced_so_that_what_follows_can_run() -> None:
    statements = [
        "RENAME TABLE t TO s",
        "INSERT INTO s VALUES (1)",
        "RENAME TABLE s TO u",
        "RENAME TABLE u TO t",
        "INSERT INTO t VALUES (1)",
        "RENAME TABLE s TO u",
    ]
    assert passing(terms(T), *statements) == [
        statement for index, statement in enumerate(statements) if index not in {1, 5}
    ]


def test_by_name_a_table_that_was_renamed_away_is_dropped_where_it_is() -> None:
    statements = ["RENAME TABLE t TO s", "DROP TABLE s", "RENAME TABLE u TO s", "DROP TABLE s"]
    assert passing(terms(T), *statements) == statements[:2]


def test_an_xa_transaction_of_which_nothing_is_left_goes_whole() -> None:
    whole = [
        *(gtid(), query("XA START X'61',X'',1"), *change("s", 7), query("XA END X'61',X'',1")),
        XaPrepareEvent(one_phase=0, xid=TransactionXid(format_id=1, global_id=b"a", branch=b"")),
        *(gtid(standalone=True), query("XA COMMIT X'61',X'',1")),
        *(gtid(standalone=True), query("XA COMMIT X'62',X'',1")),
    ]
    assert kept(terms(S), *whole) == whole
    # The other one was prepared before the log.
    assert kept(terms(T), *whole) == whole[-2:]


@pytest.mark.rule("003:rename-chain")
def test_a_swap_passes_where_both_tables_are_named() -> None:
    swap = "RENAME TABLE t TO tmp, s TO t, tmp TO s"
    assert passing(terms(T, S), swap) == [swap]
    assert passing(terms(T), swap) == []


@pytest.mark.rule("003:tables-info")
@pytest.mark.rule("003:default-database")
def test_tables_info_counts_where_there_is_one() -> None:
    told = query("SELECT f()", tables=b"\x00\x01t\x05other\x01u")
    frame = [gtid(standalone=True)]
    other = "other.u"
    assert kept(terms(T, other), *frame, told) == [*frame, told]
    assert kept(terms(T), *frame, told) == []
    assert kept(terms(ignore_table=[other]), *frame, told) == []


def test_a_statement_that_does_not_tell_what_it_writes_is_left_out_and_noted() -> None:
    notes: list[str] = []
    found = new_filter(terms(T), notes)
    for item in (event(gtid(standalone=True)), replace(event(query("CALL p()")), position=42)):
        assert list(found.feed(item, file="binlog.000001")) == []
    assert notes == ["binlog.000001:42: what a statement writes cannot be told; it is left out"]


def test_a_name_without_a_database_means_every_database() -> None:
    statements = ["INSERT INTO t VALUES (1)", "INSERT INTO other.t VALUES (1)", "DROP TABLE s"]
    assert passing(terms("t"), *statements) == statements[:2]
    assert passing(terms(ignore_table=["t"]), *statements) == statements[2:]


def test_rows_of_other_tables_are_left_out_and_the_statement_still_ends() -> None:
    text = AnnotateRowsEvent(query=b"UPDATE t, s")
    map_t, rows_t = change("t", 7, ends=False)
    map_s, rows_s = change("s", 8)
    whole = [gtid(), text, map_t, map_s, rows_t, rows_s, XidEvent(xid=1)]
    ended = replace(rows_t, flags=RowsFlag.STMT_END)  # type: ignore[type-var]  # a rows event
    assert kept(terms(T), *whole) == [whole[0], text, map_t, ended, whole[-1]]
    assert kept(terms(S), *whole) == [whole[0], text, map_s, rows_s, whole[-1]]
    assert kept(terms(T, S), *whole) == whole
    assert kept(terms(U), *whole) == []


def test_what_stands_before_a_statement_goes_with_it() -> None:
    whole = [
        gtid(),
        IntvarEvent(kind=2, value=5),
        query("INSERT INTO t VALUES (NULL)"),
        IntvarEvent(kind=2, value=6),
        query("INSERT INTO s VALUES (NULL)"),
        XidEvent(xid=1),
    ]
    assert kept(terms(T), *whole) == [*whole[:3], whole[5]]


def real_events(name: str) -> Iterator[tuple[str, Event]]:
    for file, data in fixture_set(name).binlogs:
        for each in expanded_all(walk([data], file=file), file=file):
            yield file, each


@pytest.mark.parametrize("name", ["md1011_fk", "md1011_txn", "my97_compressed", "my97_txn"])
def test_tables_that_are_chosen_one_by_one_give_all_rows_of_a_real_log(name: str) -> None:
    def tables_and_rows(made: FilterTerms) -> tuple[set[TableName], int]:
        found, tables, count, ids = new_filter(made), set(), 0, {}
        for file, item in real_events(name):
            for each in found.feed(item, file=file):
                if isinstance(each.body, TableMapEvent):
                    ids[each.body.table_id] = TableName(each.body.database, each.body.table)
                elif isinstance(each.body, RowsEvent) and each.body.table_id in ids:
                    tables.add(ids[each.body.table_id])
                    count += len(each.body.images)
        return tables, count

    tables, size = tables_and_rows(terms())
    parts = {table: tables_and_rows(terms(str(table))) for table in tables}
    assert len(tables) > 1
    assert sum(part for _, part in parts.values()) == size
    assert all(found == {table} for table, (found, _) in parts.items())


@pytest.mark.rule("003:rename-follow")
def test_a_swap_is_followed_by_the_part_of_the_tables_that_are_named() -> None:
    notes: list[str] = []
    swap = "RENAME TABLE t TO tmp, s TO t, tmp TO s"
    found = passing(
        terms(T, rename="follow"), swap, "DROP TABLE t", "INSERT INTO s VALUES (1)", notes=notes
    )
    part = "RENAME TABLE `shop`.`t` TO `shop`.`tmp`, `shop`.`tmp` TO `shop`.`s`"
    assert found == [part, "INSERT INTO s VALUES (1)"]
    assert notes == [
        f"f:0: of a statement about several tables, the part of shop.t is taken: {part}"
    ]


def test_a_drop_of_several_tables_is_done_to_those_that_are_followed() -> None:
    dropped = passing(
        terms(T, rename="follow"),
        "RENAME TABLE t TO other.x",
        "DROP TABLE IF EXISTS s, other.x",
        "CREATE TABLE other.x (a INT)",
        "CREATE TABLE t (a INT)",
    )
    assert dropped[1:] == ["DROP TABLE IF EXISTS `other`.`x`", "CREATE TABLE t (a INT)"]


def test_a_name_that_a_rename_freed_goes_by_the_rules_again() -> None:
    statements = [
        "RENAME TABLE t TO s",
        "CREATE TABLE t (a INT)",
        "RENAME TABLE u TO x, x TO u",
        "RENAME TABLE s TO a, t TO s, a TO t",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO s VALUES (1)",
    ]
    assert passing(terms(T, rename="follow"), *statements) == [
        statement for index, statement in enumerate(statements) if index != 2
    ]


@pytest.mark.parametrize("drop", ["DROP", "CREATE OR REPLACE"])
def test_a_database_that_is_dropped_is_noted_where_a_wanted_table_is_in_it(drop: str) -> None:
    notes: list[str] = []
    made = terms(T, rename="follow")
    statements = [f"{drop} DATABASE {name}" for name in ("other", "shop")]
    assert passing(made, "CREATE DATABASE shop", *statements, notes=notes) == []
    assert notes == ["f:0: a database is dropped, and shop.t with it; that is left out"]


def test_foreign_keys_refer_to_tables_that_need_not_be_wanted() -> None:
    create = "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES s (a))"
    notes: list[str] = []
    assert passing(terms(T), create, notes=notes) == [create]
    assert notes == [
        "f:0: a table refers to others that are not wanted (shop.s): they must be there"
    ]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["insert"], {0}),
        (["DDL"], {2, 3}),
        (["create_table", "update"], {1, 2}),
        (["dml"], {0, 1}),
    ],
)
def test_statements_are_chosen_by_their_kind(kinds: list[str], expected: set[int]) -> None:
    statements = [
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "CREATE TABLE x (a INT)",
        "DROP TABLE x",
    ]
    found = passing(terms(kinds=kinds), *statements)
    assert found == [statement for index, statement in enumerate(statements) if index in expected]


def test_rows_are_chosen_by_the_kind_of_their_change() -> None:
    whole = [gtid(), *change("t", 7), XidEvent(xid=1)]
    assert kept(terms(kinds=["insert"]), *whole) == whole
    assert kept(terms(kinds=["delete"]), *whole) == []


def test_an_emptied_group_may_stay() -> None:
    whole = [gtid(standalone=True), query("DROP TABLE s")]
    first, last = kept(terms(T, keeps_empty_groups=True), *whole)
    assert isinstance(first, GtidEvent)
    assert not first.is_standalone
    assert isinstance(last, QueryEvent)
    assert last.query == b"COMMIT"


def test_damaged_tables_info_is_an_error_with_its_place() -> None:
    group = EventGroup(
        gtid=None,
        events=(
            event(gtid(standalone=True)),
            replace(event(query("X", tables=b"\x09a")), position=77),
        ),
        file="binlog.000007",
    )
    found = GroupFilter(FilterState(terms(T)), lambda _: None)
    with pytest.raises(CodecError) as told:
        found.group(group, format_description().format)
    assert (told.value.file, told.value.position) == ("binlog.000007", 77)


SCHEMA = """
CREATE DATABASE shop; USE shop;
CREATE TABLE t (a INT); CREATE TABLE s (a INT); CREATE TABLE u (a INT); CREATE TABLE log (a INT);
CREATE VIEW v AS SELECT * FROM t; CREATE VIEW vv AS SELECT * FROM v;
DELIMITER //
CREATE FUNCTION f() RETURNS INT BEGIN INSERT INTO s VALUES (1); RETURN 1; END//
CREATE FUNCTION pure() RETURNS INT RETURN 1//
CREATE PROCEDURE p() BEGIN INSERT INTO t VALUES (1); CALL q(); END//
CREATE PROCEDURE q() UPDATE s SET a = 2//
CREATE TRIGGER tr AFTER INSERT ON u FOR EACH ROW INSERT INTO log VALUES (1)//
"""


def passing_with_schema(made: FilterTerms, *statements: str) -> list[str]:
    known = SchemaObjects(lambda catalog: catalog.load(SCHEMA))
    found = EventFilter(FilterState(made), lambda _: None, known)
    list(found.feed(event(format_description()), file="f"))
    texts = []
    for text in statements:
        for item in (event(gtid(standalone=True)), event(query(text))):
            texts += [
                each.body.query.decode()
                for each in found.feed(item, file="f")
                if isinstance(each.body, QueryEvent)
            ]
    return texts


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("INSERT INTO vv VALUES (1)", {T}),
        ("CREATE VIEW w AS SELECT * FROM vv", {T}),
        ("DROP VIEW v", {T}),
        ("SELECT f()", {S}),
        ("DO pure()", set()),
        ("INSERT INTO t VALUES (f())", {T, S}),
        ("CALL p()", {T, S}),
        ("INSERT INTO u VALUES (1)", {U, "shop.log"}),
        ("UPDATE u SET a = 1", {U}),
    ],
)
def test_a_schema_tells_the_tables_behind_views_and_stored_code(
    statement: str, tables: set[str]
) -> None:
    others = {T, S, U, "shop.log"} - tables
    if tables:
        assert passing_with_schema(terms(*tables), statement) == [statement]
    for table in tables:
        assert passing_with_schema(terms(ignore_table=[table]), statement) == []
    assert passing_with_schema(terms(ignore_table=list(others)), statement) == [statement]


def test_what_a_schema_does_not_know_is_left_out() -> None:
    assert (
        passing_with_schema(terms(ignore_table=[U]), "SELECT unknown_one()", "CALL nobody()") == []
    )


def test_the_log_changes_what_the_schema_said() -> None:
    statements = [
        "CREATE VIEW w AS SELECT * FROM t",
        "DROP VIEW w",
        "CREATE VIEW w AS SELECT * FROM s",
    ]
    last = "INSERT INTO w VALUES (1)"
    assert passing_with_schema(terms(S), *statements, last) == [statements[2], last]
