"""Event groups of each kind that `route` takes in a CPU second, as JSON lines.

The groups of a kind are those of a recorded log, given once more and once more with GTIDs of their
own. They go into a binlog of everything, into one whose scope has all their tables, one that has
one of them, and one that has none, in a process that has all modules loaded; the median of several
rounds. A kind's name may ask for transactions that are compressed here.

    python -m benchmarks.kinds [--groups 4000] [--rounds 3] [--only KIND ...] [--directory DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from binlane.binlogs.route.job import route_files
from binlane.binlogs.route.route_request import RouteRequest
from binlane.binlogs.route.schedule import Schedule
from binlane.binlogs.routing.row_selection import table_name
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import ROWS_TYPES, EventType
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.placing import place, place_group
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.positions import MysqlGtid
from binlane.statements.check.definitions import read_definitions
from tests.fixture_sets import fixture_set

_Wanted = Callable[[Sequence[Event]], bool]
"""Tells by the events of a group, those inside of others among them, if it is of a kind."""


def _has(*kinds: EventType) -> _Wanted:
    return lambda events: any(event.header.type_code in kinds for event in events)


_ROWS: Final = tuple(ROWS_TYPES)


def _says(*texts: bytes) -> _Wanted:
    def wanted(events: Sequence[Event]) -> bool:
        return any(
            isinstance(event.body, QueryEvent) and event.body.query.startswith(texts)
            for event in events
        )

    return wanted


def _both(one: _Wanted, other: _Wanted) -> _Wanted:
    return lambda events: one(events) and other(events)


def _without_savepoint(wanted: _Wanted) -> _Wanted:
    return lambda events: wanted(events) and not _says(b"SAVEPOINT")(events)


def _two_tables(events: Sequence[Event]) -> bool:
    """Tells if a group is one payload of rows of several tables."""
    names = {table_name(one.body) for one in events if isinstance(one.body, TableMapEvent)}
    is_packed = _has(EventType.TRANSACTION_PAYLOAD)(events)
    return is_packed and len(names) > 1 and not _says(b"SAVEPOINT")(events)


_PACKED: Final = ", packed"
_KINDS: Final[dict[str, tuple[str, _Wanted]]] = {
    "rows": ("md1011_txn", _without_savepoint(_has(EventType.XID))),
    "rows, MySQL": ("my97_txn", _has(EventType.XID)),
    "savepoints": ("md1011_txn", _says(b"SAVEPOINT")),
    "XA": ("md1011_xa", _says(b"XA ")),
    "XA, MySQL": ("my97_xa", _says(b"XA ")),
    "compressed": ("md1011_compressed", _has(EventType.WRITE_ROWS_COMPRESSED_V1)),
    "compressed, MySQL": (
        "my97_compressed",
        _without_savepoint(_has(EventType.TRANSACTION_PAYLOAD)),
    ),
    "compressed statements": (
        "md1011_compressed",
        _both(_has(EventType.QUERY_COMPRESSED), _says(b"INSERT", b"UPDATE")),
    ),
    "compressed DDL": (
        "md1011_compressed",
        _both(_has(EventType.QUERY_COMPRESSED), _says(b"CREATE", b"ALTER")),
    ),
    "rows, group commits": ("md1011_group_commit", _has(*_ROWS)),
    "rows, texts, MySQL": ("my97_rows_query", _has(*_ROWS)),
    "rows, parts of JSON, MySQL": ("my97_json_partial", _has(EventType.PARTIAL_UPDATE_ROWS)),
    "rows, GTIDs with tags, MySQL": (
        "my97_gtid_tagged",
        _both(_has(EventType.GTID_TAGGED_LOG), _has(*_ROWS)),
    ),
    "statements": ("md1011_format_statement", _says(b"INSERT", b"UPDATE", b"DELETE", b"REPLACE")),
    "compressed, MySQL, two tables": ("my97_txn" + _PACKED, _two_tables),
    "DDL": ("md1011_ddl", _says(b"CREATE TABLE", b"ALTER TABLE", b"DROP TABLE")),
}
_LARGEST: Final = 4096


def main() -> None:
    """Print one line for each kind and scope."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=_KINDS, default=tuple(_KINDS))
    parser.add_argument("--directory", type=Path, help="of the logs; one of the system's")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as folder:
        for kind in given.only:
            path = Path(folder) / "binlog.000001"
            databases, tables = _write(path, *_KINDS[kind], given.groups)
            scopes = {
                "unscoped": "LOG ALL",
                "all in scope": f"LOG({', '.join(sorted(databases))})",
                "one table in scope": f"LOG({tables.most_common(1)[0][0] if tables else 'nothing'})",
                "none in scope": "LOG(nothing)",
            }
            for what, scope in scopes.items():
                out = Path(folder) / "out"
                taken_s = statistics.median(_routed(path, scope, out) for _ in range(given.rounds))
                line = {
                    "benchmark": "routing of groups by kind",
                    "kind": kind,
                    "into": what,
                    "groups_per_cpu_s": round(given.groups / taken_s),
                    "load": os.getloadavg()[0],
                }
                print(json.dumps(line), flush=True)


