"""What is fuzzed: each target takes any bytes and may raise nothing but a `BinlaneError`.

A target also checks what must hold of the bytes that do decode: what is encoded again decodes to
the same. Hangs and memory are watched by the fuzzer that runs them (`run.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

from binlane.binlogs.cat.event_json_lines import JsonLines
from binlane.binlogs.cat.text.text_lines import TextLines
from binlane.binlogs.cat.text.text_options import TextOptions
from binlane.binlogs.route.route_record import RECORD_FILE, Record
from binlane.binlogs.store.files import read_index
from binlane.binlogs.store.group_index import GroupIndex
from binlane.errors import BinlaneError, StoreError
from binlane.live.capture.event_stream import EventStream
from binlane.live.capture.raw_stream import RawStream
from binlane.live.capture.spill import Spilled
from binlane.log.codec.columns import decode_rows
from binlane.log.codec.control import RotateEvent
from binlane.log.codec.encryption import KeyRing
from binlane.log.codec.event import Event, decode_event, encode_event
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH
from binlane.log.codec.json_binary import decode_json
from binlane.log.codec.packets.framing import frames
from binlane.log.codec.packets.handshake import Greeting, HandshakeResponse
from binlane.log.codec.registry import OpaqueEvent
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.table_metadata import primary_key, table_columns
from binlane.log.codec.types import ChecksumAlgorithm, EventType, Flavor
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.inner import expanded, expanded_all
from binlane.log.grouping.raw import RawRun
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.walk import walk
from binlane.statements.check.checker import Checker
from binlane.statements.check.findings import findings
from binlane.statements.check.json_lines import json_line
from binlane.statements.policy.server import Server
from binlane.statements.sql.catalog import SchemaCatalog
from tests.build import FORMAT, PLAIN_FORMAT, event, rows, table_map
from tests.dumps import dump_packets
from tests.fixture_sets import fixture_names, fixture_set
from tests.fuzz import conversations
from tests.kernel_reading import rows_of
from tests.reading import analyse
from tests.routed_files import routed, written

_SMALL_BYTES: Final = 12_000


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to fuzz.

    Attributes:
        run: Takes the bytes.
        seeds: What to begin with.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]


def _body(data: bytes) -> None:
    """One event body of the type that the first byte names, in both flavors."""
    if not data:
        return
    for format_ in _FORMATS:
        encoded = encode_event(event(OpaqueEvent(data=data[1:]), type_code=data[0]), format_)
        with suppress(BinlaneError):
            decoded = decode_event(encoded, format_)
            again = encode_event(decoded, format_)
            assert decode_event(again, format_).body == decoded.body
            for inner in expanded(decoded, format_):
                assert inner.position == decoded.position


def _file(data: bytes) -> None:
    """A whole file: walked, grouped, and its rows decoded."""
    with suppress(BinlaneError):
        for group in group_events(walk([data], file="f"), file="f"):
            assert group.events
    with suppress(BinlaneError):
        for _, body, described in rows_with_tables(_expanded(data), file="f"):
            primary_key(described)
            for _ in decode_rows(body, table_columns(described, flavor=Flavor.MARIADB)):
                pass


def _printed(data: bytes) -> None:
    """A whole file as JSON and as text."""
    for renderer in (JsonLines(with_rows=True), TextLines(TextOptions(verbose=2))):
        with suppress(BinlaneError):
            for item in _expanded(data):
                for line in renderer.lines(item, file="f"):
                    line.encode("utf-8", "surrogateescape")


def _batches(data: bytes) -> None:
    """A whole file to Arrow."""
    with suppress(BinlaneError):
        for batch in rows_of(group_events(walk([data], file="f"), file="f")):
            batch.validate(full=True)


def _rows(data: bytes) -> None:
    """A table of up to 15 columns, and images of its rows."""
    if len(data) < 2:
        return
    count, metadata_length = data[0] & 15, data[1]
    types, rest = data[2 : 2 + count], data[2 + count :]
    described = table_map(*types, metadata=rest[:metadata_length])
    images = rest[metadata_length:]
    for flavor in Flavor:
        with suppress(BinlaneError):
            columns = table_columns(described, flavor=flavor)
            for _ in decode_rows(rows(len(types), images), columns):
                pass


def _small_parts(data: bytes) -> None:
    """Everything that is decoded on its own."""
    parts: tuple[Callable[[bytes], object], ...] = (
        decode_json,
        decode_status_vars,
        Greeting.decode,
        HandshakeResponse.decode,
        KeyRing.parse,
        lambda some: table_columns(
            table_map(1, 254, 252, metadata=b"\xfe\x20\x02", optional_metadata=some),
            flavor=Flavor.MYSQL,
        ),
    )
    for part in parts:
        with suppress(BinlaneError):
            part(data)


def _sql(data: bytes) -> None:
    """A statement: analysed, and applied to a catalog."""
    statement = data.decode("utf-8", "surrogateescape")
    with suppress(BinlaneError):
        analyse(statement, database="shop")
    with suppress(BinlaneError):
        SchemaCatalog().apply(statement, database="shop")


def _check(data: bytes) -> None:
    """A schema, definitions and a script, split at NUL bytes, with both servers' rules."""
    schema, script, definitions = (*data.split(b"\0", 2), b"", b"")[:3]
    for server in _SERVERS:
        for binlogs in {None, definitions or None}:
            with suppress(BinlaneError):
                for checked in Checker(server, _SCHEMA + schema, binlogs).check(script):
                    assert json_line("f", checked, explain=True)
                    assert all(finding.message for finding in findings(checked))
                    unanalysed = checked.result.unanalysed
                    if unanalysed is not None:
                        assert not unanalysed.reason.startswith("binlane has a fault"), unanalysed


