from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.binlogs.cat.explain.explanation import Explanation, explain
from binlane.binlogs.cat.explain.explanation_text import explanation_json, explanation_text
from binlane.binlogs.cat.explain.find import find_event
from binlane.binlogs.cat.explain.meanings import bytes_text, flag_names, meaning, status_meaning
from binlane.errors import CodecError, ConfigError
from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.event import EventHeader
from binlane.log.codec.rows import RowsEvent, UpdateRowsV1Event
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ColumnType, GtidFlag, RowsFlag
from binlane.statements.sql.logged_objects import LoggedObjects
from tests import build
from tests.fixture_sets import fixture_set

DAMAGED = fixture_set("corrupt_mariadb1011").files


def explained(data: bytes, position: int, catalog: LoggedObjects | None = None) -> Explanation:
    found = find_event([data], position, file="binlog.000001", catalog=catalog)
    return explain(found, catalog=catalog)


def lines_of(explanation: Explanation, title: str) -> list[tuple[str, str, int | None, bytes]]:
    return [
        (line.name, line.text, line.offset, line.data)
        for section in explanation.sections
        if section.title == title
        for line in section.lines
    ]


LOG = build.log(
    build.table_map(ColumnType.LONG, ColumnType.VARCHAR, metadata=b"\x14\x00"),
    build.rows(2, b"\xfc\x07\x00\x00\x00\x02hi\xfe\x08\x00\x00\x00", kind=UpdateRowsV1Event),
    XidEvent(xid=5),
)
FIRST = 4 + int.from_bytes(LOG[13:17], "little")
ROWS = FIRST + int.from_bytes(LOG[FIRST + 9 : FIRST + 13], "little")


def test_a_row_is_explained_value_by_value() -> None:
    explanation = explained(LOG, ROWS)
    assert lines_of(explanation, "table") == [("", "shop.t", None, b"")]
    start = lines_of(explanation, "body")[-1][2]
    assert start is not None
    assert lines_of(explanation, "row 0, before image") == [
        ("(NULL bits)", "none is NULL", start, b"\xfc"),
        ("@1", "7", start + 1, b"\x07\x00\x00\x00"),
        ("@2", "'hi'", start + 5, b"\x02hi"),
    ]
    assert lines_of(explanation, "row 0, after image") == [
        ("(NULL bits)", "@2", start + 8, b"\xfe"),
        ("@1", "8", start + 9, b"\x08\x00\x00\x00"),
        ("@2", "NULL", None, b""),
    ]
    assert explanation.faults == ()


def test_a_schema_names_the_columns() -> None:
    catalog = LoggedObjects()
    catalog.load("CREATE TABLE shop.t (id INT UNSIGNED, name VARCHAR(20) CHARACTER SET latin1)")
    names = [line[0] for line in lines_of(explained(LOG, ROWS, catalog), "row 0, before image")]
    assert names == ["(NULL bits)", "@1 id", "@2 name"]


def test_fields_are_named_though_no_class_tells_where_they_are() -> None:
    log = build.log(IncidentEvent(number=1, message=b"a"))
    body = lines_of(explained(log, FIRST), "body")
    assert [(name, data) for name, _, _, data in body] == [
        ("number", b"\x01\x00"),
        ("(layout)", b"\x01"),
        ("message", b"a"),
    ]


def test_flags_have_names() -> None:
    event = GtidEvent(sequence=1, domain_id=0, flags=GtidFlag.STANDALONE | GtidFlag.DDL)
    body = {name: text for name, text, _, _ in lines_of(explained(build.log(event), FIRST), "body")}
    assert body["flags"] == "33: STANDALONE | DDL"
    assert flag_names(RowsFlag, 0x41) == "STMT_END | 0x40"
    assert meaning(RowsEvent, "flags", 0) == "0: none"
    assert meaning(EventHeader, "type_code", 250) == "250: unknown"
    assert meaning(EventHeader, "timestamp", 0) == "0"


