"""What no fixture has: other versions, names with line ends, values that lose digits."""

from __future__ import annotations

from dataclasses import replace
from struct import pack
from typing import Any

import pytest

from binlane.binlogs.cat.text.row_text import extra_lines, row_lines
from binlane.binlogs.cat.text.table_text import table_lines
from binlane.binlogs.cat.text.text_lines import TextLines
from binlane.binlogs.cat.text.text_options import TextOptions
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent, UpdateRowsEvent, WriteRowsEvent, WriteRowsV1Event
from binlane.log.codec.status_vars import StatusVar, encode_status_vars
from binlane.log.codec.types import ColumnType, EventType, Flavor
from binlane.log.codec.variables import UserVarEvent, UserVarType
from binlane.log.grouping.walk import walk
from tests.fixture_sets import fixture_set


def first_event(name: str, version: str | None = None) -> Event:
    file, data = fixture_set(name).binlogs[0]
    event = next(walk([data], file=file))
    assert isinstance(event.body, FormatDescriptionEvent)
    if version is None:
        return event
    field = version.encode().ljust(50, b"\0")
    return replace(event, body=replace(event.body, server_version_field=field))


def text_of(first: Event, type_code: int, body: Any) -> list[str]:
    header = replace(first.header, type_code=type_code, flags=0)
    renderer = TextLines(TextOptions())
    events = [first, replace(first, header=header, body=body)]
    if type_code == EventType.USER_VAR:
        # In MySQL it is printed with its statement.
        statement = replace(header, type_code=EventType.QUERY)
        events.append(replace(first, header=statement, body=query()))
    texts = [line for event in events for line in renderer.lines(event, file="binlog.000001")]
    return "\n".join(texts).split("\n")


def query(*variables: StatusVar, text: bytes = b"SELECT 1") -> QueryEvent:
    return QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=0,
        status_vars=encode_status_vars(variables),
        database=b"",
        query=text,
    )


@pytest.mark.parametrize(
    ("version", "has_exists", "has_defaults"),
    [
        ("5.5.68-MariaDB", False, False),
        ("10.0.38-MariaDB", False, False),
        ("10.5.1-MariaDB", False, False),
        ("10.5.16-MariaDB", True, False),
        ("10.5.17-MariaDB", True, True),
        ("10.6.8-MariaDB", True, False),
        ("10.6.9-MariaDB", True, True),
        ("10.10.1-MariaDB", True, True),
        ("11.8.1-MariaDB", True, True),
    ],
)
def test_older_servers_logged_fewer_switches(
    version: str, *, has_exists: bool, has_defaults: bool
) -> None:
    first = first_event("md1011_txn", version)
    lines = text_of(first, EventType.QUERY, query(StatusVar(0, "FLAGS2", 0)))
    (switches,) = (line for line in lines if "@@session.foreign_key_checks=1" in line)
    assert ("sql_if_exists" in switches) is has_exists
    assert ("explicit_defaults_for_timestamp" in switches) is has_defaults
    assert "check_constraint_checks=1" in switches


def test_rows_of_history_that_may_be_inserted_are_told_as_the_tool_does() -> None:
    """Measured: mariadb-binlog of 10.11.19, of a statement of that server."""
    first = first_event("md1011_txn", "10.11.19-MariaDB")
    lines = text_of(first, EventType.QUERY, query(StatusVar(0, "FLAGS2", 1 << 30)))
    (switches,) = (line for line in lines if "@@session.foreign_key_checks=1" in line)
    assert "@@session.system_versioning_insert_history=1" in switches


SOURCE = "00000000-0000-0000-0000-000000000007"
GTID = MysqlGtidEvent(flags=1, source_id=SOURCE, sequence=3)
LATER = replace(GTID, timestamp_type=2, last_committed=3, sequence_number=4)
TIMED = replace(LATER, immediate_commit_timestamp=1600000000123456, transaction_length=200)


