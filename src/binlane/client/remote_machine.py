"""Reading the files of a server's log, MariaDB's or MySQL's, as `cat` asks for them.

As the tools of the servers do: nothing is registered, the server's settings are taken as they are,
and at the end of its log the server says so, unless it is asked to wait for more. Pure: bytes in,
outputs out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from binlane.client.dialogue import (
    GTID_CAPABILITY,
    Account,
    Dialogue,
    SendCommand,
    ask,
    log_in,
    refusal,
)
from binlane.client.packet_events import HEARTBEATS, PacketEvents, is_artificial, marked_event
from binlane.client.packet_flow import PacketFlow, Send, StartTls
from binlane.errors import PeerError
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import HEADER_LENGTH, MAGIC, Format, flavor_of
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid
from binlane.log.codec.packets.flags import DumpFlag
from binlane.log.codec.packets.replies import is_eof, is_error
from binlane.log.codec.types import ChecksumAlgorithm, EventType, Flavor, HeaderFlag
from binlane.positions import GtidSet

HEARTBEAT_PERIOD_S: Final = 15
_NS_PER_S: Final = 1_000_000_000
# Plain ints: they are looked at once an event. Places in a packet, behind its mark.
_TYPE_AT: Final = 1 + 4
_FLAGS_AT: Final = 1 + 17
_ARTIFICIAL: Final = int(HeaderFlag.ARTIFICIAL)
_RARE_TYPES: Final = frozenset(
    map(
        int,
        (
            EventType.ROTATE,
            EventType.FORMAT_DESCRIPTION,
            EventType.HEARTBEAT,
            EventType.HEARTBEAT_V2,
        ),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRequest:
    """A request for a server's log.

    Attributes:
        account: The account that logs in.
        file: The name of a file of the server's log.
        position: The place to start in that file.
        server_id: The id with which to appear; 0 is nobody, whom no replica can displace.
        waits: True if the server shall wait for more at the end of its log.
        excluded: MySQL: leave these GTIDs out.
        is_raw: True to give the bytes of the one file, and to end where it does.
    """

    account: Account
    file: str
    position: int = len(MAGIC)
    server_id: int = 0
    waits: bool = False
    excluded: GtidSet | None = None
    is_raw: bool = False


@dataclass(frozen=True, slots=True)
class RemoteEvent:
    """An event of a server's log.

    Attributes:
        file: The server's file that it stands in.
        event: Decoded, with its position there.
        data: The event's bytes as they came.
    """

    file: str
    event: Event
    data: bytes


@dataclass(frozen=True, slots=True)
class RemoteBytes:
    """Bytes of a server's file: an event, not looked at.

    Attributes:
        data: The bytes behind those given before.
    """

    data: bytes


@dataclass(frozen=True, slots=True)
class RemoteEnd:
    """The server has sent its log to the end."""


RemoteOutput = Send | StartTls | RemoteEvent | RemoteBytes | RemoteEnd


class RemoteMachine:
    """One connection that a log is read from."""

    def __init__(self, request: RemoteRequest) -> None:
        """Prepare for the server's first bytes."""
        self._request = request
        self._flow = PacketFlow(_prepare(request), peer=request.account.peer)
        self._events: PacketEvents | None = None
        self._files = 0

    def receive(self, data: bytes) -> Iterator[RemoteOutput]:
        """Take bytes from the server; return the items that they complete.

        Events that the server makes for the dump alone are not among them.

        Raises:
            PeerError: If the server refuses something or breaks the protocol.
            CodecError: If an event is damaged.
        """
        for payload in self._flow.packets(data):
            if self._events is None:
                yield from self._flow.converse(payload)
                if self._flow.result is not None:
                    self._events = PacketEvents(self._flow.result)
                    yield self._flow.take_step(SendCommand(self._dump(self._flow.result.flavor)))
            elif is_error(payload):
                raise refusal(payload, peer=self._request.account.peer, phase="dump")
            elif is_eof(payload):
                yield RemoteEnd()
            elif self._request.is_raw:
                yield from self._raw(payload)
            else:
                event = self._events.feed(payload)
                if not is_artificial(event) and event.header.type_code not in HEARTBEATS:
                    yield RemoteEvent(self._events.file, event, payload[1:])

    def _raw(self, payload: bytes) -> Iterator[RemoteBytes | RemoteEnd]:
        """Return the bytes of an event, if the event is in the requested file."""
        if len(payload) > HEADER_LENGTH:
            code, flags = payload[_TYPE_AT], payload[_FLAGS_AT]
            if code not in _RARE_TYPES and not flags & _ARTIFICIAL:
                yield RemoteBytes(payload[1:])
                return
        header = EventHeader.decode(payload[1 : 1 + HEADER_LENGTH])
        code = header.type_code
        is_made_up = bool(header.flags & _ARTIFICIAL) or (
            code == EventType.FORMAT_DESCRIPTION and not header.next_position
        )
        if code == EventType.ROTATE and is_made_up:
            # The first one names the file that was asked for, another one the file behind it.
            self._files += 1
            if self._files > 1:
                yield RemoteEnd()
        elif not is_made_up and code not in {EventType.HEARTBEAT, EventType.HEARTBEAT_V2}:
            yield RemoteBytes(marked_event(payload))

    def _dump(self, flavor: Flavor) -> bytes:
        request = self._request
        flags = DumpFlag(0) if request.waits else DumpFlag.NON_BLOCK
        if request.excluded is not None:
            if flavor is not Flavor.MYSQL:
                raise PeerError(
                    "the server is MariaDB, which takes no MySQL GTIDs",
                    peer=request.account.peer,
                    phase="dump",
                    hint="--read-from-remote-server reads its files",
                )
            return _dump_gtid(request, request.excluded, flags)
        if flavor is Flavor.MARIADB:
            flags |= DumpFlag.SEND_ANNOTATE_ROWS
        return BinlogDump(
            position=request.position,
            flags=flags,
            server_id=request.server_id,
            file=request.file,
        ).encode()


