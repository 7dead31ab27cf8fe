from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa
import pytest

from binlane.codec.rows import TableMapEvent
from binlane.codec.table_metadata import table_columns
from binlane.codec.types import Flavor
from binlane.columnar.table_schema import arrow_schema
from binlane.errors import CodecError
from binlane.grouping.event_group import EventGroup, group_events
from binlane.grouping.walk import walk
from binlane.land.table_changes import Abandon, Create, Drop, Rename, Step, steps, tables_of
from binlane.names import TableName
from binlane.ranges.statements import Statement, statements
from binlane.scope.scope import Scope
from binlane.sql.effects import StatementKind
from tests.fixture_sets import fixture_set, mariadb_sets

EVERYTHING = Scope.everything()


def statements_of(name: str) -> list[Statement]:
    return [
        statement
        for file, data in fixture_set(name).binlogs
        for group in group_events(walk([data], file=file), file=file)
        for statement in statements(group)
    ]


@pytest.mark.parametrize("name", sorted(set(mariadb_sets()) - {"md1011_encrypted"}))
def test_table_statements_of_real_logs_are_understood(name: str) -> None:
    for statement in statements_of(name):
        effects = statement.effects()
        assert effects.stopped_at is None, statement.text
        if effects.is_temporary:
            continue
        if effects.kind is StatementKind.ALTER_TABLE:
            reasons = [
                step.reason for step in steps(statement, EVERYTHING) if isinstance(step, Abandon)
            ]
            assert not [reason for reason in reasons if "cannot be followed" in reason]
        elif effects.kind is StatementKind.CREATE_TABLE:
            made = [step for step in steps(statement, EVERYTHING) if isinstance(step, Create)]
            assert made, statement.text
            assert len(made[0].schema) > 0, statement.text


def test_transactions_are_no_statements() -> None:
    assert {statement.effects().kind for statement in statements_of("md1011_rotation")} == {
        StatementKind.CREATE_DATABASE,
        StatementKind.CREATE_TABLE,
    }


def test_where_a_statement_stands() -> None:
    first = statements_of("md1011_ddl")[0]
    assert (first.text, first.file, first.position) == (
        "CREATE DATABASE `shop`",
        "binlog.000001",
        367,
    )
    assert first.gtid == "0-1-1"
    assert first.quoting == {"ansi_quotes": False, "no_backslash_escapes": False}


def test_sql_mode_is_that_of_the_session() -> None:
    quoted = [
        each for each in statements_of("md1011_ddl") if each.text.startswith('CREATE TABLE "')
    ]
    assert [each.quoting["ansi_quotes"] for each in quoted] == [True]
    assert quoted[0].effects().writes == (TableName("shop", 'ansi "q"x'),)


def test_of_a_two_phase_alter_only_the_commit_counts() -> None:
    alters = [
        each for each in statements_of("md1011_alter_two_phase") if each.text.startswith("ALTER")
    ]
    events = fixture_set("md1011_alter_two_phase").events()
    logged = [event for event in events if "ALTER TABLE" in event["info"]]
    assert 0 < len(alters) < len(logged)


def test_a_chain_of_renames_is_done_step_by_step() -> None:
    swap = next(each for each in statements_of("md1011_ddl") if each.text.startswith("RENAME"))
    t1, t2, tmp = (TableName("shop", name) for name in ("t1", "t2", "tmp"))
    assert steps(swap, EVERYTHING) == (Rename(t1, tmp), Rename(t2, t1), Rename(tmp, t2))


def test_a_rename_out_of_the_scope_drops() -> None:
    scope = Scope(log_databases=frozenset({"shop"}))
    move = next(
        each for each in statements_of("md1011_ddl") if each.text.startswith("RENAME TABLE a3")
    )
    moved = TableName("crm", "moved")
    assert steps(move, scope) == (Rename(TableName("shop", "a3"), moved), Drop(moved))


def test_statements_that_change_rows_are_refused() -> None:
    (insert, *_) = [
        each for each in statements_of("md1011_format_statement") if each.text.startswith("INSERT")
    ]
    with pytest.raises(CodecError, match="rows are changed by a statement") as caught:
        steps(insert, EVERYTHING)
    assert (caught.value.file, caught.value.position) == (insert.file, insert.position)


def test_the_types_of_a_definition_are_those_of_its_rows() -> None:
    pairs = [
        (name, pair)
        for name in sorted(set(mariadb_sets()) - {"md1011_encrypted"})
        for file, data in fixture_set(name).binlogs
        for pair in defined_and_logged(group_events(walk([data], file=file), file=file))
    ]
    assert len(pairs) > 50
    for name, (defined, logged) in pairs:
        assert defined == logged, name


def defined_and_logged(groups: Iterable[EventGroup]) -> Iterator[tuple[pa.Schema, pa.Schema]]:
    """The schemas of tables by their CREATE TABLE and by their rows, until they are altered."""
    made: dict[TableName, pa.Schema] = {}
    for group in groups:
        for event in group.events:
            if isinstance(event.body, TableMapEvent):
                columns = table_columns(event.body, flavor=Flavor.MARIADB)
                table = TableName(event.body.database, event.body.table)
                if table in made and all(column.name for column in columns):
                    yield made[table], arrow_schema(columns)
        for step in steps_of(group):
            for table in tables_of(step):
                made.pop(table, None)
            if isinstance(step, Create):
                made[step.table] = step.schema


def steps_of(group: EventGroup) -> Iterator[Step]:
    """What statements do to tables, but for those that change rows."""
    for statement in statements(group):
        with suppress(CodecError):
            yield from steps(statement, EVERYTHING)
