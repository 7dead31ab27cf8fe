"""What a session adds to the rules of scopes: what statements change, and what it remembers."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.errors import DefinitionError
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.policy.reasons import Via
from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.policy.server import Server
from binlane.statements.scope.changes import Changes, ObjectKind
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import CreateBinlog, create
from binlane.statements.session.safety import ScopeSafety
from binlane.statements.session.statement_changes import changes_of
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import RowChange
from binlane.statements.sql.servers import LoggingFormat, LoggingMode
from tests.reading import read

SERVER: Final = Server.parse("mariadb")
SCHEMA: Final = """
CREATE DATABASE d; USE d;
CREATE TABLE t (a INT) ENGINE=InnoDB; CREATE TABLE n (a INT) ENGINE=MyISAM;
CREATE TABLE other (a INT) ENGINE=InnoDB;
CREATE VIEW v AS SELECT * FROM t;
CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW SET NEW.a = 1;
CREATE TEMPORARY TABLE temp (a INT);
"""
T, N, OTHER = TableName("d", "t"), TableName("d", "n"), TableName("d", "other")
VIA_VIEW: Final = Via(kind="view", name=TableName("d", "v"))


@pytest.fixture(name="objects")
def _objects() -> SchemaCatalog:
    catalog = SchemaCatalog(Flavor.MARIADB)
    catalog.load(SCHEMA)
    return catalog


def _access(
    objects: SchemaCatalog, name: str, *changes: RowChange, via: tuple[Via, ...] = ()
) -> TableAccess:
    table = objects.table(TableName("d", name))
    assert table is not None
    return TableAccess(table=table, changes=frozenset(changes), via=via)


def _changes(objects: SchemaCatalog, statement: str, *accesses: TableAccess) -> Changes:
    facts = read(statement, database="d")
    return changes_of(facts, ResolvedStatement(accesses=accesses), objects, server=SERVER)


def _names(changes: Changes) -> tuple[list[str], list[str]]:
    return [one.plain for one in changes.writes], [one.plain for one in changes.needs]


def test_a_view_is_followed_and_needed(objects: SchemaCatalog) -> None:
    access = _access(objects, "t", RowChange.INSERT, via=(VIA_VIEW,))
    changes = _changes(objects, "INSERT INTO v VALUES (1)", access)
    assert _names(changes) == (["d.t"], ["d.v"])
    assert changes.writes[0].through == ("view d.v",)
    assert changes.needs[0].kind is ObjectKind.VIEW


def test_triggers_fire_by_what_happens_to_rows(objects: SchemaCatalog) -> None:
    for change, fires in (
        (RowChange.INSERT, False),
        (RowChange.UPDATE, True),
        (RowChange.UPSERT, True),
        (RowChange.REPLACE, False),
    ):
        changes = _changes(objects, "UPDATE t SET a = 1", _access(objects, "t", change))
        assert [one.trigger.plain for one in changes.triggers] == (["d.g"] if fires else [])


def test_which_changes_a_rollback_undoes(objects: SchemaCatalog) -> None:
    accesses = [_access(objects, name, RowChange.UPDATE) for name in ("t", "n")]
    changes = _changes(objects, "UPDATE t, n SET t.a = 1, n.a = 1", *accesses)
    assert [one.is_transactional for one in changes.writes] == [True, False]


@pytest.mark.parametrize(
    "statement, writes, needs",
    [
        ("DROP TABLE t, temp", ["d.t", "d.temp"], []),
        ("CREATE TABLE z LIKE temp", ["d.z"], ["d.temp"]),
        ("CREATE VIEW w AS SELECT * FROM v", ["d"], ["d.v"]),
        ("DROP TRIGGER g", ["d.t"], []),
        ("DROP TRIGGER unknown", ["d"], []),
        ("CREATE PROCEDURE p() INSERT INTO t SELECT * FROM other", ["d"], []),
        ("GRANT SELECT ON t TO u", ["mysql"], []),
        ("FLUSH TABLES t", [], []),
    ],
)
def test_ddl_changes_what_it_names(
    objects: SchemaCatalog, statement: str, writes: list[str], needs: list[str]
) -> None:
    changes = _changes(objects, statement)
    assert _names(changes) == (writes, needs)
    assert {one.plain for one in (*changes.writes, *changes.needs) if one.is_temporary} <= {
        "d.temp"
    }


def _define(*texts: str) -> list[Definition]:
    found = []
    for number, text in enumerate(texts, 1):
        statement = parse_binlog_statement(f"CREATE BINLOG {text}")
        assert isinstance(statement, CreateBinlog)
        found.append(create(statement, number))
    return found


def test_binlogs_can_be_defined_in_a_session(objects: SchemaCatalog) -> None:
    safety = ScopeSafety(_define("a LOG(d)"))
    assert not safety.define("CREATE TABLE binlog (a INT)", objects)
    assert safety.define("CREATE BINLOG b", objects)
    assert safety.define("CREATE BINLOG IF NOT EXISTS b LOG(d)", objects)
    assert safety.define("ALTER BINLOG b IGNORE(d)", objects)
    assert safety.define("DROP BINLOG a", objects)
    assert safety.define("DROP BINLOG IF EXISTS a", objects)
    assert [one.name for one in safety.definitions] == ["b"]
    assert not safety.definitions[0].scope.includes(T)
    for faulty in ("CREATE BINLOG b", "DROP BINLOG a", "ALTER BINLOG a LOG ALL"):
        with pytest.raises(DefinitionError):
            safety.define(faulty, objects)


@pytest.mark.rule("000:view-scope")
def test_lists_hold_no_views(objects: SchemaCatalog) -> None:
    safety = ScopeSafety(_define("a"))
    for statement in ("CREATE BINLOG b LOG(d.v)", "ALTER BINLOG a IGNORE(d.t, d.v)"):
        with pytest.raises(DefinitionError, match=r"`d`\.`v` is a view") as raised:
            safety.define(statement, objects)
        assert "`d`" in raised.value.hint
    assert [one.name for one in safety.definitions] == ["a"]


def test_a_dropped_temporary_table_goes_where_it_was_made(objects: SchemaCatalog) -> None:
    name = TableName("d", "temp")
    safety = ScopeSafety(_define("a LOG(d.temp), FORMAT='STATEMENT'", "b LOG(d.t)"))
    modes = {"a": LoggingMode.STATEMENT, "b": LoggingMode.ROW}
    drop = _changes(objects, "DROP TEMPORARY TABLE temp")
    assert safety.candidates(drop) == {"a"}
    safety.temporary_created(name, frozenset({"a"}))
    assert safety.stopped_temporary("a") == frozenset()
    safety.define("ALTER BINLOG a LOG(d.other)", objects)
    assert safety.stopped_temporary("a") == {name}
    assert safety.admit(drop, modes=modes, formats={}, is_in_transaction=False) == frozenset({"a"})
    safety.temporary_dropped(name)
    assert safety.admit(drop, modes=modes, formats={}, is_in_transaction=False) == frozenset()


def test_a_write_that_was_not_logged_stops_a_temporary_table(objects: SchemaCatalog) -> None:
    name = TableName("d", "temp")
    safety = ScopeSafety(_define("a FORMAT='MIXED'"))
    modes = {"a": LoggingMode.MIXED}
    safety.temporary_created(name, frozenset({"a"}))
    insert = _changes(
        objects, "INSERT INTO temp VALUES (1)", _access(objects, "temp", RowChange.INSERT)
    )
    for logging_format in (LoggingFormat.STATEMENT, LoggingFormat.ROW):
        formats = {"a": logging_format}
        recorders = safety.admit(insert, modes=modes, formats=formats, is_in_transaction=False)
        assert isinstance(recorders, frozenset)
        safety.executed(insert, recorders, {"a": {name}}, is_in_transaction=False)
        is_stopped = logging_format is LoggingFormat.ROW
        assert safety.stopped_temporary("a") == ({name} if is_stopped else frozenset())


def test_savepoints_of_a_session(objects: SchemaCatalog) -> None:
    safety = ScopeSafety(_define("a LOG(d.t)"))
    modes = {"a": LoggingMode.ROW}

    def insert(name: str) -> bool:
        """Whether an INSERT is refused; it joins the transaction if it is not."""
        changes = _changes(
            objects, f"INSERT INTO {name} VALUES (1)", _access(objects, name, RowChange.INSERT)
        )
        formats = dict.fromkeys(safety.candidates(changes), LoggingFormat.ROW)
        admitted = safety.admit(changes, modes=modes, formats=formats, is_in_transaction=True)
        if isinstance(admitted, frozenset):
            safety.executed(changes, admitted, {}, is_in_transaction=True)
        return not isinstance(admitted, frozenset)

    safety.savepoint("S")
    assert not insert("other")
    assert insert("t")
    safety.rolled_back_to("unknown")
    assert insert("t")
    safety.rolled_back_to("s")
    assert not insert("t")
    assert insert("other")
    safety.transaction_ended()
    safety.rolled_back_to("s")
    assert not insert("other")
