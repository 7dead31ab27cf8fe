"""Dumps as each client asks for them, as it was captured, beside what the source itself sends."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

import pymysql
import pytest

from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid, RegisterSlave
from binlane.log.codec.packets.flags import Capability, Command, DumpFlag
from binlane.log.codec.packets.replies import EofPacket, ErrPacket
from binlane.log.codec.types import ChecksumAlgorithm, EventType, Flavor
from binlane.positions import GtidSet
from tests.listening import wait_until
from tests.raw_client import CAPABILITIES, RawClient
from tests.served_binlog import FILE, STATUS, Served, served_binlog
from tests.servers import execute

_HEADER: Final = struct.Struct("<IBIIIH")
_MYSQL_CAPABILITIES: Final = CAPABILITIES | Capability.DEPRECATE_EOF | Capability.QUERY_ATTRIBUTES
_ANY_FORMAT: Final = Format(
    server_version="",
    flavor=Flavor.MYSQL,
    checksum=ChecksumAlgorithm.NONE,
    post_header_lengths=b"",
)
_HEARTBEATS: Final = (EventType.HEARTBEAT, EventType.HEARTBEAT_V2)


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    source: PrivateServer = request.getfixturevalue(f"{request.param}_server")
    with served_binlog(source, tmp_path_factory.mktemp("clients")) as one:
        yield one


class Seen(NamedTuple):
    """What is compared of an event: its length and end only where it was made for the dump."""

    type: int
    is_made: bool
    length: int
    has_end: bool
    flags: int


def seen(payload: bytes) -> Seen:
    timestamp, type_code, _, length, end, flags = _HEADER.unpack_from(payload, 1)
    is_made = not timestamp
    return Seen(type_code, is_made, length if is_made else 0, end > 0, flags)


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """How a client begins a dump.

    Attributes:
        flavor: Of the source.
        statements: In order, with `{file}`, `{position}` and `{done}`.
        is_by_gtid: It names no position.
        flags: Of the dump.
        file: That it names by GTID.
        stray: What it sends behind the command.
        registers: Whether it does.
        capabilities: What it asks for.
    """

    flavor: str
    statements: tuple[str, ...]
    is_by_gtid: bool = False
    flags: int = 0
    file: str = ""
    stray: bytes = b""
    registers: bool = True
    capabilities: Capability = CAPABILITIES


_MARIADB_REPLICA: Final = (
    "SELECT UNIX_TIMESTAMP()",
    "SHOW VARIABLES LIKE 'SERVER_ID'",
    "SET @master_heartbeat_period= 30000000000",
    "SET @master_binlog_checksum= @@global.binlog_checksum",
    "SELECT @master_binlog_checksum",
    "SET @mariadb_slave_capability=4",
)
_MYSQL_REPLICA: Final = (
    "SELECT UNIX_TIMESTAMP()",
    "SELECT @@GLOBAL.SERVER_ID",
    "SET @master_heartbeat_period = 30000001024, @source_heartbeat_period = 30000001024",
    (
        "SET @master_binlog_checksum = @@global.binlog_checksum, "
        "@source_binlog_checksum = @@global.binlog_checksum"
    ),
    "SELECT @source_binlog_checksum",
    "SELECT @@GLOBAL.GTID_MODE",
    "SELECT @@GLOBAL.SERVER_UUID",
    "SET @slave_uuid = '{uuid}', @replica_uuid = '{uuid}'",
)
_GO_MYSQL: Final = (
    "SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'",
    "SET @master_binlog_checksum='NONE', @source_binlog_checksum='NONE'",
    "SET @mariadb_slave_capability=4",
    "SET @master_heartbeat_period = 30000000000, @source_heartbeat_period = 30000000000",
    "SET @slave_uuid = '{uuid}', @replica_uuid = '{uuid}'",
)
_PYTHON: Final = (
    "SET NAMES utf8mb4",
    "SET AUTOCOMMIT = 0",
    "SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'",
    "SET @master_binlog_checksum= @@global.binlog_checksum",
    "SET @master_heartbeat_period = 30000000000",
    "SET @mariadb_slave_capability=4",
)
_DEBEZIUM: Final = (
    "show global variables like 'binlog_checksum'",
    "set @master_binlog_checksum= @@global.binlog_checksum",
    "select @@server_id",
    "set @master_heartbeat_period=30000000000",
)
_STRICT: Final = ("SET @slave_connect_state='{done}'", "SET @slave_gtid_strict_mode=1")
_BY_STATE: Final = (*_STRICT, "SET @slave_gtid_ignore_duplicates=0")

CONVERSATIONS: Final[Mapping[str, Conversation]] = {
    "mariadb-replica-file": Conversation(
        flavor="mariadb",
        statements=(*_MARIADB_REPLICA, "SELECT binlog_gtid_pos('{file}',{position})"),
    ),
    "mariadb-replica-gtid": Conversation(
        flavor="mariadb",
        statements=(*_MARIADB_REPLICA, "SELECT @@GLOBAL.gtid_domain_id", *_BY_STATE),
        is_by_gtid=True,
        flags=2,
    ),
    "mariadb-binlog": Conversation(
        flavor="mariadb",
        statements=(
            "SELECT VERSION()",
            "SET @master_binlog_checksum='NONE'",
            "SET @mariadb_slave_capability=4",
        ),
        flags=3,
        registers=False,
    ),
    "mariadb-go-mysql-file": Conversation(
        flavor="mariadb", statements=_GO_MYSQL, capabilities=_MYSQL_CAPABILITIES
    ),
    "mariadb-go-mysql-gtid": Conversation(
        flavor="mariadb",
        statements=(*_GO_MYSQL, *_STRICT),
        is_by_gtid=True,
        capabilities=_MYSQL_CAPABILITIES,
    ),
    "mariadb-python-file": Conversation(
        flavor="mariadb", statements=_PYTHON, flags=1, registers=False
    ),
    "mariadb-python-gtid": Conversation(
        flavor="mariadb",
        statements=(*_PYTHON, *_BY_STATE),
        is_by_gtid=True,
        file="\0\0\0",
        stray=b"\0",
        registers=False,
    ),
    "mariadb-debezium": Conversation(
        flavor="mariadb",
        statements=(*_DEBEZIUM, "SET @mariadb_slave_capability=4", *_BY_STATE),
        is_by_gtid=True,
        registers=False,
    ),
    "mysql-replica-file": Conversation(flavor="mysql", statements=_MYSQL_REPLICA, flags=2),
    "mysql-replica-gtid": Conversation(
        flavor="mysql", statements=_MYSQL_REPLICA, is_by_gtid=True, flags=2
    ),
    "mysqlbinlog": Conversation(
        flavor="mysql",
        statements=(
            "SELECT VERSION()",
            "SET @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE'",
        ),
        flags=1,
        registers=False,
    ),
    "mysql-go-mysql-file": Conversation(
        flavor="mysql", statements=_GO_MYSQL, capabilities=_MYSQL_CAPABILITIES
    ),
    "mysql-go-mysql-gtid": Conversation(
        flavor="mysql", statements=_GO_MYSQL, is_by_gtid=True, capabilities=_MYSQL_CAPABILITIES
    ),
    "mysql-python-gtid": Conversation(
        flavor="mysql",
        statements=_PYTHON,
        is_by_gtid=True,
        flags=4,
        file="\0\0\0",
        registers=False,
    ),
    "mysql-debezium": Conversation(
        flavor="mysql", statements=_DEBEZIUM, is_by_gtid=True, registers=False
    ),
}


def gtid_dump(done: str, *, flags: int = 0, server_id: int = 0, file: str = "") -> bytes:
    """COM_BINLOG_DUMP_GTID of a replica that has a set of GTIDs."""
    return BinlogDumpGtid(
        flags=DumpFlag(flags),
        server_id=server_id,
        done=PreviousGtidsEvent.of(GtidSet.parse(done)).encode(_ANY_FORMAT),
        file=file,
    ).encode()


def begin_dump(
    client: RawClient, what: Conversation, *, file: str, position: int, done: str, server_id: int
) -> Iterator[bytes]:
    """Say what a client says; the packets of its dump."""
    values = {"file": file, "position": position, "done": done, "uuid": str(uuid.uuid4())}
    for statement in what.statements:
        client.rows(statement.format(**values))
    if what.registers:
        client.ok(RegisterSlave(server_id=server_id).encode())
    if what.is_by_gtid and what.flavor == "mysql":
        command = gtid_dump(done, flags=what.flags, server_id=server_id, file=what.file)
    else:
        command = BinlogDump(
            position=4 if what.is_by_gtid else position,
            flags=DumpFlag(what.flags),
            server_id=server_id,
            file=what.file if what.is_by_gtid else file,
        ).encode()
    return client.dump(command, what.stray)


def events_until_group(packets: Iterable[bytes]) -> list[Seen]:
    """What comes before the first group's own events, and its GTID."""
    found = []
    for payload in packets:
        assert payload[0] == 0, payload
        one = seen(payload)
        if one.type != EventType.BINLOG_CHECKPOINT:  # which only a server has
            found.append(one)
        if one.type in (EventType.GTID, EventType.GTID_LOG):
            return found
    raise AssertionError("the dump ends before it")


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_dump_begins_as_the_sources(served: Served, name: str) -> None:
    what = CONVERSATIONS[name]
    if what.flavor != served.flavor:
        pytest.skip(f"a conversation with {what.flavor}")
    done = served.done()
    file, position = served.end()
    ((source_file, source_position, *_),) = execute(served.source, STATUS[served.flavor])
    served.change()
    with RawClient(served.source.port, what.capabilities) as client:
        expected = events_until_group(
            begin_dump(
                client,
                what,
                file=str(source_file),
                position=int(source_position),
                done=done,
                server_id=7500,
            )
        )
    # Some of them do not wait for more than is there.
    wait_until(lambda: served.end() != (file, position), what="the change is in the binlog")
    with served.client(what.capabilities) as client:
        found = events_until_group(
            begin_dump(client, what, file=file, position=position, done=done, server_id=7501)
        )
    assert found == expected


