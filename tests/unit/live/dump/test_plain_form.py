"""Statements with tables info, made plain for readers that do not ask for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.errors import CodecError
from binlane.live.dump.packing import SLICE_BYTES, Packer
from binlane.live.dump.plain_form import plain_event
from binlane.live.dump.replica_dump import ReplicaDump
from binlane.live.dump.request import ReplicaRequest
from binlane.live.dump.start import FileBeginning
from binlane.log.codec.compression import compress_record
from binlane.log.codec.event import Event, decode_event, encode_event
from binlane.log.codec.format import MAGIC
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.packets.commands import BinlogDump
from binlane.log.codec.packets.flags import DumpFlag
from binlane.log.codec.packets.framing import PacketSplitter
from binlane.log.codec.query import QueryCompressedEvent, QueryEvent
from binlane.log.codec.status_vars import decode_status_vars, encode_status_vars
from binlane.log.codec.transaction import GtidListEvent, XidEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.walk import walk
from binlane.positions import GtidPosition
from tests.build import event, format_description, log

EXTENDED = format_description(lengths={EventType.QUERY: 17, EventType.EXECUTE_LOAD_QUERY: 30})
PLAIN = EXTENDED.with_tables_info(has_tables_info=False)
CONTEXT = encode_status_vars(
    decode_status_vars(bytes.fromhex("00000000000100000000000000000603737464042d002d000800"))
)
QUERY = QueryEvent(
    thread_id=5,
    execution_time=1,
    error_code=0,
    status_vars=CONTEXT,
    database=b"shop",
    query=b"DROP TABLE t",
    tables_info=b"\0\1t",
)


def _info(length: int) -> bytes:
    """Tables that have so many bytes, of which there are 3 at least."""
    data = b""
    while length:
        one = length if length <= 200 else min(200, length - 3)
        data += b"\0" + bytes((one - 2,)) + b"x" * (one - 2)
        length -= one
    return data


def _plain(body: QueryEvent | ExecuteLoadQueryEvent) -> tuple[Event, Event]:
    """An event, and it as a reader gets it."""
    made = encode_event(event(body), EXTENDED.format)
    found = plain_event(made, EXTENDED.format)
    assert len(found) == len(made)
    return decode_event(made, EXTENDED.format), decode_event(found, PLAIN.format)


@pytest.mark.parametrize("context", [b"", CONTEXT, CONTEXT + b"\7\x12\0" + b"\3\2\0\1\0"])
@pytest.mark.parametrize("length", [0, *range(3, 30), 250, 500, 3000, 65_535])
def test_an_event_keeps_its_length_and_says_the_same(context: bytes, length: int) -> None:
    body = replace(QUERY, status_vars=context, tables_info=_info(length))
    before, after = _plain(body)
    assert after.header == before.header
    assert isinstance(after.body, QueryEvent)
    assert after.body.tables_info is None
    assert after.body.query.rstrip(b" ") == body.query
    # Blanks stand there only where the variables have no room, or one byte is left over.
    blanks = len(after.body.query) - len(body.query)
    assert blanks <= 1 or len(after.body.status_vars) > 500
    assert len(after.body.status_vars) <= 512
    told = {one.code: one.value for one in decode_status_vars(after.body.status_vars)}
    said = {one.code: one.value for one in decode_status_vars(context)}
    assert {7: 0, 3: (1, 1), **told} == {7: 0, 3: (1, 1), **said}


def test_a_context_that_cannot_be_read_gets_blanks() -> None:
    before, after = _plain(replace(QUERY, status_vars=b"\0\1"))
    assert isinstance(after.body, QueryEvent)
    assert after.body.status_vars == b"\0\1"
    assert after.body.query == b"DROP TABLE t" + b" " * 6
    assert after.header.length == before.header.length


def test_load_data_and_compressed_statements() -> None:
    load = ExecuteLoadQueryEvent(
        statement=replace(QUERY, query=b"LOAD DATA INFILE 'x' INTO TABLE t"),
        file_id=7,
        name_start=10,
        name_end=25,
        duplicate_handling=1,
    )
    _, after = _plain(load)
    assert isinstance(after.body, ExecuteLoadQueryEvent)
    assert (after.body.file_id, after.body.name_start, after.body.name_end) == (7, 10, 25)
    assert after.body.statement.query == load.statement.query
    fields = {name: getattr(QUERY, name) for name in QueryEvent.__slots__}
    body = QueryCompressedEvent(**{**fields, "tables_info": _info(9)})
    _, after = _plain(body)
    assert isinstance(after.body, QueryCompressedEvent)
    assert after.body.query == QUERY.query
    # Behind a compressed statement MariaDB reads nothing.
    made = encode_event(event(replace(body, tables_info=_info(2000))), EXTENDED.format)
    found = plain_event(made, EXTENDED.format)
    assert len(found) == len(made)
    assert found[:-4].rstrip(b"\0").endswith(compress_record(QUERY.query).rstrip(b"\0"))


def test_a_damaged_event_is_told() -> None:
    made = bytearray(encode_event(event(QUERY), EXTENDED.format))
    made[19 + 15] += 1
    with pytest.raises(CodecError, match="not as long as its parts"):
        plain_event(bytes(made), EXTENDED.format)
    with pytest.raises(CodecError, match="inside its fixed part"):
        plain_event(bytes(made[:30]), EXTENDED.format)


def _events(packets: bytes) -> list[bytes]:
    return [packet.payload[1:] for packet in PacketSplitter().feed(packets)]


def _file(*bodies: QueryEvent | XidEvent) -> tuple[FileBeginning, bytes]:
    data = log(GtidListEvent.of(GtidPosition()), *bodies, head=EXTENDED)
    return FileBeginning.decode("b.000001", data), data


def test_who_asks_gets_the_file_as_it_is() -> None:
    head, data = _file(QUERY, XidEvent(xid=1))
    dump = ReplicaDump(ReplicaRequest(wants_tables_info=True))
    _, description = _events(dump.open_file(head))
    assert decode_event(description, None).body.format.has_tables_info  # type: ignore[attr-defined]  # it is one
    assert dump.can_be_packed
    assert b"".join(_events(dump.feed(data[dump.position :]))) == data[head_end(data) :]
    variables = {"mariadb_slave_capability": "4", "master_binlog_checksum": "CRC32"}
    command = BinlogDump(file="", position=4, flags=DumpFlag(0), server_id=1)
    assert not ReplicaRequest.of(command, variables).wants_tables_info
    for value, wants in (("1", True), ("0", False), (None, False), ("x", False)):
        asked = {**variables, "binlane_tables_info": value}
        assert ReplicaRequest.of(command, asked).wants_tables_info is wants


def head_end(data: bytes) -> int:
    """Where the events behind the FORMAT_DESCRIPTION begin."""
    return next(iter(walk([data], file="f"))).next_position


def test_others_get_plain_events_at_the_same_positions_however_they_are_read() -> None:
    long = replace(
        QUERY, query=b"INSERT INTO t VALUES ('" + b"y" * 65_000 + b"')", tables_info=_info(65_000)
    )
    head, data = _file(QUERY, long, XidEvent(xid=1), QUERY)
    end = head_end(data)
    found: dict[int, list[bytes]] = {}
    for step in (1000, SLICE_BYTES, 1 << 20):
        dump = ReplicaDump(ReplicaRequest())
        _, description = _events(dump.open_file(head))
        sent = []
        while dump.position < len(data):
            size = max(step, dump.needed_bytes, SLICE_BYTES if step < SLICE_BYTES else 0)
            sent += _events(dump.feed(data[dump.position : dump.position + size]))
        found[step] = [description, *sent]
    assert found[1000] == found[SLICE_BYTES] == found[1 << 20]
    assert found[1000] == _packed(head, data)
    copied = MAGIC + b"".join(found[1000])
    assert len(copied) == len(data)
    read, written = list(walk([copied], file="f")), list(walk([data], file="f"))
    assert [(e.position, e.header) for e in read] == [(e.position, e.header) for e in written]
    assert read[0].next_position == end
    texts = [e.body.query.rstrip() for e in read if isinstance(e.body, QueryEvent)]
    assert texts == [QUERY.query, long.query, QUERY.query]


def _packed(head: FileBeginning, data: bytes) -> list[bytes]:
    """What a dump sends whose packets a kernel makes, from a slice that an event is too long for."""
    dump, packer = ReplicaDump(ReplicaRequest()), Packer()
    (_, *sent) = _events(dump.open_file(head))
    for size in (SLICE_BYTES // 2, len(packer.room)):
        part = data[dump.position : dump.position + size]
        packer.room[: len(part)] = part
        assert dump.can_be_packed
        sent += _events(bytes(dump.pack(packer, len(part))))
    assert dump.position == len(data)
    return sent


def test_a_statement_that_is_longer_than_any_is_damage() -> None:
    head, data = _file(QUERY)
    at = data.index(b"DROP TABLE t") - 19 - 17 - len(CONTEXT) - 4
    broken = data[: at + 9] + (1 << 20).to_bytes(4, "little") + data[at + 13 :] + bytes(1 << 20)
    dump = ReplicaDump(ReplicaRequest())
    dump.open_file(head)
    dump.feed(broken[dump.position : at])
    with pytest.raises(CodecError, match="says it is 1048576 bytes long") as caught:
        dump.feed(broken[at : at + SLICE_BYTES])
    assert caught.value.position == at
