"""Facts by kernels are those that the reference decoder gives, of every log that fixtures hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from binlane.binlogs.store.stored_groups import read_groups
from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent, IncidentEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.grouping.event_group import CONTROL_TYPES, EventGroup
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.xa import finished_by, prepared_by
from binlane.names import TableName
from binlane.statements.sql.logged_statements import is_about_rows_only
from binlane.tables.ranges.log_file_facts import LogFileFacts
from binlane.tables.ranges.stored_files import StoredLogFile
from binlane.tables.ranges.survey import first_facts, survey
from tests.fixture_sets import fixture_names, fixture_set


@dataclass(slots=True)
class Told:
    """What a file holds, told group by group."""

    groups: list[tuple[int, str, frozenset[TableName], int, tuple[int, int]]]
    statements: list[tuple[int, bytes, str]]
    xa: list[tuple[str, int, int, bool]]
    incidents: list[int]


def by_reference(path: Path) -> tuple[Told, bool]:
    """What the reference finds, and whether it met a fault."""
    told = Told([], [], [], [])
    format_ = None
    try:
        for group in read_groups([path]):
            if isinstance(group.events[0].body, FormatDescriptionEvent):
                format_ = group.events[0].body.format
            if group.events[0].header.type_code in CONTROL_TYPES or not group.is_complete:
                continue
            tables = set()
            maps: dict[int, TableMapEvent] = {}
            times = []
            for event in expanded_all(group.events, file=str(path), format_=format_):
                times.append(event.header.timestamp)
                if isinstance(event.body, TableMapEvent):
                    maps[event.body.table_id] = event.body
                elif isinstance(event.body, RowsEvent) and event.body.table_id in maps:
                    table = maps[event.body.table_id]
                    tables.add(TableName(table.database, table.table))
            note_special(told, group)
            gtid = "" if group.gtid is None else str(group.gtid)
            ends = min(times), max(times)
            told.groups.append(
                (group.next_position, gtid, frozenset(tables), group.timestamp, ends)
            )
    except CodecError:
        return told, True
    return told, False


def note_special(told: Told, group: EventGroup) -> None:
    """Note what is no row."""
    head = group.events[0].body
    gtid = "" if group.gtid is None else str(group.gtid)
    for event in group.events:
        if isinstance(event.body, IncidentEvent):
            told.incidents.append(event.position)
        xid = prepared_by(event) or finished_by(event)
        if xid is not None:
            is_prepare = prepared_by(event) is not None
            told.xa.append((xid, group.position, group.next_position, is_prepare))
        elif (
            isinstance(event.body, QueryEvent)
            and not is_about_rows_only(event.body.query)
            and not (isinstance(head, GtidEvent) and head.is_undone)
        ):
            told.statements.append((event.position, event.body.query, gtid))


def by_survey(facts: LogFileFacts) -> Told:
    """The same from facts with a cut point behind every group."""
    groups = []
    for piece in facts.pieces:
        tables = facts.tables(piece)
        if piece.groups == 0:
            continue
        assert piece.groups == 1
        assert tables is not None
        assert piece.first_timestamp == piece.last_timestamp
        ends = piece.least_event_time, piece.greatest_event_time
        groups.append((piece.stop, piece.gtids, tables, piece.first_timestamp, ends))
    statements = [
        (query.event.position, query.event.body.query, query.gtid)
        for query in facts.queries
        if isinstance(query.event.body, QueryEvent)
    ]
    xa = [(place.xid, place.start, place.stop, place.is_prepare) for place in facts.xa]
    return Told(groups, statements, xa, list(facts.incidents))


def log_file(path: Path) -> StoredLogFile:
    return StoredLogFile(uri=str(path), name=path.name, number=1, size_bytes=path.stat().st_size)


PLAIN_SETS = [name for name in fixture_names() if "encrypted" not in name]


@pytest.mark.parametrize("name", PLAIN_SETS)
def test_facts_are_those_of_the_reference(name: str, tmp_path: Path) -> None:
    for file, data in fixture_set(name).binlogs:
        path = tmp_path / file
        path.write_bytes(data)
        expected, is_faulty = by_reference(path)
        log = log_file(path)
        try:
            first = first_facts(log)
        except CodecError:
            assert is_faulty or file == "magic_only.bin", file
            continue
        for window_bytes in (1 << 20, 1 << 9):
            facts = survey(log, first, piece_bytes=1, window_bytes=window_bytes)
            found = by_survey(facts)
            if is_faulty:
                # A row's checksum is looked at by whoever reads the row, which may be behind this.
                assert found.groups[: len(expected.groups)] == expected.groups, file
                assert found.statements[: len(expected.statements)] == expected.statements, file
                continue
            assert found == expected, (file, window_bytes)
            assert not facts.fault, (file, window_bytes)
            assert facts.end == (expected.groups[-1][0] if expected.groups else first.end), file


@pytest.mark.parametrize("name", ["md1011_txn", "md1011_ddl", "my97_txn", "md1011_rotation"])
def test_facts_that_grow_are_those_of_one_pass(name: str, tmp_path: Path) -> None:
    for file, data in fixture_set(name).binlogs:
        path = tmp_path / file
        path.write_bytes(data)
        whole = survey(log_file(path), first_facts(log_file(path)), piece_bytes=700)
        path.write_bytes(data[:1000])
        facts = first_facts(log_file(path))
        for end in range(1000, len(data) + 997, 997):
            path.write_bytes(data[:end])
            facts = survey(log_file(path), facts, piece_bytes=700)
            assert not facts.fault, end
        assert facts == whole
