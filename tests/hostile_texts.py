"""Texts of SQL that repeat or nest one construct as often as is asked: what a stranger may send.

Each shape takes a count and gives a text with the construct that often, so that who reads twice as
much can be seen to work twice as much. Half of the texts are no SQL that a server takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Maker = Callable[[int], str]


def _list(part: str, *, between: str = ", ", begin: str = "", end: str = "") -> Maker:
    """A list; `{n}` of a part is its number."""

    def make(count: int) -> str:
        parts = (part.replace("{n}", str(n)) for n in range(count))
        return begin + between.join(parts) + end

    return make


def _nest(
    opening: str, closing: str, *, begin: str = "", inside: str = "1", end: str = ""
) -> Maker:
    """A construct within itself; `{n}` is how deep it stands. Without a closing it never ends."""

    def make(count: int) -> str:
        opened = "".join(opening.replace("{n}", str(n)) for n in range(count))
        return begin + opened + inside + closing * count + end

    return make


def _body(opening: str, closing: str, inside: str = "SET @a = 1; ") -> Maker:
    return _nest(opening, closing, begin="CREATE PROCEDURE p() ", inside=inside)


SHAPES: Final[dict[str, Maker]] = {
    # Lists of queries.
    "common tables": _list("c{n} AS (SELECT 1)", begin="WITH ", end=" SELECT 1"),
    "recursive common tables": _list(
        "c{n} AS (SELECT 1 UNION SELECT 1 FROM c{n})", begin="WITH RECURSIVE ", end=" SELECT 1"
    ),
    "common tables that use each other": lambda count: (
        "WITH c0 AS (SELECT a FROM t)"
        + "".join(f", c{n + 1} AS (SELECT a FROM c{n})" for n in range(count))
        + f" SELECT a FROM c{count}"
    ),
    "common tables before INSERT": _list(
        "c{n} AS (SELECT 1 AS a)", begin="INSERT INTO t (a) WITH ", end=" SELECT a FROM c0"
    ),
    "common tables before UPDATE": _list(
        "c{n} AS (SELECT 1 AS a)", begin="WITH ", end=" UPDATE t SET a = 1"
    ),
    "common tables without an end": _list("c{n} AS (SELECT 1)", begin="WITH "),
    "columns of a common table": _list("c{n}", begin="WITH c (", end=") AS (SELECT 1) SELECT 1"),
    "unions": _list("SELECT a FROM t", between=" UNION "),
    "unions of other tables": _list("SELECT a FROM t{n}", between=" UNION ALL "),
    "intersections": _list("SELECT a FROM t", between=" INTERSECT "),
    "unions and intersections": _list(
        "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3", between=" UNION "
    ),
    "intersections behind a union": _list(
        "SELECT a FROM t", between=" INTERSECT ", begin="SELECT 1 UNION "
    ),
    "unions in parentheses": _list("(SELECT a FROM t LIMIT 1)", between=" UNION "),
    "unions of INSERT": _list("SELECT {n}", between=" UNION ", begin="INSERT INTO t "),
    "nested unions": _nest("(SELECT 1 UNION ", ")", inside="SELECT 2"),
    "nested WITH": _nest("WITH c{n} AS (", ") SELECT 1", inside="SELECT 1"),
    "nested WITH behind": _nest("(WITH c{n} AS (SELECT 1) SELECT * FROM ", " x)", inside="t"),
    "subqueries": _nest("SELECT (", ")", inside="SELECT 1"),
    "subqueries side by side": _list("(SELECT a FROM t)", begin="SELECT "),
    "subqueries of WHERE": _nest("SELECT a FROM t WHERE a IN (", ")", inside="SELECT 1"),
    "derived tables": _nest("SELECT * FROM (", ") x", inside="SELECT 1"),
    "derived tables side by side": _list("(SELECT a FROM t) x{n}", begin="SELECT 1 FROM "),
    "EXISTS": _nest("SELECT EXISTS (", ")", inside="SELECT 1"),
    "windows": _list("w{n} AS (ORDER BY a)", begin="SELECT 1 FROM t WINDOW "),
    "windows that use each other": lambda count: (
        "SELECT 1 FROM t WINDOW w0 AS (ORDER BY a)"
        + "".join(f", w{n + 1} AS (w{n})" for n in range(count))
    ),
    "calls over windows": _list("SUM(a) OVER (ORDER BY a)", begin="SELECT ", end=" FROM t"),
    "locks": _list("t{n}", begin="SELECT 1 FROM t FOR UPDATE OF "),
    "several locks": _list("FOR UPDATE OF t{n}", between=" ", begin="SELECT 1 FROM t "),
    "locks of many tables": lambda count: (
        "SELECT 1 FROM "
        + ", ".join(f"t{n}" for n in range(count))
        + " FOR UPDATE OF "
        + ", ".join(f"t{n}" for n in range(count))
    ),
    "INTO": _list("@a{n}", begin="SELECT 1 INTO "),
    # Tables and joins.
    "tables": _list("t{n}", begin="SELECT 1 FROM "),
    "one table often": _list("t AS a{n}", begin="SELECT 1 FROM "),
    "joins": _list("t{n}", between=" JOIN ", begin="SELECT 1 FROM "),
    "joins with conditions": _list("JOIN t{n} ON 1", between=" ", begin="SELECT 1 FROM t "),
    "joins with conditions behind": lambda count: (
        "SELECT 1 FROM t " + "JOIN t " * count + "ON 1 " * count
    ),
    "joins with USING": _list("JOIN t{n} USING (a)", between=" ", begin="SELECT 1 FROM t "),
    "joins in parentheses": _nest("(t{n} JOIN ", ")", begin="SELECT 1 FROM ", inside="t"),
    "tables in parentheses": _nest("(", ")", begin="SELECT 1 FROM ", inside="t"),
    "outer joins of ODBC": _nest("{OJ t LEFT JOIN ", " ON 1}", begin="SELECT 1 FROM ", inside="t"),
    "index hints": _list("USE INDEX (i{n})", between=" ", begin="SELECT 1 FROM t ", end=" WHERE 1"),
    "indexes of a hint": _list("i{n}", begin="SELECT 1 FROM t USE INDEX (", end=")"),
    "partitions of a table": _list("p{n}", begin="SELECT 1 FROM t PARTITION (", end=")"),
    "optimizer hints": _list("NO_MERGE(t{n})", between=" ", begin="SELECT /*+ ", end=" */ 1"),
    "JSON_TABLE": _list(
        "c{n} INT PATH '$.a{n}'", begin="SELECT 1 FROM JSON_TABLE('{}', '$' COLUMNS (", end=")) j"
    ),
    "nested paths": _nest(
        "NESTED PATH '$.a' COLUMNS (a{n} INT PATH '$.a', ",
        ")",
        begin="SELECT 1 FROM JSON_TABLE('{}', '$' COLUMNS (",
        inside="x INT PATH '$.b'",
        end=")) j",
    ),
    "UPDATE of many tables": _list("t{n}", begin="UPDATE ", end=" SET a = 1"),
    "UPDATE of many tables and columns": lambda count: (
        "UPDATE "
        + ", ".join(f"t{n}" for n in range(count))
        + " SET "
        + ", ".join(f"t{n}.a = 1" for n in range(count))
    ),
    "UPDATE of many tables by column alone": lambda count: (
        "UPDATE "
        + ", ".join(f"t{n}" for n in range(count))
        + " SET "
        + ", ".join(f"a{n} = 1" for n in range(count))
    ),
    "UPDATE of one table often": lambda count: (
        "UPDATE "
        + ", ".join(f"t AS t{n}" for n in range(count))
        + " SET "
        + ", ".join(f"t{n}.a = 1" for n in range(count))
    ),
    "DELETE of many tables": lambda count: (
        "DELETE "
        + ", ".join(f"t{n}" for n in range(count))
        + " FROM "
        + ", ".join(f"t{n}" for n in range(count))
    ),
    "DELETE of one table often": lambda count: (
        "DELETE "
        + ", ".join(f"a{n}" for n in range(count))
        + " FROM "
        + ", ".join(f"t AS a{n}" for n in range(count))
    ),
    # Values.
    "rows": _list("({n}, 'a')", begin="INSERT INTO t VALUES "),
    "rows of calls": _list("(ABS({n}), NOW())", begin="INSERT INTO t VALUES "),
    "rows of stored functions": _list("(f{n}())", begin="INSERT INTO t VALUES "),
    "rows of subqueries": _list("((SELECT {n}))", begin="INSERT INTO t VALUES "),
    "rows of user variables": _list("(@v{n})", begin="INSERT INTO t VALUES "),
    "rows of system variables": _list("(@@sql_mode)", begin="INSERT INTO t VALUES "),
    "rows of DEFAULT": _list("(DEFAULT)", begin="INSERT INTO t VALUES "),
    "empty rows": _list("()", begin="INSERT INTO t VALUES "),
    "a row of many values": _list("{n}", begin="INSERT INTO t VALUES (", end=")"),
    "rows without an end": _list("({n}", begin="INSERT INTO t VALUES "),
    "runs that end again and again": _list(
        "(1),(2),(3),(4),(5),(6),(7),(8),(9),(1),(NOW())",
        between=",",
        begin="INSERT INTO t VALUES ",
    ),
    "runs of literals that end again and again": _list(
        "1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,x", between=",", begin="SELECT "
    ),
    "columns of INSERT": _list("c{n}", begin="INSERT INTO t (", end=") VALUES (1)"),
    "INSERT SET": _list("c{n} = 1", begin="INSERT INTO t SET "),
    "ON DUPLICATE KEY UPDATE": _list(
        "a = VALUES(a)", begin="INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE "
    ),
    "assignments of UPDATE": _list("c{n} = 1", begin="UPDATE t SET "),
    "RETURNING": _list("c{n}", begin="DELETE FROM t RETURNING "),
    "IN": _list("{n}", begin="SELECT a FROM t WHERE a IN (", end=")"),
    "IN of expressions": _list("a+{n}", begin="SELECT a FROM t WHERE a IN (", end=")"),
    "ROW": _list("{n}", begin="SELECT ROW(", end=")"),
    "select items": _list("c{n}", begin="SELECT "),
    "select items with aliases": _list("c{n} AS a{n}", begin="SELECT ", end=" FROM t"),
    "stars": _list("t.*", begin="SELECT ", end=" FROM t"),
    "ORDER BY": _list("c{n}", begin="SELECT a FROM t ORDER BY "),
    "GROUP BY": _list("c{n}", begin="SELECT a FROM t GROUP BY "),
    "LIMIT in unions": _list("(SELECT a FROM t LIMIT 1)", between=" UNION ALL "),
    # Expressions.
    "sums": _list("a", between=" + ", begin="SELECT "),
    "ANDs": _list("a = {n}", between=" AND ", begin="DELETE FROM t WHERE "),
    "ORs": _list("a = {n}", between=" OR ", begin="DELETE FROM t WHERE "),
    "concatenations": _list("'a'", between=" || ", begin="SELECT "),
    "comparisons": _list("a", between=" = ", begin="SELECT "),
    "assignments to the right": _nest("@a := ", "", begin="SELECT "),
    "parentheses": _nest("(", ")", begin="SELECT "),
    "parentheses without an end": _nest("(", "", begin="SELECT ", inside=""),
    "closing parentheses": _nest("", ")", begin="SELECT "),
    "parentheses around a query": _nest("(", ")", inside="SELECT 1"),
    "calls": _nest("ABS(", ")", begin="SELECT "),
    "calls of stored functions": _nest("f{n}(", ")", begin="SELECT "),
    "calls side by side": _list("RAND()", begin="SELECT "),
    "arguments": _list("a", begin="SELECT CONCAT(", end=")"),
    "CASE": _nest("CASE WHEN ", " THEN 1 END", begin="SELECT "),
    "branches of CASE": _list("WHEN {n} THEN a", between=" ", begin="SELECT CASE a ", end=" END"),
    "IF()": _nest("IF(1, 1, ", ")", begin="SELECT "),
    "CAST": _nest("CAST(", " AS CHAR)", begin="SELECT "),
    "NOT": _nest("NOT ", "", begin="SELECT "),
    "signs": _nest("- ", "", begin="SELECT "),
    "bits": _nest("~", "", begin="SELECT "),
    "BETWEEN": _nest("a BETWEEN 1 AND ", "", begin="SELECT "),
    "INTERVAL": _list("INTERVAL 1 DAY", between=" + ", begin="SELECT NOW() + "),
    "nested INTERVAL": _nest("INTERVAL ", " DAY + NOW()", begin="SELECT "),
    "COLLATE": _list("COLLATE utf8mb4_bin", between=" ", begin="SELECT 'a' "),
    "IS NULL": _list("IS NULL", between=" ", begin="SELECT a "),
    "LIKE": _list("'a'", between=" LIKE ", begin="SELECT "),
    "JSON paths": _list("a->'$.b'", begin="SELECT ", end=" FROM t"),
    "a long JSON path": _list(".a{n}", between="", begin="SELECT a->'$", end="' FROM t"),
    "names of many parts": _list("a", between=".", begin="SELECT "),
    "strings side by side": _list("'a'", between=" ", begin="SELECT "),
    "introducers": _list("_utf8mb4'a'", begin="SELECT "),
    "parameters": _list("?", begin="SELECT "),
    "user variables": _list("@v{n}", begin="SELECT "),
    "user variables that are set": _list("@v{n} := 1", begin="SELECT "),
    "system variables": _list("@@session.sql_mode", begin="SELECT "),
    "dates of ODBC": _nest("{d ", "}", begin="SELECT ", inside="'2020-01-01'"),
    "hexadecimal": lambda count: "SELECT 0x" + "ab" * count,
    "hexadecimal strings": _list("x'ab'", begin="SELECT "),
    "hexadecimal without an end": lambda count: "SELECT x'" + "ab" * count,
    "bit strings": lambda count: "SELECT b'" + "10" * count + "'",
    "a long number": lambda count: "SELECT " + "1" * count,
    "a long number with letters": lambda count: "SELECT " + "1" * count + "x",
    "numbers with dots": _list("1.", between="", begin="SELECT "),
    "exponents": _list("1e", between="", begin="SELECT "),
    "MATCH": _list("c{n}", begin="SELECT MATCH (", end=") AGAINST ('a')"),
    "DO": _list("SLEEP(0)", begin="DO "),
    # Lexis.
    "comments": _list("/* a */", between="", begin="SELECT 1 "),
    "comments of lines": _list("# a\n", between="", begin="SELECT 1 "),
    "comments of dashes": _list("-- a\n", between="", begin="SELECT 1 "),
    "comments without an end": _list("/* a ", between="", begin="SELECT 1 "),
    "comments within comments": _nest("/* a ", "*/", begin="SELECT 1 ", inside=""),
    "stars of a comment": lambda count: "SELECT 1 /*" + "*" * count,
    "slashes": lambda count: "SELECT 1 " + "/" * count,
    "executable comments": _list("/*!50000 1 */", between=" + ", begin="SELECT "),
    "executable comments that are not run": _list("/*!99999 1 */", between=" ", begin="SELECT 1 "),
    "comments in one that is not run": _list(
        "/* a */", between="", begin="SELECT 1 /*!99999 ", end=" */"
    ),
    "openings in a comment that is not run": _list(
        "/* a ", between="", begin="SELECT 1 /*!99999 ", end=" */"
    ),
    "executable comments within each other": _nest("/*!50000 ", "*/", begin="SELECT ", inside="1"),
    "executable comments without an end": _list("/*!50000 1 ", between="+ ", begin="SELECT "),
    "executable comments that are not run without an end": _list(
        "/*!99999 1 ", between="+ ", begin="SELECT 1 "
    ),
    "executable comments of MariaDB": _list("/*M!100000 1 */", between=" + ", begin="SELECT "),
    "closings of comments": lambda count: "SELECT 1 /*! 1 */" + "*/" * count,
    "escapes": lambda count: "SELECT '" + "\\'" * count + "'",
    "doubled quotes": lambda count: "SELECT '" + "''" * count + "'",
    "quotes without an end": lambda count: "SELECT '" + "''" * count,
    "backslashes without an end": lambda count: "SELECT '" + "\\\\" * count,
    "double quotes": lambda count: 'SELECT "' + '""' * count + '"',
    "backticks": lambda count: "SELECT `" + "``" * count + "`",
    "names in backticks": _list("`a{n}`", begin="SELECT "),
    "one long name": lambda count: "SELECT " + "a" * count,
    "escapes without an end behind an executable comment": lambda count: (
        "SELECT /*! 1 */ '" + "\\'" * count
    ),
    "comments without an end behind an executable one": _list(
        "/* a ", between="", begin="SELECT /*! 1 */ "
    ),
    "backticks without an end behind an executable comment": lambda count: (
        "SELECT /*! 1 */ " + "` `` " * count + "`"
    ),
    "DEFINER": _list("DEFINER=x/**/", between="", begin="CREATE "),
    "white space": lambda count: "SELECT " + " " * count + "1",
    "lines": lambda count: "SELECT " + "\n" * count + "1 +",
    "at signs": lambda count: "SELECT " + "@" * count,
    "dots": lambda count: "SELECT " + "." * count,
    "dollars": lambda count: "SELECT " + "$$ " * count,
    "dollar quotes": lambda count: (
        "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $a$ " + "$ " * count
    ),
    "dollar quotes that begin": lambda count: (
        "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT " + "AS $$ " * count
    ),
    "surrogates": lambda count: "SELECT '" + "\udc80" * count + "'",
    "letters": lambda count: "SELECT " + "é" * count,
    "operators": lambda count: "SELECT 1 " + "+ " * count,
    "semicolons": lambda count: "SELECT 1" + ";" * count,
    # Accounts.
    "GRANT of roles to accounts": lambda count: (
        "GRANT "
        + ", ".join(f"r{n}" for n in range(count))
        + " TO "
        + ", ".join(f"u{n}" for n in range(count))
    ),
    "GRANT of columns to accounts": lambda count: (
        "GRANT SELECT ("
        + ", ".join(f"c{n}" for n in range(count))
        + ") ON d.t TO "
        + ", ".join(f"u{n}" for n in range(count))
    ),
    "GRANT to accounts": _list("u{n}", begin="GRANT SELECT ON d.* TO "),
    "GRANT to accounts with hosts": _list("u{n}@'h{n}'", begin="GRANT SELECT ON d.* TO "),
    "GRANT of columns": _list("c{n}", begin="GRANT SELECT (", end=") ON d.t TO u"),
    "GRANT of privileges": _list("SELECT", begin="GRANT ", end=" ON d.t TO u"),
    "GRANT of roles": _list("r{n}", begin="GRANT ", end=" TO u"),
    "REVOKE from accounts": _list("u{n}", begin="REVOKE SELECT ON d.* FROM "),
    "CREATE USER": _list("u{n}", begin="CREATE USER "),
    "CREATE USER with passwords": _list("u{n} IDENTIFIED BY 'x'", begin="CREATE USER "),
    "CREATE ROLE": _list("r{n}", begin="CREATE ROLE "),
    "ALTER USER": _list("u{n}", begin="ALTER USER ", end=" ACCOUNT LOCK"),
    "DROP USER": _list("u{n}", begin="DROP USER "),
    "DROP ROLE": _list("r{n}", begin="DROP ROLE "),
    "RENAME USER": _list("u{n} TO v{n}", begin="RENAME USER "),
    "SET ROLE": _list("r{n}", begin="SET ROLE "),
    "SET DEFAULT ROLE": _list("r{n}", begin="SET DEFAULT ROLE ", end=" TO u"),
    # Sessions.
    "SET": _list("@v{n} = 1", begin="SET "),
    "SET of system variables": _list("sql_mode = ''", begin="SET "),
    "SET of values": _nest("(", ")", begin="SET @a = "),
    "SET STATEMENT": _list("max_statement_time = 1", begin="SET STATEMENT ", end=" FOR SELECT 1"),
    "nested SET STATEMENT": _nest(
        "SET STATEMENT max_statement_time = 1 FOR ", "", inside="SELECT 1"
    ),
    "SET NAMES": _list("NAMES utf8mb4", begin="SET "),
    "EXECUTE": _list("@v{n}", begin="EXECUTE s USING "),
    "EXECUTE IMMEDIATE": _list("{n}", begin="EXECUTE IMMEDIATE 'DO ?' USING "),
    "PREPARE": lambda count: "PREPARE s FROM 'DO " + ", ".join(["1+1"] * (count + 1)) + "'",
    "PREPARE of nested texts": lambda count: "PREPARE s FROM 'SELECT " + "(" * count + "1'",
    "EXPLAIN": _nest("EXPLAIN ", "", inside="SELECT 1"),
    "ANALYZE": _nest("ANALYZE ", "", inside="SELECT 1"),
    "XA": lambda count: "XA START '" + "a" * count + "'",
    "XA in hexadecimal": lambda count: "XA COMMIT x'" + "ab" * count + "', x'ab', 1",
    "SAVEPOINT": lambda count: "SAVEPOINT `" + "a" * count + "`",
    "LOCK TABLES": _list("t{n} WRITE", begin="LOCK TABLES "),
    "FLUSH": _list("t{n}", begin="FLUSH TABLES "),
    "SIGNAL": _list("MESSAGE_TEXT = 'a'", begin="SIGNAL SQLSTATE '45000' SET "),
    "GET DIAGNOSTICS": _list("@v{n} = MESSAGE_TEXT", begin="GET DIAGNOSTICS CONDITION 1 "),
    "CALL": _list("{n}+1", begin="CALL p(", end=")"),
    "HANDLER": _list("{n}+1", begin="HANDLER t READ i = (", end=")"),
    "SHOW": _list("a = {n}", between=" OR ", begin="SHOW VARIABLES WHERE "),
    "KILL": _list("1", between=" + ", begin="KILL "),
    "BINLOG": lambda count: "BINLOG '" + "QUJD" * count + "'",
    "ANALYZE TABLE": _list("t{n}", begin="ANALYZE TABLE "),
    "CHECKSUM TABLE": _list("t{n}", begin="CHECKSUM TABLE "),
    "PURGE": lambda count: "PURGE BINARY LOGS TO '" + "a" * count + "'",
    "CHANGE MASTER": _list("MASTER_HOST = 'a'", begin="CHANGE MASTER TO "),
    "servers to ignore": _list("{n}", begin="CHANGE MASTER TO IGNORE_SERVER_IDS = (", end=")"),
    "LOAD DATA of columns": _list("c{n}", begin="LOAD DATA INFILE 'f' INTO TABLE t (", end=")"),
    "LOAD DATA that sets": _list("c{n} = @v{n}", begin="LOAD DATA INFILE 'f' INTO TABLE t SET "),
    "several statements": _list("SELECT {n}", between="; "),
    "several INSERTs": _list("INSERT INTO t VALUES ({n})", between="; "),
    "several bodies": _list("BEGIN NOT ATOMIC SET @a = 1; END", between="; "),
    "several statements that stop": _list("SET STATEMENT x", between="; "),
    # Definitions.
    "CREATE TABLE": _list("c{n} INT", begin="CREATE TABLE n (", end=")"),
    "CREATE TABLE of keys": _list("KEY k{n} (a)", begin="CREATE TABLE n (a INT, ", end=")"),
    "columns of a key": _list("c{n}", begin="CREATE TABLE n (a INT, KEY (", end="))"),
    "foreign keys": _list(
        "FOREIGN KEY (a) REFERENCES t{n} (a)", begin="CREATE TABLE n (a INT, ", end=")"
    ),
    "references": _list("c{n} INT REFERENCES t{n} (a)", begin="CREATE TABLE n (", end=")"),
    "checks": _list("CHECK (a > {n})", begin="CREATE TABLE n (a INT, ", end=")"),
    "a nested check": _nest("(", ")", begin="CREATE TABLE n (a INT, CHECK (", end="))"),
    "defaults": _list("c{n} INT DEFAULT (RAND())", begin="CREATE TABLE n (", end=")"),
    "generated columns": _list("c{n} INT AS (a + 1)", begin="CREATE TABLE n (a INT, ", end=")"),
    "column options": _list("NOT NULL", between=" ", begin="CREATE TABLE n (a INT ", end=")"),
    "members of ENUM": _list("'a{n}'", begin="CREATE TABLE n (a ENUM (", end="))"),
    "table options": _list("COMMENT = 'a'", between=" ", begin="CREATE TABLE n (a INT) "),
    "UNION of MERGE": _list("t{n}", begin="CREATE TABLE n (a INT) ENGINE=MERGE UNION=(", end=")"),
    "partitions": _list(
        "PARTITION p{n} VALUES LESS THAN ({n})",
        begin="CREATE TABLE n (a INT) PARTITION BY RANGE (a) (",
        end=")",
    ),
    "values of a partition": _list(
        "{n}",
        begin="CREATE TABLE n (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (",
        end="))",
    ),
    "subpartitions": _list(
        "SUBPARTITION s{n}",
        begin=(
            "CREATE TABLE n (a INT) PARTITION BY RANGE (a) SUBPARTITION BY HASH (a)"
            " (PARTITION p VALUES LESS THAN (1) ("
        ),
        end="))",
    ),
    "CREATE TABLE … SELECT": _list("a AS c{n}", begin="CREATE TABLE n SELECT ", end=" FROM t"),
    "CREATE TABLE without an end": _list("c{n} INT", begin="CREATE TABLE n ("),
    "CREATE TABLE of parentheses": _nest("(", ")", begin="CREATE TABLE n ", inside="a INT"),
    "ALTER TABLE": _list("ADD c{n} INT", begin="ALTER TABLE t "),
    "ALTER TABLE that drops": _list("DROP c{n}", begin="ALTER TABLE t "),
    "ALTER TABLE that changes": _list("CHANGE a a INT", begin="ALTER TABLE t "),
    "ALTER TABLE that renames": _list("RENAME TO t{n}", begin="ALTER TABLE t "),
    "ALTER TABLE of defaults": _list("ALTER a SET DEFAULT {n}", begin="ALTER TABLE t "),
    "ALTER TABLE of partitions": _list("p{n}", begin="ALTER TABLE t DROP PARTITION "),
    "ALTER TABLE of keys": _list("ADD KEY k{n} (a)", begin="ALTER TABLE t "),
    "ALTER TABLE of foreign keys": _list(
        "ADD FOREIGN KEY (a) REFERENCES t (a)", begin="ALTER TABLE t "
    ),
    "DROP TABLE": _list("t{n}", begin="DROP TABLE "),
    "DROP TABLE of one": _list("t", begin="DROP TABLE "),
    "DROP VIEW": _list("v{n}", begin="DROP VIEW "),
    "RENAME TABLE": _list("t{n} TO s{n}", begin="RENAME TABLE "),
    "RENAME TABLE in a circle": _list("t TO s, s TO t", begin="RENAME TABLE "),
    "RENAME TABLE in a chain": lambda count: (
        "RENAME TABLE t TO t0" + "".join(f", t{n} TO t{n + 1}" for n in range(count))
    ),
    "CREATE VIEW": _list("a AS c{n}", begin="CREATE VIEW v AS SELECT ", end=" FROM t"),
    "columns of a view": _list("c{n}", begin="CREATE VIEW v (", end=") AS SELECT a FROM t"),
    "a nested view": _nest("(", ")", begin="CREATE VIEW v AS SELECT "),
    "a view of unions": _list("SELECT a FROM t", between=" UNION ", begin="CREATE VIEW v AS "),
    "CREATE INDEX": _list("c{n}", begin="CREATE INDEX i ON t (", end=")"),
    "CREATE SERVER": _list(
        "HOST 'a'", begin="CREATE SERVER s FOREIGN DATA WRAPPER m OPTIONS (", end=")"
    ),
    "CREATE DATABASE": _list("CHARACTER SET utf8mb4", between=" ", begin="CREATE DATABASE n "),
    "words behind CREATE": _list("a", between=" ", begin="CREATE "),
    "words behind DEFINER": _list("a", between=" ", begin="CREATE DEFINER = "),
    # Programs.
    "BEGIN": _body("BEGIN ", "END; "),
    "BEGIN with labels": _body("l{n}: BEGIN ", "END; "),
    "BEGIN without an end": _body("BEGIN ", ""),
    "IF": _body("IF 1 THEN ", "END IF; "),
    "ELSEIF": _list(
        "ELSEIF {n} THEN SET @a = 1;",
        between=" ",
        begin="CREATE PROCEDURE p() IF 1 THEN SET @a = 1; ",
        end=" END IF",
    ),
    "ELSE": _body("IF 1 THEN SET @a = 1; ELSE ", "END IF; "),
    "IF without an end": _body("IF 1 THEN ", ""),
    "WHILE": _body("WHILE 0 DO ", "END WHILE; "),
    "WHILE of variables": _body("WHILE @a < 3 DO SET @a = @a + 1; ", "END WHILE; "),
    "WHILE without an end": _body("WHILE 0 DO ", ""),
    "LOOP": _body("l{n}: LOOP LEAVE l{n}; ", "END LOOP; "),
    "LOOP without LEAVE": _body("LOOP ", "END LOOP; "),
    "REPEAT": _body("REPEAT ", "UNTIL 1 END REPEAT; "),
    "CASE of statements": _body("CASE WHEN 1 THEN ", "END CASE; "),
    "CASE of statements side by side": _list(
        "WHEN {n} THEN SET @a = 1;",
        between=" ",
        begin="CREATE PROCEDURE p() CASE 1 ",
        end=" END CASE",
    ),
    "FOR over ranges": _body("FOR i IN 1..2 DO ", "END FOR; "),
    "FOR over queries": _body("FOR i IN (SELECT 1) DO ", "END FOR; "),
    "FOR without an end": _body("FOR i IN 1 ", ""),
    "FOR in one bound": lambda count: (
        "CREATE PROCEDURE p() FOR i IN 1.." + "1+" * count + "1 DO SET @a = 1; END FOR"
    ),
    "FOR side by side": _list(
        "FOR i IN 1..2 DO SET @a = 1; END FOR;",
        between=" ",
        begin="CREATE PROCEDURE p() BEGIN ",
        end=" END",
    ),
    "statements of a body": _list(
        "INSERT INTO t VALUES ({n});", between=" ", begin="CREATE PROCEDURE p() BEGIN ", end=" END"
    ),
    "statements of a body on tables": _list(
        "INSERT INTO t{n} SELECT a FROM t;",
        between=" ",
        begin="CREATE PROCEDURE p() BEGIN ",
        end=" END",
    ),
    "declarations": _list(
        "DECLARE v{n} INT DEFAULT {n};",
        between=" ",
        begin="CREATE PROCEDURE p() BEGIN ",
        end=" END",
    ),
    "names of a declaration": _list(
        "v{n}", begin="CREATE PROCEDURE p() BEGIN DECLARE ", end=" INT; SET @a = 1; END"
    ),
    "handlers": _body("BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION ", "; END", inside="SET @a = 1"),
    "handlers side by side": _list(
        "DECLARE EXIT HANDLER FOR {n} SET @a = 1;",
        between=" ",
        begin="CREATE PROCEDURE p() BEGIN ",
        end=" END",
    ),
    "conditions of a handler": _list(
        "{n}", begin="CREATE PROCEDURE p() BEGIN DECLARE EXIT HANDLER FOR ", end=" SET @a = 1; END"
    ),
    "cursors": _list(
        "DECLARE c{n} CURSOR FOR SELECT a FROM t;",
        between=" ",
        begin="CREATE PROCEDURE p() BEGIN ",
        end=" END",
    ),
    "parameters of a routine": _list("a{n} INT", begin="CREATE PROCEDURE p(", end=") SET @a = 1"),
    "triggers": _nest(
        "BEGIN ",
        "END; ",
        begin="CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW ",
        inside="SET NEW.a = 1; ",
    ),
    "statements of a trigger": _list(
        "SET NEW.a = {n};",
        between=" ",
        begin="CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN ",
        end=" END",
    ),
    "events": _nest(
        "BEGIN ", "END; ", begin="CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO ", inside="SET @a = 1; "
    ),
    "functions": _nest(
        "BEGIN ", "END; ", begin="CREATE FUNCTION f() RETURNS INT ", inside="RETURN 1; "
    ),
    "RETURN of a nested expression": _nest(
        "(", ")", begin="CREATE FUNCTION f() RETURNS INT RETURN "
    ),
    "compound statements": _nest("BEGIN NOT ATOMIC ", "END; ", inside="SET @a = 1; "),
    "compound statements side by side": _list(
        "SET @a = {n};", between=" ", begin="BEGIN NOT ATOMIC ", end=" END"
    ),
    "compound INSERTs": _list(
        "INSERT INTO t VALUES ({n});", between=" ", begin="BEGIN NOT ATOMIC ", end=" END"
    ),
    "compound IF": _nest("IF @a THEN ", "END IF; ", inside="SET @a = 1; "),
    "compound IF side by side": _list(
        "IF @a THEN SET @a = 1; END IF;", between=" ", begin="BEGIN NOT ATOMIC ", end=" END"
    ),
    "compound WHILE": _nest("WHILE 0 DO ", "END WHILE; ", inside="SET @a = 1; "),
    "compound handlers": _nest(
        "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION SET @a = 1; ",
        "END; ",
        inside="SET @a = 1; ",
    ),
    "PREPARE in a body": _list(
        "PREPARE s{n} FROM 'DO 1';", between=" ", begin="BEGIN NOT ATOMIC ", end=" END"
    ),
    "packages": _list("PROCEDURE p{n};", between=" ", begin="CREATE PACKAGE k ", end=" END"),
    # Binlogs.
    "CREATE BINLOG": _list("`d`.`t{n}`", begin="CREATE BINLOG 'b' LOG(", end=")"),
    "CREATE BINLOG that ignores": _list("`d`.`t{n}`", begin="CREATE BINLOG 'b' IGNORE(", end=")"),
    "CREATE BINLOG with options": _list("FORMAT='ROW'", between=" ", begin="CREATE BINLOG 'b' "),
    "CREATE BINLOG of databases": _list("`d{n}`", begin="CREATE BINLOG 'b' LOG(", end=")"),
    "ALTER BINLOG": _list("`d`.`t{n}`", begin="ALTER BINLOG 'b' LOG(", end=")"),
    "CREATE BINLOG without an end": _list("`d`.`t{n}`", begin="CREATE BINLOG 'b' LOG("),
    "EXPLAIN BINLOG": _list("({n}+1)", begin="EXPLAIN BINLOG INSERT INTO t VALUES "),
    "nested EXPLAIN BINLOG": _nest("EXPLAIN BINLOG ", "", inside="SELECT 1"),
    "EXPLAIN BINLOG of parentheses": _nest("(", ")", begin="EXPLAIN BINLOG SELECT "),
    "PURGE BINLOG": lambda count: "PURGE BINLOG 'b' TO '" + "a" * count + "'",
    # Ranges of keys.
    "ranges": _list("a <> {n}", between=" AND ", begin="DELETE FROM t WHERE "),
    "ORs of ANDs of ORs": _nest(
        "(a > {n} AND ", ") OR a < 5", begin="DELETE FROM t WHERE ", inside="a = 1"
    ),
    "ANDs of ORs": _list(
        "(a = {n} OR a = 1{n} OR a > {n})", between=" AND ", begin="DELETE FROM t WHERE "
    ),
    "NOT IN": _list("{n}", begin="DELETE FROM t WHERE a NOT IN (", end=")"),
}
"""By what they repeat."""


def text_of(shape: str, size: int) -> str:
    """A text of a shape.

    Args:
        shape: Its name.
        size: Characters that it is to have, about; never less than one repetition.
    """
    maker = SHAPES[shape]
    count = 64
    text = maker(count)
    while len(text) < size // 2:
        count = count * max(2, size // (2 * len(text)))
        text = maker(count)
    return maker(max(1, count * size // len(text)))
