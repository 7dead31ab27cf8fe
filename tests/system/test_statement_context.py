"""Events that are completed from the context of a session, against those that the server itself logs.

A session logs in STATEMENT format. Before each statement its context is asked for as the port does it;
behind it the events made of that are compared, byte for byte, with those that the server has logged.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from zlib import crc32

import pymysql
import pytest

from binlane.live.port.context_reader import ContextReader
from binlane.live.port.context_use import KnownUses
from binlane.live.port.statement_context import StatementContext, complete
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.client_text import is_alike
from binlane.log.codec.packets.flags import Capability
from binlane.log.codec.packets.framing import bytes_of, text_of
from binlane.log.codec.packets.replies import ErrPacket, OkPacket
from binlane.log.codec.packets.results import ReplyReader, ResultSet
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import EventType, Flavor
from binlane.log.codec.variables import UserVarType
from binlane.names import TableName
from binlane.statements.policy.server import Server
from binlane.statements.session.log_events import Body
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.reading import read
from tests.context_scripts import (
    CHARSETS,
    CONTEXTS,
    MARIADB_CONTEXTS,
    MYSQL_CONTEXTS,
    PLAIN,
    TABLES,
    VARIABLES,
)
from tests.replay import run_text
from tests.servers import connect, execute

_HEADER: Final = 19
_CHECKSUM: Final = 4
_TEXTS: Final = frozenset(
    (
        *(EventType.QUERY, EventType.INTVAR, EventType.RAND, EventType.USER_VAR),
        *(EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK, EventType.EXECUTE_LOAD_QUERY),
    )
)
_BRACKETS: Final = frozenset((b"BEGIN", b"COMMIT", b"ROLLBACK"))
_QUERY_HEAD: Final = 13
_XID: Final = "XID"
_MICROSECONDS: Final = frozenset(("HRNOW", "MICROSECONDS"))

ROWS: Final = (
    # Whose context is not known: each is logged as its rows.
    "CALL p2()",
    "INSERT INTO t (a) VALUES (ROW_COUNT())",
    "INSERT INTO u (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 1000",
    "INSERT IGNORE INTO u (a) VALUES (1000), (1001)",
)


class Logged(NamedTuple):
    """An event of a file.

    Attributes:
        at: Where it begins.
        type_code: `EventType`.
        flags: Of its header.
        body: Without header and checksum.
    """

    at: int
    type_code: int
    flags: int
    body: bytes


class Client:
    """A client's session on a server, whose replies are read as the gateway reads them."""

    def __init__(self, server: PrivateServer) -> None:
        self.connection = cast("Any", connect(server, local_infile=True, charset="utf8mb4"))
        # Names of columns are in the character set of the results.
        self.connection.encoding = "latin1"
        self.version = str(self.connection.server_version).removeprefix("5.5.5-")

    def run(self, statement: str, file: bytes = b"") -> OkPacket | ErrPacket | ResultSet:
        """Run a statement; `file` is sent where the server asks for one."""
        self.connection._execute_command(3, bytes_of(statement))
        capabilities = self.connection.client_flag & self.connection.server_capabilities
        reader = ReplyReader(Capability(capabilities))
        for number in count():
            try:
                payload = self.connection._read_packet().get_all_data()
            except pymysql.MySQLError as error:
                errno, message = error.args
                return ErrPacket(errno=errno, message=message)
            if number == 0 and payload[:1] == b"\xfb":
                self.connection.write_packet(file)
                self.connection.write_packet(b"")
                continue
            reply = reader.feed(payload)
            if reply is not None:
                return reply
        raise AssertionError("it counts on")

    async def ask(self, statement: str) -> ResultSet:
        """As the gateway asks in a client's session."""
        reply = self.run(statement)
        assert isinstance(reply, ResultSet), f"{statement}: {reply}"
        return reply


