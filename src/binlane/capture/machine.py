"""A replica's side of the connection to a source, as a state machine: bytes in, outputs out.

It logs in, finds out whether the source's log can be the ground truth, asks for the log from a
position on, and gives the event groups that come. It keeps no time, opens nothing and never waits:
whoever drives it sends what it says, and feeds it what comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from binlane.capture.dialogue import (
    Account,
    Command,
    Dialogue,
    Step,
    UpgradeToTls,
    ask,
    log_in,
    refusal,
    tell,
)
from binlane.capture.event_stream import EventStream
from binlane.capture.settings import Start, StartAt
from binlane.capture.source_facts import FACTS_STATEMENT, SourceFacts
from binlane.codec.format import MAGIC, Format
from binlane.codec.packets.commands import BinlogDump, RegisterSlave
from binlane.codec.packets.flags import DumpFlag
from binlane.codec.packets.framing import Packet, PacketSplitter, frame, frame_count
from binlane.codec.packets.replies import is_eof, is_error
from binlane.codec.types import ChecksumAlgorithm
from binlane.errors import CodecError, ConfigError, PeerError
from binlane.grouping.event_group import EventGroup
from binlane.positions import FilePosition, GtidPosition

# 4 is MARIA_SLAVE_CAPABILITY_GTID: events are sent as they stand in the file.
_CAPABILITY: Final = 4
_NS_PER_S: Final = 1_000_000_000
_REPORT_HOST: Final = "binlane"


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRequest:
    """What is asked of the source.

    Attributes:
        account: Who logs in.
        start: From where on.
        server_id: binlane's id there.
        heartbeat_period_s: How often an idle source shall say that it lives.
    """

    account: Account
    start: Start
    server_id: int
    heartbeat_period_s: float


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes for the source."""

    data: bytes


@dataclass(frozen=True, slots=True)
class StartTls:
    """Everything that follows goes through TLS."""


@dataclass(frozen=True, slots=True)
class Streaming:
    """The source was asked for its log: event groups follow."""

    facts: SourceFacts


@dataclass(frozen=True, slots=True)
class Ended:
    """The source ended the dump without an error, as it does when it shuts down."""


