from __future__ import annotations

import pytest

from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.strings import counted_bytes, enum_decoder, set_decoder, string_decoder

UTF8MB4, LATIN1, BINARY, UNKNOWN = 45, 8, 63, 9999


@pytest.mark.parametrize("count_length", [1, 2, 3, 4])
def test_strings_stand_behind_their_length(count_length: int) -> None:
    data = (3).to_bytes(count_length, "little") + b"abc"
    reader = Reader(data + b"rest")
    assert counted_bytes(count_length)(reader) == b"abc"
    assert reader.rest() == b"rest"
    with pytest.raises(TruncatedError):
        counted_bytes(count_length)(Reader(data[:-1]))


@pytest.mark.parametrize("count_length", [0, 5, 255])
def test_lengths_of_lengths_have_limits(count_length: int) -> None:
    with pytest.raises(CodecError, match=f"has {count_length} bytes; 1 to 4 are possible"):
        counted_bytes(count_length)


@pytest.mark.parametrize(
    "collation_id, data, value",
    [
        (UTF8MB4, "é".encode(), "é"),
        (UTF8MB4, b"\xe9", b"\xe9"),
        (LATIN1, b"\xe9", "é"),
        (BINARY, b"text", b"text"),
        (UNKNOWN, b"text", b"text"),
        # Where the log names no character set, UTF-8 is text.
        (None, "é".encode(), "é"),
        (None, b"\xe9", b"\xe9"),
    ],
)
def test_text_is_decoded_or_stays_bytes(
    collation_id: int | None, data: bytes, value: str | bytes
) -> None:
    decode = string_decoder(counted_bytes(1), collation_id=collation_id)
    assert decode(Reader(bytes((len(data),)) + data)) == value


def test_binary_columns_get_their_zeros_back() -> None:
    decode = string_decoder(counted_bytes(1), collation_id=BINARY, fixed_length=4)
    assert decode(Reader(b"\2ab")) == b"ab\0\0"
    unknown = string_decoder(counted_bytes(1), collation_id=None, fixed_length=4)
    assert unknown(Reader(b"\2ab")) == "ab"


def test_enums() -> None:
    members = ("a", "b")
    assert [enum_decoder(1, members)(Reader(bytes((n,)))) for n in range(3)] == ["", "a", "b"]
    assert enum_decoder(2, None)(Reader(b"\0\1")) == 256
    assert enum_decoder(2, None)(Reader(b"\0\0")) == ""
    with pytest.raises(CodecError, match="ENUM member 3 of 2"):
        enum_decoder(1, members)(Reader(b"\3"))


def test_sets() -> None:
    members = ("a", "b", "c")
    assert set_decoder(1, members)(Reader(b"\5")) == ("a", "c")
    assert set_decoder(1, members)(Reader(b"\0")) == ()
    assert set_decoder(3, None)(Reader(b"\0\0\1")) == 65536
    with pytest.raises(CodecError, match="SET bits 1000 of 3 members"):
        set_decoder(1, members)(Reader(b"\x08"))
