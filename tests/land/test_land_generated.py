"""Generated columns of landed tables beside the SELECT of the servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from binlane.live.provision.private_server import SOURCE_OPTIONS
from binlane.live.provision.server_programs import MysqlProgram
from binlane.tables.landing.range_work import Mode
from tests.landed import delta_rows
from tests.landed_select import Source, current_schema, current_values
from tests.log_batches import LogLander, new_lander
from tests.servers import ServerFactory, mariadb118_program

MODES = (Mode.CURRENT, Mode.CHANGES, Mode.HISTORY)


@pytest.fixture(params=["mariadb", "mysql", "mariadb118"])
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    """A database of its own on each of the servers."""
    if request.param == "mariadb118":
        program = mariadb118_program()
        if program is None:
            pytest.skip("BINLANE_MARIADB118 names no MariaDB 11.8")
        servers: ServerFactory = request.getfixturevalue("servers")
        made = Source(servers.start("m118", SOURCE_OPTIONS, program=program), "generated")
    else:
        made = Source(request.getfixturevalue(f"{request.param}_server"), "generated")
    yield made
    made.close()


def check(source: Source, lander: LogLander, into: Path) -> dict[str, tuple[str, ...]]:
    """Hold tables equal to the source's; the columns that they leave out."""
    source_tables = source.tables()
    report = lander.look()
    assert report.given_up == []
    for table in source_tables:
        path = into / "current" / source.database / table
        schema = current_schema(path)
        rows = source.rows(table, schema)
        assert current_values(path) == rows, table
        history = into / "history" / source.database / table
        if history.exists():
            versions = delta_rows(history)
            known = [name for name in schema.names if name in versions.column_names]
            held = versions.filter(versions["is_current"]).select(known).to_pylist()
            places = [schema.names.index(name) for name in known]
            expected = Counter(tuple(row[at] for at in places) for row in rows.elements())
            assert Counter(tuple(row.values()) for row in held) == expected, table
    names = {table: report.tables[f"{source.database}.{table}"].without for table in source_tables}
    return {table: without for table, without in names.items() if without}


TABLES = {
    "numbered": "id INT AUTO_INCREMENT PRIMARY KEY, a INT, g INT AS (id + 1) VIRTUAL",
    "above": "g INT AS (a + id) VIRTUAL, id INT AUTO_INCREMENT PRIMARY KEY, a INT",
    "shown": "id INT AUTO_INCREMENT PRIMARY KEY, a INT, g INT AS (a + 1) VIRTUAL, KEY (g)",
    "kept": "id INT AUTO_INCREMENT PRIMARY KEY, a INT, g INT AS (a + 1) STORED, KEY (g)",
    "twice": "id INT AUTO_INCREMENT PRIMARY KEY, a INT, f INT AS (a + 1), g INT AS (f * 2)",
    "triggered": "id INT AUTO_INCREMENT PRIMARY KEY, a INT, g INT AS (a + 1)",
    "keyless": "id INT AUTO_INCREMENT, a INT, g INT AS (a + id), KEY (id)",
    "defaulted": "id INT AUTO_INCREMENT PRIMARY KEY, a INT, d INT DEFAULT 7, g INT AS (d + 1)",
    "backwards": "id INT AUTO_INCREMENT PRIMARY KEY, a INT, g TEXT AS (REVERSE(a)) VIRTUAL,"
    " s VARCHAR(30) AS (REVERSE(a)) STORED",
}
CHANGES = """
INSERT INTO {t} (a) VALUES (1)
INSERT INTO {t} (a) VALUES (2), (3), (4)
INSERT INTO {t} (a) SELECT n + 100 FROM others
INSERT INTO {t} (id, a) VALUES (50, 50)
UPDATE {t} SET a = a + 1000 WHERE id = 1
UPDATE {t} SET id = 60 WHERE id = 2
DELETE FROM {t} WHERE id = 3
REPLACE INTO {t} (id, a) VALUES (50, 77)
INSERT INTO {t} (id, a) VALUES (50, 1) ON DUPLICATE KEY UPDATE a = 555
UPDATE {t} JOIN others SET {t}.a = {t}.a + 1 WHERE others.n = 1 AND {t}.id > 5
DELETE {t} FROM {t} JOIN others WHERE {t}.id = 60 AND others.n = 1
"""


