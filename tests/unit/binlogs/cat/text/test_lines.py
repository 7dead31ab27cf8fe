from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from binlane.binlogs.cat.text.event_text import UNFINISHED, local_time
from binlane.binlogs.cat.text.text_lines import TextLines
from binlane.binlogs.cat.text.text_options import Base64Output, TextOptions
from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.query import QueryEvent, RowsQueryEvent
from binlane.log.codec.registry import OpaqueEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.status_vars import StatusVar, encode_status_vars
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.codec.types import EventType, Flavor, HeaderFlag, RowsFlag
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.positions import Gtid
from tests.fixture_sets import fixture_set


def events(name: str) -> list[tuple[str, Event]]:
    return [
        (file, event)
        for file, data in fixture_set(name).binlogs
        for event in expanded_all(walk([data], file=file), file=file)
    ]


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    local_time.cache_clear()
    yield
    monkeypatch.undo()
    time.tzset()
    local_time.cache_clear()


def rendered(found: list[tuple[str, Event]], **options: Any) -> list[str]:
    renderer = TextLines(TextOptions(**options))
    texts = [
        *renderer.head(),
        *(line for file, event in found for line in renderer.lines(event, file=file)),
        *renderer.finish(),
    ]
    return "\n".join(texts).split("\n")


def printed(name: str, **options: Any) -> list[str]:
    return rendered(events(name), **options)


def event_of(type_code: int, flags: int = 0) -> Event:
    header = EventHeader(
        timestamp=0, type_code=type_code, server_id=1, length=23, next_position=0, flags=flags
    )
    return Event(header, OpaqueEvent(data=b"what"), position=900)


def test_verbose_adds_rows_as_comments() -> None:
    plain, verbose = printed("md1011_txn"), printed("md1011_txn", verbose=1)
    assert [line for line in verbose if not line.startswith("###")] == plain
    inserts = sum(row["op"] == "I" for row in fixture_set("md1011_txn").rows())
    assert sum(line.startswith("### INSERT INTO") for line in verbose) == inserts > 0


def test_verbose_twice_adds_types() -> None:
    types = [line for line in printed("md1011_txn", verbose=2) if "/* INT meta=0" in line]
    assert types
    assert not any("/*" in line for line in printed("md1011_txn", verbose=1) if "###" in line)


def test_decode_rows_has_no_statements_of_rows() -> None:
    lines = printed("md1011_txn", base64_output=Base64Output.DECODE_ROWS)
    assert not any(line.startswith("BINLOG") for line in lines)


@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
def test_short_form_is_statements_only(name: str) -> None:
    lines = printed(name, short_form=True, verbose=2)
    assert not any(line.startswith(("# at", "###", "BINLOG", "#2")) for line in lines)
    assert "SET @@session.pseudo_thread_id=999999999/*!*/;" in lines


def test_short_form_has_no_two_phase_alter() -> None:
    two_phase, one_phase = "ALTER TABLE big ADD", "ALTER TABLE big DROP"
    assert two_phase in "\n".join(printed("md1011_alter_two_phase", verbose=1))
    text = "\n".join(printed("md1011_alter_two_phase", short_form=True))
    assert two_phase not in text
    assert one_phase in text


@pytest.mark.parametrize("name", ["md1011_load_data_statement", "my97_load_data_statement"])
def test_short_form_names_no_file_ids(name: str) -> None:
    assert any(line.startswith("# file_id: ") for line in printed(name))
    assert not any(line.startswith("# file_id: ") for line in printed(name, short_form=True))


def test_load_data_uses_a_database_of_another_name() -> None:
    name = "my97_load_data_statement"
    (use,) = {line for line in printed(name) if line.startswith("use ")}
    database = use.split("`")[1]
    lines = printed(name, rewrite_databases={database: "other"})
    assert [line for line in lines if line.startswith("use ")] == ["use `other`/*!*/;"]