def _types(packets: Iterable[bytes]) -> list[int]:
    return [payload[5] for payload in packets if not payload[0]]


def _annotations(served: Served, flags: int) -> int:
    with served.client() as client:
        client.rows("SET @mariadb_slave_capability=4, @master_binlog_checksum='CRC32'")
        dump = BinlogDump(position=4, flags=DumpFlag(flags), server_id=0, file=FILE)
        return _types(client.dump(dump.encode())).count(EventType.ANNOTATE_ROWS)


def test_annotate_events_come_where_they_are_asked_for(served: Served) -> None:
    if served.flavor == "mysql":
        pytest.skip("MySQL's have no such events")
    served.end()
    assert _annotations(served, DumpFlag.NON_BLOCK) == 0
    assert _annotations(served, DumpFlag.NON_BLOCK | DumpFlag.SEND_ANNOTATE_ROWS) > 0


@pytest.mark.parametrize("file", [FILE, f"{FILE}\0", f"{FILE}\0rest", ""])
def test_the_file_name_ends_at_a_nul(served: Served, file: str) -> None:
    served.end()
    with served.client() as client:
        client.rows("SET @mariadb_slave_capability=4, @master_binlog_checksum='NONE'")
        dump = BinlogDump(position=4, flags=DumpFlag.NON_BLOCK, server_id=0, file=file)
        *events, last = client.dump(dump.encode())
    assert seen(events[0]) == (EventType.ROTATE, True, 40, False, 0x20)
    assert last == EofPacket().encode()


