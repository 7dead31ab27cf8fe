"""MySQL's logs through the text kernel: what `TextLines` prints, whatever stands in them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zstandard import ZstdCompressor

from binlane.binlogs.cat.text.text_options import Base64Output, TextOptions
from binlane.log.codec.body import Body
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.event import Event, encode_event
from binlane.log.codec.mysql_transaction import AnonymousGtidEvent, MysqlGtidEvent
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent, RowsQueryEvent
from binlane.log.codec.rows import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    RowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)
from binlane.log.codec.transaction import XidEvent
from binlane.log.codec.types import ChecksumAlgorithm, ColumnType, EventType, Flavor
from binlane.log.codec.variables import IntvarEvent
from binlane.log.kernels.load import Build, running
from tests import build
from tests.fixture_sets import fixture_set
from tests.printing import OPTIONS, TINY, WHOLE, assert_same, local_zone

HEAD = build.format_description(server_version="9.7.4", lengths={EventType.PARTIAL_UPDATE_ROWS: 10})
CONTEXT = bytes.fromhex("00000000000120000000000000000603737464")
UTF8MB4 = bytes.fromhex("12ff00")
ROWS = b"\0\1\0\0\0" + b"\1" + b"\0\2\0\0\0"
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
GTID = MysqlGtidEvent(
    flags=0,
    source_id=UUID,
    sequence=23,
    timestamp_type=2,
    last_committed=1,
    sequence_number=2,
    immediate_commit_timestamp=1_700_000_000_123_456,
    transaction_length=300,
    immediate_server_version=90704,
)


@pytest.fixture(autouse=True)
def _zone() -> Iterator[None]:
    with local_zone("Europe/Berlin"):
        yield


def log(*events: Event | Body, head: FormatDescriptionEvent = HEAD) -> bytes:
    return build.log(*events, head=head)


def assert_same_everywhere(data: bytes) -> None:
    for options in OPTIONS.values():
        assert_same(data, options=options, sizes=(WHOLE, TINY))


def query(text: bytes, *, variables: bytes = CONTEXT + UTF8MB4, flags: int = 0) -> Event:
    body = QueryEvent(
        thread_id=5,
        execution_time=0,
        error_code=0,
        status_vars=variables,
        database=b"shop",
        query=text,
    )
    return build.event(body, flags=flags)


BEGIN = query(b"BEGIN", flags=8)
TABLE = build.table_map(ColumnType.LONG)


def rows(kind: type[RowsEvent] = WriteRowsEvent, images: bytes = ROWS) -> RowsEvent:
    return build.rows(1, images, kind=kind)


@pytest.mark.parametrize("name", ["my97_rows_query", "my97_compressed", "my97_partitions"])
def test_plain_python_kernels_print_the_same(name: str) -> None:
    with running(Build.PLAIN):
        for _, data in fixture_set(name).binlogs:
            assert_same(data[:20_000])
            assert_same(data[:5000], options=OPTIONS["all"], sizes=(TINY,))


@pytest.mark.parametrize("name", ["my97_txn", "my97_compressed", "my97_format_mixed"])
def test_a_file_that_was_cut_anywhere(name: str) -> None:
    data = fixture_set(name).binlogs[0][1][:6000]
    for end in range(0, len(data), 41):
        assert_same(data[:end], sizes=(WHOLE, TINY))


@pytest.mark.parametrize("name", ["my97_checksum_none", "my97_compressed", "my97_partitions"])
def test_bytes_that_were_changed_anywhere(name: str) -> None:
    source = random.Random(name)
    _, whole = fixture_set(name).binlogs[0]
    for _ in range(150):
        data = bytearray(whole)
        data[source.randrange(4, len(data))] ^= 1 << source.randrange(8)
        options = source.choice(list(OPTIONS.values()))
        assert_same(bytes(data), options=options, sizes=[source.choice([WHOLE, TINY])])


GTIDS = [
    GTID,
    replace(GTID, flags=1),
    replace(GTID, original_commit_timestamp=1_600_000_000_000_001),
    replace(GTID, original_server_version=80036),
    replace(GTID, immediate_server_version=80029),
    replace(GTID, immediate_server_version=0),
    replace(GTID, immediate_server_version=None),
    replace(GTID, immediate_server_version=None, transaction_length=None),
    replace(GTID, transaction_length=70_000),
    replace(GTID, transaction_length=1 << 40),
    replace(GTID, commit_group_ticket=7),
    replace(GTID, commit_group_ticket=7, tail=b"more"),
    replace(GTID, immediate_commit_timestamp=0),
    MysqlGtidEvent(flags=0, source_id=UUID, sequence=1),
    MysqlGtidEvent(
        flags=0,
        source_id=UUID,
        sequence=2**62,
        timestamp_type=2,
        last_committed=0,
        sequence_number=1,
    ),
    replace(GTID, last_committed=-1),
    AnonymousGtidEvent(
        flags=1,
        source_id="00000000-0000-0000-0000-000000000000",
        sequence=0,
        timestamp_type=2,
        last_committed=1,
        sequence_number=2,
        immediate_commit_timestamp=1_711_846_799_999_999,
        transaction_length=300,
        immediate_server_version=90704,
    ),
]


@pytest.mark.parametrize("gtid", GTIDS)
def test_a_gtid_as_far_as_its_server_knew_it(gtid: MysqlGtidEvent) -> None:
    transaction = (gtid, BEGIN, TABLE, rows(), XidEvent(xid=1))
    assert_same_everywhere(log(*transaction, *transaction, gtid))


@pytest.mark.parametrize(
    "text", [b"insert", b"a\\b\tc\r\nd\be\0f'", b"", b"\n\n", b"\x01\x0b\x1b" + "é".encode()]
)
def test_a_statement_of_rows_is_a_comment_and_in_the_binlog_statement(text: bytes) -> None:
    body = RowsQueryEvent(query=text, length_byte=len(text))
    # The second one has no rows; what waits of it comes before the next event.
    assert_same_everywhere(log(GTID, BEGIN, body, TABLE, rows(), body, XidEvent(xid=1)))


@pytest.mark.parametrize(
    "end",
    [b"COMMIT", b"ROLLBACK", b"rollback", b"ROLLBACK TO `s`", b"XA COMMIT X'78',X'',1"],
)
def test_what_is_open_at_the_end(end: bytes) -> None:
    assert_same_everywhere(log(GTID, BEGIN, TABLE, rows(), query(end), GTID))
    assert_same_everywhere(log(GTID, BEGIN, query(end), GTID, query(b"CREATE TABLE t (a int)")))


def test_commits_around_a_change_of_the_clock() -> None:
    change = 1_711_846_800
    gtids = [
        replace(GTID, immediate_commit_timestamp=(change + second) * 1_000_000)
        for second in (-86_400, -1, 0, 1, 900, 86_400)
    ]
    assert_same_everywhere(log(*(event for gtid in gtids for event in (gtid, BEGIN))))


def test_a_gtid_that_ends_inside_of_a_field() -> None:
    head = build.format_description(server_version="9.7.4", checksum=ChecksumAlgorithm.NONE)
    whole = encode_event(build.event(GTID), head.format)
    for length in range(19, len(whole)):
        cut = whole[:9] + length.to_bytes(4, "little") + whole[13:length]
        assert_same(log(BEGIN, head=head) + cut)


def test_statements_are_told_what_they_need() -> None:
    micros = b"\x0d\x40\xe2\x01"
    events = [
        query(b"INSERT INTO t VALUES (1)"),
        query(b"INSERT INTO t VALUES (2)"),
        query(b"INSERT INTO t VALUES (3)", variables=CONTEXT + micros + UTF8MB4),
        query(b"INSERT INTO t VALUES (4)", variables=CONTEXT + b"\x0d\0\0\0" + UTF8MB4),
        query(b"INSERT INTO t VALUES (4)", variables=CONTEXT + b"\x0d\xff\xff\xff" + UTF8MB4),
        query(b"INSERT INTO t VALUES (5)", variables=CONTEXT + UTF8MB4 + micros),
        query(b"INSERT INTO t VALUES (6)", variables=CONTEXT + micros),
        query(b"INSERT INTO t VALUES (7)", variables=CONTEXT),
        query(b"INSERT INTO t VALUES (8)", variables=CONTEXT + b"\x11" + bytes(8) + UTF8MB4),
        query(b"INSERT INTO t VALUES (8)", flags=4),
        query(b"INSERT INTO t VALUES (9)"),
        query(b""),
        build.event(IntvarEvent(kind=2, value=7)),
        query(b"INSERT INTO t VALUES (10)"),
        query(b"INSERT INTO t VALUES (11)"),
        build.event(replace(query(b"").body, database=b"crm", query=b"SELECT 1")),  # type: ignore[type-var]  # a body
    ]
    assert_same_everywhere(log(*events))


def test_values_come_with_their_statement() -> None:
    first, last = IntvarEvent(kind=1, value=2**63), IntvarEvent(kind=2, value=7)
    insert = query(b"INSERT INTO t VALUES (1)")
    cases: tuple[tuple[Event | Body, ...], ...] = (
        (insert, last, last, insert, first, last, insert, insert),
        (insert, *[last] * 60, insert),
        (insert, last, TABLE, rows(), insert, insert),
        (insert, last, TABLE, replace(rows(), flags=0), last, insert),
        (insert, last, query(b"DROP DATABASE d", flags=8), insert, last),
        (insert, last, GTID, BEGIN, XidEvent(xid=1), insert),
        (TABLE, replace(rows(), flags=0)),
    )
    for events in cases:
        assert_same_everywhere(log(*events))
        assert_same(log(*events), log(*events))


@pytest.mark.parametrize(
    "text",
    [
        b"BEGIN",
        b"BEGIN WORK",
        b"begin",
        b"COMMIT",
        b"ROLLBACK",
        b"ROLLBACK TO s",
        b"XA START 'a'",
        b"XA COMMIT 'a'",
        b"START TRANSACTION",
        b"SAVEPOINT s",
        b"BEGI",
        b"COMMI",
        b"CREATE DATABASE d",
    ],
)
@pytest.mark.parametrize("flags", [0, 8])
def test_a_transaction_that_the_end_of_the_log_cuts(text: bytes, flags: int) -> None:
    for before in ((BEGIN, BEGIN), (BEGIN, XidEvent(xid=1)), (BEGIN, GTID)):
        data = log(*before, query(text, flags=flags))
        assert_same(data)
        assert_same(data + log(GTID)[4:])
        assert_same(log(*before, query(text, flags=flags), GTID, GTID))


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"a\n\nb\r\n", b"x" * 31 + b"\n", "ü'\\".encode() * 40]
)
def test_the_statement_of_rows_in_lines(text: bytes) -> None:
    body = RowsQueryEvent(query=text, length_byte=len(text) & 255)
    assert_same_everywhere(log(body, TABLE, rows(), body))


def test_flags_and_partitions_of_rows() -> None:
    kinds = (WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent)
    extras = (b"", b"\1\5\0", b"\1\5\0\7\0", b"\1\5", b"\0\5\2ab", b"\2ab", b"\1" + bytes(300))
    for kind in kinds:
        for extra in extras:
            images = ROWS[:5] * 300
            made = replace(build.rows(1, images, kind=kind), extra=extra)
            assert_same_everywhere(log(TABLE, replace(made, flags=30), replace(made, flags=31)))


def test_rows_that_their_statement_does_not_end() -> None:
    open_rows = replace(rows(), flags=0)
    for event in (XidEvent(xid=1), BEGIN, GTID, TABLE, HEAD, RotateEvent(position=4, file="b")):
        assert_same_everywhere(log(TABLE, open_rows, event, rows()))
        assert_same_everywhere(log(TABLE, open_rows, event))
    assert_same_everywhere(log(TABLE, open_rows))


def test_rows_of_no_table() -> None:
    dummy = build.rows(0, b"", kind=WriteRowsEvent, table_id=0xFFFFFF)
    for events in (
        (rows(),),
        (TABLE, rows(), rows()),
        (TABLE, replace(rows(), flags=0), dummy, rows()),
        (TABLE, replace(rows(), flags=0), replace(dummy, flags=0), rows(), XidEvent(xid=2)),
        (TABLE, build.rows(2, ROWS, kind=WriteRowsEvent)),
    ):
        assert_same_everywhere(log(*events))


@pytest.mark.parametrize("images", [b"", b"\0", b"\0\1\0\0", ROWS + b"\0", b"\1"])
@pytest.mark.parametrize("kind", [WriteRowsEvent, UpdateRowsEvent, PartialUpdateRowsEvent])
def test_images_that_are_none(kind: type[RowsEvent], images: bytes) -> None:
    assert_same_everywhere(log(TABLE, rows(kind, images), XidEvent(xid=1)))


@given(st.binary(max_size=200) | st.text(max_size=80).map(str.encode))
def test_strings_are_escaped(text: bytes) -> None:
    table = build.table_map(ColumnType.VARCHAR, metadata=b"\xf0\0")
    image = b"\0" + bytes((len(text),)) + text
    assert_same(log(table, rows(images=image)))


def payload(*events: Event | Body, compression: int = 0, size: int | None = None) -> Body:
    """A TRANSACTION_PAYLOAD of some events."""
    plain = replace(HEAD.format, checksum=ChecksumAlgorithm.NONE)
    made = (event if isinstance(event, Event) else build.event(event) for event in events)
    data = b"".join(encode_event(event, plain) for event in made)
    return TransactionPayloadEvent(
        compression=compression,
        uncompressed_size=len(data) if size is None else size,
        payload=data if compression else ZstdCompressor().compress(data),
    )


TRANSACTION = (BEGIN, TABLE, rows(), XidEvent(xid=1))
PAYLOADS: list[Body] = [
    payload(*TRANSACTION),
    payload(*TRANSACTION, compression=255),
    payload(*TRANSACTION * 40),
    payload(),
    payload(BEGIN, TABLE, replace(rows(), flags=0)),
    payload(GTID, *TRANSACTION),
    payload(*TRANSACTION, size=20),
    payload(*TRANSACTION, size=400),
    payload(*TRANSACTION, HEAD),
    payload(TABLE, rows(images=b"\0")),
    payload(rows()),
    payload(payload()),
    payload(BEGIN, replace(payload(), payload=b"no frame at all")),  # type: ignore[type-var]  # a body
    replace(payload(*TRANSACTION), payload=b"no frame at all"),  # type: ignore[type-var]  # a body
]


@pytest.mark.parametrize("body", PAYLOADS)
@pytest.mark.parametrize("checksum", [ChecksumAlgorithm.CRC32, ChecksumAlgorithm.NONE])
def test_payloads(body: Body, checksum: ChecksumAlgorithm) -> None:
    head = build.format_description(server_version="9.7.4", checksum=checksum)
    assert_same_everywhere(log(GTID, body, GTID, body, XidEvent(xid=2), head=head))
    assert_same_everywhere(log(GTID, body, head=head))


@pytest.mark.parametrize(
    "options",
    [
        TextOptions(verbose=2, skip_gtids=True),
        TextOptions(verbose=2, base64_output=Base64Output.NEVER),
        TextOptions(verbose=2, require_row_format=True),
        TextOptions(verbose=2, flavor=Flavor.MARIADB, base64_output=Base64Output.DECODE_ROWS),
        TextOptions(verbose=2, flavor=Flavor.MYSQL),
        TextOptions(verbose=2, idempotent=True, disable_log_bin=True, set_charset="utf8mb4"),
    ],
)
@pytest.mark.parametrize("name", ["my97_txn", "my97_compressed", "my97_format_mixed", "md1011_txn"])
def test_options_of_mysqlbinlog(name: str, options: TextOptions) -> None:
    for _, data in fixture_set(name).binlogs:
        assert_same(data, options=options, sizes=(WHOLE, TINY))


def test_a_relay_log_has_positions_of_its_own() -> None:
    head = build.event(HEAD, flags=0x40)
    data = b"\xfebin" + encode_event(head, HEAD.format)
    data += encode_event(build.event(GTID, next_position=77), HEAD.format)
    assert_same(data + encode_event(build.event(XidEvent(xid=1), next_position=99), HEAD.format))


def test_files_of_both_flavors() -> None:
    table = build.table_map(ColumnType.VARCHAR, metadata=b"\xf0\0")
    changes = (table, build.rows(1, b"\0\3'\\\n"), XidEvent(xid=1))
    mysql, mariadb = log(GTID, BEGIN, *changes), build.log(*changes)
    for logs in ((mysql, mariadb, mysql), (mariadb, mysql), (mysql, mysql)):
        assert_same(*logs, sizes=(WHOLE, TINY))