Output = Send | StartTls | Streaming | Ended | EventGroup


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a conversation went that ended with the request for the log."""

    facts: SourceFacts
    format: Format
    position: GtidPosition | None


@dataclass(slots=True)
class SourceMachine:
    """One connection to a source.

    Attributes:
        request: What is asked of it.
        stream: The events that come; None until they are asked for.
    """

    request: DumpRequest
    stream: EventStream | None = None
    _splitter: PacketSplitter = field(default_factory=PacketSplitter)
    _sequence: int = 0
    _dialogue: Dialogue[_Asked] = field(init=False)

    def __post_init__(self) -> None:
        self._dialogue = _ask_for_log(self.request)
        next(self._dialogue)

    def receive(self, data: bytes) -> Iterator[Output]:
        """Take bytes of the source; give what follows from them, in order.

        What was given before an error stands.

        Raises:
            PeerError: If the source refuses something or breaks the protocol.
            ConfigError: If its log cannot be the ground truth, or the start is not in it.
            CodecError: If an event is damaged.
        """
        for packet in self._packets(data):
            self._check_sequence(packet)
            if self.stream is None:
                yield from self._converse(packet.payload)
            elif is_error(packet.payload):
                raise refusal(packet.payload, peer=self._peer, phase="dump")
            elif is_eof(packet.payload):
                yield Ended()
            else:
                yield from self.stream.feed(packet.payload)

    @property
    def _peer(self) -> str:
        return self.request.account.peer

    @property
    def _phase(self) -> str:
        return "login" if self.stream is None else "dump"

    def _packets(self, data: bytes) -> list[Packet]:
        try:
            return self._splitter.feed(data)
        except CodecError as error:
            raise self._broken(error) from None

    def _broken(self, error: CodecError) -> PeerError:
        return PeerError(error.message, peer=self._peer, phase=self._phase, hint=error.hint)

    def _check_sequence(self, packet: Packet) -> None:
        if packet.sequence != self._sequence:
            raise PeerError(
                f"packet {packet.sequence} came where packet {self._sequence} is expected",
                peer=self._peer,
                phase=self._phase,
            )
        self._sequence = packet.next_sequence

    def _converse(self, payload: bytes) -> Iterator[Output]:
        try:
            steps = self._dialogue.send(payload)
        except StopIteration as stop:
            asked: _Asked = stop.value
        except CodecError as error:
            raise self._broken(error) from None
        else:
            yield from map(self._take_step, steps)
            return
        self.stream = EventStream(asked.format, asked.position)
        yield Streaming(asked.facts)
        yield from self._dump()

    def _dump(self) -> Iterator[Output]:
        # By GTID the source ignores file and position; else an empty name is its first file.
        dump = BinlogDump(
            position=len(MAGIC),
            flags=DumpFlag.SEND_ANNOTATE_ROWS,
            server_id=self.request.server_id,
            file="",
        )
        yield self._take_step(Command(dump.encode()))

    def _take_step(self, step: Step) -> Send | StartTls:
        if isinstance(step, UpgradeToTls):
            return StartTls()
        if isinstance(step, Command):
            self._sequence = 0
        data = frame(step.payload, self._sequence)
        self._sequence = (self._sequence + frame_count(len(step.payload))) & 0xFF
        return Send(data)


def _ask_for_log(request: DumpRequest) -> Dialogue[_Asked]:
    """Everything up to the dump command."""
    peer = request.account.peer
    greeting = yield from log_in(request.account)
    variables = yield from ask(FACTS_STATEMENT, peer=peer)
    rows = variables.texts() if variables else ()
    facts = SourceFacts.of({str(name).lower(): value or "" for name, value in rows})
    facts.check(server_id=request.server_id)
    position = yield from _start_position(request.start, facts, peer=peer)
    yield from ask(_settings_statement(request, position), peer=peer)
    answer = yield from ask("SELECT @master_binlog_checksum", peer=peer)
    checksum = answer.texts()[0][0] if answer else None
    register = RegisterSlave(server_id=request.server_id, host=_REPORT_HOST)
    yield from tell(register.encode(), peer=peer, phase="register")
    format_ = Format(
        server_version=greeting.server_version,
        flavor=facts.flavor,
        checksum=ChecksumAlgorithm.CRC32 if checksum == "CRC32" else ChecksumAlgorithm.NONE,
        post_header_lengths=b"",
    )
    return _Asked(facts, format_, position)


def _start_position(
    start: Start, facts: SourceFacts, *, peer: str
) -> Dialogue[GtidPosition | None]:
    """The GTID position to ask for; None to begin with the source's first file."""
    if isinstance(start, GtidPosition):
        return start
    if start is StartAt.OLDEST:
        return None
    if start is StartAt.NOW:
        return facts.gtid_binlog_position
    return (yield from _position_at(start, peer=peer))


def _position_at(start: FilePosition, *, peer: str) -> Dialogue[GtidPosition]:
    file = start.file.replace("\\", "\\\\").replace("'", "''")
    answer = yield from ask(f"SELECT binlog_gtid_pos('{file}', {start.position})", peer=peer)
    text = answer.texts()[0][0] if answer else None
    if text is None:
        raise ConfigError(
            f"the source has no position {start} in its log",
            key="source.start",
            hint="SHOW BINARY LOGS and SHOW BINLOG EVENTS on the source name those that it has",
        )
    return GtidPosition.parse(text)


def _settings_statement(request: DumpRequest, position: GtidPosition | None) -> str:
    settings = {
        "@master_heartbeat_period": str(int(request.heartbeat_period_s * _NS_PER_S)),
        "@master_binlog_checksum": "@@global.binlog_checksum",
        "@mariadb_slave_capability": str(_CAPABILITY),
    }
    if position is not None:
        settings["@slave_connect_state"] = f"'{position}'"
        settings["@slave_gtid_strict_mode"] = "0"
        settings["@slave_gtid_ignore_duplicates"] = "0"
    return "SET " + ", ".join(f"{name} = {value}" for name, value in settings.items())
