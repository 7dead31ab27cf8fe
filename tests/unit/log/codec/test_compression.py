from __future__ import annotations

import zlib

import pytest

from binlane.errors import CodecError
from binlane.log.codec.compression import (
    compress_record,
    decompress_column,
    decompress_record,
    rewritten_record,
)


@pytest.mark.parametrize("length", [0, 1, 255, 256, 70_000, 2**24])
def test_a_record_gives_what_was_put_in(length: int) -> None:
    assert decompress_record(compress_record(bytes(length))) == bytes(length)


def test_a_record_has_its_length_big_endian() -> None:
    record = compress_record(bytes(0x0102))
    assert record[:3].hex() == "820102"


@pytest.mark.parametrize("head", [0x01, 0x91, 0x80, 0x85])
def test_a_record_of_another_kind_is_refused(head: int) -> None:
    with pytest.raises(CodecError, match=f"0x{head:02X} begins no compressed record"):
        decompress_record(bytes((head, 1)) + zlib.compress(b"x"))


def test_a_stream_must_give_the_length_announced() -> None:
    stream = zlib.compress(b"three")
    for wrong in (b"\x81\4" + stream, b"\x81\6" + stream, b"\x81\5" + stream + b"x"):
        with pytest.raises(CodecError, match="does not give"):
            decompress_record(wrong)
    with pytest.raises(CodecError, match="is broken"):
        decompress_record(b"\x81\5" + stream[:-1] + bytes((stream[-1] ^ 1,)))


def test_a_record_is_written_anew_only_if_its_content_changed() -> None:
    odd = b"\x82\0\1" + zlib.compress(b"x", 0)
    assert rewritten_record(b"x", odd) == odd
    assert rewritten_record(b"y", odd) == compress_record(b"y")
    assert rewritten_record(b"y", None) == compress_record(b"y")


# As MariaDB 10.11 stores them.
@pytest.mark.parametrize(
    "record, value",
    [
        ("89c84b4c1c1e0000", b"a" * 200),
        ("0073686f7274", b"short"),
        ("", b""),
    ],
)
def test_compressed_columns(record: str, value: bytes) -> None:
    assert decompress_column(bytes.fromhex(record)) == value


@pytest.mark.parametrize("record", ["11", "8a01", "89c84b4c1c1e00", "89c74b4c1c1e0000"])
def test_broken_compressed_columns(record: str) -> None:
    with pytest.raises(CodecError):
        decompress_column(bytes.fromhex(record))


def test_a_value_is_no_longer_than_an_event_can_be() -> None:
    with pytest.raises(CodecError, match="announces 4294967295 bytes"):
        decompress_record(b"\x84\xff\xff\xff\xff" + zlib.compress(bytes(100)))
