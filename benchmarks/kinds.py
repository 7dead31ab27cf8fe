"""Event groups of each kind that `route` takes in a CPU second, as JSON lines.

The groups of a kind are those of a recorded log, given once more and once more with GTIDs of their
own. They go into a binlog of everything, into one whose scope has all their tables, one that has
one of them, and one that has none, in a process that has all modules loaded; the median of several
rounds. A kind's name may ask for transactions that are compressed here, and for DDL by its texts, of
tables that all have the same name, or each its own. With `--online` the routing loop's router takes
them, as `serve` does for a source without sessions through the port, with the catalog that follows DDL.

    python -m benchmarks.kinds [--groups 4000] [--rounds 3] [--only KIND ...] [--online]
        [--directory DIR]
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
from contextlib import closing
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from binlane.binlogs.route.job import route_files
from binlane.binlogs.route.route_request import RouteRequest
from binlane.binlogs.route.schedule import Schedule
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.store.byte_source import FileBytes
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.live.loop.outputs import Output
from binlane.live.loop.router import Router
from binlane.live.loop.substitution import Substitution
from binlane.live.port.attributions import Attributions
from binlane.live.port.live_catalog import changes_in
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.status_vars import decode_status_vars, encode_status_vars
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import ROWS_TYPES, EventType
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.placing import place, place_group
from binlane.log.grouping.raw import RawRun, raw_groups
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.positions import MysqlGtid, nothing_done
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
    "DDL, tables": ("md1011_ddl", _has(EventType.QUERY)),
    "DDL, tables of their own": ("md1011_ddl", _has(EventType.QUERY)),
    "DDL, tables, MySQL": ("my97_ddl", _has(EventType.QUERY)),
    "DDL, tables of their own, MySQL": ("my97_ddl", _has(EventType.QUERY)),
    "DDL, other objects": ("md1011_ddl", _has(EventType.QUERY)),
    "DDL": ("md1011_ddl", _says(b"CREATE TABLE", b"ALTER TABLE", b"DROP TABLE")),
}
_OF_TABLES: Final = (
    "CREATE TABLE `t_{n}` (`id` int NOT NULL, `v` varchar(10) DEFAULT NULL, PRIMARY KEY (`id`))",
    "ALTER TABLE `t_{n}` ADD COLUMN `w` int DEFAULT 5",
    "CREATE INDEX `by_v` ON `t_{n}` (`v`)",
    "TRUNCATE TABLE `t_{n}`",
    "ANALYZE TABLE `t_{n}`",
    "DROP TABLE `t_{n}` /* generated by server */",
)
_OF_OTHERS: Final = (
    *("CREATE DATABASE `new_db`", "CREATE OR REPLACE VIEW `v` AS SELECT 1 AS `a`", "DROP VIEW `v`"),
    *("GRANT SELECT ON `shop`.* TO 'u'@'%'", "CREATE ROLE `r`", "DROP ROLE `r`"),
    *("CREATE TABLE `old` (`a` int)", "RENAME TABLE `old` TO `moved`", "DROP TABLE `moved`"),
    *("CREATE TEMPORARY TABLE `mine` (`a` int)", "OPTIMIZE TABLE `t`", "DROP DATABASE `new_db`"),
)
_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "DDL, tables": _OF_TABLES,
    "DDL, tables of their own": _OF_TABLES,
    "DDL, tables, MySQL": _OF_TABLES,
    "DDL, tables of their own, MySQL": _OF_TABLES,
    "DDL, other objects": _OF_OTHERS,
}
"""Texts of DDL, of which each group has one in its turn."""
_LARGEST: Final = 4096


def main() -> None:
    """Print one line for each kind and scope."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=_KINDS, default=tuple(_KINDS))
    parser.add_argument("--online", action="store_true", help="by the routing loop's router")
    parser.add_argument("--directory", type=Path, help="of the logs; one of the system's")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as folder:
        for kind in given.only:
            path = Path(folder) / "binlog.000001"
            databases, tables = _write(path, *_KINDS[kind], given.groups)
            if kind in _TEXTS:
                databases, tables = {"shop"}, Counter([TableName("shop", "t_0")])
                _retell(path, _TEXTS[kind], has_own="of their own" in kind)
            scopes = {
                "unscoped": "LOG ALL",
                "all in scope": f"LOG({', '.join(sorted(databases))})",
                "one table in scope": f"LOG({tables.most_common(1)[0][0] if tables else 'nothing'})",
                "none in scope": "LOG(nothing)",
            }
            for what, scope in scopes.items():
                out = Path(folder) / "out"
                route = _online if given.online else _routed
                taken_s = statistics.median(route(path, scope, out) for _ in range(given.rounds))
                line = {
                    "benchmark": "routing of groups by kind",
                    "kind": kind,
                    "by": "router" if given.online else "route",
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


def _retell(path: Path, texts: Sequence[str], *, has_own: bool) -> None:
    """Give the groups of a log texts of DDL, the GTID of its first group with one statement, and numbers."""
    groups = list(group_events(walk([path.read_bytes()], file=path.name), file=path.name))
    first = groups[0].events[0]
    assert isinstance(first.body, FormatDescriptionEvent), "a log begins with one"
    lone = next(group for group in groups[1:] if _is_lone(group.events))
    out = bytearray(MAGIC) + place(first, len(MAGIC), first.body.format)
    for clock in range(1, len(groups)):
        number = (clock - 1) // len(texts)
        text = texts[(clock - 1) % len(texts)].replace("{n}", str(number if has_own else 0))
        gtid, event = (_numbered(each, clock, clock) for each in lone.events)
        assert isinstance(event.body, QueryEvent), "the group was chosen by it"
        context = [
            replace(each, value=clock) if each.name in ("XID", "DDL_LOGGED_WITH_XID") else each
            for each in decode_status_vars(event.body.status_vars)
        ]
        body = replace(
            event.body,
            query=text.encode(),
            database=b"shop",
            status_vars=encode_status_vars(context),
        )
        out += place_group((gtid, replace(event, body=body)), len(out), first.body.format)
    path.write_bytes(out)


def _is_lone(events: Sequence[Event]) -> bool:
    return len(events) == 2 and _says(b"CREATE TABLE")(events)


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


def _online(path: Path, scope: str, out: Path) -> float:
    """CPU seconds for routing a log into a binlog by the routing loop's router."""
    shutil.rmtree(out, ignore_errors=True)
    (head,) = islice((e.body for e in walk([path.read_bytes()], file=path.name)), 1)
    assert isinstance(head, FormatDescriptionEvent), "a log begins with one"
    flavor = head.format.flavor
    begin = nothing_done(flavor.value)
    (definition,) = read_definitions(f"CREATE BINLOG 'one' {scope};\n".encode(), name="definitions")
    with Store.open(out, StoreSettings()) as store:
        binlog = store.create_binlog(
            definition, start=begin, format_description=head, server_id=1, timestamp=0
        )
        output = Output(LiveBinlog(binlog))
        with closing(Attributions(None, flavor)) as attributions:
            substitution = Substitution(attributions)
            substitution.connected(begin, is_new=True)
            router = Router(begin, substitution)
            start = time.process_time()
            with closing(FileBytes(str(path))) as source:
                for item in raw_groups(source, file=str(path), name=path.name):
                    assert router.position is not None, "it is where it started"
                    after = router.position
                    if isinstance(item, RawRun):
                        after = item.position_after(after)
                    changes_in(item)
                    router.take(item, after, [output], _refuse)
                    output.binlog.write()
            return time.process_time() - start


def _refuse(output: Output, error: Exception) -> None:
    raise SystemExit(f"{output.name}: {error}")


if __name__ == "__main__":
    main()
