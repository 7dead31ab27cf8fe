"""Current tables beside the SELECT of both servers, after what no row of the log tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.service.server_programs import MysqlProgram
from tests.landed_select import Source, current_schema, current_values
from tests.log_batches import LogLander, land_all


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
]


@pytest.mark.parametrize("mode", ["", "TIME", "STRICT_TRANS_TABLES"])
def test_values_that_modify_converts_are_those_of_the_server(
    mode: str, source: Source, tmp_path: Path
) -> None:
    if mode == "TIME":
        is_mysql = isinstance(source.server.program, MysqlProgram)
        mode = "TIME_TRUNCATE_FRACTIONAL" if is_mysql else "TIME_ROUND_FRACTIONAL"
    cases = [(old, new, _split(values)) for old, new, values in FOLLOWED]
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


def _at(values: list[str], row: int) -> str:
    return values[min(row, len(values) - 1)]


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