def test_checksums_of_the_file_stay(served: Served) -> None:
    """`NONE` concerns the events that are made for the dump."""
    served.end()
    with served.client() as client:
        client.rows("SET @mariadb_slave_capability=4, @master_binlog_checksum='NONE'")
        dump = BinlogDump(position=4, flags=DumpFlag(3), server_id=0, file=FILE)
        _, *events, _ = client.dump(dump.encode())
    data = served.port.file(FILE).read_bytes()
    # The first one says of a file that is written that it is not closed.
    first, *others = (payload[1:] for payload in events)
    assert b"".join(others) == data[4 + len(first) :]


def test_the_session_goes_on_behind_a_dump(served: Served) -> None:
    """Also where a client sends a byte more than its packet has."""
    served.end()
    with served.client() as client:
        client.rows("SET @mariadb_slave_capability=4, @master_binlog_checksum='CRC32'")
        dump = BinlogDump(position=4, flags=DumpFlag.NON_BLOCK, server_id=0, file="\0\0\0")
        for _ in range(2):
            *_, last = client.dump(dump.encode(), b"\0")
            assert last == EofPacket().encode()
            assert client.rows("SELECT 1")[1:] == [("1",)]


def test_variables_that_were_set_in_other_ways(served: Served) -> None:
    """By a prepared statement, or by an expression: then the source knows them."""
    served.end()
    with served.client() as client:
        prepared = client.prepare("SET @master_binlog_checksum = 'NONE'")
        client.say(struct.pack("<BIBI", Command.STMT_EXECUTE, prepared, 0, 1))
        client.rows("SET @mariadb_slave_capability = 2 + 2")
        dump = BinlogDump(position=4, flags=DumpFlag.NON_BLOCK, server_id=0, file=FILE)
        first, *_ = client.dump(dump.encode())
    assert seen(first) == (EventType.ROTATE, True, 40, False, 0x20)


