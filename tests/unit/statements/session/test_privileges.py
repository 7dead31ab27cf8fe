"""Statements that an account may not run; measured on MariaDB 10.11.19, 11.8.6 and MySQL 9.7.4."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.refusals import Refusal
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.session.session import Session
from binlane.statements.sql.accounts import AccountName
from binlane.statements.sql.catalog import SchemaCatalog

FLAVORS = ("mariadb", "mysql")
SCHEMA = """
SET GLOBAL log_bin_trust_function_creators = 1;
CREATE USER app@localhost;
CREATE USER w;
CREATE ROLE r;
CREATE DATABASE d;
CREATE DATABASE x_1;
USE d;
CREATE TABLE t (a INT PRIMARY KEY, b INT);
CREATE TABLE u (a INT PRIMARY KEY, b INT);
CREATE TABLE l (a INT);
CREATE TABLE x_1.t (a INT);
CREATE VIEW v AS SELECT a FROM t;
CREATE SQL SECURITY INVOKER VIEW vi AS SELECT a FROM t;
CREATE DEFINER = w VIEW vw AS SELECT a FROM t;
CREATE DEFINER = nobody PROCEDURE pn() SELECT 1;
CREATE DEFINER = w PROCEDURE pw() INSERT INTO l VALUES (1);
CREATE PROCEDURE pi() SQL SECURITY INVOKER INSERT INTO l VALUES (1);
CREATE PROCEDURE p() INSERT INTO l VALUES (1);
CREATE DEFINER = w FUNCTION fw() RETURNS INT RETURN (SELECT MAX(a) FROM l);
CREATE DEFINER = w TRIGGER g BEFORE INSERT ON u FOR EACH ROW INSERT INTO l VALUES (1);
"""


def session(flavor: str, *grants: str, user: str = "app@localhost", version: str = "") -> Session:
    server = Server.parse(flavor + version)
    objects = SchemaCatalog(Flavor(flavor))
    objects.load("".join((SCHEMA, *(f"{grant};" for grant in grants))), version=server.version)
    assert not objects.problems
    name, _, host = user.partition("@")
    return Session(
        server=server,
        objects=objects,
        database="d",
        account=AccountName(name, host),
        errors=PredictedErrors(),
    )


def error(flavor: str, statement: str, *grants: str) -> Refusal | None:
    return session(flavor, *grants).execute(statement).error


def errno(flavor: str, statement: str, *grants: str) -> int | None:
    found = error(flavor, statement, *grants)
    return None if found is None else found.errno


def on(what: str, names: str) -> str:
    return f"GRANT {names} ON {what} TO app@localhost"


ALL_OF_D = on("d.*", "ALL")


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize(
    ("statement", "grants", "expected"),
    [
        ("SELECT a FROM t", (), 1142),
        ("SELECT a FROM t", (on("t", "SELECT"),), None),
        ("SELECT a FROM t", (on("t", "SELECT (a)"),), None),
        ("SELECT b FROM t", (on("t", "SELECT (a)"),), 1143),
        ("SELECT * FROM t", (on("t", "SELECT (a)"),), 1143),
        ("SELECT a FROM u WHERE a IN (SELECT a FROM t)", (on("u", "SELECT"),), 1142),
        ("SELECT a FROM nosuch", (), 1142),
        ("SELECT a FROM nosuch", (ALL_OF_D,), 1146),
        ("INSERT INTO t VALUES (1, 2)", (on("t", "INSERT (a, b)"),), None),
        ("INSERT INTO t VALUES (1, 2)", (on("t", "INSERT (a)"),), 1143),
        ("INSERT INTO t (a) VALUES (1)", (on("t", "INSERT (a)"),), None),
        ("REPLACE INTO t VALUES (1, 2)", (on("t", "INSERT"),), 1142),
        ("UPDATE t SET b = 1", (on("t", "UPDATE"),), None),
        ("UPDATE t SET b = a", (on("t", "UPDATE"),), 1143),
        ("UPDATE t SET b = (SELECT MAX(a) FROM u)", (on("t", "UPDATE"), on("u", "SELECT")), None),
        ("DELETE FROM t", (on("t", "DELETE"),), None),
        ("DELETE FROM t WHERE a = 1", (on("t", "DELETE"),), 1143),
        ("LOAD DATA INFILE 'x' INTO TABLE t", (ALL_OF_D,), 1045),
        ("CREATE TABLE n (a INT)", (on("n", "CREATE"),), None),
        ("CREATE TABLE n SELECT a FROM t", (on("*", "CREATE, INSERT"),), 1142),
        ("CREATE TEMPORARY TABLE n (a INT)", (on("*", "CREATE"),), 1044),
        ("ALTER TABLE t RENAME TO n", (on("*", "ALTER, DROP"),), 1142),
        ("ALTER TABLE t RENAME TO n", (on("*", "ALTER, DROP, CREATE, INSERT"),), None),
        ("DROP TABLE t", (on("u", "DROP"),), 1142),
        ("TRUNCATE TABLE t", (on("t", "DELETE"),), 1142),
        ("CREATE INDEX i ON t (b)", (on("t", "INDEX"),), None),
        ("CREATE VIEW n AS SELECT a FROM t", (on("*", "CREATE VIEW"),), 1142),
        ("CREATE VIEW n AS SELECT a FROM t", (on("*", "CREATE VIEW, SELECT"),), None),
        ("CREATE PROCEDURE n() SELECT 1", (), 1044),
        ("DROP PROCEDURE p", (on("PROCEDURE p", "EXECUTE"),), 1370),
        ("CREATE DEFINER = w PROCEDURE n() SELECT 1", (ALL_OF_D,), 1227),
        ("CREATE DATABASE n", (ALL_OF_D,), 1044),
        ("DROP DATABASE d", (ALL_OF_D,), None),
        ("LOCK TABLES t READ", (on("t", "SELECT"),), 1044),
        ("SELECT 1 INTO OUTFILE 'x'", (ALL_OF_D,), 1227),
        ("SET SESSION binlog_format = ROW", (), 1227),
        ("SET GLOBAL binlog_format = ROW", (), 1227),
        ("SET sql_log_bin = 0", (on("*.*", "SUPER"),), None),
        ("SET foreign_key_checks = 0", (), None),
        ("FLUSH TABLES", (), 1227),
        ("CREATE USER n", (), 1227),
        ("CREATE USER n", (on("*.*", "CREATE USER"),), None),
        ("GRANT SELECT ON t TO w", (on("t", "SELECT"),), 1142),
        ("GRANT SELECT ON t TO w", (on("t", "SELECT") + " WITH GRANT OPTION",), None),
        ("GRANT SELECT ON d.* TO w", (on("t", "SELECT"),), 1044),
        ("USE x_1", (), 1044),
        ("USE x_1", (on("x_1.t", "SELECT"),), None),
    ],
)
def test_privileges_that_are_missing(
    flavor: str, statement: str, grants: tuple[str, ...], expected: int | None
) -> None:
    assert errno(flavor, statement, *grants) == expected


@pytest.mark.parametrize("flavor", FLAVORS)
def test_of_several_patterns_the_best_counts(flavor: str) -> None:
    pattern, exact = on("`x%`.*", "SELECT"), on("`x\\_1`.*", "INSERT")
    assert errno(flavor, "SELECT * FROM x_1.t", pattern) is None
    assert errno(flavor, "SELECT * FROM x_1.t", pattern, exact) == 1142
    assert errno(flavor, "INSERT INTO x_1.t VALUES (1)", pattern, exact) is None


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize(
    ("statement", "grants", "expected"),
    [
        ("SELECT a FROM v", (on("v", "SELECT"),), None),
        ("SELECT a FROM v", (), 1142),
        ("INSERT INTO v VALUES (1)", (on("v", "INSERT (a)"),), None),
        ("SELECT a FROM vi", (on("vi", "SELECT"),), 1356),
        ("SELECT a FROM vw", (on("vw", "SELECT"),), 1356),
        ("SELECT a FROM vw", (on("vw", "SELECT"), "GRANT SELECT ON t TO w"), None),
        ("CALL p()", (on("PROCEDURE p", "EXECUTE"),), None),
        ("CALL p()", (), 1370),
        ("CALL nosuch()", (), 1370),
        ("CALL nosuch()", (on("d.*", "EXECUTE"),), 1305),
        ("CALL pi()", (on("PROCEDURE pi", "EXECUTE"),), 1142),
        ("CALL pi()", (on("PROCEDURE pi", "EXECUTE"), on("l", "INSERT")), None),
        ("CALL pn()", (on("d.*", "EXECUTE"),), 1449),
        ("CALL pw()", (on("d.*", "EXECUTE"),), 1370),
        ("CALL pw()", (on("d.*", "EXECUTE"), "GRANT EXECUTE ON d.* TO w"), 1142),
        ("CALL pw()", (on("d.*", "EXECUTE"), "GRANT EXECUTE, INSERT ON d.* TO w"), None),
        ("SELECT fw()", (on("d.*", "EXECUTE"), "GRANT EXECUTE ON d.* TO w"), 1142),
        ("INSERT INTO u VALUES (1, 1)", (on("u", "INSERT"),), 1142),
        (
            "INSERT INTO u VALUES (1, 1)",
            (on("u", "INSERT"), "GRANT TRIGGER ON u TO w", "GRANT INSERT ON l TO w"),
            None,
        ),
    ],
)
def test_views_and_programs_run_with_privileges_of_their_own(
    flavor: str, statement: str, grants: tuple[str, ...], expected: int | None
) -> None:
    assert errno(flavor, statement, *grants) == expected


@pytest.mark.parametrize("flavor", FLAVORS)
def test_programs_of_others_are_followed_for_root_too(flavor: str) -> None:
    root = session(flavor, "GRANT EXECUTE ON d.* TO w", user="root@localhost")
    refused = root.execute("CALL pw()").error
    assert refused is not None
    assert (refused.errno, "user 'w'@'%'" in refused.message) == (1142, True)
    assert root.execute("INSERT INTO l VALUES (1)").error is None


@pytest.mark.parametrize("flavor", FLAVORS)
def test_roles(flavor: str) -> None:
    found = session(flavor, "GRANT SELECT ON t TO r", "GRANT r TO app@localhost")
    for statement, expected in (
        ("SELECT a FROM t", 1142),
        ("SET ROLE r", None),
        ("SELECT a FROM t", None),
        ("SET ROLE NONE", None),
        ("SELECT a FROM t", 1142),
        ("SET ROLE nosuch", 1959 if flavor == "mariadb" else 3530),
    ):
        refused = found.execute(statement).error
        assert (statement, refused and refused.errno) == (statement, expected)
    default = f"SET DEFAULT ROLE r {'FOR' if flavor == 'mariadb' else 'TO'} app@localhost"
    grants = ("GRANT SELECT ON t TO r", "GRANT r TO app@localhost", default)
    assert errno(flavor, "SELECT a FROM t", *grants) is None


@pytest.mark.parametrize("flavor", FLAVORS)
def test_what_was_granted_counts_from_then_on(flavor: str) -> None:
    root = session(flavor, user="root@localhost")
    statements = ("CALL pw()", "GRANT EXECUTE, INSERT ON d.* TO w", "CALL pw()")
    done = [root.execute(statement).error for statement in statements]
    assert [one and one.errno for one in done] == [1370, None, None]
    assert root.execute("REVOKE INSERT ON d.* FROM w").error is None
    refused = root.execute("CALL pw()").error
    assert refused is not None
    assert refused.errno == 1142


def test_texts_of_errors() -> None:
    mariadb, mysql = (error(flavor, "INSERT INTO t SELECT * FROM u") for flavor in FLAVORS)
    assert mariadb is not None
    assert mysql is not None
    start = "INSERT command denied to user 'app'@'localhost' for table"
    assert mariadb.message == f"{start} `d`.`t`"
    assert mysql.message == f"{start} 't'"


def test_mysql_forgets_the_table_where_the_database_is_enough() -> None:
    grants = (on("d.*", "DELETE"), on("t", "SELECT"))
    assert errno("mariadb", "DELETE FROM t WHERE a = 1", *grants) is None
    assert errno("mysql", "DELETE FROM t WHERE a = 1", *grants) == 1143
    columns = on("t", "SELECT (a)")
    assert errno("mysql", "DELETE FROM t WHERE a = 1", *grants, columns) is None


def test_mysql_revokes_nothing_that_was_not_granted() -> None:
    for flavor, expected in (("mariadb", None), ("mysql", 1141)):
        root = session(flavor, "GRANT SELECT ON d.* TO w", user="root@localhost")
        refused = root.execute("REVOKE INSERT ON d.* FROM w").error
        assert (refused and refused.errno) == expected
        assert root.execute("REVOKE INSERT, SELECT ON d.* FROM w").error is None


def test_mariadb_11_has_split_super() -> None:
    super_ = on("*.*", "SUPER")
    statement = "SET SESSION binlog_format = ROW"
    assert session("mariadb", super_, version=":10.11").execute(statement).error is None
    refused = session("mariadb", super_, version=":11.8").execute(statement).error
    assert refused is not None
    assert "the BINLOG ADMIN privilege(s)" in refused.message
    split = on("*.*", "BINLOG ADMIN")
    assert session("mariadb", split, version=":11.8").execute(statement).error is None


def test_a_refused_write_is_not_kept() -> None:
    """Statements of a shape that comes again: first with the privilege, then without."""
    root = session("mysql", "GRANT EXECUTE, INSERT ON d.* TO w", user="root@localhost")
    assert root.execute("CALL pw()").error is None
    assert root.execute("REVOKE INSERT ON d.* FROM w").error is None
    assert root.execute("CALL pw()").error is not None


def test_without_accounts_nothing_is_asked() -> None:
    objects = SchemaCatalog(Flavor.MYSQL)
    objects.load(
        "CREATE DATABASE d; USE d; CREATE TABLE t (a INT);"
        "CREATE DEFINER = nobody PROCEDURE p() INSERT INTO t VALUES (1);"
    )
    found = Session(
        server=Server.parse("mysql"), objects=objects, database="d", errors=PredictedErrors()
    )
    assert found.execute("CALL p()").error is None