def _source(data: bytes) -> None:
    """A source that sends anything as its dump: both readers of it, which keep what came, no more."""
    for format_ in _DUMPED:
        for stream in (
            RawStream(format_, None, peer="s", spill=_Spill()),
            EventStream(format_, None, peer="s"),
        ):
            with suppress(BinlaneError):
                _give(stream, data)


def _give(stream: RawStream | EventStream, data: bytes) -> None:
    while data:
        room = stream.room
        count = min(len(room), len(data))
        room[:count] = data[:count]
        data = data[count:]
        for item in stream.feed(count, has_more=bool(data)):
            if isinstance(item, RawRun):
                for number in range(item.count):
                    item.group(number)


class _Spill:
    """Where no group of a few bytes is put aside."""

    def begin(self) -> Spilled:
        raise StoreError("too large", path="")


def _dumps() -> Iterator[bytes]:
    for name in ("crc_heartbeat_annotate", "nochecksum_noannotate_nonblock"):
        yield frames(dump_packets(name)[:40], 1)
    for name in ("my97_live_copy", "my97_compressed"):
        for file, data in fixture_set(name).binlogs[:1]:
            turn = event(RotateEvent(position=4, file=file), type_code=EventType.ROTATE, flags=0x20)
            sent = [b"\0" + encode_event(turn, PLAIN_FORMAT)]
            for item in walk([data], file=file):
                assert item.raw is not None
                sent.append(b"\0" + item.raw)
            yield frames(sent, 1)


def _stored(data: bytes) -> None:
    """The small files of a store and of what is kept beside logs: indexes, facts, records."""
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as made:
        directory = Path(made) / "b"
        directory.mkdir()
        (directory / "b.index").write_bytes(data)
        with suppress(BinlaneError):
            for name in read_index(directory):
                assert "/" not in name
        (directory / RECORD_FILE).write_bytes(data)
        with suppress(BinlaneError):
            Record.read(directory)
        (directory / "g").write_bytes(data)
        GroupIndex.read(directory / "g")


def _expanded(data: bytes) -> Iterator[Event]:
    return expanded_all(walk([data], file="f"), file="f")


def _files() -> Iterator[bytes]:
    for name in fixture_names():
        for _, data in fixture_set(name).binlogs:
            if len(data) <= _SMALL_BYTES:
                yield data


def _bodies() -> Iterator[bytes]:
    """One body of each type that the small files hold."""
    seen: set[int] = set()
    for data in _files():
        with suppress(BinlaneError):
            for item in walk([data], file="f"):
                if item.header.type_code not in seen:
                    seen.add(item.header.type_code)
                    start, end = item.position + HEADER_LENGTH, item.next_position - CHECKSUM_LENGTH
                    yield bytes((item.header.type_code,)) + data[start:end]


def _statements() -> Iterator[bytes]:
    for name in ("md1011_ddl", "md1011_stored", "md1011_format_statement"):
        yield from fixture_set(name).files["script.sql"].split(b";\n")


def _scripts() -> Iterator[bytes]:
    """Scripts of the checked examples, with a schema before them."""
    for schema, script, definitions in _EXAMPLES:
        yield b"\0".join((schema, script, definitions))
    for statement in _statements():
        yield b"\0" + statement