def test_heartbeats_come_while_nothing_does(served: Served) -> None:
    served.end()
    # On MariaDB the flag has another meaning.
    second = EventType.HEARTBEAT_V2 if served.flavor == "mysql" else EventType.HEARTBEAT
    for flags, expected in ((0, EventType.HEARTBEAT), (2, second)):
        with served.client() as client:
            client.rows(
                "SET @mariadb_slave_capability=4, @master_binlog_checksum='CRC32', "
                "@master_heartbeat_period=100000000"
            )
            dump = BinlogDump(position=4, flags=DumpFlag(flags), server_id=0, file=FILE)
            beats = (each for each in client.dump(dump.encode()) if each[5] in _HEARTBEATS)
            assert [each[5] for each in islice(beats, 2)] == [expected] * 2


def test_more_gtids_than_a_statement_may_be_long(served: Served) -> None:
    """A MySQL replica of a scoped binlog names many intervals; the source never serves its dump."""
    if served.flavor == "mariadb":
        pytest.skip("a MariaDB replica names one GTID a domain")
    served.end()
    other = "99999999-aaaa-bbbb-cccc-000000000000"
    many = ":".join(str(number) for number in range(1, 60_001, 2))
    done = f"{served.begin},{other}:{many}"
    with served.client() as client:
        client.rows("SET @master_binlog_checksum='CRC32'")
        command = gtid_dump(done, flags=DumpFlag.NON_BLOCK)
        assert len(command) > 1 << 18
        first, *_ = client.dump(command)
    assert FILE.encode() in first


# Which dump ends when ------------------------------------------------------------------------------


def _begin_to_follow(
    served: Served, client: RawClient, *, server_id: int, replica: str = "", file: str = FILE
) -> Iterator[bytes]:
    """Begin a dump that waits; its packets behind the first."""
    client.rows("SET @mariadb_slave_capability=4, @master_binlog_checksum='CRC32'")
    if replica:
        client.rows(f"SET @replica_uuid='{replica}'")
    dump = BinlogDump(position=4, flags=DumpFlag(0), server_id=server_id, file=file)
    packets = client.dump(dump.encode())
    assert file.encode() in next(packets)
    return packets


def _readers(served: Served) -> set[str]:
    """Connection ids of those who have dumps."""
    return {
        str(row[0]) for row in served.ask("SELECT connection_id FROM system.binlog_replicas")[1:]
    }


