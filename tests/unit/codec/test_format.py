from __future__ import annotations

import pytest

from binlane.codec.event import decode_event, encode_event
from binlane.codec.format import flavor_of, knows_checksums
from binlane.codec.types import ChecksumAlgorithm, EventType, Flavor
from binlane.errors import CodecError, UnsupportedError
from tests.build import event, format_description


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


@pytest.mark.parametrize("field, value", [("binlog_version", 3), ("header_length", 27)])
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