def _write(
    path: Path, fixture: str, wanted: _Wanted, number: int
) -> tuple[set[str], Counter[TableName]]:
    """Write a log of so many groups; the databases of their tables, and the tables with rows."""
    groups = [
        group
        for file, data in _files(fixture, path.parent)
        for group in group_events(walk([data], file=file), file=file)
    ]
    first = groups[0].events[0]
    assert isinstance(first.body, FormatDescriptionEvent), "a log begins with one"
    head = replace(first.body, created=0)
    chosen, names, tables = [], set(), Counter[TableName]()
    for group in groups:
        events = tuple(expanded_all(group.events, file="", format_=head.format))
        if group.gtid is None or not wanted(events) or _size(events) > _LARGEST:
            continue
        chosen.append(group)
        for event in events:
            if isinstance(event.body, TableMapEvent):
                names.add(table_name(event.body).database)
                tables[table_name(event.body)] += 1
            elif isinstance(event.body, QueryEvent) and event.body.database:
                names.add(event.body.database.decode())
    assert chosen, f"{fixture} has such groups"
    out = bytearray(MAGIC) + place(replace(first, body=head), len(MAGIC), head.format)
    sequences: Counter[str] = Counter()
    for clock, group in enumerate(islice(cycle(chosen), number), 1):
        owner = group.gtid.tag if isinstance(group.gtid, MysqlGtid) else ""
        sequences[owner] += 1
        numbered = tuple(_numbered(event, sequences[owner], clock) for event in group.events)
        out += place_group(numbered, len(out), head.format)
    path.write_bytes(out)
    return names, tables


def _files(fixture: str, folder: Path) -> list[tuple[str, bytes]]:
    """Names and bytes of the files of a recorded log, with its transactions compressed if asked for."""
    name = fixture.removesuffix(_PACKED)
    files = [*fixture_set(name).binlogs]
    if name == fixture:
        return files
    out = folder / "packed"
    shutil.rmtree(out, ignore_errors=True)
    paths = []
    for file, data in files:
        (folder / file).write_bytes(data)
        paths.append(str(folder / file))
    definition = b"CREATE BINLOG 'one' LOG ALL, COMPRESS='ON';"
    schedule = Schedule(read_definitions(definition, name="definitions"))
    route_files(RouteRequest(paths=tuple(paths), schedule=schedule, out=out))
    return [(one.name, one.read_bytes()) for one in sorted((out / "one").glob("one.0*"))]


def _size(events: Sequence[Event]) -> int:
    return sum(event.header.length for event in events)


def _numbered(event: Event, number: int, clock: int) -> Event:
    """Give an event the number of its group among those of its GTID's tag, and its logical clock."""
    body = event.body
    if isinstance(body, GtidEvent):
        return replace(event, body=replace(body, sequence=number))
    if isinstance(body, MysqlGtidEvent):
        return replace(
            event,
            body=replace(body, sequence=number, last_committed=clock - 1, sequence_number=clock),
        )
    return event


def _routed(path: Path, scope: str, out: Path) -> float:
    """CPU seconds for routing a log into a binlog."""
    shutil.rmtree(out, ignore_errors=True)
    definitions = f"CREATE BINLOG 'one' {scope};\n".encode()
    schedule = Schedule(read_definitions(definitions, name="definitions"))
    request = RouteRequest(paths=(str(path),), schedule=schedule, out=out)
    start = time.process_time()
    route_files(request)
    return time.process_time() - start


if __name__ == "__main__":
    main()
