"""Which binlogs log which temporary tables: rules 1 to 3 of seed 000."""

from __future__ import annotations

from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope, ScopeList
from binlane.statements.scope.temporary import TemporaryTables
from binlane.statements.sql.servers import LoggingMode

TEMP, OTHER = TableName("test", "temp"), TableName("test", "other")


def test_a_new_table_is_whole_where_its_creation_is_logged() -> None:
    tables = TemporaryTables().created(TEMP, ["a", "b"]).created(OTHER, ["a"])
    assert tables.whole == {"a": {TEMP, OTHER}, "b": {TEMP}}
    assert not tables.partial("a")
    assert not tables.partial("unheard of")


def test_rows_stop_all_tables_and_statements_do_not_bring_them_back() -> None:
    tables = TemporaryTables().created(TEMP, ["a", "b"])
    tables = tables.switched({"a": LoggingMode.ROW, "b": LoggingMode.MIXED})
    tables = tables.switched({"a": LoggingMode.STATEMENT, "b": LoggingMode.STATEMENT})
    assert tables.whole == {"a": set(), "b": {TEMP}}
    assert tables.partial("a") == {TEMP}
    assert tables.begun["a"] == {TEMP}


def test_what_falls_out_of_a_scope_stops() -> None:
    inside = Scope.nothing().with_list(ScopeList.LOG, [TEMP])
    outside = Scope.nothing().with_list(ScopeList.LOG, [OTHER])
    define = [
        Definition(name="a", scope=scope, logging_mode=LoggingMode.STATEMENT, log_id=1)
        for scope in (inside, outside, inside)
    ]
    tables = TemporaryTables().created(TEMP, ["a"])
    assert not tables.scoped(define[:1]).partial("a")
    assert tables.scoped(define[:2]).scoped(define[2:]).partial("a") == {TEMP}


def test_a_table_made_anew_is_whole_again() -> None:
    tables = TemporaryTables().created(TEMP, ["a"]).stopped("a", [TEMP]).dropped(TEMP)
    assert not tables.begun["a"]
    assert tables.created(TEMP, ["a"]).whole["a"] == {TEMP}
    assert not tables.created(TEMP, []).begun.get("a")