@pytest.mark.parametrize(
    ("body", "facts", "version"),
    [
        (GTID, "last_committed=0\tsequence_number=0", 0),
        (LATER, "last_committed=3\tsequence_number=4", 0),
        (TIMED, "original_committed_timestamp=1600000000123456", 999999),
        (replace(TIMED, immediate_server_version=80018), "transaction_length=200", 80018),
    ],
)
def test_gtids_of_older_servers(body: MysqlGtidEvent, facts: str, version: int) -> None:
    lines = text_of(first_event("my97_txn"), EventType.GTID_LOG, body)
    assert any(facts in line for line in lines)
    assert f"/*!80014 SET @@session.original_server_version={version}*//*!*/;" in lines
    assert f"SET @@SESSION.GTID_NEXT= '{SOURCE}:3'/*!*/;" in lines


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5"), (1e300, "1e+300"), (1.1234567890123456, "1.1234567890123457e0")],
)
def test_doubles_keep_their_digits(value: float, text: str) -> None:
    body = UserVarEvent(
        name=b"r", is_null=0, type_code=UserVarType.REAL, collation_id=8, value=pack("<d", value)
    )
    lines = text_of(first_event("md1011_txn"), EventType.USER_VAR, body)
    assert f"SET @`r`:={text}/*!*/;" in lines


@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
def test_empty_strings(name: str) -> None:
    body = UserVarEvent(name=b"`", is_null=0, type_code=UserVarType.STRING, collation_id=8)
    lines = text_of(first_event(name), EventType.USER_VAR, body)
    assert 'SET @````:=_latin1 "" COLLATE `latin1_swedish_ci`/*!*/;' in lines


def test_a_time_zone_cannot_end_its_string() -> None:
    zone = StatusVar(5, "TIME_ZONE", "x'; DROP TABLE t")
    lines = text_of(first_event("md1011_txn"), EventType.QUERY, query(zone))
    assert "SET @@session.time_zone='x''; DROP TABLE t'/*!*/;" in lines


TABLE = TableMapEvent(
    table_id=7,
    flags=0,
    database="d\nDROP",
    table="t\nTABLE t;",
    column_types=bytes((ColumnType.LONG,)),
    metadata=b"",
    null_bits=b"\1",
    # A name: one column's, with a line end.
    optional_metadata=b"\x04\x04\x03a\nb",
)
ROWS = WriteRowsV1Event(
    table_id=7,
    flags=1,
    extra=None,
    column_count=1,
    columns_present=b"\1",
    columns_present_after=None,
    images=b"\0\5\0\0\0",
)


@pytest.mark.parametrize("flavor", Flavor)
def test_names_with_line_ends_stay_in_their_comments(flavor: Flavor) -> None:
    rows = list(row_lines(ROWS, TABLE, flavor=flavor, with_types=False))
    assert rows == ["### INSERT INTO `d\\nDROP`.`t\\nTABLE t;`\n### SET\n###   @1=5"]
    assert table_lines(TABLE, flavor) == ("# Columns(`a\\nb` INT)",)
    name = {Flavor.MARIADB: "md1011_txn", Flavor.MYSQL: "my97_txn"}[flavor]
    lines = text_of(first_event(name), EventType.TABLE_MAP, TABLE)
    assert all(line.startswith("#") for line in lines[lines.index("'/*!*/;") + 1 :])


def test_a_name_of_mariadb_has_the_escapes_of_a_string() -> None:
    table = replace(TABLE, optional_metadata=b"\x04\x06\x05a'\\`b")
    assert table_lines(table, Flavor.MARIADB) == ("# Columns(`a\\'\\\\`b` INT)",)
    assert table_lines(table, Flavor.MYSQL) == ("# Columns(`a'\\``b` INT)",)


def test_an_insert_without_values() -> None:
    body = replace(ROWS, images=b"")
    rows = list(row_lines(body, TABLE, flavor=Flavor.MARIADB, with_types=True))
    assert rows == ["### INSERT INTO `d\\nDROP`.`t\\nTABLE t;` VALUES ()"]


@pytest.mark.parametrize(
    ("kind", "extra", "line"),
    [
        (WriteRowsEvent, b"", None),
        (WriteRowsEvent, b"\1\3\0", "### Extra row info for partitioning: partition: 3"),
        (
            UpdateRowsEvent,
            b"\1\3\0\2\0",
            "### Extra row info for partitioning: source_partition: 2 target_partition: 3",
        ),
        (
            WriteRowsEvent,
            b"\0\4\1\xab\xcd",
            "### Extra row ndb info: data_format: 1, len: 2 :0xABCD",
        ),
    ],
)
def test_what_mysql_tells_of_all_rows(
    kind: type[WriteRowsEvent], extra: bytes, line: str | None
) -> None:
    body = kind(
        table_id=7,
        flags=1,
        extra=extra,
        column_count=1,
        columns_present=b"\1",
        columns_present_after=b"\1",
        images=b"",
    )
    assert list(extra_lines(body)) == ([] if line is None else [line])
