"""Names and literals of outside objects in every place of a log where one once passed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import PrivateServer
from binlane.log.kernels.load import is_compiled
from tests.routed_files import outputs, routed
from tests.servers import ServerFactory, connect

SCOPES = ("LOG(shop.t1)", "LOG(shop)", "IGNORE(crm)", "LOG(shop), IGNORE(shop.secret0)")

STATEMENTS = (
    "CREATE DATABASE shop",
    "CREATE DATABASE crm",
    "CREATE TABLE shop.t1 (a INT, b VARCHAR(20))",
    "CREATE TABLE crm.t1 (a INT, b VARCHAR(20), secret1 INT)",
    "CREATE TABLE crm.secret2 (a INT PRIMARY KEY) COMMENT='x'",
    "CREATE TABLE shop.secret0 (a INT)",
    "INSERT INTO shop.t1 VALUES (1, 'x'), (2, 'y')",
    "INSERT INTO crm.t1 VALUES (1, 'x', 1), (2, 'y', 2)",
    "CREATE FUNCTION crm.secret3(x INT) RETURNS INT RETURN x",
    "CREATE USER u@localhost",
    # A default database with a table of the same name.
    "USE crm",
    "INSERT INTO shop.t1 SELECT a, b FROM t1 WHERE b <> 'secret4'",
    "UPDATE t1, shop.t1 SET shop.t1.a = 5, t1.a = 6 WHERE t1.b <> 'secret4'",
    "UPDATE shop.t1 SET b = 'z' WHERE a = secret3(1)",
    "DELETE FROM shop.t1 WHERE a IN (SELECT a FROM secret2)",
    "INSERT INTO shop.t1 VALUES (7, 'q') /* secret4 */",
    "CREATE VIEW shop.v AS SELECT secret3(1) AS a",
    "CREATE VIEW shop.w AS SELECT a FROM shop.t1 WHERE b <> secret3(2)",
    "CREATE PROCEDURE shop.p() SELECT secret3(1)",
    "CREATE TRIGGER shop.g BEFORE INSERT ON shop.t1 FOR EACH ROW SET NEW.a = crm.secret3(1)",
    # Names of a session.
    "BEGIN",
    "INSERT INTO shop.t1 VALUES (8, 'q')",
    "SAVEPOINT secret5",
    "INSERT INTO shop.t1 VALUES (9, 'q')",
    "ROLLBACK TO SAVEPOINT secret5",
    "INSERT INTO shop.t1 VALUES (10, 'q')",
    "COMMIT",
    "XA START 'secret6'",
    "INSERT INTO crm.t1 VALUES (3, 'secret4', 3)",
    "XA END 'secret6'",
    "XA PREPARE 'secret6'",
    "XA COMMIT 'secret6'",
    # Texts in definitions.
    "USE shop",
    "CREATE TABLE c1 (a INT COMMENT 'as crm.secret2') COMMENT='see secret2' -- secret2",
    "ALTER TABLE c1 COMMENT 'secret2', ADD b INT COMMENT 'secret2', ADD KEY (b) COMMENT 'secret2'",
    (
        "CREATE OR REPLACE TABLE /* secret2 */ c1 (a INT) PARTITION BY LIST (a)"
        " (PARTITION p VALUES IN (1) COMMENT = 'secret2')"
    ),
    "CREATE TABLE c2 (a INT, FOREIGN KEY (a) REFERENCES crm.secret2 (a))",
    "CREATE TABLE c3 (a INT) ENGINE=MERGE UNION=(crm.secret2)",
    "CREATE PROCEDURE q() EXECUTE IMMEDIATE 'DELETE FROM crm.secret2'",
    "CREATE PROCEDURE r() BEGIN SET @s = 'DELETE FROM crm.secret2'; PREPARE s FROM @s; END",
    "CREATE PROCEDURE s() COMMENT 'secret2' SELECT 1 /* secret2 */",
    "CREATE PROCEDURE t() BEGIN DECLARE x TYPE OF crm.secret2.a; SELECT x; END",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2037-01-01' COMMENT 'secret2' DO SELECT 1",
    "ALTER DATABASE shop COMMENT 'secret2'",
    # Several objects at once, and what accounts may do.
    "CREATE TABLE c4 (a INT)",
    "DROP TABLE c4, crm.t1",
    "CREATE VIEW crm.secret7 AS SELECT 1 AS a",
    "CREATE VIEW x AS SELECT 1 AS a",
    "DROP VIEW x, crm.secret7",
    "GRANT SELECT ON crm.secret2 TO u@localhost",
    "GRANT EXECUTE ON FUNCTION crm.secret3 TO u@localhost",
    "REVOKE SELECT ON crm.secret2 FROM u@localhost",
    "CREATE TRIGGER secret8 BEFORE INSERT ON secret0 FOR EACH ROW SET NEW.a = 1",
    "DROP TRIGGER secret8",
    "DROP TABLE secret0, c1",
    # In statement format, by its text.
    "SET SESSION binlog_format = STATEMENT",
    "INSERT INTO t1 VALUES (11, 'q') /* secret2 */",
    "INSERT INTO t1 SELECT a, 'x' FROM crm.secret2",
    "SET SESSION binlog_format = ROW",
)


def logged(source: PrivateServer, statements: Sequence[str | bytes]) -> tuple[str, ...]:
    """Run statements in one session, which may fail; the files that they are in."""
    with connect(source) as connection:
        for statement in (*statements, "FLUSH BINARY LOGS", "SHOW BINARY LOGS"):
            try:
                rows = run(connection, statement)
            except pymysql.err.MySQLError:
                assert "SHOW" not in str(statement)
    return tuple(str(source.directory / "data" / row[0]) for row in rows[:-1])


def run(connection: Connection[Cursor], statement: str | bytes) -> Sequence[tuple[str, ...]]:
    """The rows of a statement, whose bytes are sent as they are."""
    with connection.cursor() as cursor:
        cursor.execute(statement)  # type: ignore[arg-type]  # it takes bytes, too
        return cursor.fetchall()


def both(paths: tuple[str, ...], out: Path, *clauses: str) -> dict[str, bytes]:
    """What both paths make, which is the same."""
    routed(paths, out / "reference", *clauses, uses_kernels=False)
    found = outputs(out / "reference")
    if is_compiled(("copying", "scan")):
        routed(paths, out / "fast", *clauses)
        assert outputs(out / "fast") == found
    return found


def test_nothing_of_an_outside_object_passes(servers: ServerFactory, tmp_path: Path) -> None:
    paths = logged(servers.start("source"), STATEMENTS)
    for name, data in both(paths, tmp_path, *SCOPES).items():
        # A table, and its trigger, which are in scope of some.
        first = 1 if name.startswith(("b2", "b3")) else 0
        words = [f"secret{number}".encode() for number in range(first, 9 - first)]
        for word in (*words, b"crm"):
            at = data.find(word)
            assert at < 0, (SCOPES[int(name[1]) - 1], data[max(0, at - 200) : at + 50])
        assert b"t1" in data or name.endswith("index")


@pytest.mark.parametrize(
    ("charset", "codec", "letter"),
    [
        ("gbk", "gbk", "誇"),
        ("sjis", "shift_jis", "表"),
        ("big5", "big5", "功"),
        ("latin1", "latin1", "ÿ"),
    ],
)
def test_statements_are_read_in_the_character_set_of_their_client(
    servers: ServerFactory, tmp_path: Path, charset: str, codec: str, letter: str
) -> None:
    x = letter.encode(codec)  # its second byte is a letter, a backslash
    made = (
        b"CREATE VIEW `v%b` AS SELECT a, '%b' AS `%b`, 'it''s' y FROM t WHERE b <> '%b' /* c */",
        b"CREATE PROCEDURE `p%b`() COMMENT '%b' SELECT '%b', a FROM `t` WHERE b = '%b'",
        b"CREATE TRIGGER `g%b` BEFORE INSERT ON t FOR EACH ROW SET NEW.b = '%b' /* %b %b */",
        b"CREATE EVENT `e%b` ON SCHEDULE AT '2037-01-01' DO DELETE FROM t WHERE b = '%b' OR b = '%b%b'",
        b"CREATE TABLE `t%b` (`%b` INT COMMENT '%b', b CHAR(9) DEFAULT '%b')",
    )
    secret = b"CREATE VIEW `w%b` AS SELECT '%b' AS a FROM crm.`t%b` WHERE b <> '%b'"
    begin = (
        *("CREATE DATABASE shop CHARACTER SET utf8mb4", "CREATE DATABASE crm", "USE shop"),
        *("CREATE TABLE t (a INT, b VARCHAR(9))", "CREATE TABLE crm.t (a INT, b VARCHAR(9))"),
        f"SET NAMES {charset}",
    )
    source = servers.start("source")
    created = [text % ((x,) * 4) for text in (*made, secret)]
    paths = logged(source, (*begin, b"CREATE TABLE crm.`t%b` (b INT)" % x, *created))
    found = both(paths, tmp_path, "LOG(shop)")["b1/b1.000001"]
    assert b"crm" not in found
    for text in created[:-1]:
        kind, _, name = text.partition(b"`")
        assert b"`" + name.partition(b"`")[0] in found, kind
