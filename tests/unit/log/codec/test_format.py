from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.control import RotateEvent
from binlane.log.codec.event import decode_event, encode_event
from binlane.log.codec.format import MAGIC, flavor_of, knows_checksums
from binlane.log.codec.registry import OpaqueEvent
from binlane.log.codec.transaction import XidEvent
from binlane.log.codec.types import ChecksumAlgorithm, ColumnType, EventType, Flavor
from binlane.log.grouping.walk import walk
from tests.build import FORMAT, event, format_description, log, table_map


@pytest.mark.parametrize(
    "version, flavor, aware",
    [
        ("10.11.19-MariaDB-0+deb12u1-log", Flavor.MARIADB, True),
        ("5.5.36-MariaDB-log", Flavor.MARIADB, True),
        ("5.3.0-maria-beta", Flavor.MARIADB, True),
        ("5.2.14-MariaDB", Flavor.MARIADB, False),
        ("9.7.4", Flavor.MYSQL, True),
        ("5.6.1-m5-log", Flavor.MYSQL, True),
        ("5.6.0", Flavor.MYSQL, False),
        ("5.1.63-google-log", Flavor.MYSQL, False),
    ],
)
def test_a_version_tells_flavor_and_checksums(version: str, flavor: Flavor, *, aware: bool) -> None:
    assert flavor_of(version) is flavor
    assert knows_checksums(version) is aware


def test_a_format_description_decides_the_format() -> None:
    decided = format_description(lengths={EventType.QUERY: 17}).format
    assert (decided.flavor, decided.checksum) == (Flavor.MARIADB, ChecksumAlgorithm.CRC32)
    assert decided.checksum_length == 4
    assert decided.post_header_length(EventType.QUERY) == 17
    assert decided.post_header_length(EventType.GTID) == 19
    assert decided.post_header_length(EventType.STOP) == 0


def test_a_length_that_is_not_announced_is_the_usual_one() -> None:
    # MySQL 8.4 and later announce 0 for the V1 rows events that they no longer write.
    decided = format_description(lengths={EventType.WRITE_ROWS_V1: 0}).format
    assert decided.post_header_length(EventType.WRITE_ROWS_V1) == 8


def test_a_server_before_checksums_writes_none() -> None:
    body = format_description(server_version="5.1.40-log", checksum=None)
    short = type(body)(
        binlog_version=4,
        server_version_field=body.server_version_field,
        created=5,
        header_length=19,
        post_header_lengths=body.post_header_lengths[:27],
        checksum_algorithm=None,
    )
    data = encode_event(event(short), None)
    assert len(data) == 19 + 57 + 27
    assert decode_event(data, None).body == short
    assert short.format.checksum_length == 0


def test_a_version_without_checksums_that_knows_too_many_types_is_damage() -> None:
    body = format_description(server_version="00.11.19-MariaDB", checksum=None)
    with pytest.raises(CodecError, match="knows no checksums, but 171 event types"):
        decode_event(encode_event(event(body), None), None)


@pytest.mark.parametrize("field, value", [("binlog_version", 3), ("header_length", 18)])
def test_other_versions_of_the_format_are_refused(field: str, value: int) -> None:
    fields = {
        name: getattr(format_description(), name)
        for name in (
            "binlog_version",
            "server_version_field",
            "created",
            "header_length",
            "post_header_lengths",
            "checksum_algorithm",
        )
    }
    body = type(format_description())(**{**fields, field: value})
    with pytest.raises(UnsupportedError, match="version 4 with 19-byte headers is expected"):
        decode_event(encode_event(event(body), None), None)


def test_fixed_parts_that_are_longer_than_known_are_kept_as_they_are() -> None:
    head = replace(
        format_description(lengths={EventType.XID: 3, EventType.TABLE_MAP: 10}), header_length=27
    )
    format_ = head.format
    assert format_.foreign_lengths == {EventType.XID: (0, 3), EventType.TABLE_MAP: (8, 10)}
    described = event(table_map(ColumnType.LONG))
    foreign = replace(described, header_tail=b"12345678", post_header_tail=b"ab")
    data = encode_event(foreign, format_)
    plain = encode_event(described, FORMAT)
    assert data[19:27] + data[35:37] == b"12345678ab"
    assert data[27:35] + data[37:-4] == plain[19:-4]
    read = decode_event(data, format_)
    assert (read.body, read.header_tail, read.post_header_tail) == (
        described.body,
        b"12345678",
        b"ab",
    )
    assert encode_event(read, format_) == data
    # Readers know a ROTATE without any format.
    rotate = event(RotateEvent(position=4, file="f"))
    assert encode_event(rotate, format_) == encode_event(rotate, FORMAT)
    *_, xid = walk([log(XidEvent(xid=7), head=head)], file="f")
    assert (xid.body, xid.post_header_tail) == (XidEvent(xid=7), bytes(3))


def test_lengths_that_mysql_announces_in_error_are_not_foreign() -> None:
    lengths: dict[int, int] = {
        EventType.TRANSACTION_PAYLOAD: 40,
        EventType.QUERY: 17,
        EventType.GTID_LOG: 42,
    }
    assert not format_description(lengths=lengths).format.foreign_lengths


@pytest.mark.parametrize("header_length", [13, 19])
def test_files_older_than_mysql_5_0_are_refused(header_length: int) -> None:
    body = (1 if header_length == 13 else 3).to_bytes(2, "little") + b"4.1.22".ljust(54, b"\0")
    length = header_length + len(body)
    start = bytes(4) + b"\1" + bytes(4) + length.to_bytes(4, "little")
    data = MAGIC + start.ljust(header_length, b"\0") + body
    with pytest.raises(UnsupportedError, match=r"before MySQL 5\.0") as caught:
        list(walk([data], file="f"))
    assert (caught.value.position, caught.value.hint[:3]) == (4, "let")


def test_rows_of_the_first_5_1_servers_are_refused() -> None:
    old = event(OpaqueEvent(data=bytes(30)), type_code=EventType.PRE_GA_WRITE_ROWS)
    with pytest.raises(UnsupportedError, match=r"before its 5\.1\.18"):
        list(walk([log(old)], file="f"))
