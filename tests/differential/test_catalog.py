"""Columns by the texts of DDL, against information_schema of a MariaDB that ran the same."""

from __future__ import annotations

from binlane.live.provision.private_server import PrivateServer
from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from tests.servers import connect

SCRIPT = """
CREATE OR REPLACE DATABASE cat CHARACTER SET latin1;
ALTER DATABASE cat COLLATE cp1251_general_ci;
CREATE TABLE types (
  a SERIAL, b BOOL, c BOOLEAN NOT NULL, d NATIONAL CHAR(3), e NATIONAL VARCHAR(4), f NCHAR VARYING(5),
  g CHARACTER VARYING(6) BINARY, h DOUBLE PRECISION UNSIGNED, i LONG VARCHAR, j LONG VARBINARY,
  k LONG, l CHAR(2) BYTE, m VARCHAR(3) ASCII, n CHAR UNICODE, o JSON, p UUID, q INET6, r INET4,
  s TEXT COLLATE koi8r_bin, t ENUM('a ', 'it''s', 'c,d') CHARACTER SET utf8 COLLATE utf8_bin,
  u SET('x','y') DEFAULT 'x', v VARCHAR(9) COMPRESSED, w BLOB COMPRESSED=zlib, x BIT(9),
  y DECIMAL(5), z TIMESTAMP(3) NULL, aa YEAR, ab FIXED(7,2) ZEROFILL, ac INT4, ad MIDDLEINT,
  ae FLOAT(30), af REAL, ag BINARY(3), `a``b` INT1 COMMENT 'x, y', ah TINYTEXT INVISIBLE,
  ai INT AS (ad + 1) VIRTUAL, aj VARCHAR(20) GENERATED ALWAYS AS (CONCAT('(', m)) STORED,
  period INT, vector INT, system INT, KEY (b), CONSTRAINT c1 CHECK (b > 0), FULLTEXT (s)
) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin COMMENT='CHARSET=latin1';
CREATE TABLE plain (a INT, b TEXT, c VARCHAR(10) CHARACTER SET binary);
CREATE TABLE alike LIKE plain;
ALTER TABLE alike ADD COLUMN (d INT, e CHAR(3)), ADD f INT FIRST, ADD IF NOT EXISTS a INT;
ALTER TABLE alike DROP a, ADD a BIGINT UNSIGNED AFTER f, MODIFY b LONGTEXT FIRST, RENAME TO alike2;
ALTER TABLE alike2 CHANGE d e2 INT AFTER c, CHANGE e d CHAR(4) CHARACTER SET latin2;
ALTER TABLE alike2 RENAME COLUMN e2 TO d, RENAME COLUMN d TO e2;
ALTER TABLE alike2 MODIFY f INT AFTER c, ADD g INT AFTER f, ADD h INT AFTER g;
ALTER TABLE alike2 CONVERT TO CHARACTER SET greek, ADD i VARCHAR(3);
ALTER TABLE alike2 DEFAULT CHARACTER SET hebrew, ADD j VARCHAR(3), DROP COLUMN IF EXISTS nothing;
ALTER TABLE alike2 ADD UNIQUE (i), ADD INDEX (j), ALTER COLUMN g SET DEFAULT 3, ENGINE=InnoDB;
ALTER TABLE alike2 ADD COLUMN `key` INT, DROP INDEX j, CHANGE IF EXISTS none x INT;
RENAME TABLE plain TO tmp, alike2 TO plain, tmp TO alike2;
CREATE TABLE IF NOT EXISTS plain (z INT);
CREATE OR REPLACE TABLE alike2 (z INT, y TEXT) SELECT 1 AS x;
CREATE OR REPLACE TABLE gone (z INT);
DROP TABLE IF EXISTS gone, missing;
CREATE TABLE versioned (a INT, b INT WITHOUT SYSTEM VERSIONING) WITH SYSTEM VERSIONING;
CREATE TABLE versioned2 (a INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START,
  e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING;
SET STATEMENT lock_wait_timeout=5 FOR CREATE TABLE stated (`select` INT, a_from TEXT);
CREATE TABLE parted (a INT, b CHAR(1)) PARTITION BY RANGE (a)
  (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN MAXVALUE);
ALTER TABLE parted CONVERT PARTITION p0 TO TABLE apart;
/*!50100 CREATE TABLE commented */ (a INT /*M!100000 , b UUID */);
CREATE SEQUENCE counter;
CREATE DATABASE cat2 COLLATE 'utf8mb3_bin';
ALTER TABLE versioned RENAME cat2.versioned;
CREATE TABLE cat2.t (a CHAR(1), b TEXT);
ALTER TABLE cat2.t CONVERT TO CHARACTER SET DEFAULT;
"""


def test_the_catalog_has_the_columns_that_the_server_has(mariadb_server: PrivateServer) -> None:
    catalog = LoggedObjects()
    statements = [each.strip() for each in SCRIPT.split(";\n") if each.strip()]
    with connect(mariadb_server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS cat")
        cursor.execute("DROP DATABASE IF EXISTS cat2")
        cursor.execute("USE cat")
        for statement in statements:
            cursor.execute(statement)
            catalog.apply(statement, database="cat")
            if statement.startswith("CREATE OR REPLACE DATABASE"):
                cursor.execute("USE cat")
        cursor.execute(
            "SELECT table_schema, table_name, column_name, character_set_name, column_type"
            " FROM information_schema.columns WHERE table_schema IN ('cat', 'cat2')"
            " ORDER BY table_schema, table_name, ordinal_position"
        )
        found: dict[TableName, list[tuple[str, str | None, bool]]] = {}
        for database, table, column, charset, column_type in cursor.fetchall():
            row = (column, charset, "unsigned" in column_type)
            found.setdefault(TableName(database, table), []).append(row)
        cursor.execute("DROP DATABASE cat2")
    # A SELECT says no types.
    del found[TableName("cat", "alike2")]
    assert set(catalog.tables) == set(found)
    for table, expected in found.items():
        definition = catalog.definition(table)
        assert definition is not None
        told = [
            (
                column.name,
                None if column.charset == "binary" else column.charset,
                column.is_unsigned,
            )
            for column in definition.columns
        ]
        assert told == [
            (name, "utf8mb3" if charset == "utf8" else charset, is_unsigned)
            for name, charset, is_unsigned in expected
        ], table
