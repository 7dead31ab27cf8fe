from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.binlogs.cat.sql.sql_lines import SqlLines
from binlane.errors import UnsupportedError
from binlane.log.codec.body import Body
from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.event import Event
from binlane.log.codec.registry import OpaqueEvent
from binlane.log.codec.rows import DeleteRowsV1Event, UpdateRowsV1Event
from binlane.log.codec.status_vars import StatusVar, encode_status_vars
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ColumnType, RowsFlag
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.statements.sql.logged_objects import LoggedObjects
from tests import build
from tests.fixture_sets import fixture_set
from tests.pairs import ONE, TABLE, TWO, XID, catalog, gtid, query


def printed(*bodies: Event | Body, names: LoggedObjects | None = None) -> list[str]:
    """The statements of a log, without head and comments."""
    renderer = SqlLines(catalog=names or catalog())
    lines = [
        line
        for event in walk([build.log(*bodies)], file="binlog.000001")
        for line in renderer.lines(event, file="binlog.000001")
    ]
    return [line for line in [*lines, *renderer.finish()] if not line.startswith("--")]


def test_one_statement_a_row_inside_its_transaction() -> None:
    lines = printed(
        *(gtid(1), TABLE, build.rows(2, ONE), TABLE),
        *(build.rows(2, ONE + TWO, kind=UpdateRowsV1Event), TABLE),
        *(build.rows(2, TWO, kind=DeleteRowsV1Event), XID),
    )
    assert [line for line in lines if not line.startswith("SET")] == [
        "BEGIN;",
        "INSERT INTO `shop`.`t` (`id`, `n`) VALUES (1, 10);",
        "UPDATE `shop`.`t` SET `id` = 2, `n` = 20 WHERE `id` <=> 1 AND `n` <=> 10 LIMIT 1;",
        "DELETE FROM `shop`.`t` WHERE `id` <=> 2 AND `n` <=> 20 LIMIT 1;",
        "COMMIT;",
    ]


def test_what_rows_need_is_set_once() -> None:
    lines = printed(gtid(1), TABLE, build.rows(2, ONE), TABLE, build.rows(2, TWO), XID)
    (setting,) = [line for line in lines if line.startswith("SET")]
    for part in ("time_zone = '+00:00'", "NO_AUTO_VALUE_ON_ZERO", "timestamp = 1700000000"):
        assert part in setting


def test_checks_are_those_of_the_session() -> None:
    rows = build.rows(2, ONE)
    unchecked = replace(rows, flags=rows.flags | RowsFlag.NO_FOREIGN_KEY_CHECKS)
    lines = printed(gtid(1), TABLE, unchecked, TABLE, rows, XID)
    settings = [line for line in lines if line.startswith("SET")]
    assert "foreign_key_checks = 0" in settings[0]
    assert settings[1] == "SET foreign_key_checks = 1;"


def test_the_primary_key_finds_a_row_where_the_log_tells_it() -> None:
    names = b"\x04\x05\x02id\x01n"
    table = build.table_map(
        ColumnType.LONG, ColumnType.LONG, optional_metadata=names + b"\x08\x01\x00"
    )
    lines = printed(gtid(1), table, build.rows(2, ONE, kind=DeleteRowsV1Event), XID)
    assert "DELETE FROM `shop`.`t` WHERE `id` = 1;" in lines


def test_generated_columns_are_left_to_the_server() -> None:
    names = LoggedObjects()
    names.load("CREATE TABLE shop.t (id INT, n INT AS (id * 10) STORED)")
    lines = printed(gtid(1), TABLE, build.rows(2, ONE), XID, names=names)
    assert "INSERT INTO `shop`.`t` (`id`) VALUES (1);" in lines


def test_without_names_there_is_no_sql() -> None:
    with pytest.raises(UnsupportedError, match="have no names") as caught:
        printed(gtid(1), TABLE, build.rows(2, ONE), XID, names=LoggedObjects())
    assert "--schema" in caught.value.hint
    assert caught.value.file == "binlog.000001"


def test_definitions_in_the_log_keep_the_names_up_to_date() -> None:
    lines = printed(
        *(gtid(1, flags=1), query(b"ALTER TABLE t CHANGE n total INT")),
        *(gtid(2), TABLE, build.rows(2, ONE), XID),
    )
    assert "ALTER TABLE t CHANGE n total INT;" in lines
    assert "INSERT INTO `shop`.`t` (`id`, `total`) VALUES (1, 10);" in lines


