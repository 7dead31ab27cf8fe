from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.codec.event import encode_event
from binlane.codec.format import MAGIC
from binlane.codec.registry import OpaqueEvent
from binlane.codec.transaction import XidEvent
from binlane.codec.types import ChecksumAlgorithm, EventType, HeaderFlag
from binlane.errors import CodecError, TruncatedError, UnsupportedError
from binlane.grouping.walk import EVENT_LENGTH_MAX, Walker, walk
from tests.build import PLAIN_FORMAT, event, format_description, log

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
    with pytest.raises(UnsupportedError, match="encrypted by MySQL") as caught:
        list(walk([b"\xfdbin" + bytes(508)], file="f"))
    assert caught.value.position == 0


def test_an_encrypted_file_of_mariadb_is_refused_after_its_start_encryption() -> None:
    start = event(OpaqueEvent(data=bytes(17)), type_code=EventType.START_ENCRYPTION)
    assert len(list(walk([log(start)], file="f"))) == 2
    data = log(start, XidEvent(xid=1))
    with pytest.raises(UnsupportedError, match="encrypted by MariaDB") as caught:
        list(walk([data], file="f"))
    assert caught.value.position == len(data) - 31


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
