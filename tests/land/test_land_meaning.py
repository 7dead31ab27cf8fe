"""Current tables beside the SELECT of both servers, after what no row of the log tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from binlane.live.provision.private_server import PrivateServer
from binlane.live.provision.server_programs import MysqlProgram
from tests.landed_select import Source, current_schema, current_values
from tests.log_batches import LogLander, land_all, new_lander
from tests.servers import execute


@pytest.fixture(params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    """A database of its own on each of the two servers."""
    made = Source(request.getfixturevalue(f"{request.param}_server"), "meaning")
    yield made
    made.close()


def landed(source: Source, into: Path) -> LogLander:
    """All of the log since the database was made."""
    return land_all(into, [source.binlogs()])


def differences(source: Source, into: Path, given_up: set[str]) -> list[str]:
    """The tables whose rows are not those of the source, and what differs."""
    found = []
    for table in source.tables():
        path = into / "current" / source.database / table
        if table in given_up:
            continue
        schema = current_schema(path)
        expected, current = source.rows(table, schema), current_values(path)
        if expected != current:
            missing, wrong = [*(expected - current)], [*(current - expected)]
            found += [
                f"{table}.{name}: {[row[at] for row in missing]} not {[row[at] for row in wrong]}"
                for at, name in enumerate(schema.names)
                if {row[at] for row in missing} != {row[at] for row in wrong}
            ]
    return found


# Old type, new type, values. What is followed must be equal; nothing may be given up.
FOLLOWED = [
    ("datetime(6)", "datetime", "'2020-01-01 10:00:00.4','2020-12-31 23:59:59.999999',null"),
    ("datetime(6)", "datetime(2)", "'2020-01-01 10:00:00.445','2020-12-31 23:59:59.999999'"),
    ("datetime", "datetime(3)", "'2020-01-01 10:00:00'"),
    ("datetime(6)", "date", "'2020-01-01 10:00:00.4','2020-12-31 23:59:59.999999'"),
    ("datetime(3)", "varchar(40)", "'2020-01-01 10:00:00.4'"),
    ("date", "datetime", "'2020-01-01',null"),
    ("date", "varchar(20) not null", "'2020-01-01'"),
    ("date", "int", "'2020-01-01'"),
    ("timestamp(6) null", "timestamp null", "'2020-01-01 10:00:00.5','2020-12-31 23:59:59.9',null"),
    ("timestamp null", "timestamp(4) null", "'2020-01-01 10:00:00',null"),
    (
        "time(6)",
        "time",
        "'10:00:00.4','-10:00:00.5','838:59:58.9','-00:00:00.6','-00:00:00.4',null",
    ),
    ("time(6)", "time(3)", "'10:00:00.4444','10:00:00.5555','-10:00:00.5555','838:59:59'"),
    ("time(2)", "varchar(20)", "'10:00:00','-10:00:00.25',null"),
    ("time(3)", "time(3) not null", "'10:00:00',null"),
    ("year", "int", "1999,2155,0"),
    ("year", "varchar(10)", "1999,0"),
    ("int", "year", "1999,0,2155"),
    ("int", "bigint", "0,-1,2147483647,null"),
    ("int", "bigint unsigned not null", "0,-1,2147483647,null"),
    ("int", "smallint", "0,40000,-40000"),
    ("int", "tinyint unsigned", "0,300,-1"),
    ("bigint unsigned", "bigint", "0,18446744073709551615"),
    ("bigint", "bigint unsigned", "9223372036854775807,5"),
    ("bigint unsigned", "varchar(30)", "18446744073709551615,5"),
    ("int", "varchar(20)", "0,-1,2147483647,null"),
    ("int", "varchar(3)", "7,-1234,300"),
    ("int", "char(12)", "1,-22"),
    ("int", "text", "1,-22,null"),
    ("int", "varbinary(20)", "1,-22"),
    ("int zerofill", "varchar(20)", "1,22"),
    ("int(5) zerofill", "varchar(20)", "1,123456"),
    ("int", "decimal(12,2)", "5,-1,2147483647,null"),
    ("int", "decimal(4,2) not null", "5,-127,127,null"),
    ("int", "double", "5,-1,2147483647"),
    ("bigint", "double", "9223372036854775807,9007199254740993"),
    ("bigint", "float", "9223372036854775807,16777217,5"),
    ("decimal(10,4)", "decimal(10,2)", "1.005,1.0049,-1.005,-1.015,999999.9999,null"),
    ("decimal(10,4)", "decimal(5,2)", "1.005,999999.9999,-999999.9999,999.9949,999.995"),
    ("decimal(10,2)", "decimal(10,4)", "1.01,99999999.99"),
    ("decimal(10,2)", "decimal(8,2) unsigned", "1.01,-3"),
    ("decimal(10,4)", "int", "1.5,2.5,-1.5,-2.5,0.4999,null"),
    ("decimal(10,4)", "int unsigned", "1.5,-1.5,-0.4"),
    ("decimal(10,4)", "double not null", "1.5,0.1,999999.9999,null"),
    ("decimal(30,20)", "double", "0.1234567890123456789,1234567890.12345678901234567891"),
    ("decimal(10,4)", "float", "1.5,0.1,-7.0001"),
    ("decimal(10,4)", "varchar(20)", "1.5,-0.5,999999.9999"),
    ("decimal(10,4)", "varchar(3)", "1.5,-0.5"),
    ("decimal(60,2)", "decimal(60,1)", "1.25,-1.25,1e50"),
    ("float", "double", "1.1,0.1,3.4e38,16777216,null"),
    ("float", "int", "1.5,2.5,-3.5"),
    ("double", "float", "1.1,0.1,1e-50,16777217,123456789.123"),
    ("double", "int", "1.5,2.5,-1.5,-2.5,0.49999"),
    ("double", "decimal(10,2)", "1.005,2.675,1.015,0.1,1e20,-1.005,123.455"),
    ("double", "decimal(30,20)", "1.005,0.1,0.30000000000000004"),
    ("varchar(50)", "varchar(3)", "'abc','abc  ','abcd','äöüß','',null"),
    ("varchar(50)", "varchar(80) not null", "'a','',null"),
    ("varchar(50)", "char(3)", "'abc','abc  ','a ','abcd',''"),
    ("varchar(50)", "text", "'abc',null,'a '"),
    ("varchar(50)", "mediumtext not null", "'abc',null"),
    ("text", "varchar(5)", "'abc','abcdef','abcde  '"),
    ("char(10)", "varchar(10)", "'abc','abc  ','',null"),
    ("char(10)", "char(2)", "'ab','abc'"),
    ("varchar(50)", "varbinary(50)", "'abc','äß',null,'a '"),
    ("varchar(50)", "varbinary(3)", "'abc','äßc'"),
    ("varchar(50)", "blob", "'abc','äß'"),
    ("varbinary(50)", "varbinary(2)", "x'ff00','a'"),
    ("varbinary(50)", "blob not null", "x'ff00','a',null"),
    ("varchar(50)", "binary(4)", "'ab','abcdef',''"),
    ("varbinary(50)", "binary(4) not null", "'ab',x'ff',null"),
    ("binary(4)", "varbinary(9)", "'ab'"),
    ("binary(4)", "binary(2)", "'abc','a'"),
    ("binary(4)", "binary(6) not null", "'ab',null"),
    ("int", "binary(4)", "5,-7"),
    ("decimal(60,2)", "bigint", "1234567890123456789012345678901234567890.25,2.5"),
    ("int", "timestamp null", "null"),
    ("varbinary(50)", "varchar(50)", "'abc','äß'"),
    ("blob", "text", "'abc','äß'"),
    ("varchar(50) charset latin1", "varchar(50)", "'abc','äß€'"),
    ("varchar(50)", "varchar(50) charset latin1", "'abc','äß€'"),
    ("varchar(50)", "varchar(20) charset utf8mb3", "'abc','äß'"),
    ("varchar(50)", "int", "'12','-3','+4',' 5','6 '"),
    ("varchar(50)", "bigint", "'12','-3000000000'"),
    ("varchar(50)", "decimal(10,2)", "'1.5','1.005','-7'"),
    ("varchar(50)", "date", "'2020-01-01'"),
    ("varchar(50)", "datetime(1)", "'2020-01-01 10:00:00','2020-01-01 10:00:00.26'"),
    ("enum('a','b','c')", "enum('c','b','a')", "'a','b','c'"),
    ("enum('a','b','c')", "enum('a','b','c','d')", "'a','b','c',null"),
    ("enum('a','b')", "enum('A','B')", "'a','b'"),
    ("enum('a','b')", "enum('b','a') not null", "'a',null"),
    ("enum('a','b','c')", "varchar(10)", "'a','b',null"),
    ("enum('a','b','c')", "int", "'a','c'"),
    ("varchar(10)", "enum('a','b')", "'a','B','a '"),
    ("set('a','b','c')", "set('c','b','a')", "'a','a,b','a,c','',null"),
    ("set('a','b','c')", "varchar(20)", "'a,c',''"),
    ("set('a','b','c')", "set('a','b','c','d') not null", "'a,c',null"),
    ("varchar(20)", "set('a','b')", "'b,a','a',''"),
    ("bit(8)", "int", "b'101',b'11111111'"),
    ("bit(8)", "bit(3)", "b'101',b'11111111'"),
    ("bit(3)", "bit(8) not null", "b'101',null"),
    ("int", "bit(8)", "5,300"),
    ("json", "text", '\'{"b": 1, "a": [1, 2]}\',null'),
    ("geometry", "geometry not null", "point(1,2)"),
    ("int comment 'x'", "int default 5", "1,null"),
    ("varchar(20)", "varchar(20) default 'x' collate utf8mb4_bin", "'A',null"),
    ("decimal(60,2)", "int", "1.5,-1e50,null"),
    ("decimal(40,5)", "bigint unsigned", "1.5,-3"),
    ("decimal(40,5)", "varchar(60)", "1.5,1234567890123456789012345678901234.56789"),
    ("decimal(40,5)", "varbinary(60) not null", "-0.5,null"),
    ("decimal(40,5)", "double", "1.5,null"),
    ("enum('a','é')", "enum('é','a') charset latin1", "'é','a'"),
]
# To MariaDB what it makes of NULL is no JSON, and it refuses that.
MYSQL_FOLLOWED = [("json", "json not null", "'[1]',null")]
# What servers make of these is not what they seem to say.
UNTOLD = [
    ("varchar(50)", "bigint unsigned", "'99999999999999999999'"),
    ("decimal(40,5)", "bigint unsigned", "1e30"),
    ("varbinary(20)", "varchar(20) charset ucs2", "'ab'"),
    ("enum('a','é')", "enum('a','é') charset ascii", "'é'"),
    ("set('a','é')", "set('a','é') charset ascii", "'a,é'"),
]


@pytest.mark.parametrize("mode", ["", "TIME", "STRICT_TRANS_TABLES"])
def test_values_that_modify_converts_are_those_of_the_server(
    mode: str, source: Source, tmp_path: Path
) -> None:
    is_mysql = isinstance(source.server.program, MysqlProgram)
    if mode == "TIME":
        mode = "TIME_TRUNCATE_FRACTIONAL" if is_mysql else "TIME_ROUND_FRACTIONAL"
    followed = FOLLOWED + MYSQL_FOLLOWED * is_mysql
    cases = [(old, new, _split(values)) for old, new, values in followed]
    if mode == "STRICT_TRANS_TABLES":  # in which the server refuses most of them
        cases = [case for number, case in enumerate(cases) if number in {0, 2, 4, 6, 24, 36, 76}]
    count = max(len(values) for _, _, values in cases)
    columns = ", ".join(f"v{number} {old}" for number, (old, _, _) in enumerate(cases))
    changes = ", ".join(f"MODIFY v{number} {new}" for number, (_, new, _) in enumerate(cases))
    source.run(
        "SET sql_mode = ''",
        f"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, {columns})",
        *(
            f"INSERT INTO t VALUES (NULL, {', '.join(_at(values, row) for _, _, values in cases)})"
            for row in range(count)
        ),
        f"SET sql_mode = '{mode}'",
        f"ALTER TABLE t {changes}",
    )
    report = landed(source, tmp_path).look().tables["meaning.t"]
    assert not report.why_not
    assert differences(source, tmp_path, set()) == []


def test_values_that_modify_makes_others_of_are_given_up(source: Source, tmp_path: Path) -> None:
    source.run("SET sql_mode = ''")
    for number, (old, new, values) in enumerate(UNTOLD):
        source.run(
            f"CREATE TABLE t{number} (id INT AUTO_INCREMENT PRIMARY KEY, v {old})",
            f"INSERT INTO t{number} (v) VALUES ({values})",
            f"ALTER TABLE t{number} MODIFY v {new}",
        )
    tables = landed(source, tmp_path).look().tables
    assert all(tables[f"meaning.t{number}"].why_not for number in range(len(UNTOLD)))


# From, to, rows of an ENUM, a SET and a text; whether what servers make of them is followed. They
# take the bytes of members for those in the new character set.
CONVERTED = [
    ("utf8mb4", "latin1", "('a', 'a', 'a'), ('é', 'a,é', 'é')", True),
    ("latin1", "utf8mb4", "('a', 'a', 'a'), ('é', 'a,é', 'é'), ('é', 'é', NULL)", True),
    ("utf8mb4", "utf8mb3", "('é', 'a,é', 'é')", True),
    ("utf8mb3", "utf8mb4", "('é', 'a,é', 'é日')", True),
    ("utf8mb4", "ascii", "('a', 'a', 'abc'), (NULL, '', ''), ('é', 'é', NULL)", True),
    ("latin1", "ascii", "('é', 'a,é', 'b')", True),
    ("latin1", "koi8r", "('a', 'a', 'b')", True),
    ("latin1", "koi8r", "('é', 'a', 'b')", False),
    ("utf8mb4", "ucs2", "('a', 'a', 'b')", False),
    ("ucs2", "utf8mb4", "('a', 'a', 'b')", False),
    ("utf8mb4", "latin1", "('a', 'a', '日')", False),
    ("utf8mb4", "ascii", "('a', 'a', 'é')", False),
]


def test_values_that_convert_to_character_set_changes(source: Source, tmp_path: Path) -> None:
    source.run("SET sql_mode = ''")
    for number, (old, new, rows, _) in enumerate(CONVERTED):
        source.run(
            f"CREATE TABLE t{number} (e ENUM('a', 'é'), s SET('a', 'é'), v VARCHAR(9))"
            f" CHARACTER SET {old}",
            f"INSERT INTO t{number} VALUES {rows}",
            f"ALTER TABLE t{number} CONVERT TO CHARACTER SET {new}",
        )
    tables = landed(source, tmp_path).look().tables
    given_up = {
        f"t{number}" for number in range(len(CONVERTED)) if tables[f"meaning.t{number}"].why_not
    }
    assert given_up == {f"t{number}" for number, case in enumerate(CONVERTED) if not case[-1]}
    assert differences(source, tmp_path, given_up) == []


def _at(values: list[str], row: int) -> str:
    return values[min(row, len(values) - 1)]


# What happens to tables on both servers, in two batches.
STORIES = {
    "renamed": """
CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO a VALUES (1, 'a');
CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO b VALUES (2, 'b');
--
RENAME TABLE a TO tmp, b TO a, tmp TO b;
INSERT INTO a VALUES (3, 'was b');
ALTER TABLE b RENAME TO c;
UPDATE c SET v = 'x';
CREATE TABLE b LIKE c;
INSERT INTO b VALUES (9, 'new');
""",
    "like and select": """
CREATE TABLE l (id INT PRIMARY KEY, e ENUM('x','y') DEFAULT 'y');
INSERT INTO l VALUES (1, 'x');
CREATE TABLE l2 LIKE l;
INSERT INTO l2 SELECT * FROM l;
CREATE TABLE l3 AS SELECT id, e, 1.5 AS n FROM l;
--
INSERT INTO l2 VALUES (2, 'y');
INSERT INTO l3 VALUES (5, 'y', 2.5);
UPDATE l3 SET n = n + 1 WHERE id = 1;
""",
    "columns": """
CREATE TABLE m (id INT PRIMARY KEY, a INT, b VARCHAR(10));
INSERT INTO m VALUES (1, 2, 'z');
--
ALTER TABLE m RENAME COLUMN a TO b, RENAME COLUMN b TO a;
ALTER TABLE m ADD x INT NOT NULL DEFAULT 7 FIRST, ADD y DATE AFTER x, MODIFY a VARCHAR(30)
  FIRST;
