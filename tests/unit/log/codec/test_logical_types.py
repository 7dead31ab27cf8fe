from __future__ import annotations

import pytest

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.columns import Column, value_decoder
from binlane.log.codec.logical_types import LogicalType
from binlane.log.codec.types import ColumnType


def decoded(logical: LogicalType, data: bytes) -> object:
    length = 4 if logical is LogicalType.INET4 else 16
    column = Column(
        index=0,
        type=ColumnType.STRING,
        metadata=0xFE00 + length,
        is_nullable=True,
        logical=logical,
    )
    return value_decoder(column)(Reader(bytes((len(data),)) + data))


@pytest.mark.parametrize(
    ("hexadecimal", "text"),
    [
        # As MariaDB 10.11 prints them.
        ("00010000000200030004000500060007", "1::2:3:4:5:6:7"),
        ("", "::"),
        ("00000000000000000000000000000001", "::1"),
        ("00000000000000000000000000010002", "::0.1.0.2"),
        ("00000000000000000000FFFF01020304", "::ffff:1.2.3.4"),
        ("00000000000000000000000001020304", "::1.2.3.4"),
        ("0001", "1::"),
        ("00010000000000020000000000000003", "1:0:0:2::3"),
        ("00000001", "0:1::"),
        ("00010002000300040005000600070000", "1:2:3:4:5:6:7::"),
        ("00000000000100020003000400050006", "::1:2:3:4:5:6"),
        ("0000000000000000FFFF000001020304", "::ffff:0:102:304"),
        ("00010002000000000003000000000004", "1:2::3:0:0:4"),
        ("FE80000000000000000000000000ABCD", "fe80::abcd"),
        ("00000000000000000000FFFE00010002", "::fffe:1:2"),
        ("00010002000300040005000600070008", "1:2:3:4:5:6:7:8"),
    ],
)
def test_inet6(hexadecimal: str, text: str) -> None:
    assert decoded(LogicalType.INET6, bytes.fromhex(hexadecimal)) == text


def test_inet4_and_uuid_have_their_zero_bytes_again() -> None:
    assert decoded(LogicalType.INET4, b"\x0a\x01") == "10.1.0.0"
    assert decoded(LogicalType.INET4, b"") == "0.0.0.0"
    assert (
        decoded(LogicalType.UUID, bytes.fromhex("01234567ff"))
        == "01234567-ff00-0000-0000-000000000000"
    )


def test_json_is_text() -> None:
    assert decoded(LogicalType.JSON, b'{"a": 1}') == '{"a": 1}'


@pytest.mark.parametrize("logical", [LogicalType.INET4, LogicalType.INET6, LogicalType.UUID])
def test_more_bytes_than_the_type_has_are_an_error(logical: LogicalType) -> None:
    with pytest.raises(CodecError, match=f"{logical.value} of 17 bytes"):
        decoded(logical, bytes(17))
