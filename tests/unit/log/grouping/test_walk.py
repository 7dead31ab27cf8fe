from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.errors import CodecError, TruncatedError, UnsupportedError
from binlane.log.codec.control import RotateEvent
from binlane.log.codec.encryption import KeyRing, StartEncryptionEvent
from binlane.log.codec.event import encode_event
from binlane.log.codec.format import EVENT_LENGTH_MAX, MAGIC
from binlane.log.codec.registry import OpaqueEvent
from binlane.log.codec.transaction import XidEvent
from binlane.log.codec.types import ChecksumAlgorithm, HeaderFlag
from binlane.log.grouping.walk import Walker, walk
from tests.build import PLAIN_FORMAT, event, format_description, log
from tests.encryption import encrypt_file, encrypt_log

PLAIN = format_description(checksum=ChecksumAlgorithm.NONE)
LOG = log(XidEvent(xid=1), XidEvent(xid=2), head=PLAIN)
FIRST = len(LOG) - 2 * 27


def test_events_come_with_their_positions() -> None:
    assert [item.position for item in walk([LOG], file="f")] == [4, FIRST, FIRST + 27]


def test_empty_chunks_are_no_end() -> None:
    chunks = [b"", LOG[:2], b"", LOG[2:300], b"", LOG[300:], b""]
    assert len(list(walk(chunks, file="f"))) == 3


def test_the_magic_alone_is_an_empty_log() -> None:
    assert list(walk([MAGIC], file="f")) == []


@pytest.mark.parametrize("data", [b"", MAGIC[:3], b"SQL: not a binlog", MAGIC[:3] + b"x"])
def test_what_is_no_binlog_is_told_by_its_magic(data: bytes) -> None:
    with pytest.raises(CodecError, match="no binlog file") as caught:
        list(walk([data], file="f"))
    assert (caught.value.file, caught.value.position) == ("f", 0)
    assert caught.value.hint


def test_an_encrypted_file_of_mysql_is_refused_at_once() -> None:
    data = encrypt_file(MAGIC, key_id="k", key=bytes(32), password=bytes(32))
    with pytest.raises(UnsupportedError, match="encrypted by MySQL with the key k") as caught:
        list(walk([data], file="f"))
    assert caught.value.position == 0


@pytest.mark.parametrize("checksum", [ChecksumAlgorithm.CRC32, ChecksumAlgorithm.NONE])
def test_an_encrypted_file_of_mariadb_is_refused_after_its_start_encryption(
    checksum: ChecksumAlgorithm,
) -> None:
    head = format_description(checksum=checksum)
    start = StartEncryptionEvent(scheme=1, key_version=1, nonce=bytes(12))
    assert len(list(walk([log(start, head=head)], file="f"))) == 2
    plain = log(start, XidEvent(xid=1), head=head)
    assert len(list(walk([plain], file="f"))) == 3
    data = encrypt_log(plain, key=bytes(16))
    with pytest.raises(UnsupportedError, match="encrypted by MariaDB") as caught:
        list(walk([data], file="f"))
    assert caught.value.position == len(log(start, head=head))
    events = list(walk([data], file="f", keys=KeyRing(mariadb={1: bytes(16)})))
    assert events == list(walk([plain], file="f"))


@pytest.mark.parametrize("length", [0, 18, EVENT_LENGTH_MAX + 1, 2**32 - 1])
def test_impossible_lengths_are_not_believed(length: int) -> None:
    damaged = LOG[: FIRST + 9] + length.to_bytes(4, "little") + LOG[FIRST + 13 :]
    with pytest.raises(CodecError, match=f"XID says it is {length} bytes long") as caught:
        list(walk([damaged], file="f"))
    assert caught.value.position == FIRST


def test_a_cut_file_says_what_is_missing() -> None:
    with pytest.raises(
        TruncatedError, match="ends inside XID: 27 bytes are announced, 20"
    ) as caught:
        list(walk([LOG[:-7]], file="f"))
    assert str(caught.value).endswith(f"(f:{FIRST + 27})")
    with pytest.raises(TruncatedError, match="5 bytes stand after the last event") as caught:
        list(walk([LOG + bytes(5)], file="f"))
    assert caught.value.position == len(LOG)


def test_a_position_of_zero_is_none_and_a_wrong_one_is_damage() -> None:
    head = log(head=PLAIN)
    zero = encode_event(event(XidEvent(xid=1)), PLAIN_FORMAT)
    assert len(list(walk([head + zero], file="f"))) == 2
    wrong = encode_event(event(XidEvent(xid=1), next_position=5), PLAIN_FORMAT)
    with pytest.raises(CodecError, match=f"says it ends at 5, it ends at {len(head) + 27}"):
        list(walk([head + wrong], file="f"))


@pytest.mark.parametrize("flag", [HeaderFlag.ARTIFICIAL, HeaderFlag.RELAY_LOG])
def test_positions_of_another_log_are_left_alone(flag: HeaderFlag) -> None:
    other = encode_event(event(XidEvent(xid=1), next_position=5, flags=flag), PLAIN_FORMAT)
    assert len(list(walk([log(head=PLAIN) + other], file="f"))) == 2


def test_behind_the_rotate_of_its_source_a_relay_log_has_positions_of_another_log() -> None:
    def encoded(next_position: int, body: RotateEvent | XidEvent) -> bytes:
        return encode_event(event(body, next_position=next_position), format_description().format)

    rotate = RotateEvent(position=4, file="master-bin.000003")
    data = log() + encoded(0, rotate) + encoded(4711, XidEvent(xid=7))
    assert [item.header.next_position for item in walk([data], file="f")][1:] == [0, 4711]
    with pytest.raises(CodecError, match="says it ends at 4711"):
        list(walk([log() + encoded(4711, XidEvent(xid=7))], file="f"))


def test_positions_of_more_than_4_gib_wrap() -> None:
    position = 2**32 + 100
    made = event(XidEvent(xid=1), next_position=127)
    walker = Walker(
        [encode_event(made, PLAIN_FORMAT)], file="f", position=position, format_=PLAIN_FORMAT
    )
    (read,) = walker.events()
    assert (read.position, read.next_position) == (position, position + 27)
    assert walker.position == position + 27


def test_a_second_format_description_counts_from_there_on() -> None:
    head = log()
    second = encode_event(event(PLAIN), None)
    xid = encode_event(event(XidEvent(xid=1)), PLAIN_FORMAT)
    *_, last = walk([head + second + xid], file="f")
    assert last.body == XidEvent(xid=1)


def test_unknown_types_are_given_as_they_are() -> None:
    unknown = event(OpaqueEvent(data=b"future"), type_code=200)
    *_, last = walk([log(unknown)], file="f")
    assert last.body == OpaqueEvent(data=b"future")
    assert last.header == replace(unknown.header, length=29, next_position=len(log(unknown)))


@pytest.mark.parametrize(
    ("file", "data"),
    [("binlog-000000.ibb", bytes(100)), ("copy", b"\xfe\xfe\x0d\x01" + bytes(100))],
)
def test_binlogs_inside_of_innodb_are_told_and_refused(file: str, data: bytes) -> None:
    with pytest.raises(UnsupportedError, match="inside of InnoDB") as caught:
        list(walk([data], file=file))
    assert (caught.value.position, caught.value.hint[:13]) == (0, "read it from ")