INSERT INTO m (id, a, b) VALUES (2, 'q', 5);
ALTER TABLE m DROP COLUMN y, CHANGE b c BIGINT;
UPDATE m SET c = 8 WHERE id = 1;
ALTER TABLE m ADD e ENUM('u','v') NOT NULL, ADD t TIMESTAMP(3) NULL;
""",
    "types": """
CREATE TABLE y (id INT UNSIGNED PRIMARY KEY, e ENUM('x','y','z'), s SET('p','q','r'), u
  BIGINT UNSIGNED, t TEXT, j JSON, b BLOB, d DATETIME(3), n DECIMAL(40,5));
INSERT INTO y VALUES (4000000000, 'z', 'p,r', 18446744073709551615, 'ä', '[1, 2]', x'00ff',
  '2020-02-03 04:05:06.789', 12345678901234567890.5);
--
INSERT INTO y (id, e, s) VALUES (1, 'x', 'q');
ALTER TABLE y MODIFY e ENUM('w','z','y','x');
INSERT INTO y (id, e) VALUES (2, 'w');
UPDATE y SET s = '' WHERE id = 1;
""",
    "emptied": """
CREATE TABLE p (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN
  (10), PARTITION p1 VALUES LESS THAN MAXVALUE);
INSERT INTO p VALUES (1), (20);
CREATE TABLE o (id INT PRIMARY KEY, v INT);
INSERT INTO o VALUES (1, 1);
--
ALTER TABLE p TRUNCATE PARTITION ALL;
INSERT INTO p VALUES (2), (30);
DROP TABLE o;
CREATE TABLE o (id INT PRIMARY KEY, w VARCHAR(5));
INSERT INTO o VALUES (1, 'x');
ALTER TABLE p REORGANIZE PARTITION p0 INTO (PARTITION q0 VALUES LESS THAN (5), PARTITION q1
  VALUES LESS THAN (10));
