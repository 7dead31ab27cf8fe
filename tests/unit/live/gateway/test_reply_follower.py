"""Where replies end, whatever their shape and however their bytes arrive."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.live.gateway.reply_follower import ReplyFollower
from binlane.log.codec.packets.flags import Capability, Command, ExtendedCapability, ServerStatus
from binlane.log.codec.packets.framing import FRAME_PAYLOAD_MAX, frame, frames
from binlane.log.codec.packets.replies import EofPacket, ErrPacket, OkPacket
from binlane.log.codec.packets.results import ColumnDefinition
from tests.result_sets import encode_result_set

OLD = Capability.PROTOCOL_41
NEW = OLD | Capability.DEPRECATE_EOF | Capability.SESSION_TRACK
NO_EXTENSION = ExtendedCapability(0)
MARIADB = ExtendedCapability.CACHE_METADATA | ExtendedCapability.PROGRESS
IN_TRANSACTION = ServerStatus.AUTOCOMMIT | ServerStatus.IN_TRANSACTION
CURSOR = ServerStatus.AUTOCOMMIT | ServerStatus.CURSOR_EXISTS
MORE = ServerStatus.AUTOCOMMIT | ServerStatus.MORE_RESULTS
ERR = ErrPacket(errno=1064, message="syntax", sqlstate="42000").encode()
COLUMN = ColumnDefinition(name="c").encode()


def _ok(capabilities: Capability, status: ServerStatus = ServerStatus.AUTOCOMMIT) -> bytes:
    return OkPacket(status=status, affected_rows=70_000, insert_id=1 << 40).encode(capabilities)


def _rows(
    capabilities: Capability,
    extended: ExtendedCapability = NO_EXTENSION,
    status: ServerStatus = ServerStatus.AUTOCOMMIT,
) -> list[bytes]:
    return encode_result_set(
        [ColumnDefinition(name="a"), ColumnDefinition(name="b")],
        [["x", None], ["", "y" * 300], [None, None]],
        capabilities=capabilities,
        extended=extended,
        status=status,
    )


def _end(capabilities: Capability, status: ServerStatus = ServerStatus.AUTOCOMMIT) -> bytes:
    if Capability.DEPRECATE_EOF in capabilities:
        return OkPacket(status=status, ends_rows=True).encode(capabilities)
    return EofPacket(status=status).encode()


def _ends(capabilities: Capability) -> list[bytes]:
    return [] if Capability.DEPRECATE_EOF in capabilities else [EofPacket().encode()]


def _prepared(capabilities: Capability, columns: int, parameters: int) -> list[bytes]:
    head = b"\0\x01\0\0\0" + columns.to_bytes(2, "little") + parameters.to_bytes(2, "little")
    payloads = [head + b"\0\0\0"]
    for count in (parameters, columns):
        if count:
            payloads += [COLUMN] * count + _ends(capabilities)
    return payloads


def _replies(capabilities: Capability) -> list[tuple[Command, list[bytes]]]:
    return [
        (Command.QUERY, [_ok(capabilities)]),
        (Command.QUERY, [ERR]),
        (Command.QUERY, _rows(capabilities)),
        (Command.QUERY, [*_rows(capabilities, status=MORE), _ok(capabilities, MORE), ERR]),
        (Command.QUERY, [b"\x01", COLUMN, *_ends(capabilities), b"\x01x", ERR]),
        (Command.STMT_PREPARE, _prepared(capabilities, 2, 3)),
        (Command.STMT_PREPARE, _prepared(capabilities, 0, 0)),
        (Command.STMT_PREPARE, _prepared(capabilities, 0, 1)),
        (
            Command.STMT_EXECUTE,
            [b"\x01", COLUMN, *_ends(capabilities), b"\0\0\xfe", _end(capabilities)],
        ),
        (Command.STMT_FETCH, [b"\0\0\x01a", b"\0\0\x01b", _end(capabilities, MORE)]),
        (Command.FIELD_LIST, [COLUMN, COLUMN, _end(capabilities)]),
        (Command.STATISTICS, [b"Uptime: 1"]),
        (Command.SET_OPTION, [EofPacket().encode()]),
        (Command.CHANGE_USER, [b"\xfemysql_native_password\0abc\0", b"\x01x", _ok(capabilities)]),
    ]


def _split(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(edges)]


@pytest.mark.parametrize("capabilities", [OLD, NEW])
def test_each_reply_ends_at_its_last_byte(capabilities: Capability) -> None:
    for command, payloads in _replies(capabilities):
        tracker = ReplyFollower(capabilities, NO_EXTENSION)
        tracker.expect(command)
        data = frames(payloads, 1)
        tracker.feed(data[:-1])
        assert not tracker.is_idle, (command, payloads)
        tracker.feed(data[-1:])
        assert tracker.is_idle, (command, payloads)


@given(
    st.lists(st.integers(0, 13), min_size=1, max_size=5),
    st.lists(st.integers(min_value=0)),
    st.sampled_from([OLD, NEW]),
)
def test_pipelined_replies_in_any_pieces(
    numbers: list[int], cuts: list[int], capabilities: Capability
) -> None:
    replies = [_replies(capabilities)[number] for number in numbers]
    tracker = ReplyFollower(capabilities, NO_EXTENSION)
    for command, _ in replies:
        tracker.expect(command)
    data = b"".join(frames(payloads, 1) for _, payloads in replies)
    for piece in _split(data, cuts):
        assert not tracker.is_idle
        tracker.feed(piece)
    assert tracker.is_idle


@pytest.mark.parametrize("capabilities", [OLD, NEW])
def test_status_is_that_of_the_last_reply(capabilities: Capability) -> None:
    tracker = ReplyFollower(capabilities, NO_EXTENSION)
    tracker.expect(Command.QUERY)
    tracker.feed(frame(_ok(capabilities, IN_TRANSACTION), 1))
    assert tracker.status == IN_TRANSACTION
    tracker.expect(Command.QUERY)
    tracker.feed(frames(_rows(capabilities, status=ServerStatus.AUTOCOMMIT), 1))
    assert tracker.status == ServerStatus.AUTOCOMMIT


def test_commands_without_a_reply() -> None:
    tracker = ReplyFollower(OLD, NO_EXTENSION)
    for command in (Command.QUIT, Command.STMT_CLOSE, Command.STMT_SEND_LONG_DATA):
        tracker.expect(command)
    assert tracker.is_idle


def test_content_of_a_local_file_is_no_command() -> None:
    tracker = ReplyFollower(OLD, NO_EXTENSION)
    tracker.expect(Command.QUERY)
    tracker.feed(frame(b"\xfbfile.csv", 1))
    assert tracker.wants_local_data
    tracker.take_local_frame(2, is_last=True)
    assert not tracker.is_idle
    tracker.feed(frame(_ok(OLD), 5))
    assert tracker.is_idle


def test_a_cursor_has_no_rows_before_they_are_fetched() -> None:
    tracker = ReplyFollower(OLD, NO_EXTENSION)
    tracker.expect(Command.STMT_EXECUTE, opens_cursor=True)
    tracker.feed(frames([b"\x01", COLUMN, EofPacket(status=CURSOR).encode()], 1))
    assert tracker.is_idle


@pytest.mark.parametrize("opens_cursor", [False, True])
@pytest.mark.parametrize("capabilities", [OLD, NEW])
def test_a_cursor_of_a_routine_keeps_no_rows_back(
    capabilities: Capability, *, opens_cursor: bool
) -> None:
    tracker = ReplyFollower(capabilities, NO_EXTENSION)
    tracker.expect(Command.STMT_EXECUTE, opens_cursor=opens_cursor)
    more = CURSOR | ServerStatus.MORE_RESULTS
    definitions = [b"\x01", COLUMN]
    if capabilities == OLD:
        definitions.append(EofPacket(status=more).encode())
    result = [*definitions, b"\0\0\x01a", _end(capabilities, more)]
    tracker.feed(frames([*result, *result], 1))
    assert not tracker.is_idle
    tracker.feed(frame(_ok(capabilities, CURSOR), 9))
    assert tracker.is_idle


@pytest.mark.parametrize("command", [Command.QUERY, Command.STMT_EXECUTE])
def test_rows_that_nobody_wants_to_fetch_come_at_once(command: Command) -> None:
    tracker = ReplyFollower(OLD, NO_EXTENSION)
    tracker.expect(command)
    tracker.feed(frames([b"\x01", COLUMN, EofPacket(status=CURSOR).encode()], 1))
    assert not tracker.is_idle
    tracker.feed(frames([b"\0\0\x01a", EofPacket(status=CURSOR).encode()], 4))
    assert tracker.is_idle


@pytest.mark.parametrize("capabilities", [OLD, NEW])
def test_column_definitions_that_the_client_has_are_not_sent_again(
    capabilities: Capability,
) -> None:
    tracker = ReplyFollower(capabilities, MARIADB)
    tracker.expect(Command.STMT_EXECUTE)
    tracker.feed(frames([b"\x02\0", *_ends(capabilities), b"\0\0\x01a\x01b"], 1))
    assert not tracker.is_idle
    tracker.feed(frame(_end(capabilities), 4))
    assert tracker.is_idle


def test_progress_is_no_error() -> None:
    tracker = ReplyFollower(OLD, MARIADB)
    tracker.expect(Command.QUERY)
    tracker.feed(frame(b"\xff\xff\xff\x01\x01\x02\x10\x00\x00\x05copy", 1))
    assert not tracker.is_idle
    tracker.feed(frame(_ok(OLD), 2))
    assert tracker.is_idle


@pytest.mark.parametrize("capabilities", [OLD, NEW])
def test_a_row_of_16_mb_is_no_end_of_rows(capabilities: Capability) -> None:
    tracker = ReplyFollower(capabilities, NO_EXTENSION)
    tracker.expect(Command.QUERY)
    tracker.feed(frames([b"\x01", COLUMN, *_ends(capabilities)], 1))
    length = FRAME_PAYLOAD_MAX + 5
    tracker.feed(frame(b"\xfe" + length.to_bytes(8, "little") + bytes(length), 4))
    assert not tracker.is_idle
    tracker.feed(frame(_end(capabilities), 6))
    assert tracker.is_idle