@pytest.mark.parametrize("name", ["md1011_xa", "my97_xa"])
def test_hexdump_shows_each_byte(name: str) -> None:
    found = events(name)[:4]
    text = "\n".join(rendered(found, hexdump=True))
    for _, event in found:
        assert event.raw is not None
        for start in range(19, len(event.raw), 16):
            left, right = event.raw[start : start + 8], event.raw[start + 8 : start + 16]
            place = f"{event.position + start:x}"
            assert re.search(rf"# *0*{place}  ?{left.hex(' ')} +{right.hex(' ')} ", text)


def test_a_flavor_can_be_forced() -> None:
    lines = printed("md1011_txn", flavor=Flavor.MARIADB)
    assert lines == printed("md1011_txn")
    with pytest.raises(UnsupportedError, match="no text form in a MySQL log"):
        printed("md1011_txn", flavor=Flavor.MYSQL)


def test_logs_of_both_flavors_are_two_texts() -> None:
    both = rendered([*events("md1011_txn"), *events("my97_txn")])
    assert both == [*printed("md1011_txn"), *printed("my97_txn")]


def test_without_events_there_is_a_text_that_does_nothing() -> None:
    lines = rendered([])
    assert lines[-1] == "/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=0*/;"


def test_what_comes_before_the_format_is_printed_when_it_is_known() -> None:
    found = events("md1011_txn")
    (rotate,) = [event for _, event in events("md1011_gtid") if event.header.type_code == 4][:1]
    early = replace(rotate, position=0)
    lines = rendered([(found[0][0], early), *found])
    assert lines.index("# at 0") < lines.index("# at 4")
    assert [line for line in lines if line != "# at 0" and "Rotate" not in line] == printed(
        "md1011_txn"
    )


@pytest.mark.parametrize(
    ("name", "type_code"),
    [("md1011_txn", EventType.GTID_LOG), ("my97_txn", EventType.GTID_LIST)],
)
def test_what_has_no_text_form_stops_with_its_place(name: str, type_code: int) -> None:
    found = [*events(name)[:1], ("binlog.000001", event_of(type_code))]
    with pytest.raises(UnsupportedError, match="has no text form") as raised:
        rendered(found)
    assert (raised.value.file, raised.value.position) == ("binlog.000001", 900)
    assert "--format=json" in raised.value.hint


@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
def test_what_is_not_known_is_told(name: str) -> None:
    found = events(name)[:1]
    ignorable = event_of(EventType.VIEW_CHANGE, HeaderFlag.IGNORABLE)
    lines = rendered([*found, ("binlog.000001", event_of(250)), ("binlog.000001", ignorable)])
    assert "# Unknown event" in lines
    assert "# Ignorable event type 37 (View_change)" in lines


def test_files_of_load_data_are_written_where_the_text_names_them(tmp_path: Path) -> None:
    for round_ in range(2):
        lines = printed("md1011_load_data_statement", load_directory=tmp_path)
        loads = [line for line in lines if line.startswith("LOAD DATA")]
        assert len(loads) == 5
        for line in loads:
            match = re.match(
                r"LOAD DATA LOCAL INFILE '([^']+)' (REPLACE )?INTO TABLE `ldm?` ", line
            )
            assert match, line
            path = Path(match[1])
            assert path.parent == tmp_path
            assert path.name.endswith(f"-{round_}")
            assert path.stat().st_mode & 0o777 == 0o600
    assert max(path.stat().st_size for path in tmp_path.iterdir()) == 131072 + 86790


@pytest.mark.parametrize("name", ["md1011_load_data_statement", "my97_load_data_statement"])
def test_a_load_data_without_its_file_stops(name: str, tmp_path: Path) -> None:
    found = [
        (file, event)
        for file, event in events(name)
        if event.header.type_code != EventType.BEGIN_LOAD_QUERY
    ]
    with pytest.raises(CodecError, match="no first block") as raised:
        rendered(found, load_directory=tmp_path)
    assert raised.value.position is not None