@dataclass
class Recording:
    """A session that is followed by the model while its server logs statements.

    Attributes:
        differences: What was completed otherwise than the server logged it.
        texts: Statements whose texts were compared.
        rows: Statements whose context was not known.
    """

    server: PrivateServer
    client: Client = field(init=False)
    differences: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    made: dict[int, tuple[int, list[bytes]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = Client(self.server)
        is_mariadb = self.server.program.scheme == "mariadb"
        self.flavor = Flavor.MARIADB if is_mariadb else Flavor.MYSQL
        of = Server.of(self.flavor.value, self.client.version)
        self.session = Session(server=of, objects=SchemaCatalog(self.flavor))
        self.reader = ContextReader(of)
        self.uses = KnownUses()
        for statement in (
            "SET SESSION binlog_format = 'STATEMENT'",
            "SET NAMES utf8mb4",
            "CREATE DATABASE context",
            "USE context",
            *TABLES,
        ):
            reply = self.client.run(statement)
            assert isinstance(reply, OkPacket), f"{statement}: {reply}"
            self.session.execute(statement)
        status = "SHOW MASTER STATUS" if is_mariadb else "SHOW BINARY LOG STATUS"
        ((file, position, *_),) = execute(self.server, status)
        self.path = self.server.data_directory / file
        self.position = position

    def run(self, statements: Iterable[str], file: bytes = b"") -> None:
        for statement in statements:
            self.run_one(statement, file)

    def run_one(self, told: str, file: bytes = b"") -> None:
        """Run a statement, and compare what it logs."""
        reader, session = self.reader, self.session
        if not (reader.is_charset_known or is_alike(told)):
            asyncio.run(reader.read(self.client.ask))
        statement = reader.read_text(told)
        assert statement is not None, told
        facts = read(statement, database=session.database, dialect=session.dialect)
        use = self.uses.of(facts, session, None)
        bodies = [
            body
            for result in session.execute(statement).binlogs.values()
            for body in result.bodies
            if not _is_bracket(body)
        ]
        needs = reader.needs(bodies, use)
        begun = None
        if needs is not None:
            if reader.must_ask(needs):
                asyncio.run(reader.read(self.client.ask, needs))
            begun = reader.begin(needs)
        context, before = begun if begun is not None else (None, reader.owed(facts, use))
        for own in before:
            assert isinstance(self.client.run(own), OkPacket)
        reply = self.client.run(told, file)
        assert not isinstance(reply, ErrPacket), f"{told}: {reply}"
        reader.ran(facts, use)
        theirs = self._logged()
        if bodies and context is not None and isinstance(reply, OkPacket):
            context.add_data(file)
            context.answered(
                insert_id=reply.insert_id,
                affected_rows=reply.affected_rows,
                info=text_of(reply.info),
            )
        self._compare(statement, bodies, context, theirs)

    def _compare(
        self,
        statement: str,
        bodies: Sequence[Body],
        context: StatementContext | None,
        theirs: Sequence[Logged],
    ) -> None:
        if not bodies or " DATABASE " in statement:  # that is in every binlog as the source has it
            return
        events = None if context is None else complete(bodies, context, self.flavor)
        if events is None or context is None:
            self.rows.append(statement)
            return
        self.texts.append(statement)
        ours = [Logged(0, event.type_code, event.flags, event.body) for event in events]
        kinds = [event.type_code for event in theirs]
        if [event.type_code for event in ours] != kinds:
            self.differences.append(f"{statement}: {ours} instead of {theirs}")
            return
        for own, their in zip(ours, theirs, strict=True):
            shown = _comparable(own, context), _comparable(their, context)
            if not _is_equal(*shown):
                self.differences.append(f"{statement}: {shown[0]} instead of {shown[1]}")
        for own, their in zip(ours, theirs, strict=True):
            self.made[their.at] = (own.flags, [own.body])

    def _logged(self) -> list[Logged]:
        """The texts and their context that the log has got since."""
        data = self.path.read_bytes()
        found = []
        for event in _events(data, self.position):
            self.position = event.at + _HEADER + len(event.body) + _CHECKSUM
            is_bracket = event.type_code == EventType.QUERY and _text(event.body) in _BRACKETS
            if event.type_code in _TEXTS and not is_bracket:
                found.append(event)
        return found


def _events(data: bytes, at: int) -> Iterable[Logged]:
    while at < len(data):
        length = int.from_bytes(data[at + 9 : at + 13], "little")
        flags = int.from_bytes(data[at + 17 : at + 19], "little")
        yield Logged(at, data[at + 4], flags, data[at + _HEADER : at + length - _CHECKSUM])
        at += length


def _is_bracket(body: Body) -> bool:
    if isinstance(body, GtidEvent | XidEvent):
        return True
    return getattr(body, "query", b"") in _BRACKETS


def _status(body: bytes) -> tuple[bytes, bytes]:
    """The status variables of a statement, and what follows them."""
    length = int.from_bytes(body[11:13], "little")
    return body[_QUERY_HEAD : _QUERY_HEAD + length], body[_QUERY_HEAD + length :]


def _text(body: bytes) -> bytes:
    return _status(body)[1][body[8] + 1 :]


def _comparable(event: Logged, context: StatementContext) -> tuple[object, ...]:
    """What must be equal; the status variables, in their order, at its end."""
    if event.type_code == EventType.INTVAR and context.insert_id == 0 and event.body[0] == 2:
        return (event.type_code, event.flags, "told by the rows")
    if event.type_code == EventType.USER_VAR and context.values.flavor is Flavor.MYSQL:
        return (event.type_code, event.flags, _without_collation_of_number(event.body))
    if event.type_code != EventType.QUERY:
        return (event.type_code, event.flags, event.body)
    status, rest = _status(event.body)
    known = [(one.name, one.value) for one in decode_status_vars(status) if one.name != _XID]
    if not context.use.needs_microseconds:
        # No more is stored of NOW() than its seconds.
        known = [(name, 0 if name in _MICROSECONDS else value) for name, value in known]
    head = (event.body[:4], event.body[8:11])  # between them is how many seconds it took
    return (event.type_code, event.flags, head, rest, known)


def _without_collation_of_number(body: bytes) -> bytes:
    """MySQL writes the collation that the session had when it set a number, which means nothing."""
    at = 5 + int.from_bytes(body[:4], "little")
    is_number = body[at - 1] == 0 and body[at] != UserVarType.STRING
    return body[: at + 1] + body[at + 5 :] if is_number else body


def _is_equal(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    """Whether they are; the time zone may be told of a statement that turned out not to use it."""
    if ours == theirs or ours[0] != EventType.QUERY:
        return ours == theirs
    own = [one for one in ours[-1] if one[0] != "TIME_ZONE" or one in theirs[-1]]
    their = theirs[-1]
    if ("UPDATED_DB_NAMES", None) in own:  # of a procedure's statements they are not told
        their = [(name, None if name == "UPDATED_DB_NAMES" else value) for name, value in their]
    return (*ours[:-1], own) == (*theirs[:-1], their)


@pytest.fixture(params=["mariadb", "mysql"])
def recording(request: pytest.FixtureRequest) -> Recording:
    server: PrivateServer = request.getfixturevalue(f"{request.param}_server")
    execute(server, "DROP DATABASE IF EXISTS context", "SET GLOBAL local_infile = 1")
    return Recording(server)


def check(recording: Recording, *, texts_min: int) -> None:
    assert not recording.differences, "\n".join(recording.differences)
    assert not recording.rows
    assert len(recording.texts) >= texts_min


def test_plain_statements(recording: Recording) -> None:
    recording.run(PLAIN)

    check(recording, texts_min=30)


def test_user_variables(recording: Recording) -> None:
    recording.run(VARIABLES)

    check(recording, texts_min=26)


def test_contexts(recording: Recording) -> None:
    is_mariadb = recording.flavor is Flavor.MARIADB
    recording.run((*CONTEXTS, *(MARIADB_CONTEXTS if is_mariadb else MYSQL_CONTEXTS)))

    check(recording, texts_min=15)


def test_character_sets(recording: Recording) -> None:
    for charset, statement in CHARSETS:
        recording.run((f"SET NAMES {charset}", text_of(statement)))

    check(recording, texts_min=10)


def test_local_file(recording: Recording) -> None:
    content = b"".join(b"%d\t%d\n" % (number, number) for number in range(1, 1000))

    recording.run(["LOAD DATA LOCAL INFILE 'f' INTO TABLE u (id, a)"], content)

    assert not recording.rows
    ((statement, _),) = [
        (one, recording.made) for one in recording.texts if one.startswith("LOAD DATA")
    ]
    assert statement


def test_seconds_since_a_timestamp_that_the_client_set(recording: Recording) -> None:
    recording.run(["SET timestamp = 1000000000", "INSERT INTO t (a) VALUES (NOW())"])

    check(recording, texts_min=1)
    ((_, (body,)),) = [one for one in recording.made.values() if b"NOW()" in one[1][0]]
    took_s = int.from_bytes(body[4:8], "little")
    assert abs(took_s - (time.time() - 1_000_000_000)) < 5


def test_what_is_not_known_is_left_to_the_rows(recording: Recording) -> None:
    first, second, *others = ROWS
    recording.run(["SET @i = 1", "INSERT INTO u (a) VALUES (1)", first])
    recording.run(["SET sql_mode = ''", second, *others])

    assert recording.rows == list(ROWS)


def test_asking_changes_nothing_that_a_client_sees(recording: Recording) -> None:
    """Neither what the last statement left, nor the time, nor the random numbers to come."""
    client, reader = recording.client, recording.reader
    recording.run(["INSERT INTO u (a) VALUES (1)", "INSERT INTO now6 (a) VALUES ('x')"])
    shown = client.run("SELECT ROW_COUNT(), LAST_INSERT_ID(), @@warning_count")

    assert isinstance(shown, ResultSet)
    assert shown.texts() == (("1", "1", "0"),)
    facts = read("SELECT ROW_COUNT()", database="", dialect=recording.session.dialect)
    assert not reader.owed(facts)
    facts = read("SELECT NOW(6)", database="", dialect=recording.session.dialect)
    assert reader.owed(facts) == ("SET timestamp=DEFAULT",)
    assert not reader.owed(facts)


def test_replay_gives_equal_tables(mariadb_server: PrivateServer, tmp_path: Path) -> None:
    """The completed events, in place of the server's own in its log, through `mariadb-binlog`."""
    execute(mariadb_server, "DROP DATABASE IF EXISTS context")
    recording = Recording(mariadb_server)
    start = recording.position
    replayed = [one for one in (*PLAIN, *VARIABLES, *CONTEXTS) if "CONNECTION_ID" not in one]
    recording.run(replayed)
    file = tmp_path / "replayed"
    file.write_bytes(_replaced(recording, start))
    before = _contents(mariadb_server)
    with connect(mariadb_server) as connection, connection.cursor() as cursor:
        for statement in ("DROP DATABASE context", "CREATE DATABASE context", "USE context"):
            cursor.execute(statement)
        for statement in TABLES:
            cursor.execute(statement)
    text = subprocess.run(
        ["mariadb-binlog", "--no-defaults", file], capture_output=True, check=True
    ).stdout
    execute(mariadb_server, "SET GLOBAL gtid_strict_mode = 0")  # its log holds the GTIDs already

    assert not run_text(mariadb_server, text)
    assert _contents(mariadb_server) == before


def _replaced(recording: Recording, start: int) -> bytes:
    """The log with the completed events in the places of those that they stand for."""
    data = recording.path.read_bytes()
    first = next(iter(_events(data, 4)))
    found = bytearray(data[: 4 + _HEADER + len(first.body) + _CHECKSUM])
    for event in _events(data, start):
        flags, bodies = recording.made.get(event.at, (event.flags, [event.body]))
        header = bytearray(data[event.at : event.at + _HEADER])
        header[17:19] = flags.to_bytes(2, "little")
        for body in bodies:
            length = _HEADER + len(body) + _CHECKSUM
            header[9:13] = length.to_bytes(4, "little")
            header[13:17] = (len(found) + length).to_bytes(4, "little")
            whole = bytes(header) + body
            found += whole + crc32(whole).to_bytes(_CHECKSUM, "little")
    return bytes(found)


def _contents(server: PrivateServer) -> dict[TableName, object]:
    """All rows of the database's tables."""
    tables = execute(server, "SHOW FULL TABLES FROM context WHERE Table_type = 'BASE TABLE'")
    return {
        TableName("context", name): execute(server, f"SELECT * FROM context.{name}")
        for name, _ in tables
    }
