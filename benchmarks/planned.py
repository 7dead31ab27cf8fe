"""CPU that routing takes for a group with texts, as JSON lines: without a server and without sessions.

The groups are inserts of one row whose AUTO_INCREMENT values the server chose, in runs of some groups;
their plans are known when they come. The lowest and the median of several rounds, in microseconds a
group, for all binlogs together and for one of them.

    python -m benchmarks.planned [--rounds 5] [--groups 2000] [--flavor mariadb] [--directory DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median

from binlane.binlogs.store.byte_source import FileBytes
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.live.loop.outputs import Output
from binlane.live.loop.router import Router
from binlane.live.loop.substitution import Substitution
from binlane.live.port.attributions import Attributions
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.placing import place, place_group
from binlane.log.grouping.raw import RawRun, raw_groups
from binlane.log.grouping.sections import RowsPiece
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.positions import Gtid, MysqlGtid, nothing_done
from binlane.statements.session.group_plan import (
    EncodedEvent,
    Generated,
    GroupPlan,
    TextPart,
    basis_of,
)
from tests.fixture_sets import fixture_set
from tests.routed_files import definitions

_LOGS = {Flavor.MARIADB: "md1011_txn", Flavor.MYSQL: "my97_txn"}
_TEMPLATES = {Flavor.MARIADB: 13, Flavor.MYSQL: 14}
_TABLE = TableName("shop", "a")
THREAD = 7
SCOPES = {"unscoped": "LOG ALL, FORMAT='STATEMENT'", "scoped": "LOG(shop), FORMAT='STATEMENT'"}
_INSERT_ID = EncodedEvent(EventType.INTVAR, b"\x02" + bytes(8))


def main() -> None:
    """Print one line for each scope, number of binlogs, and length of runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--groups", type=int, default=2000)
    parser.add_argument("--flavor", type=Flavor, choices=[*Flavor], default=Flavor.MARIADB)
    parser.add_argument("--directory", type=Path, help="of the binlogs; one of the system's")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as place_:
        path = Path(place_) / "binlog.000001"
        head, group_bytes = write_log(path, given.groups, given.flavor)
        for scope, clause in SCOPES.items():
            for count in (1, 10):
                for length in (1, 10, 200):
                    figures = []
                    for number in range(given.rounds):
                        folder = Path(place_) / f"{scope}{count}-{length}-{number}"
                        window = max(256, (length + 1) * group_bytes - 1)
                        figures.append(_routed(path, folder, head, [clause] * count, window))
                    each = [1e6 * taken / given.groups for taken in figures]
                    line = {
                        "benchmark": "routing of groups with texts",
                        "flavor": given.flavor.value,
                        "scope": scope,
                        "binlogs": count,
                        "run": length,
                        "lowest_us": round(min(each), 1),
                        "median_us": round(median(each), 1),
                        "lowest_us_a_binlog": round(min(each) / count, 1),
                        "load": os.getloadavg()[0],
                    }
                    print(json.dumps(line), flush=True)


def write_log(
    path: Path, count: int, flavor: Flavor = Flavor.MARIADB
) -> tuple[FormatDescriptionEvent, int]:
    """A log of inserts, and the size of each of its groups."""
    groups = list(_fixture(_LOGS[flavor]))
    first = groups[0].events[0]
    assert isinstance(first.body, FormatDescriptionEvent), "a log begins with one"
    head = replace(first.body, created=0)
    out = bytearray(MAGIC) + place(replace(first, body=head), len(MAGIC), head.format)
    template = next(
        group
        for group in groups
        if isinstance(group.gtid, Gtid | MysqlGtid) and group.gtid.sequence == _TEMPLATES[flavor]
    )
    begin = len(out)
    for number in range(1, count + 1):
        events = tuple(_numbered(event, number) for event in template.events)
        out += place_group(events, len(out), head.format)
    path.write_bytes(out)
    return head, (len(out) - begin) // count


def _fixture(name: str) -> Iterator[EventGroup]:
    for file, data in fixture_set(name).binlogs:
        yield from group_events(walk([data], file=file), file=file)


def _numbered(event: Event, number: int) -> Event:
    body = event.body
    if isinstance(body, GtidEvent):
        return replace(event, body=replace(body, sequence=number))
    if isinstance(body, MysqlGtidEvent):
        made = replace(body, sequence=number, last_committed=number - 1, sequence_number=number)
        return replace(event, body=made)
    if isinstance(body, QueryEvent):
        return replace(event, body=replace(body, thread_id=THREAD))
    if isinstance(body, RowsEvent):
        images = body.images[:1] + number.to_bytes(4, "little") + body.images[5:]
        return replace(event, body=replace(body, images=images))
    return event


def _routed(
    path: Path, folder: Path, head: FormatDescriptionEvent, clauses: Sequence[str], window: int
) -> float:
    """CPU seconds for routing all groups of a log."""
    flavor = head.format.flavor
    start = nothing_done(flavor.value)
    with Store.open(folder, StoreSettings()) as store:
        for definition in definitions(*clauses):
            store.create_binlog(
                definition, start=start, format_description=head, server_id=1, timestamp=0
            )
        outputs = [Output(LiveBinlog(binlog)) for binlog in store.binlogs.values()]
        with closing(Attributions(None, flavor)) as attributions:
            substitution = Substitution(attributions)
            substitution.connected(start, is_new=True)
            attributions.taken(THREAD)
            router, taken_s, sequence = Router(start, substitution), 0.0, 0
            with closing(FileBytes(path)) as source:
                for item in raw_groups(source, file=str(path), name=path.name, window_bytes=window):
                    position = router.position
                    assert position is not None, "it is where it started"
                    for number in range(item.count if isinstance(item, RawRun) else 0):
                        sequence += 1
                        attributions.intend(THREAD, sequence, [plan_of(sequence, head, outputs)])
                        gtid = item.gtid(number) if isinstance(item, RawRun) else None
                        attributions.done(THREAD, sequence, str(gtid))
                    began_s = time.process_time()
                    after = item.position_after(position) if isinstance(item, RawRun) else position
                    router.take(item, after, outputs, _refuse)
                    for output in outputs:
                        output.binlog.write()
                    taken_s += time.process_time() - began_s
        for output in outputs:
            assert output.counts.event_groups == sequence, "all are there"
            assert not output.counts.rows_instead, "they are there as texts"
    return taken_s


def plan_of(number: int, head: FormatDescriptionEvent, outputs: Sequence[Output]) -> GroupPlan:
    """The plan of a group by its number: its text, in the binlogs of some outputs."""
    body = QueryEvent(
        thread_id=THREAD,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=b"shop",
        query=b"INSERT INTO a(v) VALUES(%d)" % number,
    )
    query = EncodedEvent(EventType.QUERY, body.encode(head.format))
    parts = (TextPart((_INSERT_ID, query), 0, Generated(_TABLE, 0)),)
    return GroupPlan(
        sections=((RowsPiece((_TABLE,), ()),),),
        binlogs={output.name: parts for output in outputs},
        bases={output.name: basis_of(output.binlog.definition) for output in outputs},
    )


def _refuse(output: Output, error: Exception) -> None:
    raise SystemExit(f"{output.name}: {error}")


if __name__ == "__main__":
    main()