""",
    "temporary": """
CREATE TABLE r (id INT PRIMARY KEY, v INT);
INSERT INTO r VALUES (1, 1);
--
CREATE TEMPORARY TABLE r (x INT);
INSERT INTO r VALUES (5), (6);
DROP TEMPORARY TABLE r;
INSERT INTO r VALUES (2, 2);
CREATE TEMPORARY TABLE tt AS SELECT * FROM r;
""",
    "computed": """
CREATE TABLE g (id INT PRIMARY KEY, a INT, b INT AS (a + 1) STORED, c INT AS (a * 2));
INSERT INTO g (id, a) VALUES (1, 5);
--
UPDATE g SET a = 6;
INSERT INTO g (id, a) VALUES (2, 7);
DELETE FROM g WHERE id = 1;
""",
    "without a key": """
CREATE TABLE w (a INT, b VARCHAR(5));
INSERT INTO w VALUES (1, 'x'), (1, 'x'), (2, NULL);
--
DELETE FROM w LIMIT 1;
UPDATE w SET b = 'y' WHERE a = 2;
ALTER TABLE w ADD c INT DEFAULT 3;
""",
    "rows that come and go at once": """
CREATE TABLE cg (a INT);
INSERT INTO cg VALUES (1);
DELETE FROM cg;
--
INSERT INTO cg VALUES (1), (2);
DELETE FROM cg;
""",
}
MARIADB_STORIES = {
    "long unique keys": """
