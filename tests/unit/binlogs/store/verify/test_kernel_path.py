"""What the kernel path tells of a file is what the reference tells of it."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from zstandard import ZstdCompressor

from binlane.binlogs.store.byte_source import ChunkBytes
from binlane.binlogs.store.verify import CheckCounts, verify
from binlane.binlogs.store.verify.checks import Checks
from binlane.binlogs.store.verify.kernel_path import KernelPath
from binlane.binlogs.store.verify.reference import ReferencePath
from binlane.errors import BinlaneError
from binlane.log.codec.body import Body
from binlane.log.codec.event import encode_event
from binlane.log.codec.mysql_transaction import MysqlGtidEvent, TaggedGtidEvent
from binlane.log.codec.payload import PayloadCompression, TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import WriteRowsCompressedV1Event
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ColumnType, EventType, HeaderFlag
from binlane.log.grouping.decryption import plain_chunks
from binlane.log.grouping.walk import walk
from tests.build import PLAIN_FORMAT, event, format_description, log, rows, table_map
from tests.fixture_sets import fixture_names, fixture_set

FILE = "binlog.000001"
WINDOWS = (100, 5000, 1 << 20)
MYSQL_HEAD = format_description(server_version="8.4.1")
SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
BEGIN = QueryEvent(
    thread_id=1, execution_time=0, error_code=0, status_vars=b"", database=b"", query=b"BEGIN"
)


@dataclass
class Told:
    """All that a path tells."""

    faults: list[str]
    error: tuple[Any, ...] | None
    end: int
    open_group: int | None
    tally: CheckCounts
    position: str


def by_reference(data: bytes) -> Told:
    checks, tally = Checks(), CheckCounts()
    reader = ReferencePath(checks, tally, FILE)
    return told(reader, reader.faults(walk([data], file=FILE)), checks, tally)


def by_kernels(data: bytes, window_bytes: int) -> Told:
    checks, tally = Checks(), CheckCounts()
    reader = KernelPath(
        checks, tally, FILE, ChunkBytes(plain_chunks([data], file=FILE)), window_bytes=window_bytes
    )
    return told(reader, reader.faults(), checks, tally)


def told(
    reader: ReferencePath | KernelPath, found: Iterator[Any], checks: Checks, tally: CheckCounts
) -> Told:
    list(checks.begin_file(FILE, marked_up_to=0))
    faults, error = [], None
    try:
        faults += [str(fault) for fault in found]
    except BinlaneError as caught:
        place = getattr(caught, "position", None)
        error = (type(caught), caught.message, caught.hint, place)
    return Told(faults, error, reader.end, reader.open_group, tally, str(checks.position))


def check(data: bytes) -> Told:
    expected = by_reference(data)
    for window_bytes in WINDOWS:
        assert by_kernels(data, window_bytes) == expected
    return expected


@pytest.mark.parametrize("name", fixture_names())
def test_both_paths_tell_the_same_of_every_log(tmp_path: Path, name: str) -> None:
    paths = []
    for file, data in fixture_set(name).binlogs:
        paths.append(tmp_path / file)
        paths[-1].write_bytes(data)
    runs = [[path] for path in paths]
    if not name.startswith(("corrupt", "synth")):
        runs.append(paths)
    for run in runs:
        tallies = CheckCounts(), CheckCounts()
        expected = list(verify(run, by_kernels=False, tally=tallies[0]))
        assert list(verify(run, by_kernels=True, tally=tallies[1])) == expected
        assert tallies[0] == tallies[1]


def mutated(data: bytes, source: random.Random) -> bytes:
    """A file with a few bytes changed, lost or added, and mostly its checksums made right again."""
    changed = bytearray(data[: source.randrange(200, 40_000)])
    for _ in range(source.choice((0, 1, 1, 2, 5))):
        at = source.randrange(len(changed))
        kind = source.random()
        if kind < 0.7:
            changed[at] ^= 1 << source.randrange(8)
        elif kind < 0.8:
            del changed[at : at + source.randrange(1, 200)]
        elif kind < 0.9:
            changed[at:at] = source.randbytes(source.randrange(1, 30))
        else:
            del changed[max(at, 100) :]
    return with_checksums(changed) if source.random() < 0.7 else bytes(changed)


def with_checksums(data: bytearray) -> bytes:
    at = 4
    while at + 23 <= len(data):
        end = at + int.from_bytes(data[at + 9 : at + 13], "little")
        if end < at + 23 or end > len(data):
            break
        plain = data[at : end - 4]
        if plain[4] == EventType.FORMAT_DESCRIPTION:
            plain[17] &= ~HeaderFlag.BINLOG_IN_USE
        data[end - 4 : end] = zlib.crc32(plain).to_bytes(4, "little")
        at = end
    return bytes(data)


@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(n, marks=pytest.mark.slow) for n in range(20, 400))]
)
def test_both_paths_tell_the_same_of_damage(seed: int) -> None:
    source = random.Random(seed)
    names = [name for name in fixture_names() if fixture_set(name).binlogs]
    for _ in range(5):
        _, data = source.choice(fixture_set(source.choice(names)).binlogs)
        if len(data) > 200:
            check(mutated(data, source))


def payload(*bodies: Body, broken: bool = False) -> TransactionPayloadEvent:
    plain = b"".join(encode_event(event(body), PLAIN_FORMAT) for body in bodies)
    packed = bytearray(ZstdCompressor().compress(plain))
    if broken:
        packed[len(packed) // 2] ^= 0x40
    return TransactionPayloadEvent(
        compression=PayloadCompression.ZSTD, uncompressed_size=len(plain), payload=bytes(packed)
    )


def mysql_gtid(number: int) -> MysqlGtidEvent:
    return MysqlGtidEvent(
        flags=0,
        source_id=SOURCE,
        sequence=number,
        timestamp_type=2,
        last_committed=0,
        sequence_number=1,
    )


def mariadb_gtid(number: int, domain: int = 0) -> GtidEvent:
    return GtidEvent(sequence=number, domain_id=domain, flags=0, flags_extra=0)


CHANGE = (table_map(ColumnType.TINY), rows(1, b"\0\5\0\6"))


def test_inside_of_a_compressed_transaction_is_looked_at() -> None:
    def of(*bodies: Body, broken: bool = False) -> Told:
        return check(log(mysql_gtid(1), payload(*bodies, broken=broken), head=MYSQL_HEAD))

    assert of(BEGIN, *CHANGE, XidEvent(xid=1)).error is None
    no_map = of(BEGIN, CHANGE[1], XidEvent(xid=1))
    assert no_map.error is not None
    assert "which no TABLE_MAP of its statement names" in no_map.error[1]
    position = no_map.error[3]
    large: tuple[Body, ...] = (
        BEGIN,
        *CHANGE,
        *(rows(1, bytes([0, n]) * 50) for n in range(200)),
        XidEvent(xid=1),
    )
    damaged = of(*large, broken=True)
    assert damaged.error is not None
    assert damaged.error[3] == position


def test_what_follows_a_broken_compressed_event_is_not_told_first() -> None:
    change = rows(1, b"\0\5" * 100, kind=WriteRowsCompressedV1Event)
    data = bytearray(log(mariadb_gtid(5), CHANGE[0], change, mariadb_gtid(4), *CHANGE))
    at = data.rindex(b"\x78\x9c")
    data[at + 10] ^= 0x55
    found = check(with_checksums(data))
    assert found.faults == []
    assert found.error is not None
    assert "compressed value" in found.error[1]


@pytest.mark.parametrize(
    "numbers, expected",
    [
        ([(0, 1), (1, 1), (0, 2), (1, 7)], []),
        ([(0, 1), (0, 2), (0, 2)], ["GTID 0-1-2 is not after 0-1-2, done before it"]),
        ([(0, 5), (1, 9), (0, 3), (0, 6)], ["GTID 0-1-3 is not after 0-1-5, done before it"]),
    ],
)
def test_mariadb_gtids_grow_in_each_domain(
    numbers: list[tuple[int, int]], expected: list[str]
) -> None:
    events = [
        body
        for domain, number in numbers
        for body in (mariadb_gtid(number, domain), XidEvent(xid=1))
    ]
    assert [fault.partition(": ")[2] for fault in check(log(*events)).faults] == expected


def test_mysql_gtids_come_once_in_any_order() -> None:
    tagged = TaggedGtidEvent(flags=0, source_id=SOURCE, sequence=2, tag="a")
    gtids: list[Body] = [*map(mysql_gtid, (3, 1, 2, 9, 3)), tagged, mysql_gtid(4), tagged]
    events = [body for gtid in gtids for body in (gtid, XidEvent(xid=1))]
    told = check(log(*events, head=MYSQL_HEAD))
    assert [fault.partition(": ")[2] for fault in told.faults] == [
        f"GTID {SOURCE}:3 was done before it",
        f"GTID {SOURCE}:a:2 was done before it",
    ]
    assert told.position == f"{SOURCE}:1-4:9:a:2"


def test_gtids_of_the_other_flavor_are_damage() -> None:
    found = check(log(mariadb_gtid(1), XidEvent(xid=1), mysql_gtid(1), XidEvent(xid=2)))
    assert found.error is not None
    assert "GTID_LOG stands in a file of MariaDB" in found.error[1]


def test_gtids_of_two_kinds_are_a_fault() -> None:
    mysql = format_description(server_version="8.0.36")
    events = (mariadb_gtid(1), XidEvent(xid=1), mysql, mysql_gtid(1), XidEvent(xid=2))
    (fault,) = check(log(*events)).faults
    assert fault.endswith(f"GTID {SOURCE}:1 stands in a log whose GTIDs are of another kind")


def test_a_group_that_another_cuts_off_is_a_fault() -> None:
    found = check(log(mariadb_gtid(1), *CHANGE, mariadb_gtid(2), XidEvent(xid=2), mariadb_gtid(3)))
    assert [fault.partition(": ")[2] for fault in found.faults] == [
        "an event group begins here that does not end"
    ]
    assert found.open_group is not None
    assert found.tally.groups == 2


def test_rows_need_a_table_map_in_their_own_group() -> None:
    events = (mariadb_gtid(1), CHANGE[0], XidEvent(xid=1), mariadb_gtid(2), CHANGE[1])
    found = check(log(*events))
    assert found.error is not None
    assert "which no TABLE_MAP of its statement names" in found.error[1]


def test_tables_info_that_contradicts_the_text() -> None:
    head = format_description(lengths={EventType.QUERY: 17})
    told = {
        b"DROP TABLE t": b"\0\1s",
        b"RENAME TABLE t TO s, u TO t": b"\0\1t\0\1u",
        b"DELETE FROM t": b"",
    }
    items: list[Body] = []
    for number, (query, info) in enumerate(told.items(), start=1):
        items.append(GtidEvent(sequence=number, domain_id=0, flags=1))
        items.append(replace(BEGIN, query=query, database=b"d", tables_info=info))
    data = log(*items, head=head)
    wrong = by_reference(data)
    assert [fault.split(": ", 1)[1] for fault in wrong.faults] == [
        "the tables info contradicts the text: the event tells of `d`.`s`, its text of `d`.`t`",
        "the tables info contradicts the text: the event tells of no table, its text of `d`.`t`",
    ]
    for window in WINDOWS:
        assert by_kernels(data, window) == wrong
