"""One connection to a source, polled: connect, wait by a selector, take what came.

Nothing here waits but `connect`, tries again or ends anything: whoever drives a capture does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from binlane.client.account import account_at
from binlane.client.connection import ServerConnection
from binlane.client.dialogue import Account, Dialogue, SendCommand
from binlane.client.packet_flow import PacketFlow
from binlane.client.passing_errors import is_passing
from binlane.errors import BinlaneError, CodecError, PeerError
from binlane.live.capture.asking import DumpStart, LogRequest, ask_for_log, ask_for_place
from binlane.live.capture.event_stream import EventStream
from binlane.live.capture.identity import (
    PHASE,
    SourceIdentity,
    check_anonymous,
    check_file,
    check_missing_file,
    goes_beyond,
)
from binlane.live.capture.place_search import no_place, position_before
from binlane.live.capture.raw_stream import RawStream
from binlane.live.capture.settings import SourceSettings, Start
from binlane.live.capture.source_facts import SourceFacts
from binlane.live.capture.spill import SpillFolder
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.format import MAGIC
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.raw import Item
from binlane.log.kernels.load import is_compiled
from binlane.positions import FilePosition, GtidSet, Position

logger = logging.getLogger(__name__)

_KERNELS: Final = ("packets", "scan")
# Most bytes that one `receive` takes, so that whoever polls several sources gets to all of them.
_TURN_BYTES: Final = 8 << 20
# Two heartbeats may be late on a busy machine; a source that is silent for longer is dead.
_SILENT_PERIODS: Final = 2.5
_SILENT_MIN_S: Final = 1.0
_NO_SUCH_PLACE: Final = 1236
_HINT: Final = "check source.url, and whether the server runs"
_CA_HINT: Final = "name the certificate that signed it: ?ssl-ca=PATH"


class Capture:
    """The log of one source from a position on, one connection after the other.

    Attributes:
        settings: The address of the source, and how it is captured.
        server_id: The id that binlane has as a replica of the source.
        facts: The source's facts at the last connect; None before.
        heard_at_s: The time when bytes last came, by `time.monotonic`; None before the first.
    """

    def __init__(  # the source, the place in it, and what is ours
        self,
        settings: SourceSettings,
        start: Start | Position,
        *,
        spill: Path,
        server_id: int,
        identity: SourceIdentity | None = None,
        uses_kernels: bool = True,
    ) -> None:
        """Prepare; nothing is opened.

        Args:
            settings: The address of the source, and how it is captured.
            start: The start of the first connect's log; later ones go on at `position`.
            spill: Folder for transactions that are too large to be held, of this capture alone.
            server_id: binlane's id there; of no other connection to the source.
            identity: The identity that was remembered with the position of the start; None at the
                first time.
            uses_kernels: True if groups come as bytes, where the kernels for it are compiled.
        """
        self.settings = settings
        self.server_id = server_id
        self.facts: SourceFacts | None = None
        self.heard_at_s: float | None = None
        self._start = start
        self._position: Position | None = None
        self._file_position: FilePosition | None = None
        self._identity = identity
        self._uses_kernels = uses_kernels and is_compiled(_KERNELS)
        self._spill = SpillFolder(spill)
        self._connection: ServerConnection | None = None
        self._stream: RawStream | EventStream | None = None

    @property
    def position(self) -> Position | None:
        """Every group up to here was given; None before the source first told it."""
        return self._position if self._stream is None else self._stream.position

    @property
    def file_position(self) -> FilePosition | None:
        """The place where the group behind the given ones begins; None before the first connect."""
        return self._file_position if self._stream is None else self._stream.file_position

    @property
    def format_description(self) -> FormatDescriptionEvent | None:
        """FORMAT_DESCRIPTION of the source's current file; None while not connected, and before it came."""
        return None if self._stream is None else self._stream.format_description

    @property
    def identity(self) -> SourceIdentity | None:
        """The source's identity to remember with `position`, for the next capture of this source."""
        stream = self._stream
        if stream is not None and self.facts is not None and stream.created:
            self._identity = SourceIdentity(
                server=self.facts.identity,
                file_position=stream.file_position,
                created=stream.created,
            )
        return self._identity

    @property
    def is_connected(self) -> bool:
        """True if groups can come."""
        return self._connection is not None

    @property
    def has_progressed(self) -> bool:
        """True if something came since the last connect, so that the connection is a good one."""
        return self._stream is not None and self._stream.has_progressed

    @property
    def is_silent(self) -> bool:
        """True if the source said nothing for so long that it must be dead."""
        if self._connection is None or self.heard_at_s is None:
            return False
        return time.monotonic() - self.heard_at_s > self.silent_s

    @property
    def silent_s(self) -> float:
        """The longest silence of a source that lives, in seconds."""
        return max(_SILENT_PERIODS * self.settings.heartbeat_period_s, _SILENT_MIN_S)

    def connect(self) -> None:
        """Log in, check the source, and ask for its log from `position` on.

        It waits, each time at most `settings.timeout_s`; it touches nothing but this capture.

        Raises:
            PeerError: If the source cannot be reached, refuses, or is not the one that it was;
                `is_transient` says whether another attempt may help by itself.
            ConfigError: If a setting is wrong, or the source's log cannot be the ground truth.
        """
        self.close()
        self._spill.clean()
        account = account_at(self.settings.url, self.settings.secret())
        start = self._start if self._position is None else self._position
        if isinstance(start, FilePosition):
            found = self._position_before(start, account)
            start = start if found is None else found
        request = LogRequest(
            account=account,
            start=start,
            server_id=self.server_id,
            heartbeat_period_s=self.settings.heartbeat_period_s,
        )
        with _closed_on_error(self._connected()) as connection:
            flow = self._converse(connection, ask_for_log(request))
            asked = _result(flow)
            self._check_file(asked.facts, account)
            connection.do(flow.take_step(SendCommand(asked.command)))
            connection.stop_waiting()
        self._stream = self._stream_of(asked)
        self._connection, self.facts = connection, asked.facts
        self.heard_at_s = time.monotonic()

    def _connected(self) -> ServerConnection:
        settings = self.settings
        return ServerConnection(
            settings.url,
            None,
            connect_s=settings.timeout_s,
            silent_s=settings.timeout_s,
            hint=_HINT,
            ca_hint=_CA_HINT,
        )

    def _converse(
        self, connection: ServerConnection, dialogue: Dialogue[DumpStart]
    ) -> PacketFlow[DumpStart]:
        """Hold a conversation to its end."""
        flow = PacketFlow(dialogue, peer=str(self.settings.url))
        while flow.result is None:
            for payload in flow.packets(connection.read()):
                for step in flow.converse(payload):
                    connection.do(step)
        return flow

    def _stream_of(self, asked: DumpStart) -> RawStream | EventStream:
        peer = str(self.settings.url)
        if self._uses_kernels:
            return RawStream(asked.format, asked.position, peer=peer, spill=self._spill)
        return EventStream(asked.format, asked.position, peer=peer)

    def _position_before(self, place: FilePosition, account: Account) -> Position | None:
        """Return the GTIDs before a place in the files of MySQL; None of MariaDB, which says it."""
        with closing(self._connected()) as connection:
            request = LogRequest(
                account=account, start=place, server_id=self.server_id, heartbeat_period_s=0
            )
            flow = self._converse(connection, ask_for_log(request))
            asked = _result(flow)
            if asked.until is None:
                return None
            connection.do(flow.take_step(SendCommand(asked.command)))
            try:
                return position_before(place, self._items(connection, asked))
            except PeerError as error:
                if error.errno != _NO_SUCH_PLACE:
                    raise
                raise no_place(place, error.message) from None

    def _check_file(self, facts: SourceFacts, account: Account) -> None:
        """Refuse a server that is the one it was, with another log.

        Raises:
            PeerError: With what happened and what to do.
        """
        identity, peer = self._identity, account.peer
        if identity is None or identity.server != facts.identity:
            return
        start = self._start if self._position is None else self._position
        taken = start if isinstance(start, GtidSet) else None
        try:
            created, _ = self._first_words(account, identity.file_position, taken=taken)
        except PeerError as error:
            if error.errno != _NO_SUCH_PLACE:
                raise
            _, oldest = self._first_words(account, FilePosition("", len(MAGIC)))
            check_missing_file(identity, oldest, error, peer=peer)
        else:
            check_file(identity, created, peer=peer)

    def _first_words(
        self, account: Account, place: FilePosition, *, taken: GtidSet | None = None
    ) -> tuple[int, FilePosition]:
        """Return when a place's file was begun, in seconds since 1970, and where a dump from there is.

        Args:
            account: The account that logs in.
            place: The beginning of a group, or the end of the log.
            taken: Read on up to the first group that is not in it, or the log's end: a MySQL then
                refuses what has no GTID, over which it passes in a dump by GTID.

        Raises:
            UntakenError: If it does so.
            PeerError: If the source refuses the place.
        """
        with closing(self._connected()) as connection:
            flow = self._converse(connection, ask_for_place(account, place))
            asked = replace(_result(flow), position=None if taken is None else GtidSet())
            connection.do(flow.take_step(SendCommand(asked.command)))
            found: tuple[int, FilePosition] | None = None
            try:
                for stream, item in self._items(connection, asked):
                    if found is None and stream.created:
                        found = stream.created, stream.file_position
                    if found and (taken is None or goes_beyond(item, taken)):
                        break
            except (PeerError, CodecError) as error:
                # Behind its first words there may be anything: it may be another file.
                if found is None or taken is None:
                    raise
                if isinstance(error, PeerError):
                    check_anonymous(error, taken, peer=account.peer)
            if found is not None:
                return found
        raise PeerError(
            f"the source sends nothing from {place} on", peer=account.peer, phase=PHASE, hint=_HINT
        )

    def _items(
        self, connection: ServerConnection, asked: DumpStart
    ) -> Iterator[tuple[RawStream | EventStream, Item]]:
        """Give the items of a dump that ends, waiting for them."""
        with closing(self._stream_of(asked)) as stream:
            while not stream.has_ended:
                for item in stream.feed(connection.read_into(stream.room), has_more=False):
                    yield stream, item

    def fileno(self) -> int:
        """Return the connection's file descriptor, for a selector.

        Raises:
            ValueError: If there is none.
        """
        if self._connection is None:
            raise ValueError("the capture is not connected")
        return self._connection.fileno()

    def receive(self) -> Iterator[Item]:
        """Take what has come, without waiting; call it when a selector says so.

        Takes some megabytes at most: where more is there, the selector says so again.

        Yields:
            FORMAT_DESCRIPTIONs as control groups, runs of whole groups, groups that came decoded,
            and large ones. Each is good until the next is asked for; `position`, `file_position`
            and `identity` include it.

        Raises:
            PeerError: If the source is gone, ends the dump, breaks the protocol, or its GTIDs are
                out of order; what was given before stands. Connect again.
            CodecError: If an event is damaged, with the source's file and position.
            StoreError: If a large transaction cannot be put aside.
        """
        connection, stream = self._connection, self._stream
        if connection is None or stream is None:
            return
        taken = 0
        while True:
            room = stream.room
            count = connection.read_into(room)
            if count:
                self.heard_at_s = time.monotonic()
            # TLS gives a record at a time, and may hold one that no selector tells of.
            may_follow = count == len(room) or (connection.is_tls and count > 0)
            has_more = (may_follow and taken < _TURN_BYTES) or connection.pending > 0
            for item in stream.feed(count, has_more=has_more):
                if isinstance(item, EventGroup) and not item.is_complete:
                    logger.warning(
                        "%s: group %s at %s:%d has no end: the source rolled it back",
                        *(self.settings.url, item.gtid, item.file, item.position),
                    )
                    continue
                yield item
            if stream.has_ended:
                raise PeerError(
                    "the source ended the dump",
                    peer=str(self.settings.url),
                    phase="read",
                    hint=_HINT,
                )
            taken += count
            if not has_more:
                return

    def close(self) -> None:
        """End the connection, if there is one; `position` stays."""
        if self._stream is not None:
            self._identity = self.identity
            self._position, self._file_position = self.position, self.file_position
            self._stream.close()
        if self._connection is not None:
            self._connection.close()
        self._stream = self._connection = None


@contextmanager
def _closed_on_error(connection: ServerConnection) -> Iterator[ServerConnection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


def _result(flow: PacketFlow[DumpStart]) -> DumpStart:
    assert flow.result is not None, "the conversation has ended"
    return flow.result


def is_transient(error: BaseException) -> bool:
    """True if another attempt may help though nobody does anything."""
    if isinstance(error, PeerError):
        return is_passing(error)
    return isinstance(error, OSError) and not isinstance(error, BinlaneError)