def test_meanings() -> None:
    assert bytes_text(b"abc\0\0") == "'abc'"
    assert bytes_text(b"\xff") == bytes_text(b"\x01") == bytes_text(b"") == ""
    assert status_meaning("FLAGS2", 1 << 26) == "67108864: NO_FOREIGN_KEY_CHECKS"
    assert status_meaning("CHARSET", (33, 8, 45)) == (
        "client utf8mb3 (33), connection latin1 (8), server utf8mb4 (45)"
    )


@pytest.mark.parametrize(
    ("position", "said"),
    [
        (FIRST + 3, f"is inside of TABLE_MAP, which begins at {FIRST}"),
        (0, "the first one begins at 4"),
        (10**9, "the last one stands from"),
        (len(LOG), f"to {len(LOG)}"),
    ],
)
def test_a_wrong_position_is_told_where_events_are(position: int, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        explained(LOG, position)


def test_any_chunks_give_the_same() -> None:
    pieces = [LOG[start : start + 7] for start in range(0, len(LOG), 7)]
    found = find_event(pieces, ROWS, file="binlog.000001")
    assert found == find_event([LOG], ROWS, file="binlog.000001")


@pytest.mark.parametrize(
    ("name", "position", "fault"),
    [
        ("cut_in_header.bin", 5411, "needs 19 bytes"),
        ("cut_in_event.bin", 6328, "says 92 bytes, the file has"),
        ("flip_body.bin", 6328, "the checksum is b1d4a8f6"),
        ("len_zero.bin", 5411, "says 0 bytes"),
        ("len_huge.bin", 5411, "says 4294967295 bytes"),
        ("no_table_map.bin", 6276, "no TABLE_MAP before it"),
        ("status_len_big.bin", 1065, "65520 bytes expected"),
        ("rows_width_big.bin", 6328, "200 columns"),
        ("table_map_dblen.bin", 6276, "200 bytes expected"),
        ("fde_version9.bin", 4, "binlog version 9"),
        ("fde_alg7.bin", 4, "checksum algorithm 7"),
        ("maria_compressed_broken.bin", 2249, "compressed value is broken"),
    ],
)
def test_a_damaged_event_is_explained_up_to_its_fault(name: str, position: int, fault: str) -> None:
    explanation = explained(DAMAGED[name], position)
    assert any(fault in text for text in explanation.faults), explanation.faults
    text = "\n".join(explanation_text(explanation, width=80, color=False))
    assert "fault: " in text
    if name != "cut_in_header.bin":
        assert lines_of(explanation, "header")


@pytest.mark.parametrize("name", ["bad_magic.bin", "empty.bin", "short_magic.bin"])
def test_what_is_no_binlog(name: str) -> None:
    with pytest.raises(CodecError, match="no binlog file"):
        explained(DAMAGED[name], 4)


def test_behind_an_impossible_length_nothing_can_be_found() -> None:
    with pytest.raises(CodecError, match="no event behind it can be found") as caught:
        explained(DAMAGED["len_zero.bin"], 6000)
    assert (caught.value.file, caught.value.position) == ("binlog.000001", 5411)


def test_every_damaged_file_is_explained_or_an_error_of_ours() -> None:
    for name, data in DAMAGED.items():
        if not name.endswith(".bin"):
            continue
        for position in (4, 256, 1065, 2249, 5411, 6276, 6328, 9719):
            try:
                explanation = explained(data, position)
            except (CodecError, ConfigError):
                continue
            assert explanation_json(explanation)["file"] == "binlog.000001"


def test_colours_are_asked_for() -> None:
    explanation = explained(LOG, ROWS)
    plain = "\n".join(explanation_text(explanation, width=80, color=False))
    assert "\x1b" not in plain
    assert "\x1b[1m" in "\n".join(explanation_text(explanation, width=80, color=True))


def test_control_characters_cannot_reach_the_terminal() -> None:
    table = replace(build.table_map(ColumnType.LONG), table="a\x1b[31mb")
    explanation = explained(build.log(table), FIRST)
    assert "\x1b" not in "\n".join(explanation_text(explanation, width=80, color=False))