CREATE TABLE lu (id INT PRIMARY KEY, t TEXT, b BLOB, UNIQUE (t), UNIQUE (b, t));
INSERT INTO lu VALUES (1, 'a', 'b');
CREATE TABLE lk (t TEXT UNIQUE);
INSERT INTO lk VALUES ('a'), (NULL);
--
ALTER TABLE lu ADD n INT DEFAULT 5;
UPDATE lu SET t = 'c';
DELETE FROM lk WHERE t = 'a';
""",
    "replaced": """
CREATE TABLE rr (id INT PRIMARY KEY);
INSERT INTO rr VALUES (1);
--
CREATE OR REPLACE TABLE rr (id INT PRIMARY KEY, v INT);
INSERT INTO rr VALUES (2, 2);
CREATE TABLE IF NOT EXISTS rr (x INT);
""",
    "own types": """
CREATE TABLE ot (id UUID PRIMARY KEY, a INET6, b INET4);
INSERT INTO ot VALUES ('123e4567-e89b-12d3-a456-426655440000', '::1', '1.2.3.4');
--
INSERT INTO ot VALUES ('123e4567-e89b-12d3-a456-426655440001', NULL, '255.2.3.4');
UPDATE ot SET a = '1::2' WHERE b = '1.2.3.4';
""",
}


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_tables_follow_what_statements_do(metadata: str, source: Source, tmp_path: Path) -> None:
    source.run(f"SET GLOBAL binlog_row_metadata = {metadata}")
    stories = dict(STORIES)
    if not isinstance(source.server.program, MysqlProgram):
        stories |= MARIADB_STORIES
    lander = new_lander(tmp_path)
    try:
        for part in (0, 1):
            for story in stories.values():
                statements = story.split("--\n")[part].split(";")
                source.run(*(each for each in statements if each.strip()))
            lander.land(source.new_binlogs())
            assert lander.look().given_up == []
            assert differences(source, tmp_path, set()) == []
    finally:
        source.run("SET GLOBAL binlog_row_metadata = FULL")
    kept = {path.name for path in (tmp_path / "current" / source.database).iterdir()}
    assert kept == set(source.tables())


LINKED = """
CREATE TABLE p (id INT PRIMARY KEY, code VARCHAR(20) UNIQUE, v INT);
CREATE TABLE c (id INT PRIMARY KEY, pid INT, v INT,
  FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE g (id INT PRIMARY KEY, cid INT, v INT,
  FOREIGN KEY (cid) REFERENCES c (id) ON DELETE CASCADE ON UPDATE SET NULL);
CREATE TABLE n (id INT PRIMARY KEY, pid INT, v INT,
  FOREIGN KEY (pid) REFERENCES p (id) ON DELETE SET NULL ON UPDATE SET NULL);
CREATE TABLE k (pid INT, x INT, v INT, PRIMARY KEY (pid, x),
  FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE kk (id INT PRIMARY KEY, pid INT, x INT,
  FOREIGN KEY (pid, x) REFERENCES k (pid, x) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE s (id INT PRIMARY KEY, code VARCHAR(20),
  FOREIGN KEY (code) REFERENCES p (code) ON DELETE SET NULL ON UPDATE CASCADE);
CREATE TABLE t (id INT PRIMARY KEY, above INT, v INT,
  FOREIGN KEY (above) REFERENCES t (id) ON DELETE CASCADE)
"""


def _random_change(random: Random) -> str:
    """A statement about the tables of LINKED; the server may refuse it."""
    ids = range(1, 13)
    one, other = random.choice(ids), random.choice(ids)
    code = random.choice(["a", "A", "b", "c ", "d", "e"])
    return random.choice(
        [
            f"INSERT INTO p VALUES ({one}, '{code}{one}', 1)",
            f"DELETE FROM p WHERE id = {one}",
            f"DELETE FROM p WHERE id IN ({one}, {other})",
            f"UPDATE p SET id = {other} WHERE id = {one}",
            "UPDATE p SET id = id + 1 ORDER BY id DESC",
            f"UPDATE p SET code = '{code}{other}' WHERE id = {one}",
            f"REPLACE INTO p VALUES ({one}, '{code}{one}', 2)",
            f"UPDATE p SET v = v + 1 WHERE id > {one}",
            *(f"INSERT INTO c VALUES ({n}, {one}, {other})" for n in random.sample(ids, 3)),
            f"UPDATE c SET pid = {other}, v = v + 1 WHERE id = {one}",
            f"UPDATE c SET id = {other} WHERE id = {one}",
            f"DELETE FROM c WHERE id = {one}",
            *(f"INSERT INTO g VALUES ({n}, {one}, {other})" for n in random.sample(ids, 3)),
            f"UPDATE g SET cid = {other} WHERE id = {one}",
            *(f"INSERT INTO n VALUES ({n}, {one}, {other})" for n in random.sample(ids, 2)),
            f"UPDATE n SET v = v + 1, pid = {other} WHERE id = {one}",
            *(f"INSERT INTO k VALUES ({one}, {n}, 0)" for n in random.sample(ids, 2)),
            f"UPDATE k SET x = {other} WHERE pid = {one}",
            *(f"INSERT INTO kk VALUES ({n}, {one}, {other})" for n in random.sample(ids, 2)),
            f"INSERT INTO s SELECT {one}, code FROM p WHERE id = {other}",
            f"INSERT INTO s VALUES ({one}, '{code.upper()}{other}')",
            f"INSERT INTO t VALUES ({one}, NULL, 0)",
            *(f"INSERT INTO t VALUES ({n}, {one}, 0)" for n in random.sample(ids, 3)),
            f"DELETE FROM t WHERE id = {one}",
            f"UPDATE t SET above = {other} WHERE id = {one}",
        ]
    )


@pytest.mark.parametrize("seed", range(2))
def test_what_foreign_keys_do_is_in_the_tables_of_children(
    seed: int, source: Source, tmp_path: Path
) -> None:
    random = Random(seed)
    source.run(*LINKED.strip().split(";\n"))
    lander = new_lander(tmp_path)
    done = 0
    for _ in range(3):
        for _ in range(12):
            source.run(f"SET foreign_key_checks = {int(random.random() > 0.05)}", "BEGIN")
            for _ in range(random.randrange(1, 6)):
                done += source.try_run(_random_change(random))
            source.run("COMMIT")
        lander.land(source.new_binlogs())
        assert lander.look().given_up == []
        assert differences(source, tmp_path, set()) == []
    assert done > 30


def test_foreign_keys_follow_columns_of_parents_that_are_renamed(
    source: Source, tmp_path: Path
) -> None:
    source.run(
        *LINKED.strip().split(";\n"),
        "INSERT INTO p VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)",
        "INSERT INTO c VALUES (1, 1, 1), (2, 2, 1)",
        "INSERT INTO k VALUES (1, 1, 1), (2, 1, 1), (3, 1, 1)",
        "INSERT INTO t VALUES (1, NULL, 1), (2, 1, 1)",
        "ALTER TABLE p RENAME COLUMN id TO number_, CHANGE code id VARCHAR(20)",
        "ALTER TABLE t RENAME COLUMN id TO above, RENAME COLUMN above TO id",
        "DELETE FROM p WHERE number_ = 1",
        "UPDATE p SET number_ = 7 WHERE number_ = 3",
        "DELETE FROM t WHERE above = 1",
    )
    lander = new_lander(tmp_path)
    lander.land(source.new_binlogs())
    assert lander.look().given_up == []
    assert differences(source, tmp_path, set()) == []


# Foreign keys act on some rows of each transaction only, and on MySQL are logged where they do.
UNCHECKED = """
CREATE TABLE p (id INT PRIMARY KEY, v INT);
CREATE TABLE c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id)
  ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO p (id) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12);
INSERT INTO c SELECT id, id FROM p;
XA START 'mixed';
DELETE FROM p WHERE id = 1;
SET foreign_key_checks = 0;
DELETE FROM p WHERE id IN (2, 3);
SET foreign_key_checks = 1;
DELETE FROM p WHERE id = 4;
XA END 'mixed';
XA PREPARE 'mixed';
FLUSH BINARY LOGS;
XA COMMIT 'mixed';
--
REPLACE INTO p VALUES (5, 1);
XA START 'whole';
REPLACE INTO p VALUES (6, 1), (7, 1);
UPDATE p SET id = 20 WHERE id = 8;
XA END 'whole';
XA PREPARE 'whole';
XA COMMIT 'whole';
--
{compression};
BEGIN;
REPLACE INTO p VALUES (9, 1), (10, 1);
DELETE FROM p WHERE id = 20;
COMMIT;
XA START 'compressed';
REPLACE INTO p VALUES (11, 1);
SET foreign_key_checks = 0;
DELETE FROM p WHERE id = 12;
SET foreign_key_checks = 1;
XA END 'compressed';
XA PREPARE 'compressed';
XA COMMIT 'compressed'
"""


def test_rows_on_which_no_foreign_key_acts_unseen(source: Source, tmp_path: Path) -> None:
    is_mysql = isinstance(source.server.program, MysqlProgram)
    compression = (
        "SET binlog_transaction_compression = 1"
        if is_mysql
        else "SET GLOBAL log_bin_compress = 1, log_bin_compress_min_len = 10"
    )
    lander = new_lander(tmp_path)
    for part in UNCHECKED.format(compression=compression).split("--\n"):
        for statement in filter(None, map(str.strip, part.split(";"))):
            if statement.startswith("FLUSH"):  # a session whose transaction is prepared may not
                execute(source.server, statement)
            else:
                source.run(statement)
        lander.land(source.new_binlogs())
        assert lander.look().given_up == []
        assert differences(source, tmp_path, set()) == []


def test_why_a_table_was_given_up_stays_told(mariadb_server: PrivateServer, tmp_path: Path) -> None:
    source = Source(mariadb_server, "meaning")
    source.run(
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (pid INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE)",
        "INSERT INTO p VALUES (1), (2)",
        "INSERT INTO c VALUES (1)",
        "DELETE FROM p WHERE id = 1",
    )
    lander = new_lander(tmp_path)
    lander.land(source.new_binlogs())
    reason = "a foreign key changed its rows, and it has no primary key"
    assert lander.look().tables["meaning.c"].why_not == reason
    source.run("INSERT INTO p VALUES (3)")
    lander.land(source.new_binlogs())
    assert lander.look().tables["meaning.c"].why_not == reason
    source.close()


def _split(values: str) -> list[str]:
    """Values between commas outside of quotation marks and parentheses."""
    found, depth, quote = [""], 0, False
    for character in values:
        quote ^= character == "'"
        depth += (character == "(") - (character == ")")
        if character == "," and not quote and not depth:
            found.append("")
        else:
            found[-1] += character
    return found
