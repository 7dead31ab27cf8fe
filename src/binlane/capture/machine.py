"""A replica's side of the connection to a source, as a state machine: bytes in, outputs out.

It logs in, finds out whether the source's log can be the ground truth, asks for the log from a
position on, and gives the event groups that come. It keeps no time, opens nothing and never waits:
whoever drives it sends what it says, and feeds it what comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from binlane.capture.event_stream import EventStream
from binlane.capture.settings import Start, StartAt
from binlane.capture.source_facts import FACTS_STATEMENT, SourceFacts
from binlane.client.dialogue import (
    GTID_CAPABILITY,
    Account,
    Command,
    Dialogue,
    ask,
    log_in,
    refusal,
    tell,
)
from binlane.client.packet_flow import PacketFlow, Send, StartTls
from binlane.codec.format import MAGIC, Format
from binlane.codec.packets.commands import BinlogDump, RegisterSlave
from binlane.codec.packets.flags import DumpFlag
from binlane.codec.packets.replies import is_eof, is_error
from binlane.codec.types import ChecksumAlgorithm
from binlane.errors import ConfigError
from binlane.grouping.event_group import EventGroup
from binlane.positions import FilePosition, GtidPosition

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
    _flow: PacketFlow[_Asked] = field(init=False)

    def __post_init__(self) -> None:
        self._flow = PacketFlow(_ask_for_log(self.request), peer=self.request.account.peer)

    def receive(self, data: bytes) -> Iterator[Output]:
        """Take bytes of the source; give what follows from them, in order.

        What was given before an error stands.

        Raises:
            PeerError: If the source refuses something or breaks the protocol.
            ConfigError: If its log cannot be the ground truth, or the start is not in it.
            CodecError: If an event is damaged.
        """
        for payload in self._flow.packets(data):
            if self.stream is None:
                yield from self._flow.converse(payload)
                if self._flow.result is not None:
                    yield from self._begin(self._flow.result)
            elif is_error(payload):
                raise refusal(payload, peer=self.request.account.peer, phase="dump")
            elif is_eof(payload):
                yield Ended()
            else:
                yield from self.stream.feed(payload)

    def _begin(self, asked: _Asked) -> Iterator[Output]:
        self.stream = EventStream(asked.format, asked.position)
        yield Streaming(asked.facts)
        # By GTID the source ignores file and position; else an empty name is its first file.
        dump = BinlogDump(
            position=len(MAGIC),
            flags=DumpFlag.SEND_ANNOTATE_ROWS,
            server_id=self.request.server_id,
            file="",
        )
        yield self._flow.take_step(Command(dump.encode()))


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
        "@mariadb_slave_capability": str(GTID_CAPABILITY),
    }
    if position is not None:
        settings["@slave_connect_state"] = f"'{position}'"
        settings["@slave_gtid_strict_mode"] = "0"
        settings["@slave_gtid_ignore_duplicates"] = "0"
    return "SET " + ", ".join(f"{name} = {value}" for name, value in settings.items())