def _dump_gtid(request: RemoteRequest, excluded: GtidSet, flags: DumpFlag) -> bytes:
    has_tags = any(run.tag for run in excluded.runs)
    done = PreviousGtidsEvent(runs=excluded.runs, has_tags=has_tags)
    return BinlogDumpGtid(
        flags=flags | DumpFlag.THROUGH_GTID,
        server_id=request.server_id,
        done=done.encode(_NO_FORMAT),
        file=request.file,
        position=request.position,
    ).encode()


def _prepare(request: RemoteRequest) -> Dialogue[Format]:
    """Everything up to the dump command; how the first events are written."""
    peer = request.account.peer
    greeting = yield from log_in(request.account)
    yield from ask(_settings_statement(request, flavor_of(greeting.server_version)), peer=peer)
    return Format(
        server_version=greeting.server_version,
        flavor=flavor_of(greeting.server_version),
        checksum=ChecksumAlgorithm.CRC32,
        post_header_lengths=b"",
    )


def _settings_statement(request: RemoteRequest, flavor: Flavor) -> str:
    # To know checksums is to get the events as they stand in the file, with theirs or without.
    settings = {"@master_binlog_checksum": "'CRC32'", "@source_binlog_checksum": "'CRC32'"}
    # Likewise of binlane, whose files may have more in statements; to servers it means nothing.
    settings["@binlane_tables_info"] = "1"
    if request.waits:
        period = str(HEARTBEAT_PERIOD_S * _NS_PER_S)
        settings |= {"@master_heartbeat_period": period, "@source_heartbeat_period": period}
    if flavor is Flavor.MARIADB:
        settings["@mariadb_slave_capability"] = str(GTID_CAPABILITY)
    return "SET " + ", ".join(f"{name} = {value}" for name, value in settings.items())


_NO_FORMAT: Final = Format(
    server_version="", flavor=Flavor.MYSQL, checksum=ChecksumAlgorithm.NONE, post_header_lengths=b""
)
