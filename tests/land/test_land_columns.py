"""Columns of every type come, go, move and change, in tables of every kind and format.

Readers of the formats that are not ours find what the servers' SELECT says, or the table is given up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from binlane.live.provision.server_programs import MysqlProgram
from binlane.names import TableName
from binlane.tables.columnar.unify import cast_exactly
from binlane.tables.landing.landing import land
from binlane.tables.landing.landing_progress import LandingReport
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.range_work import FormatName, Mode
from tests.landed import plain_rows
from tests.landed_select import Row, Source, landed_value

# A type, and two of its values.
TYPES = [
    ("TINYINT", "-5", "7"),
    ("TINYINT UNSIGNED", "200", "3"),
    ("SMALLINT UNSIGNED", "60000", "3"),
    ("MEDIUMINT", "-70000", "7"),
    ("INT UNSIGNED", "4000000000", "3"),
    ("BIGINT", "-5000000000", "9"),
    ("BIGINT UNSIGNED", "18446744073709551615", "3"),
    ("DATE", "'2020-01-02'", "'1999-12-31'"),
    ("FLOAT", "1.5", "-0.25"),
    ("DATETIME(6)", "'2020-01-02 03:04:05.123456'", "'1999-12-31 00:00:00.5'"),
    ("DOUBLE", "1.25", "-3"),
    ("BLOB", "x'ff00'", "'abc'"),
    ("YEAR", "1999", "2024"),
    ("TIMESTAMP(3)", "'2020-01-02 03:04:05.123'", "'1999-12-31 00:00:00.5'"),
    ("TIME(2)", "'10:00:00.25'", "'-01:00:00'"),
    ("ENUM('a','b')", "'b'", "'a'"),
    ("BIT(5)", "b'101'", "b'1'"),
    ("SET('a','b')", "'a,b'", "''"),
    ("BINARY(3)", "x'ff0001'", "'ab'"),
    ("JSON", "'[1, 2]'", "'{\"a\": 1}'"),
    ("DECIMAL(10,2)", "1.25", "-3.5"),
    ("GEOMETRY", "point(1, 2)", "point(3, 4)"),
    ("BIT(64)", "18446744073709551615", "1"),
    ("DECIMAL(38,0)", "12345678901234567890123456789012345678", "2"),
    ("CHAR(5)", "'ab'", "'ä'"),
    ("DECIMAL(60,2)", "1234567890123456789012345678901234567890.25", "2"),
    ("VARBINARY(20)", "x'ff00'", "'abc'"),
    ("VARCHAR(20)", "'abc'", "'xäy'"),
    ("DATETIME", "'2020-01-02 03:04:05'", "'1999-12-31 00:00:00'"),
    ("TEXT", "'long ä'", "'7'"),
]
MARIADB_TYPES = [
    ("UUID", "'123e4567-e89b-12d3-a456-426655440000'", "'123e4567-e89b-12d3-a456-426655440001'"),
    ("INET4", "'1.2.3.4'", "'4.3.2.1'"),
    ("INET6", "'::1'", "'1::2'"),
    ("VARCHAR(50) COMPRESSED", "'abc'", "'def'"),
]
MYSQL_TYPES = [("VECTOR(2)", "string_to_vector('[1,2]')", "string_to_vector('[3,4]')")]
# Definitions of columns that come to rows, of which the servers tell what these get.
DEFAULTS = [
    *("INT NOT NULL DEFAULT '1.5'", "INT DEFAULT 1.5", "INT DEFAULT ' 7'", "INT DEFAULT 1e2"),
    *("TINYINT DEFAULT TRUE", "BOOLEAN NOT NULL DEFAULT '1'", "INT ZEROFILL DEFAULT 5"),
    *("BIGINT UNSIGNED DEFAULT 18446744073709551615", "INT UNSIGNED NOT NULL", "INT DEFAULT -1.5"),
    *("DECIMAL(10,2) DEFAULT 1.015", "DECIMAL(10,2) DEFAULT '.5'", "DECIMAL(10,2) DEFAULT 1e3"),
    *("DECIMAL(60,2) DEFAULT 7", "DECIMAL(60,2) DEFAULT '1.005'", "DECIMAL(60,2) NOT NULL"),
    *("FLOAT DEFAULT '0.1'", "DOUBLE DEFAULT '1e3'", "DOUBLE DEFAULT .1", "FLOAT NOT NULL"),
    *("YEAR DEFAULT 2001", "YEAR DEFAULT '2001'", "YEAR DEFAULT 0", "YEAR NOT NULL"),
    *("DATE DEFAULT '2020-01-02'", "DATETIME DEFAULT '2020-01-02'", "DATE NOT NULL"),
    *("DATETIME DEFAULT '2020-01-02 03:04:05.6'", "DATETIME(1) DEFAULT '2020-01-02 03:04:05.67'"),
    *("DATETIME DEFAULT '0000-00-00 00:00:00'", "TIMESTAMP DEFAULT CURRENT_TIMESTAMP"),
    *("TIME NOT NULL", "TIME(3) NOT NULL", "TIMESTAMP(3) NULL DEFAULT NULL"),
    *("ENUM('a','b') DEFAULT 'B'", "ENUM('a','b') DEFAULT 'b '", "ENUM('a ','b') NOT NULL"),
    *("ENUM('ä','b') DEFAULT 'Ä'", "SET('a','b') DEFAULT 'b,a'", "SET('a','b') NOT NULL"),
    *("BIT(5) DEFAULT 5", "BIT(64) DEFAULT 18446744073709551615", "BIT(5) NOT NULL"),
    *("CHAR(5) DEFAULT 'ab '", "NCHAR(5) DEFAULT 'x '", "VARCHAR(5) DEFAULT 'ab '"),
    *("VARCHAR(5) DEFAULT 1.50", "VARCHAR(5) DEFAULT -5", "VARCHAR(9) DEFAULT 007"),
    *("VARCHAR(5) CHARACTER SET latin1 DEFAULT 'ä'", "TEXT NOT NULL", "VARCHAR(9) DEFAULT TRUE"),
    *("BINARY(3) DEFAULT 'ab'", "BINARY(3) NOT NULL", "BINARY NOT NULL", "BLOB NOT NULL"),
    *("VARBINARY(5) DEFAULT 'ab '", "VARBINARY(5) DEFAULT 12", "JSON NOT NULL"),
]
MARIADB_DEFAULTS = [
    *(
        "UUID NOT NULL",
        "INET4 NOT NULL",
        "INET6 NOT NULL",
        "TEXT DEFAULT 'x '",
        "JSON DEFAULT '{}'",
    ),
]
# What the log does not tell.
UNTOLD = [
    *("INT DEFAULT (1 + 1)", "DATETIME DEFAULT CURRENT_TIMESTAMP", "YEAR DEFAULT 99"),
    *("TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3)", "FLOAT(7,2) DEFAULT 1.239", "YEAR DEFAULT '0'"),
    *("TIMESTAMP NULL DEFAULT '2020-01-02 03:04:05'", "DATE DEFAULT '20200102'"),
    *("VARCHAR(20) DEFAULT 1e5", "VARBINARY(5) DEFAULT 'ä'", "BIT(8) DEFAULT '5'"),
]


@pytest.fixture(params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    """A database of its own on each of the two servers."""
    made = Source(request.getfixturevalue(f"{request.param}_server"), "columns")
    made.run("SET sql_mode = ''")
    yield made
    made.close()


def is_mysql(source: Source) -> bool:
    return isinstance(source.server.program, MysqlProgram)


def types_of(source: Source) -> list[tuple[str, str, str]]:
    return [*TYPES, *(MYSQL_TYPES if is_mysql(source) else MARIADB_TYPES)]


def story_of(types: list[tuple[str, str, str]]) -> list[str]:
    """What happens to a table with columns of some types, with rows before and behind each statement."""
    numbers = range(len(types))
    kinds = [kind for kind, _, _ in types]
    # No value stands for none.
    told = [n for n in numbers if kinds[n] not in {"VECTOR(2)", "GEOMETRY", "JSON"}]

    def alter(form: str, which: range | list[int] = numbers, turn: int = 0) -> str:
        actions = [form.format(n=n, kind=kinds[(n + turn) % len(kinds)]) for n in which]
        return f"ALTER TABLE t {', '.join(actions)}"

    def insert(key: int, prefix: str, turn: int = 0) -> str:
        names = ", ".join(f"{prefix}{n}" for n in told)
        values = ", ".join(types[(n + turn) % len(types)][1 + key % 2] for n in told)
        return f"INSERT INTO t (id, {names}) VALUES ({key}, {values})"

    return [
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1), (9)",
        alter("ADD v{n} {kind} NULL"),
        insert(2, "v"),
        "UPDATE t SET " + ", ".join(f"v{n} = {types[n][2]}" for n in numbers) + " WHERE id = 1",
        alter("ADD n{n} {kind} NOT NULL FIRST", told),
        insert(3, "n"),
        alter("MODIFY v{n} {kind} NULL AFTER id"),
        insert(4, "v"),
        alter("CHANGE v{n} u{n} {kind} NULL FIRST"),
        insert(5, "u"),
        alter("CHANGE u{n} U{n} {kind} NULL"),
        insert(6, "U"),
        alter("DROP U{n}, ADD u{n} {kind} NULL", turn=1),
        insert(7, "u", turn=1),
        alter("DROP u{n}"),
        insert(8, "n"),
        alter("ADD v{n} {kind} NULL AFTER id", turn=7),
        insert(10, "v", turn=7),
        alter("RENAME COLUMN v{n} TO w{n}, RENAME COLUMN n{n} TO v{n}", [0, 1]),
        "INSERT INTO t (id) VALUES (11)",
        "DELETE FROM t WHERE id = 9",
    ]


def run(source: Source, statements: list[str], folder: Path) -> list[str]:
    """Run statements; the files of their log."""
    source.run(*statements)
    for name, data in source.binlogs():
        (folder / name).write_bytes(data)
    return sorted(str(path) for path in folder.iterdir())


def landed(
    files: list[str], into: Path, table_format: FormatName, *, batch_bytes: int
) -> LandingReport:
    settings = LandingSettings(
        modes=frozenset(Mode), format=table_format, tables="columns", batch_bytes=batch_bytes
    )
    return land(files, str(into), settings)


def check(source: Source, into: Path, table_format: FormatName, table: str = "t") -> None:
    """That a table of each kind says what the source does."""
    name = TableName(source.database, table)
    current = plain_rows(into, table_format, Mode.CURRENT, name)
    own = pa.schema([field for field in current.schema if not field.name.startswith("_")])
    assert own.names == source.columns(table)
    there = source.rows(table, own)
    assert rows(current, own.names) == there
    history = plain_rows(into, table_format, Mode.HISTORY, name)
    assert rows(history.filter(history.column("is_current")), own.names) == there
    changes = plain_rows(into, table_format, Mode.CHANGES, name).sort_by("_seq")
    names = {each.lower(): each for each in changes.column_names}
    assert len(names) == len(changes.column_names)
    (last,) = changes.filter(pc.equal(changes.column("_op"), pa.scalar("insert")))[-1:].to_pylist()
    (row,) = (row for row in there if row[own.names.index("id")] == last["id"])
    for field, value in zip(own, row, strict=True):
        kind = changes.schema.field(names[field.name.lower()]).type
        if not pa.types.is_float32(kind):
            expected = cast_exactly(pa.array([value], field.type), kind)[0].as_py()
            assert last[names[field.name.lower()]] == expected


def rows(table: pa.Table, names: list[str]) -> Counter[Row]:
    found = table.select(names)
    return Counter(
        tuple(landed_value(row[each.name], each.type) for each in found.schema)
        for row in found.to_pylist()
    )


# A server's types are the same in all formats, and formats are the same of all servers.
CASES = [
    *(
        ("mariadb", table_format, at_once)
        for table_format in FormatName
        for at_once in (True, False)
    ),
    *(("mysql", FormatName.DELTA, at_once) for at_once in (True, False)),
]


@pytest.mark.parametrize(("source", "table_format", "at_once"), CASES, indirect=["source"])
def test_columns_of_every_type_come_move_and_go(
    source: Source,
    table_format: FormatName,
    at_once: bool,  # noqa: FBT001 - of the case
    tmp_path: Path,
) -> None:
    (tmp_path / "log").mkdir()
    types = types_of(source)
    if (
        table_format is FormatName.ICEBERG
    ):  # each commit of which costs a tenth of a second and more
        types = types[::5]
    files = run(source, story_of(types), tmp_path / "log")
    size = 1 << 28 if at_once else 1  # else group by group
    report = landed(files, tmp_path / "lake", table_format, batch_bytes=size)
    told = report.tables["columns.t"]
    assert (told.why_not, told.no_history, told.gap) == ("", "", "")
    check(source, tmp_path / "lake", table_format)


def test_every_type_comes_to_a_table_without_it(source: Source, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    types = types_of(source)
    statements = []
    for number, (kind, first, _) in enumerate(types):
        statements += [
            f"CREATE TABLE t{number} (id INT PRIMARY KEY)",
            f"INSERT INTO t{number} VALUES (1)",
            f"ALTER TABLE t{number} ADD v {kind} NULL",
            f"INSERT INTO t{number} VALUES (2, {first})",
        ]
    statements += [
        "CREATE TABLE m (id INT PRIMARY KEY, v DATE, w TINYINT)",
        "INSERT INTO m VALUES (1, '2020-01-02', NULL)",
        "ALTER TABLE m MODIFY v DATETIME, MODIFY w BIGINT UNSIGNED",
        "INSERT INTO m VALUES (2, '2020-01-02 03:04:05', 18446744073709551615)",
    ]
    files = run(source, statements, tmp_path / "log")
    report = landed(files, tmp_path / "lake", FormatName.DELTA, batch_bytes=1 << 28)
    assert report.given_up == ()
    for table in ["m", *(f"t{number}" for number in range(len(types)))]:
        check(source, tmp_path / "lake", FormatName.DELTA, table)


def test_rows_that_are_there_get_defaults_as_the_server_stores_them(
    source: Source, tmp_path: Path
) -> None:
    (tmp_path / "log").mkdir()
    defaults = [*DEFAULTS, *([] if is_mysql(source) else MARIADB_DEFAULTS)]
    actions = ", ".join(f"ADD v{number} {text}" for number, text in enumerate(defaults))
    statements = [
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1)",
        f"ALTER TABLE t {actions}",
    ]
    for number, text in enumerate(UNTOLD):
        statements += [
            f"CREATE TABLE u{number} (id INT PRIMARY KEY)",
            f"INSERT INTO u{number} VALUES (1)",
            f"ALTER TABLE u{number} ADD v {text}",
        ]
    files = run(source, statements, tmp_path / "log")
    report = landed(files, tmp_path / "lake", FormatName.PARQUET, batch_bytes=1 << 28)
    assert list(report.given_up) == sorted(f"columns.u{n}" for n in range(len(UNTOLD)))
    current = plain_rows(
        tmp_path / "lake", FormatName.PARQUET, Mode.CURRENT, TableName("columns", "t")
    )
    own = pa.schema([field for field in current.schema if not field.name.startswith("_")])
    there = source.rows("t", own)
    found = rows(current, own.names)
    differing = [
        (text, expected, value)
        for text, expected, value in zip(
            ["id", *defaults], next(iter(there)), next(iter(found)), strict=True
        )
        if expected != value
    ]
    assert differing == []