@pytest.mark.parametrize("statement", ["KILL {}", "KILL CONNECTION {}", "kill hard connection {};"])
def test_kill_ends_ones_own_dump(served: Served, statement: str) -> None:
    if "hard" in statement and served.flavor == "mysql":
        pytest.skip("MySQL has no such words")
    with served.client() as client, served.client() as other:
        packets = _begin_to_follow(served, client, server_id=7510)
        other.rows(statement.format(client.thread_id))
        # As go-mysql does it each time a syncer is closed: the connection ends with the dump.
        last = list(packets)[-1]
        assert last[0] in (0x00, 0xFF)
        wait_until(lambda: not _readers(served), what="the dump's end")


def test_kill_query_ends_the_dump_alone(served: Served) -> None:
    with served.client() as client, served.client() as other:
        packets = _begin_to_follow(served, client, server_id=7511)
        other.rows(f"KILL QUERY {client.thread_id}")
        assert list(packets)[-1] == EofPacket().encode()
        wait_until(lambda: not _readers(served), what="the dump's end")
        assert client.rows("SELECT 1")[1:] == [("1",)]


def test_kill_of_others_is_the_sources_to_allow(served: Served) -> None:
    execute(served.source, "CREATE USER other@'%'")
    with served.client() as client:
        packets = _begin_to_follow(served, client, server_id=7512)
        for statement, errno in (
            (f"KILL QUERY {client.thread_id}", 1095),
            (f"KILL {client.thread_id}", 1095),
            ("KILL QUERY 4000000", 1094),
        ):
            with pytest.raises(pymysql.err.MySQLError) as caught:
                served.port.execute(statement, user="other")
            assert caught.value.args[0] == errno
        served.change()
        assert next(packets)[0] == 0
        assert _readers(served) == {str(client.thread_id)}


_REPLACED: Final = {"mariadb": 4052, "mysql": 1236}


def test_a_replica_that_comes_again_ends_its_older_dump(served: Served) -> None:
    with served.client() as first, served.client() as second, served.client() as third:
        older = _begin_to_follow(served, first, server_id=7513)
        newer = _begin_to_follow(served, second, server_id=7513)
        error = ErrPacket.decode(list(older)[-1])
        assert error.errno == _REPLACED[served.flavor]
        assert "with the same server_uuid/server_id" in error.message
        _begin_to_follow(served, third, server_id=7514)
        served.change()
        assert next(newer)[0] == 0
        assert _readers(served) == {str(second.thread_id), str(third.thread_id)}


def test_replicas_of_a_mysql_are_told_apart_by_their_uuid(served: Served) -> None:
    if served.flavor == "mariadb":
        pytest.skip("MariaDB's have none")
    with served.client() as first, served.client() as second, served.client() as third:
        older = _begin_to_follow(served, first, server_id=7515, replica="a")
        _begin_to_follow(served, second, server_id=7515, replica="b")
        assert _readers(served) == {str(first.thread_id), str(second.thread_id)}
        _begin_to_follow(served, third, server_id=7516, replica="a")
        assert ErrPacket.decode(list(older)[-1]).errno == _REPLACED["mysql"]
        assert _readers(served) == {str(second.thread_id), str(third.thread_id)}


def test_one_server_may_follow_several_binlogs(served: Served) -> None:
    """As a MariaDB does with several sources: a connection for each, with one server_id."""
    served.port.execute("CREATE BINLOG 'people' LOG(crm)")
    try:
        with served.client() as first, served.client() as second:
            _begin_to_follow(served, first, server_id=7517)
            _begin_to_follow(served, second, server_id=7517, file="people.000001")
            assert _readers(served) == {str(first.thread_id), str(second.thread_id)}
    finally:
        served.port.execute("DROP BINLOG 'people'")


def test_tools_without_a_server_id_end_nobodys_dump(served: Served) -> None:
    with served.client() as first, served.client() as second:
        _begin_to_follow(served, first, server_id=0)
        _begin_to_follow(served, second, server_id=0)
        assert len(_readers(served)) == 2
