"""What is kept of a statement's shape holds for the others, and no longer than it is true."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.resolution import Opening, resolve
from binlane.statements.policy.server import Server
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.session.report import StatementResult
from binlane.statements.session.resolved_shape import shape_of
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.servers import LoggingMode
from tests.reading import read

SCHEMA = """
CREATE DATABASE d; USE d;
CREATE TABLE t (a INT PRIMARY KEY, b INT) ENGINE=InnoDB;
CREATE TABLE u (a INT) ENGINE=InnoDB;
CREATE TABLE m (a INT) ENGINE=MyISAM;
"""


def _objects() -> SchemaCatalog:
    objects = SchemaCatalog(Flavor.MARIADB)
    objects.load(SCHEMA)
    return objects


def _session(objects: SchemaCatalog | None = None, server: str = "mariadb") -> Session:
    return Session(server=Server.parse(server), objects=objects or _objects(), database="d")


def _events(result: StatementResult) -> list[tuple[str, str]]:
    return [(event.type, event.info) for event in result.binlogs["binlog"].events]


def test_statements_of_one_shape_share_a_plan() -> None:
    objects, server = _objects(), Server.parse("mariadb")
    plans = [
        shape_of(
            read(f"INSERT INTO t VALUES ({value}, 5)", database="d"),
            Opening(objects, server, "d"),
        )
        for value in (1, 22_222)
    ]
    assert plans[0] is plans[1]
    assert shape_of(
        read("INSERT INTO t VALUES (3, 5)", database="d"),
        Opening(objects.copy(), server, "d"),
    ) is plans[0]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO u VALUES (NEW.a)",
        "ALTER TABLE t ENGINE=MyISAM",
        "DROP TABLE t",
        "CREATE TEMPORARY TABLE t (a INT) ENGINE=MyISAM",
    ],
)
def test_a_changed_object_makes_a_new_plan(change: str) -> None:
    session, statement = _session(), "INSERT INTO t (a) VALUES ({})"
    before = _events(session.execute(statement.format(1)))
    assert before == [
        ("Gtid", "BEGIN GTID #"),
        ("Query", "use `d`; INSERT INTO t (a) VALUES (1)"),
        ("Xid", "COMMIT /* xid=# */"),
    ]
    session.execute(change)
    after = session.execute(statement.format(2))
    alone = _session()
    alone.execute(change)
    assert after == alone.execute(statement.format(2))
    assert (after.error is not None) or _events(after)[-1] != before[-1] or "TRIGGER" in change


def test_the_end_of_a_session_makes_a_new_plan() -> None:
    objects = _objects()
    session = _session(objects)
    session.execute("CREATE TEMPORARY TABLE t (a INT) ENGINE=MyISAM")
    session.execute("INSERT INTO t (a) VALUES (1)")
    session.disconnect()
    found = _events(_session(objects).execute("INSERT INTO t (a) VALUES (2)"))
    assert found[-1][0] == "Xid"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SET binlog_format = ROW", "Annotate_rows"),
        ("SET sql_log_bin = 0", None),
    ],
)
def test_another_mode_makes_a_new_verdict(before: str, after: str | None) -> None:
    session = _session()
    session.execute("INSERT INTO t VALUES (1, 1)")
    session.execute(before)
    events = _events(session.execute("INSERT INTO t VALUES (2, 2)"))
    assert (events[1][0] if events else None) == after


def test_a_transaction_is_another_circumstance() -> None:
    session = _session(server="mariadb")
    session.execute("SET binlog_format = STATEMENT")
    statement = "INSERT INTO m VALUES ({})"
    assert session.execute(statement.format(1)).notes == ()
    session.execute("BEGIN")
    session.execute("INSERT INTO t VALUES (1, 1)")
    assert [note.errno for note in session.execute(statement.format(2)).notes] == [1592]


def test_places_are_those_of_the_statement() -> None:
    session = _session()
    session.execute("SET binlog_format = STATEMENT")
    for value in (1, 12_345):
        statement = f"UPDATE t SET b = {value} WHERE a = uuid() LIMIT {value}"
        found = {note.why.what: note.why for note in session.execute(statement).notes}
        uuid = found["uuid()"]
        assert statement[uuid.offset :][: uuid.length] == "uuid()"
        limit = found["LIMIT"]
        assert statement[limit.offset :].startswith("LIMIT")


@pytest.mark.parametrize("server", ["mariadb", "mysql", "mysql:8.0"])
def test_what_is_kept_is_what_would_be_found(server: str) -> None:
    objects, rules = _objects(), Server.parse(server)
    for value in ("1", "'a longer one'"):
        facts = read(f"INSERT INTO t SELECT {value}, f.a FROM u AS f LIMIT 5", database="d")
        opening = Opening(objects, rules, "d")
        plan = shape_of(facts, opening)
        found = plan.resolved if facts.shift is None else plan.resolved.moved(facts.shift)
        assert found == resolve(facts, opening)


def test_an_unknown_table_may_come_to_be() -> None:
    session = _session()
    error = session.execute("INSERT INTO later VALUES (1)").error
    assert error is not None
    assert error.errno == 1146
    session.execute("CREATE TABLE later (a INT)")
    assert session.execute("INSERT INTO later VALUES (2)").error is None


def test_the_binlogs_judge_every_statement_as_they_are() -> None:
    objects = _objects()
    definition = Definition(
        name="one", scope=Scope.everything(), logging_mode=LoggingMode.ROW, log_id=1
    )
    session = Session(
        server=Server.parse("mysql"), objects=objects, definitions=[definition], database="d"
    )
    statement = "UPDATE t, u SET t.b = {}, u.a = 2"
    assert session.execute(statement.format(1)).error is None
    session.execute("ALTER BINLOG 'one' ADD IGNORE(d.u)")
    for value in (1, 55_555):
        text = f"UPDATE t JOIN u ON t.a = {value} SET t.b = 1, u.a = 2"
        error = session.execute(text).error
        assert error is not None
        assert error.symbol == "BINLANE_PARTIAL_WRITE"
        assert text[error.why[-1].offset :].startswith("u ")
    session.execute("ALTER BINLOG 'one' DROP IGNORE(d.u)")
    assert session.execute(statement.format(3)).error is None