def test_a_transaction_that_the_log_does_not_end_is_rolled_back() -> None:
    assert printed(gtid(1), TABLE, build.rows(2, ONE))[-1] == "ROLLBACK;"


@pytest.mark.parametrize("text", ["BEGIN NOT ATOMIC SELECT 1; END", "UPDATE t SET n = 1 -- all"])
def test_statements_that_hold_their_own_end_get_another(text: str) -> None:
    lines = printed(gtid(1, flags=1), query(text.encode()))
    assert lines[-4:] == ["DELIMITER ;;", text, ";;", "DELIMITER ;"]


def test_a_statement_runs_in_the_session_that_it_ran_in() -> None:
    status = (
        StatusVar(0, "FLAGS2", 1 << 26),
        StatusVar(1, "SQL_MODE", 7),
        StatusVar(3, "AUTO_INCREMENT", (10, 3)),
        StatusVar(4, "CHARSET", (8, 8, 45)),
        StatusVar(5, "TIME_ZONE", "Asia/Tokyo"),
        StatusVar(128, "HRNOW", 42),
    )
    statement = replace(
        query("INSERT INTO t VALUES ('é')".encode("latin1")),
        status_vars=encode_status_vars(status),
    )
    use, setting, text = printed(gtid(1, flags=1), statement)
    assert use == "USE `shop`;"
    assert text == "INSERT INTO t VALUES ('é');"
    for part in (
        "timestamp = 1700000000.000042",
        "foreign_key_checks = 0",
        "sql_mode = 7",
        "auto_increment_increment = 10, auto_increment_offset = 3",
        "character_set_client = utf8mb4, collation_connection = 8",
        "time_zone = 'Asia/Tokyo'",
    ):
        assert part in setting


def test_an_incident_stops_whoever_runs_it() -> None:
    lines = printed(IncidentEvent(number=1, message=b"it's lost"))
    assert lines == [
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'incident: it\\'s lost';",
    ]


def test_what_has_no_sql_is_an_error() -> None:
    with pytest.raises(UnsupportedError, match="type 200") as caught:
        printed(build.event(OpaqueEvent(data=b"x"), type_code=200))
    assert "--format=json" in caught.value.hint


def test_a_compressed_transaction_of_mysql() -> None:
    renderer = SqlLines(catalog=LoggedObjects())
    lines: list[str] = []
    for file, data in fixture_set("my97_compressed").binlogs:
        for event in expanded_all(walk([data], file=file), file=file):
            lines += renderer.lines(event, file=file)
    lines += renderer.finish()
    assert lines.count("BEGIN;") == lines.count("COMMIT;") > 0
    assert sum(line.startswith("INSERT INTO `shop`.`z` ") for line in lines) == 8
    assert sum(line.startswith("UPDATE `shop`.`z` ") for line in lines) == 5


def test_a_group_is_preceded_by_its_place() -> None:
    renderer = SqlLines(catalog=catalog())
    data = build.log(GtidEvent(sequence=7, domain_id=0, flags=0), XidEvent(xid=1))
    lines = [
        line
        for event in walk([data], file="binlog.000001")
        for line in renderer.lines(event, file="binlog.000001")
    ]
    assert lines[0].startswith("-- 0-1-7  binlog.000001:")
    assert lines[0].endswith("2023-11-14 22:13:20 UTC")


def test_a_table_that_is_made_with_its_rows_is_made_before_them() -> None:
    made = query(b"CREATE TABLE `u` (\n  `id` int DEFAULT NULL\n) START TRANSACTION")
    assert printed(made)[-1] == "CREATE TABLE `u` (\n  `id` int DEFAULT NULL\n);"


@pytest.mark.parametrize(
    ("collation", "data", "shown"),
    [
        (10, b"INSERT INTO `[t]` VALUES ('@')", "INSERT INTO `[t]` VALUES ('@')"),
        (8, b"DELETE\xa0FROM t WHERE a = '\xe9'", "DELETE\udca0FROM t WHERE a = '\udce9'"),
        (13, b"DELETE FROM t WHERE a = '\x81\x5f'", "DELETE FROM t WHERE a = '\udc81_'"),
    ],
)
def test_what_would_be_another_statement_in_utf8_stays_in_its_own_bytes(
    collation: int, data: bytes, shown: str
) -> None:
    status = encode_status_vars((StatusVar(4, "CHARSET", (collation, 8, 45)),))
    _, setting, text = printed(gtid(1, flags=1), replace(query(data), status_vars=status))
    assert f"character_set_client = {collation}," in setting
    assert text == f"{shown};"
