"""Event groups, compressed as the servers compress their own logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import accumulate

import pytest

from binlane.binlogs.routing.compressing import COMPRESSED_MIN, compressed, knows_compressed
from binlane.log.codec.body import Body
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryCompressedEvent, QueryEvent
from binlane.log.codec.rows import RowsEvent, uncompressed
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.inner import expanded
from binlane.log.grouping.placing import place_group
from binlane.log.grouping.walk import walk
from tests.fixture_sets import fixture_set

_BEGIN = 4


def _groups(name: str) -> Iterator[tuple[EventGroup, Format]]:
    """The groups of a real server's log, and the format that they are written in."""
    for file, data in fixture_set(name).binlogs:
        format_: Format | None = None
        for group in group_events(walk([data], file=file), file=file):
            first = group.events[0].body
            if isinstance(first, FormatDescriptionEvent):
                format_ = first.format
            if not group.is_control:
                assert format_ is not None
                yield group, format_


def _plain(events: Sequence[Event], format_: Format) -> list[Event]:
    """Events as they were before they were compressed."""
    found = []
    for event in events:
        body = event.body
        if isinstance(body, TransactionPayloadEvent):
            _, *inside = expanded(event, format_)
            found += [replace(each, inner=0, carrier_length=0) for each in inside]
        elif isinstance(body, RowsEvent) and body.is_compressed:
            rows = uncompressed(body)
            header = replace(event.header, type_code=rows.event_type)
            found.append(Event(header, rows))
        elif isinstance(body, QueryCompressedEvent):
            values = {field.name: getattr(body, field.name) for field in fields(body)}
            header = replace(event.header, type_code=EventType.QUERY)
            found.append(Event(header, QueryEvent(**values | {"record": None})))
        else:
            found.append(event)
    return found


def _events(
    data: bytes | bytearray | memoryview, format_: Format, *, begin: int = _BEGIN
) -> list[Event]:
    """Events that begin at a place; each must say where it ends."""
    found, at = [], 0
    while at < len(data):
        end = at + int.from_bytes(data[at + 9 : at + 13], "little")
        found.append(decode_event(bytes(data[at:end]), format_, position=begin + at))
        at = end
    ends = accumulate((event.header.length for event in found), initial=begin)
    assert [event.header.next_position for event in found] == [*ends][1:]
    return found


def _content(events: Sequence[Event]) -> list[tuple[int, object]]:
    """What events say, but for how long their group is."""
    bodies = (
        replace(event.body, transaction_length=None)
        if isinstance(event.body, MysqlGtidEvent)
        else event.body
        for event in events
    )
    return [(event.header.type_code, body) for event, body in zip(events, bodies, strict=True)]


def test_mysql_s_transactions_become_what_mysql_made_of_them() -> None:
    is_same = []
    for group, format_ in _groups("my97_compressed"):
        begin, served = group.events[0].position, [event.header.type_code for event in group.events]
        if EventType.TRANSACTION_PAYLOAD not in served:
            continue
        plain = place_group(_plain(group.events, format_), begin, format_)
        made = compressed(plain, begin, format_)
        events = _events(made, format_, begin=begin)
        assert [event.header.type_code for event in events] == served
        assert _inside(events, format_) == _inside(group.events, format_)
        is_same.append(made == b"".join(event.raw or b"" for event in group.events))
    # Others are of another level, or longer than what zstd is given at once.
    assert sum(is_same) > len(is_same) // 2


def _inside(events: Sequence[Event], format_: Format) -> list[tuple[EventHeader, Body]]:
    _, *inside = (each for event in events[1:] for each in expanded(event, format_))
    return [(event.header, event.body) for event in inside]