def test_values_that_images_have_not(source: Source, tmp_path: Path) -> None:
    is_mysql = isinstance(source.server.program, MysqlProgram)
    source.run("CREATE TABLE others (n INT)", "INSERT INTO others VALUES (1), (2)")
    made = [
        name for name, text in TABLES.items() if source.try_run(f"CREATE TABLE {name} ({text})")
    ]
    assert len(made) == len(TABLES) - is_mysql * 3  # which has none over an AUTO_INCREMENT
    for moment in ("INSERT", "UPDATE"):
        source.run(
            f"CREATE TRIGGER on_{moment} BEFORE {moment} ON triggered FOR EACH ROW"
            " SET NEW.a = NEW.a * 3"
        )
    lander = new_lander(tmp_path, modes=MODES)
    changes = CHANGES.strip().splitlines()
    for part in (changes[:6], changes[6:]):
        for change in part:
            source.run(*(change.format(t=table) for table in made))
        lander.land(source.new_binlogs())
        left_out = check(source, lander, tmp_path)
    untold = ("g", "s") if "m118" in source.server.name else ("g",)
    assert left_out == ({} if is_mysql else {"backwards": untold})
    # What the images of changes have not is computed there, too.
    rows = delta_rows(tmp_path / "changes" / source.database / "shown").to_pylist()
    assert all(row["g"] == row["a"] + 1 for row in rows)


STORY = """
CREATE TABLE t (id INT PRIMARY KEY, a SMALLINT, b INT, j JSON)
INSERT INTO t VALUES (1, 100, 7, '{"k": "x"}'), (2, 200, 8, '{"k": "y"}'), (3, NULL, 9, NULL)
ALTER TABLE t ADD g INT AS (a + b) VIRTUAL
INSERT INTO t (id, a, b) VALUES (4, 5, 6)
ALTER TABLE t ADD s INT AS (a * 2) STORED AFTER id, ADD c INT DEFAULT 5, ADD h INT AS (c + b) FIRST
UPDATE t SET a = a + 1
ALTER TABLE t MODIFY g BIGINT AS (a + b + 1) VIRTUAL AFTER id
ALTER TABLE t MODIFY s BIGINT AS (a * 3) STORED
DELETE FROM t WHERE id = 2
ALTER TABLE t MODIFY a INT COMMENT 'wider'
ALTER TABLE t MODIFY a TINYINT
ALTER TABLE t ADD k VARCHAR(9) AS (JSON_UNQUOTE(JSON_EXTRACT(j, '$.k'))) STORED
INSERT INTO t (id, j) VALUES (20, '{"k": "new"}')
UPDATE t SET j = '{"k": "upd"}' WHERE id = 1
ALTER TABLE t MODIFY s BIGINT
ALTER TABLE t DROP COLUMN g
UPDATE t SET b = b + 1
CREATE TABLE l LIKE t
INSERT INTO l (id, j) VALUES (1, '{"k": "l"}')
INSERT INTO l (id, b) VALUES (2, 5)
CREATE TABLE p (id INT PRIMARY KEY, v INT)
CREATE TABLE c (id INT PRIMARY KEY, p INT, g INT AS (p * 10), FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE)
INSERT INTO p VALUES (1, 1), (2, 2)
INSERT INTO c (id, p) VALUES (1, 1), (2, 2)
UPDATE p SET id = 12 WHERE id = 2
DELETE FROM p WHERE id = 1
"""
RENAMES = """
CREATE TABLE r (id INT PRIMARY KEY, a INT, b INT, g INT AS (a - b) VIRTUAL, s INT AS (a + 1) STORED)
INSERT INTO r (id, a, b) VALUES (1, 10, 3)
ALTER TABLE r RENAME COLUMN a TO b, RENAME COLUMN b TO a
INSERT INTO r (id, a, b) VALUES (2, 10, 3)
ALTER TABLE r CHANGE a `c d` BIGINT, ADD t INT AS (b + 2)
UPDATE r SET `c d` = 5
"""


