"""Asking a source for its log, as a conversation without a socket: bytes in, bytes out.

It logs in, finds out whether the source's log can be the ground truth and goes on with what was
taken before, and ends with the command that starts the dump.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from binlane.client.dialogue import GTID_CAPABILITY, Account, Dialogue, ask, log_in, tell
from binlane.errors import ConfigError
from binlane.live.capture.identity import check_position, lacks
from binlane.live.capture.settings import Start, StartAt
from binlane.live.capture.source_facts import (
    ACCOUNT_STATEMENT,
    FACTS_STATEMENT,
    GRANTS_STATEMENT,
    SourceFacts,
)
from binlane.log.codec.format import MAGIC, Format
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid, RegisterSlave
from binlane.log.codec.packets.flags import DumpFlag
from binlane.log.codec.types import ChecksumAlgorithm, Flavor
from binlane.positions import FilePosition, GtidPosition, GtidSet, Position

_NS_PER_S: Final = 1_000_000_000
_REPORT_HOST: Final = "binlane"
_PAUSE_S: Final = 0.2
_NO_CHECKSUMS: Final = Format(
    server_version="", flavor=Flavor.MYSQL, checksum=ChecksumAlgorithm.NONE, post_header_lengths=b""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """The facts with which the source is asked for its log.

    Attributes:
        account: The account that logs in.
        start: The place or position where the log starts.
        server_id: The id that binlane has as a replica of the source.
        heartbeat_period_s: The interval at which an idle source shall say that it lives.
    """

    account: Account
    start: Start | Position
    server_id: int
    heartbeat_period_s: float


@dataclass(frozen=True, slots=True)
class DumpStart:
    """The result of a conversation.

    Attributes:
        facts: The facts of the source.
        format: The format of events before the first FORMAT_DESCRIPTION.
        position: The start of the dump; None for the source's first file, which says it.
        command: The command that starts the dump.
        until: The dump is only to be read up to here, to find out what was done before, which
            then is where to start; None of the dump that was asked for.
    """

    facts: SourceFacts
    format: Format
    position: Position | None
    command: bytes
    until: FilePosition | None = None


def ask_for_log(request: LogRequest) -> Dialogue[DumpStart]:
    """Everything up to the dump command.

    Raises:
        PeerError: If the source refuses something, or cannot go on with what was taken before.
        ConfigError: If its log cannot be the ground truth, or the start is not in it.
    """
    peer = request.account.peer
    yield from log_in(request.account)
    facts = yield from ask_facts(peer)
    facts.check(server_id=request.server_id)
    if isinstance(request.start, FilePosition) and facts.flavor is Flavor.MYSQL:
        return (yield from _file_dump(request.start, facts, peer=peer, is_whole=True))
    position = yield from _start_position(request.start, facts, peer=peer)
    if position is not None and lacks(position, facts):
        # MySQL sends a transaction some moments before it counts it as executed.
        yield from ask(f"DO SLEEP({_PAUSE_S})", peer=peer)
        facts = yield from ask_facts(peer)
        check_position(position, facts, peer=peer)
    period_ns = int(request.heartbeat_period_s * _NS_PER_S)
    yield from ask(_settings_statement(facts.flavor, position, period_ns), peer=peer)
    format_ = yield from _first_format(facts, peer=peer)
    register = RegisterSlave(server_id=request.server_id, host=_REPORT_HOST)
    yield from tell(register.encode(), peer=peer, phase="register")
    return DumpStart(facts, format_, position, _dump(request.server_id, position))


def ask_for_place(account: Account, place: FilePosition) -> Dialogue[DumpStart]:
    """Everything up to the command that gives the log from a place in a file on, to its end.

    Args:
        account: The account that logs in.
        place: An empty name is the source's first file.

    Raises:
        PeerError: If the source refuses something.
    """
    yield from log_in(account)
    facts = yield from ask_facts(account.peer)
    return (yield from _file_dump(place, facts, peer=account.peer, is_whole=False))


def _file_dump(
    place: FilePosition, facts: SourceFacts, *, peer: str, is_whole: bool
) -> Dialogue[DumpStart]:
    """Everything up to a dump of one file: from its beginning up to a place, or from there on."""
    yield from ask(_settings_statement(facts.flavor, None, 0), peer=peer)
    format_ = yield from _first_format(facts, peer=peer)
    command = BinlogDump(
        position=len(MAGIC) if is_whole else place.position,
        flags=DumpFlag.NON_BLOCK,
        server_id=0,
        file=place.file,
    )
    return DumpStart(facts, format_, None, command.encode(), until=place)


def ask_facts(peer: str) -> Dialogue[SourceFacts]:
    """Ask a source for its facts, in a session that has logged in.

    Raises:
        PeerError: If the source refuses something.
    """
    variables = yield from ask(FACTS_STATEMENT, peer=peer)
    account = yield from ask(ACCOUNT_STATEMENT, peer=peer)
    grants = yield from ask(GRANTS_STATEMENT, peer=peer)
    rows = variables.texts() if variables else ()
    return SourceFacts.of(
        {str(name).lower(): value or "" for name, value in rows},
        account=(account.texts()[0][0] or "") if account else "",
        grants=[row[0] or "" for row in grants.texts()] if grants else (),
    )


def _first_format(facts: SourceFacts, *, peer: str) -> Dialogue[Format]:
    """Return the format of events before the first FORMAT_DESCRIPTION."""
    answer = yield from ask("SELECT @master_binlog_checksum", peer=peer)
    checksum = answer.texts()[0][0] if answer else None
    return replace(
        _NO_CHECKSUMS,
        server_version=facts.version,
        flavor=facts.flavor,
        checksum=ChecksumAlgorithm.CRC32 if checksum == "CRC32" else ChecksumAlgorithm.NONE,
    )


def _dump(server_id: int, position: Position | None) -> bytes:
    if isinstance(position, GtidSet):
        done = PreviousGtidsEvent(
            runs=position.runs, has_tags=any(run.tag for run in position.runs)
        )
        return BinlogDumpGtid(
            flags=DumpFlag.THROUGH_GTID | DumpFlag.HEARTBEAT_V2,
            server_id=server_id,
            done=done.encode(_NO_CHECKSUMS),
        ).encode()
    # By GTID MariaDB ignores file and position; else an empty name is its first file.
    return BinlogDump(
        position=len(MAGIC), flags=DumpFlag.SEND_ANNOTATE_ROWS, server_id=server_id, file=""
    ).encode()


def _start_position(
    start: Start | Position, facts: SourceFacts, *, peer: str
) -> Dialogue[Position | None]:
    """The position to ask for; None to begin with the source's first file."""
    if isinstance(start, FilePosition):
        return (yield from _position_at(start, peer=peer))
    if start is StartAt.OLDEST:
        return facts.purged if facts.flavor is Flavor.MYSQL else None
    if start is StartAt.NOW:
        return facts.position
    if start and start.flavor != facts.flavor.value:
        raise ConfigError(
            f"the source is {facts.flavor.value}, {start} is not one of its positions",
            key="source.start",
            hint="a store goes on with a source of its own flavor only",
        )
    return start or type(facts.position)()


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


def _settings_statement(flavor: Flavor, position: Position | None, period_ns: int) -> str:
    names = ("@master", "@source") if flavor is Flavor.MYSQL else ("@master",)
    settings: dict[str, str] = {}
    if period_ns:
        settings |= {f"{name}_heartbeat_period": str(period_ns) for name in names}
    settings |= {f"{name}_binlog_checksum": "@@global.binlog_checksum" for name in names}
    if flavor is Flavor.MARIADB:
        settings["@mariadb_slave_capability"] = str(GTID_CAPABILITY)
        if position is not None:
            settings["@slave_connect_state"] = f"'{position}'"
            settings["@slave_gtid_strict_mode"] = "0"
            settings["@slave_gtid_ignore_duplicates"] = "0"
    return "SET " + ", ".join(f"{name} = {value}" for name, value in settings.items())