@pytest.mark.parametrize("name", ["md1011_compressed", "md118_compressed"])
def test_mariadb_s_events_become_what_mariadb_made_of_them(name: str) -> None:
    seen = set()
    for group, format_ in _groups(name):
        before = _plain(group.events, format_)
        made = _events(compressed(place_group(before, _BEGIN, format_), _BEGIN, format_), format_)
        for ours, served, plain in zip(made, group.events, before, strict=True):
            if ours.header.type_code == served.header.type_code:
                assert ours.body == served.body
                seen.add(ours.header.type_code)
            else:
                # This server was to compress 10 bytes already.
                assert ours.body == plain.body
                assert ours.header.length < COMPRESSED_MIN + 100
    assert seen >= {EventType.QUERY_COMPRESSED, EventType.WRITE_ROWS_COMPRESSED_V1}


def test_short_rows_are_compressed_where_there_are_many() -> None:
    # MariaDB asks the length of an event's first row only.
    kinds = set()
    for group, format_ in _groups("md1011_load_data_row"):
        made = compressed(place_group(group.events, _BEGIN, format_), _BEGIN, format_)
        kinds |= {event.header.type_code for event in _events(made, format_)}
    assert EventType.WRITE_ROWS_COMPRESSED_V1 in kinds


@pytest.mark.parametrize(
    "name",
    [
        *("md1011_bigrow", "md1011_checksum_none", "md1011_compressed"),
        *("my97_bigrow", "my97_checksum_none", "my97_xa", "my97_compressed"),
    ],
)
def test_nothing_is_lost(name: str) -> None:
    before = after = 0
    for group, format_ in _groups(name):
        placed = place_group(group.events, _BEGIN, format_)
        made = compressed(placed, _BEGIN, format_)
        events = _events(made, format_)
        assert _content(_plain(events, format_)) == _content(_plain(group.events, format_))
        first = events[0].body
        if isinstance(first, MysqlGtidEvent):
            assert first.transaction_length == len(made)
        before, after = before + len(placed), after + len(made)
    assert after < before or name in {"my97_compressed", "md1011_compressed"}


def test_mysql_compresses_transactions_of_rows_and_no_others() -> None:
    # Nontransactional tables, DDL, CREATE TABLE … SELECT, and what is a statement stay.
    for group, format_ in _groups("my97_engines_mixed"):
        made = compressed(place_group(group.events, _BEGIN, format_), _BEGIN, format_)
        kinds = {event.header.type_code for event in _events(made, format_)}
        texts = [e.body.query for e in group.events if isinstance(e.body, QueryEvent)]
        is_of_rows = texts == [b"BEGIN"] and group.events[-1].header.type_code == EventType.XID
        assert (EventType.TRANSACTION_PAYLOAD in kinds) is is_of_rows, texts


def test_groups_behind_one_that_was_compressed_move() -> None:
    groups = list(_groups("my97_xa"))
    format_ = groups[0][1]
    placed = bytearray()
    for group, _ in groups:
        placed += place_group(group.events, _BEGIN + len(placed), format_)
    made = _events(compressed(placed, _BEGIN, format_), format_)
    assert _content(_plain(made, format_)) == [
        each for group, _ in groups for each in _content(group.events)
    ]
    kinds = [event.header.type_code for event in made]
    assert EventType.TRANSACTION_PAYLOAD in kinds


def test_a_piece_of_a_group_stays() -> None:
    for group, format_ in _groups("my97_bigrow"):
        placed = place_group(group.events, _BEGIN, format_)
        head, tail = (
            placed[: group.events[0].header.length],
            placed[group.events[0].header.length :],
        )
        assert compressed(head, _BEGIN, format_) is head
        assert compressed(tail, _BEGIN, format_) is tail
        assert compressed(b"", _BEGIN, format_) == b""


def test_what_says_that_compressed_events_are_known() -> None:
    mariadb, mysql = (next(_groups(name))[1] for name in ("md1011_txn", "my97_xa"))
    assert (mariadb.flavor, mysql.flavor) == (Flavor.MARIADB, Flavor.MYSQL)
    assert knows_compressed(mariadb)
    assert knows_compressed(mysql)
    # MariaDB 10.1 announced 163 types, MySQL 8.0.19 39.
    old = replace(mariadb, post_header_lengths=mariadb.post_header_lengths[:163])
    assert not knows_compressed(old)
    old = replace(mysql, post_header_lengths=mysql.post_header_lengths[:39])
    assert not knows_compressed(old)