@pytest.mark.parametrize("batches", [1, 100])
def test_generated_columns_that_statements_make_and_change(
    batches: int, source: Source, tmp_path: Path
) -> None:
    is_mysql = isinstance(source.server.program, MysqlProgram)
    source.run("SET sql_mode = ''")
    lander = new_lander(tmp_path, modes=MODES)
    statements = STORY.strip().splitlines()
    if not is_mysql:  # which renames no column that another is generated from
        statements += RENAMES.strip().splitlines()
    for number, statement in enumerate(statements, 1):
        source.run(statement)
        if number % max(1, len(statements) // batches) == 0 or number == len(statements):
            lander.land(source.new_binlogs())
            left_out = check(source, lander, tmp_path)
    assert left_out in ({"t": ("k",)}, {"t": ("k",), "l": ("k",)})
    # It comes back with all rows.
    source.run("TRUNCATE t", 'INSERT INTO t (id, j) VALUES (1, \'{"k": "again"}\')')
    lander.land(source.new_binlogs())
    check(source, lander, tmp_path)
    assert "k" in current_schema(tmp_path / "current" / source.database / "t").names


COLUMNS = (
    "id INT PRIMARY KEY, i INT, n INT NOT NULL, s SMALLINT, u BIGINT UNSIGNED, b BIGINT,"
    " d DECIMAL(12,3), e DECIMAL(9,2) NOT NULL, f DOUBLE, t VARCHAR(30), c CHAR(10),"
    " l VARCHAR(20) CHARACTER SET latin1, x TEXT, a DATE NOT NULL, h DATETIME(6) NOT NULL"
)
# All that is computed, by type of the column.
COMPUTED = {
    "BIGINT": "i + n; i - n * 2; -i; i DIV n; i % 7; MOD(b, 1000); ABS(i); FLOOR(d); CEIL(d);"
    " CEILING(e); ROUND(d); ROUND(i); GREATEST(i, n, 5); LEAST(i, n); IFNULL(i, -1); 1 + i * 2 - 3;"
    " i + TRUE; i * -2; d * 10; DATEDIFF(a, h); i IS NULL AND s IS NOT NULL; NOT (i > 5); i <=> s;"
    " i > n; i = n OR s <= 3; i BETWEEN 1 AND s; i IN (1, 2, 3); i NOT IN (1, s); d > e; d = 1.5;"
    " i XOR s; (i > 3) IS TRUE; (i > 3) IS FALSE; u > i; f > 0e0; IF(i > 3, n, s); NULLIF(i, 3);"
    " CASE WHEN i > 10 THEN 1 WHEN s IS NULL THEN NULL ELSE 3 END; CHAR_LENGTH(t); LENGTH(t);"
    " CHAR_LENGTH(l); YEAR(a); MONTH(h); DAY(a); DAYOFMONTH(h); QUARTER(a); DAYOFYEAR(a);"
    " WEEKDAY(a); DAYOFWEEK(h); HOUR(h); MINUTE(h); SECOND(h); a > DATE(h); NULL; i > 3 AND NULL",
    "TINYINT": "i * 5; d",
    "BIGINT UNSIGNED": "u + 1; i",
    "DECIMAL(20,3)": "d * e; d * e + i; d - e; ABS(d); GREATEST(d, e); COALESCE(d, e, 0);"
    " IF(i > 2, d, 7); 1.005 * i; -d",
    "DECIMAL(4,1)": "d; i",
    "DOUBLE": "f + i; f * f - 1; f * 2.5e0; d; i; IF(i > 3, f, NULL)",
    "VARCHAR(90)": "CONCAT(t, '-', i); CONCAT(t, l); CONCAT_WS(', ', t, i); CONCAT(d, '/', e);"
    " CONCAT(u, '|', b); CONCAT(t, 'é'); UPPER(t); LOWER(t); UCASE(l); LCASE(t); LEFT(t, 3);"
    " RIGHT(t, 3); SUBSTRING(t, 2); SUBSTR(t, 2, 3); SUBSTRING(t, -3); SUBSTRING(t, -3, 2);"
    " MID(t, 3, 30); TRIM(t); LTRIM(t); RTRIM(t); i; u; d; t; l; IFNULL(t, '?');"
    " CASE i WHEN 1 THEN 'one' WHEN 2 THEN 'two' END; CONCAT(x, t)",
    "VARCHAR(3)": "t; i; CONCAT(t, i)",
    "CHAR(9)": "t; i",
    "DATE": "DATE(h); a",
    "DATETIME(6)": "h; a",
}
MARIADB_COMPUTED = {"VARCHAR(90)": "SHA1(t); MD5(x)"}


def test_each_expression_that_is_computed(source: Source, tmp_path: Path) -> None:
    is_mysql = isinstance(source.server.program, MysqlProgram)
    random = Random(9)
    source.run("SET sql_mode = ''", f"CREATE TABLE r ({COLUMNS})")
    rows = [_row(number, random) for number in range(60)]
    source.run(f"INSERT IGNORE INTO r VALUES {', '.join(rows[:40])}")
    more = [] if is_mysql else MARIADB_COMPUTED.items()
    cases = [
        f"{kind} AS ({text.strip()})"
        for kind, texts in [*COMPUTED.items(), *more]
        for text in texts.split(";")
    ]
    for kind in ("STORED", "VIRTUAL"):
        added = ", ".join(f"ADD {kind[0]}{at} {case} {kind}" for at, case in enumerate(cases))
        source.run(f"ALTER TABLE r {added}")
    names = ", ".join(column.split()[0] for column in COLUMNS.split(", "))
    source.run(f"INSERT IGNORE INTO r ({names}) VALUES {', '.join(rows[40:])}")
    source.run("UPDATE r SET i = i + 1, t = CONCAT(IFNULL(t, ''), 'z') WHERE id % 3 = 0")
    lander = new_lander(tmp_path)
    lander.land(source.new_binlogs())
    assert check(source, lander, tmp_path) == {}


def _row(number: int, random: Random) -> str:
    def some(*values: object) -> str:
        return str(random.choice([*values, "NULL"]))

    def letters(most: int, of: str = "abcXYZ  09éÉüßñÑ") -> str:
        return "'" + "".join(random.choices(of, k=random.randrange(most))) + "'"

    day = (
        f"{random.randrange(1970, 2030)}-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}"
    )
    time = f"{random.randrange(24):02}:{random.randrange(60):02}:{random.randrange(60):02}"
    values = [
        number,
        some(random.randrange(-50, 50), random.randrange(10)),
        random.choice([-7, -1, 1, 2, 3, 19]),
        some(random.randrange(-9, 9)),
        some(random.randrange(100), 2**64 - 5),
        some(random.randrange(10**6), -(2**62), 2**62),
        some("1.5", "-0.005", "999999999.999", "-2.500", "0.500", random.randrange(10**6) / 1000),
        random.choice(["1.50", "-3.25", "0", "99999.99"]),
        some("1.5", "-0.1", "1e10", "0.3", "123456.789"),
        some(letters(12)),
        some(letters(8)),
        some(letters(8, "abcZéÉßñ ")),
        some(letters(40)),
        f"'{day}'",
        f"'{day} {time}.{random.randrange(10**6):06}'",
    ]
    return f"({', '.join(map(str, values))})"
