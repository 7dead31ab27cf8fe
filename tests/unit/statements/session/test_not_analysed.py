"""What hangs on a statement that was not analysed is not told; the session is as before it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read
from binlane.statements.sql.schema import Trigger
from binlane.statements.sql.servers import Dialect

SCHEMA = "CREATE DATABASE d; USE d; CREATE TABLE t (a INT); CREATE TABLE m (a INT) ENGINE=MyISAM;"


class FaultyCatalog(SchemaCatalog):
    """A catalog that fails when it is asked for the triggers of one table."""

    __slots__ = ()

    def triggers(self, name: TableName) -> Sequence[Trigger]:
        if name.table == "faulty":
            raise ZeroDivisionError
        return SchemaCatalog.triggers(self, name)


DEEP = "ABS(" * 1_000 + "1" + ")" * 1_000
"""An expression that the servers take, but is nested deeper than is followed."""


def _session(flavor: str = "mariadb") -> Session:
    objects = FaultyCatalog(Flavor(flavor))
    objects.load(SCHEMA + "CREATE TABLE faulty (a INT);")
    return Session(server=Server.parse(flavor), objects=objects, database="d")


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    ("bad", "after"),
    [
        (f"CREATE TABLE n SELECT {DEEP}", "INSERT INTO n VALUES (1)"),
        (f"ALTER TABLE t ADD CHECK ({DEEP})", "INSERT INTO t VALUES (1)"),
        (f"CREATE VIEW v AS SELECT {DEEP}", "INSERT INTO v VALUES (1)"),
        (f"CREATE PROCEDURE p() DO {DEEP}", "CALL p()"),
        (f"CREATE FUNCTION f() RETURNS INT RETURN {DEEP}", "INSERT INTO t VALUES (f())"),
        (
            f"CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = {DEEP}",
            "INSERT INTO t VALUES (1)",
        ),
    ],
)
def test_objects_of_a_statement_that_is_not_understood(flavor: str, bad: str, after: str) -> None:
    session = _session(flavor)
    assert session.execute(bad).unanalysed is not None
    result = session.execute(after)
    assert result.unanalysed is not None
    assert result.error is None
    assert session.execute("INSERT INTO m VALUES (1)").unanalysed is None


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    ("bad", "place"),
    [
        ("UPDATE t SET a = WHERE a = 1", 17),
        ("CREATE TABLE n (a INT,)", 22),
        ("DROP TABLE t FROM", 13),
        ("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW UPDATE FROM", 56),
        ("INSERT INTO t VALUES ('a", 22),
    ],
)
def test_what_the_grammar_refuses_fails_and_changes_nothing(
    flavor: str, bad: str, place: int
) -> None:
    session, other = _session(flavor), _session(flavor)
    session.execute("BEGIN")
    other.execute("BEGIN")
    found = session.execute(bad)
    assert found.unanalysed is None
    assert found.error is not None
    assert (found.error.errno, found.error.why[0].offset) == (1064, place)
    for after in ("INSERT INTO t VALUES (1)", "COMMIT"):
        assert session.execute(after) == other.execute(after)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_the_transaction_of_a_statement_that_is_not_understood(flavor: str) -> None:
    session = _session(flavor)
    session.execute("BEGIN")
    assert session.execute("INSERT INTO t VALUES (1)").unanalysed is None
    assert session.execute(f"UPDATE t SET a = {DEEP}").unanalysed is not None
    assert session.execute("SELECT * FROM t").unanalysed is None
    assert session.execute("INSERT INTO t VALUES (2)").unanalysed is not None
    assert session.execute("COMMIT").unanalysed is not None
    assert session.execute("INSERT INTO t VALUES (3)").unanalysed is None


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize("begin", ["BEGIN", "DO 1"])
def test_a_fault_leaves_the_session_as_it_was(flavor: str, begin: str) -> None:
    session, other = _session(flavor), _session(flavor)
    for one in (session, other):
        one.execute(begin)
        one.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(ZeroDivisionError):
        session.execute("INSERT INTO faulty VALUES (1)")
    end, expected = (one.execute("COMMIT") for one in (session, other))
    assert end.binlogs == expected.binlogs
    assert (end.unanalysed is not None) is (begin == "BEGIN")
    after, expected = (one.execute("INSERT INTO m VALUES (1)") for one in (session, other))
    assert after == expected


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_program_that_is_not_followed_changes_nothing(flavor: str) -> None:
    session, other = _session(flavor), _session(flavor)
    procedure = (
        "CREATE PROCEDURE p() BEGIN "
        "INSERT INTO m VALUES (1); SET @a = 2; SET SESSION unique_checks = 0; "
        "PREPARE s FROM @nobody_knows; EXECUTE s; END"
    )
    for one in (session, other):
        one.execute(procedure)
        one.execute("SELECT a INTO @nobody_knows FROM t LIMIT 1")
    assert session.execute("CALL p()").unanalysed is not None
    for sql in ("INSERT INTO t VALUES (@a)", "UPDATE t SET a = 3"):
        assert session.execute(sql) == other.execute(sql)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_table_of_a_body_that_becomes_known_behind_the_decision(flavor: str) -> None:
    """A catalog that reads what is used adds objects without being another one."""
    session = _session(flavor)
    objects = session.objects
    body = "BEGIN INSERT INTO kept VALUES (x); RETURN x; END"
    function = f"CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC {body}"
    for definition in ("CREATE TABLE kept (a INT)", function):
        assert session.execute(definition).error is None
    name = TableName("d", "kept")
    kept = objects.store.tables.pop(name)
    statement = "EXECUTE IMMEDIATE 'INSERT INTO t VALUES (f(1))'" if flavor == "mariadb" else ""
    statement = statement or "INSERT INTO t VALUES (f(1))"
    session.preview(statement)
    objects.store.tables[name] = kept
    first = session.execute(statement)
    assert first.unanalysed is not None
    assert "d.kept" in str(first.unanalysed)
    # Nothing of what was decided without it stays.
    assert session.execute(statement).unanalysed is None


_NESTED = 400
"""More blocks than are followed, and fewer than the servers take."""


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_programs_that_are_nested_deeper_than_is_followed(flavor: str) -> None:
    session = _session(flavor)
    for statement in (
        "CREATE PROCEDURE q() CALL q()",
        f"CREATE PROCEDURE p() {'BEGIN ' * _NESTED}DO 1;{' END;' * (_NESTED - 1)} END",
        "SET max_sp_recursion_depth = 255",
    ):
        session.execute(statement)
    for statement in ("CALL q()", "CALL p()"):
        assert session.execute(statement).unanalysed is not None
    for statement in ("INSERT INTO t VALUES (1)", "DO 1"):
        result = session.execute(statement)
        assert (result.error, result.unanalysed) == (None, None)


def test_what_was_read_where_no_stack_was_left_is_read_again() -> None:
    text = "INSERT INTO t VALUES (ABS(ABS(ABS(ABS(ABS(1))))), 'no other text is like this one')"

    def read_deep(depth: int) -> StatementFacts:
        try:
            return read_deep(depth + 1)
        except RecursionError:
            return read(text, database="d", dialect=Dialect())

    assert read_deep(0).effects.stopped_at is not None
    assert read(text, database="d", dialect=Dialect()).effects.stopped_at is None


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    "body",
    ["EXECUTE s", "PREPARE s FROM 'DO 1'", "DEALLOCATE PREPARE s", "BEGIN EXECUTE s; END"],
)
def test_a_prepared_statement_that_runs_is_not_to_be_used(flavor: str, body: str) -> None:
    session = _session(flavor)
    for statement in (
        "SET max_sp_recursion_depth = 255",
        f"CREATE PROCEDURE p() {body}",
        "PREPARE s FROM 'CALL p()'",
    ):
        assert session.execute(statement).error is None
    for _ in range(2):
        error = session.execute("EXECUTE s").error
        assert error is not None
        assert error.errno == 1444


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_the_message_of_a_signal_may_not_be_known(flavor: str) -> None:
    session = _session(flavor)
    session.execute(
        "CREATE PROCEDURE p(m TEXT) SIGNAL SQLSTATE '45000'"
        " SET MYSQL_ERRNO = 30001, MESSAGE_TEXT = m"
    )
    session.execute("SELECT a INTO @m FROM t")
    error = session.execute("CALL p(@m)").error
    assert error is not None
    assert error.errno == 30001