def _none() -> Iterator[bytes]:
    yield from (b"", bytes(range(64)))


def _kept() -> Iterator[bytes]:
    yield b"./b.000001\n./b.000002\n"
    with TemporaryDirectory() as made:
        out = Path(made) / "out"
        routed(written("md1011_txn", Path(made)), out, "LOG ALL")
        for path in sorted(out.rglob("*")):
            if path.is_file() and path.stat().st_size < _SMALL_BYTES:
                yield path.read_bytes()


_DUMPED: Final = (replace(FORMAT, checksum=ChecksumAlgorithm.CRC32), PLAIN_FORMAT)
_FORMATS: Final = (FORMAT, PLAIN_FORMAT)
_SERVERS: Final = (Server.parse("mariadb"), Server.parse("mysql"))
_SCHEMA: Final = b"CREATE DATABASE d; USE d; CREATE TABLE t (a INT PRIMARY KEY, b CHAR(9)); "
_EXAMPLES: Final = (
    (
        (
            b"CREATE TABLE n (a INT) ENGINE=MyISAM; CREATE VIEW v AS SELECT a FROM t; "
            b"CREATE TRIGGER g BEFORE INSERT ON n FOR EACH ROW INSERT INTO t VALUES (NEW.a, 'x');"
        ),
        (
            b"BEGIN; INSERT INTO n VALUES (1), (2); SAVEPOINT s; UPDATE v SET a = 3 LIMIT 1; "
            b"-- @error 1062\n-- @rows 1\nINSERT INTO t SELECT a, UUID() FROM n; ROLLBACK TO s; COMMIT;"
        ),
        b"CREATE BINLOG 'b' LOG(`d`.`t`), FORMAT='STATEMENT'; CREATE BINLOG 'c' IGNORE(`d`);",
    ),
    (
        (
            b"DELIMITER //\nCREATE FUNCTION f(x INT) RETURNS INT BEGIN DECLARE y INT DEFAULT 1; "
            b"WHILE y < 3 DO INSERT INTO t VALUES (x, @u := y); SET y = y + 1; END WHILE; "
            b"RETURN y; END//\nCREATE PROCEDURE p(OUT o INT) BEGIN DECLARE EXIT HANDLER FOR 1062 "
            b"BEGIN END; IF RAND() THEN SET o = f(2); ELSE SIGNAL SQLSTATE '45000'; END IF; END//\n"
        ),
        (
            b"SET binlog_format = STATEMENT, @v = 'a'; SELECT f(1); CALL p(@o); "
            b"PREPARE s FROM 'DELETE FROM t WHERE a = ?'; EXECUTE s USING @o; DEALLOCATE PREPARE s; "
            b"CREATE TEMPORARY TABLE e SELECT * FROM t; DROP TABLE e, t; XA START 'x'; XA END 'x';"
        ),
        b"CREATE BINLOG 'b' LOG(`d`), FORMAT='MIXED';",
    ),
    (
        b"",
        (
            b"CREATE TABLE k (i INT AUTO_INCREMENT PRIMARY KEY, j JSON, UNIQUE (i)) ENGINE=InnoDB "
            b"PARTITION BY HASH (i) PARTITIONS 2; ALTER TABLE k ADD COLUMN c INT FIRST; "
            b"RENAME TABLE k TO l; LOCK TABLES l WRITE; REPLACE INTO l (i) VALUES (NULL); "
            b"INSERT INTO l SET i = 1 ON DUPLICATE KEY UPDATE c = 1; UNLOCK TABLES; "
            b"GRANT SELECT ON d.* TO u@h; LOAD DATA INFILE 'f' INTO TABLE t (a, @x) SET b = @x;"
        ),
        b"",
    ),
)
TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {
        "body": Target(_body, _bodies),
        "file": Target(_file, _files),
        "printed": Target(_printed, _files),
        "batches": Target(_batches, _files),
        "rows": Target(_rows, _none),
        "parts": Target(_small_parts, _none),
        "source": Target(_source, _dumps),
        "stored": Target(_stored, _kept),
        "sql": Target(_sql, _statements),
        "check": Target(_check, _scripts),
        "login": Target(conversations.login, conversations.logins),
        "relayed": Target(conversations.relayed, conversations.sessions),
        "judged": Target(conversations.judged, conversations.sessions),
        "dump_request": Target(conversations.dump_request, conversations.requests),
    }
)
