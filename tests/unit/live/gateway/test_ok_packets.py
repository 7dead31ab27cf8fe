"""OK packets that are read in short form are those of the codec."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import CodecError
from binlane.live.gateway.judge import OkFields, StatementReply
from binlane.live.gateway.ok_packets import reply_of, told_gtids
from binlane.live.gateway.reply_follower import ReplyFollower, Role
from binlane.log.codec.packets.flags import Capability, Command, ExtendedCapability, ServerStatus
from binlane.log.codec.packets.framing import frame
from binlane.log.codec.packets.replies import OkPacket
from binlane.log.codec.packets.session_state import SessionState

OLD = Capability.PROTOCOL_41
NEW = OLD | Capability.SESSION_TRACK
_NUMBERS = st.sampled_from([0, 1, 250, 251, 252, 65_535, 65_536, 1 << 24, (1 << 64) - 1])
_TEXTS = st.text(max_size=5) | st.sampled_from(["x" * 250, "y" * 251, "z" * 70_000])


class Told:
    """Remembers what it is told."""

    def __init__(self, warnings: int, *, hides_gtids: bool = False) -> None:
        self._warnings = warnings
        self.hides_gtids = hides_gtids
        self.replies: list[StatementReply] = []

    def answered(self, replies: list[StatementReply]) -> int:
        """As of `Listener`."""
        self.replies += replies
        return self._warnings

    def answered_at_once(self, ok: OkFields) -> bool:
        """As of `Listener`: it is told by `answered`."""
        del ok
        return False

    def own_answered(self, reply: StatementReply, payload: bytes) -> None:
        """Nothing is binlane's own here."""


def _tracker(source: Capability, client: Capability, told: Told) -> ReplyFollower:
    tracker = ReplyFollower(source, ExtendedCapability(0), client=client, listener=told)
    tracker.expect(Command.QUERY, Role.JUDGED)
    return tracker


@pytest.mark.parametrize("sides", [(OLD, OLD), (NEW, OLD), (NEW, NEW)])
@given(
    numbers=st.tuples(_NUMBERS, _NUMBERS),
    count=st.sampled_from([0, 1, 65_535]),
    info=_TEXTS,
    state=st.none()
    | st.builds(
        SessionState,
        variables=st.dictionaries(_TEXTS | st.just("last_gtid"), _TEXTS, max_size=2),
        database=st.none() | _TEXTS,
        gtids=_TEXTS,
    ),
    warnings=st.sampled_from([0, 2]),
    hides=st.booleans(),
    cut=st.sampled_from([0, 1, 4, 5, 11]),
)
def test_any_ok_packet(  # noqa: PLR0917 - all that it may hold, in one piece or in two
    sides: tuple[Capability, Capability],
    numbers: tuple[int, int],
    count: int,
    info: str,
    state: SessionState | None,
    warnings: int,
    cut: int,
    *,
    hides: bool,
) -> None:
    source, client = sides
    status = ServerStatus.AUTOCOMMIT
    session_state = b""
    if state is not None and Capability.SESSION_TRACK in source:
        status |= ServerStatus.SESSION_STATE_CHANGED
        session_state = state.encode()
    ok = OkPacket(
        affected_rows=numbers[0],
        insert_id=numbers[1],
        status=status,
        warnings=count,
        info=info.encode(),
        session_state=session_state,
    )
    told = Told(warnings, hides_gtids=hides)
    tracker, packet = _tracker(source, client, told), frame(ok.encode(source), 1)
    got = tracker.feed(packet[:cut]) + tracker.feed(packet[cut:])
    assert tracker.is_idle
    assert told.replies == [reply_of(OkPacket.decode(ok.encode(source)))]
    if state is not None and hides and Capability.SESSION_TRACK in source:
        variables = {name: value for name, value in state.variables.items() if name != "last_gtid"}
        state = replace(state, variables=variables, gtids="")
        session_state = state.encode()
        if not session_state:
            status &= ~ServerStatus.SESSION_STATE_CHANGED
    more = OkPacket(
        affected_rows=numbers[0],
        insert_id=numbers[1],
        status=status,
        warnings=min(count + warnings, 65_535),
        info=info.encode(),
        session_state=session_state,
    )
    assert got == frame(more.encode(client), 1)


@pytest.mark.parametrize("variable", ["a", "last_gtid"])
def test_damaged_packets_are_errors(variable: str) -> None:
    ok = OkPacket(
        status=ServerStatus.AUTOCOMMIT | ServerStatus.SESSION_STATE_CHANGED,
        info=b"info",
        session_state=SessionState(variables={variable: "b"}).encode(),
    ).encode(NEW)
    for end in range(1, len(ok)):
        if end in (7, 7 + 5):
            continue  # a packet may end there
        with pytest.raises(CodecError):
            _tracker(NEW, OLD, Told(0)).feed(frame(ok[:end], 1))
    with pytest.raises(CodecError):
        _tracker(NEW, OLD, Told(0)).feed(frame(ok + b"\0", 1))


@pytest.mark.parametrize("role", list(Role)[:3])
def test_gtids_reach_no_client_that_has_not_asked(role: Role) -> None:
    states = SessionState(variables={"last_gtid": "0-1-2"}, gtids="u:1")
    ok = OkPacket(
        status=ServerStatus.AUTOCOMMIT | ServerStatus.SESSION_STATE_CHANGED,
        session_state=states.encode(),
    ).encode(NEW)
    told = Told(0, hides_gtids=True)
    tracker = ReplyFollower(NEW, ExtendedCapability(0), client=NEW, listener=told)
    tracker.expect(Command.QUERY, role)
    assert tracker.feed(frame(ok, 1)) == frame(OkPacket().encode(NEW), 1)
    tracker.expect(Command.QUERY, role)
    told.hides_gtids = False
    assert tracker.feed(frame(ok, 1)) == frame(ok, 1)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (SessionState(variables={"last_gtid": "0-1-12"}), "0-1-12"),
        (SessionState(gtids="3e11fa47-71ca-11e1-9e33-c80aa9429562:23"), None),
        (SessionState(variables={"last_gtid": ""}), None),
        (SessionState(variables={"last_gtid": "0-1-12", "autocommit": "ON"}), None),
        (SessionState(variables={"autocommit": "ON"}), None),
        (SessionState(database="d"), None),
        (SessionState(variables={"last_gtid": "0-1-12," * 40}), None),
    ],
)
def test_gtids_of_a_state_that_tells_nothing_else(state: SessionState, told: str | None) -> None:
    expected = state.gtids or told
    assert told_gtids(state.encode()) == expected
    assert told_gtids(state.encode()[:-1]) is None