def test_xa_transactions_are_statements() -> None:
    lines = printed("md1011_xa")
    assert "XA START X'73707777717131',X'',1/*!*/;" in lines
    assert "XA PREPARE X'73707777717131',X'',1" in lines
    assert "XA COMMIT X'73707777717131',X'',1" in lines


def test_statements_carry_their_context() -> None:
    lines = printed("md1011_format_statement")
    for line in (
        "SET INSERT_ID=1/*!*/;",
        "SET @`i`:=-42/*!*/;",
        "SET @`s`:=_utf8mb4 X'73747220277127205C20C3A9' COLLATE `utf8mb4_general_ci`/*!*/;",
        "SET @`d`:=123.456/*!*/;",
        "SET @`r`:=15000000000/*!*/;",
        "SET @`n`:=NULL/*!*/;",
        "SET @`b`:=_binary X'00FF41' COLLATE `binary`/*!*/;",
        "SET @`u`:=18446744073709551615/*!*/;",
        "use `shop`/*!*/;",
    ):
        assert line in lines, line
    # A session variable is set only when it changes.
    modes = [line for line in lines if line.startswith("SET @@session.sql_mode=")]
    assert all(mode != following for mode, following in pairwise(modes))


@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
def test_databases_can_have_other_names(name: str) -> None:
    lines = printed(name, rewrite_databases={"shop": "laden"}, verbose=1)
    assert "use `laden`/*!*/;" in lines
    assert any("Table_map: `laden`." in line for line in lines)
    rows = [line for line in lines if line.startswith("### INSERT")]
    assert rows
    assert all("`laden`." in line for line in rows)


def test_gtids_can_be_left_out() -> None:
    lines = printed("my97_txn", skip_gtids=True)
    assert "/*!50616 SET @@SESSION.GTID_NEXT='AUTOMATIC'*//*!*/;" in lines
    assert not any("GTID_NEXT= " in line or "Previous" in line for line in lines)


@pytest.mark.parametrize(
    ("option", "start"),
    [
        ({"skip_annotate": True}, "#Q>"),
        ({"print_row_count": False}, "# Number of rows"),
        ({"print_row_event_positions": False}, "# at"),
    ],
)
def test_comments_of_mariadb_can_be_left_out(option: dict[str, bool], start: str) -> None:
    assert any(line.startswith(start) for line in printed("md1011_txn"))
    assert not any(line.startswith(start) for line in printed("md1011_txn", **option))


@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
def test_the_client_can_be_told_more(name: str) -> None:
    lines = printed(name, disable_log_bin=True, set_charset="latin1")
    assert "/*!32316 SET @OLD_SQL_LOG_BIN=@@SQL_LOG_BIN, SQL_LOG_BIN=0*/;" in lines
    assert "/*!32316 SET SQL_LOG_BIN=@OLD_SQL_LOG_BIN*/;" in lines
    assert "/*!40101 SET NAMES latin1 */;" in lines
    assert "/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;" in lines


def test_mysql_can_be_told_how_to_take_rows() -> None:
    lines = printed("my97_txn", idempotent=True)
    assert "/*!50700 SET @@SESSION.RBR_EXEC_MODE=IDEMPOTENT*/;" in lines
    assert lines[-1] == "/*!50700 SET @@SESSION.RBR_EXEC_MODE=STRICT*/;"


def test_row_format_can_be_asked_for(tmp_path: Path) -> None:
    lines = printed("my97_txn", require_row_format=True)
    assert "/*!80019 SET @@SESSION.REQUIRE_ROW_FORMAT=1*/;" in lines
    assert not any("pseudo_thread_id" in line for line in lines)
    for name in ("my97_format_statement", "my97_load_data_statement", "my97_temp_statement"):
        with pytest.raises(UnsupportedError, match="is not of row format"):
            printed(name, require_row_format=True, load_directory=tmp_path)


def test_mysql_rows_are_not_lost_without_base64() -> None:
    with pytest.raises(UnsupportedError, match="would lose them"):
        printed("my97_txn", base64_output=Base64Output.NEVER)
    assert any(
        "Write_rows" in line for line in printed("md1011_txn", base64_output=Base64Output.NEVER)
    )


@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
def test_rows_of_a_statement_without_an_end_are_not_run(name: str) -> None:
    found = events(name)
    at = next(index for index, (_, event) in enumerate(found) if isinstance(event.body, RowsEvent))
    file, event = found[at]
    assert isinstance(event.body, RowsEvent)
    open_rows = replace(event.body, flags=event.body.flags & ~RowsFlag.STMT_END)
    lines = rendered([*found[:at], (file, replace(event, body=open_rows))], verbose=1)
    assert UNFINISHED in lines
    assert any(line.startswith("### INSERT") for line in lines)
    assert sum(line.startswith("BINLOG") for line in lines) == 1


def test_rows_of_high_resolution_types_of_mariadb_5_3() -> None:
    name = "md1011_types_temporal_hires53"
    official = fixture_set(name).text("binlog.000001.auto.txt").split("\n")
    plain = printed(name)
    # Only what cannot be known is left out: how many rows there are.
    assert [line for line in official[:-1] if line != "# Number of rows: 2"] == plain
    verbose = printed(name, verbose=1)
    assert [line for line in verbose if not line.startswith("###")] == plain
    assert any("of an old type do not decode" in line for line in verbose)
    with pytest.raises(UnsupportedError, match="of an old type") as raised:
        printed(name, verbose=1, base64_output=Base64Output.DECODE_ROWS)
    assert raised.value.position == 1695


def test_what_caused_rows_of_mysql_stands_with_them() -> None:
    found = events("my97_rows_query")
    number = next(
        at for at, (_, event) in enumerate(found) if isinstance(event.body, RowsQueryEvent)
    )
    file, event = found[number]
    body = RowsQueryEvent(query=b"a\\b\tc\r\nd\0", length_byte=8)
    found[number] = (file, replace(event, body=body))
    lines = rendered(found, verbose=2)
    at = lines.index("# a\\\\b\\tc\\r")
    assert lines[at + 1] == "# d\\0"
    # The first event in base64 is of type 29, which its fifth byte says.
    start = lines.index("BINLOG '", at) + 1
    assert base64.b64decode(lines[start])[4] == EventType.ROWS_QUERY
    assert "# d\\0" not in rendered(found, verbose=1)


def test_collations_stand_behind_the_character_set() -> None:
    variables = [
        StatusVar(code=4, name="CHARSET", value=(45, 45, 45)),
        StatusVar(code=5, name="TIME_ZONE", value="+02:00"),
        StatusVar(code=131, name="CHARACTER_SET_COLLATIONS", value=((45, 46),)),
    ]
    number, (file, event) = next(
        (at, each)
        for at, each in enumerate(events("md118_format_statement"))
        if isinstance(each[1].body, QueryEvent)
    )
    found = events("md118_format_statement")[: number + 1]
    assert isinstance(event.body, QueryEvent)
    body = replace(event.body, status_vars=encode_status_vars(variables))
    found[number] = (file, replace(event, body=body))
    lines = [line for line in rendered(found) if line.startswith("SET @@session.")]
    names = re.findall(
        r"session\.(collation_connection|character_set_collations|time_zone)", "".join(lines)
    )
    assert names == ["collation_connection", "character_set_collations", "time_zone"]


def test_a_gtid_list_is_in_the_order_of_domains_and_numbers() -> None:
    found = events("md1011_gtid")
    number = next(at for at, (_, each) in enumerate(found) if isinstance(each.body, GtidListEvent))
    file, event = found[number]
    gtids = tuple(map(Gtid.parse, ("1-1-1", "0-2-366", "0-3-325", "0-1-385")))
    assert isinstance(event.body, GtidListEvent)
    found[number] = (file, replace(event, body=replace(event.body, gtids=gtids)))
    text = "\n".join(rendered(found[: number + 1]))
    assert "Gtid list [0-3-325,\n# 0-2-366,\n# 0-1-385,\n# 1-1-1]" in text
