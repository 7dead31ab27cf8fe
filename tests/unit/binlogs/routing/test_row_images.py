"""Events of recorded logs with their row images cut: what stays, what cannot be cut, and its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from binlane.binlogs.routing.compressing import compressed
from binlane.binlogs.routing.row_images import ImageCutter, Uncut
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.rows import (
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
    compressed_rows,
    uncompressed,
)
from binlane.log.codec.table_metadata import primary_key
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.placing import place_group
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.walk import walk
from binlane.statements.sql.servers import RowImage
from tests.fixture_sets import fixture_set

FULL = ["md1011_metadata_full", "md118_metadata_full", "my97_metadata_full"]
LESS = [RowImage.MINIMAL, RowImage.NOBLOB, RowImage.FULL_NODUP]


def groups(name: str) -> Iterator[tuple[tuple[Event, ...], Format]]:
    for file, data in fixture_set(name).binlogs:
        for group in group_events(walk([data], file=file), file=file):
            first = group.events[0].body
            if isinstance(first, FormatDescriptionEvent):
                format_ = first.format
            elif not group.is_control:
                yield group.events, format_


def rows(events: tuple[Event, ...], format_: Format) -> list[tuple[RowsEvent, TableMapEvent]]:
    found = rows_with_tables(events, file="", format_=format_)
    return [(body, table) for _, body, table in found]


def bits(bitmap: bytes | None, table: TableMapEvent) -> int:
    return int.from_bytes(bitmap or b"", "little") & ((1 << len(table.column_types)) - 1)


@pytest.mark.rule("004:PKE-primary")
@pytest.mark.rule("004:image-write-minimal")
@pytest.mark.rule("004:image-write-noblob")
@pytest.mark.parametrize("name", FULL)
def test_before_images_keep_the_key_and_inserts_all(name: str) -> None:
    cutter, seen = ImageCutter(RowImage.MINIMAL), Counter[type]()
    for events, format_ in groups(name):
        cut = cutter.events(events, format_)
        pairs = zip(rows(events, format_), rows(cut, format_), strict=True)
        for (before, table), (after, _) in pairs:
            key = sum(1 << part.index for part in primary_key(table))
            if isinstance(after, WriteRowsEvent):
                assert after == before
            elif key:
                assert bits(after.columns_present, table) == key
                seen[type(after)] += 1
    assert not cutter.uncut
    assert seen


@pytest.mark.parametrize("image", LESS)
@pytest.mark.parametrize("name", FULL)
def test_cut_images_are_not_cut_again(name: str, image: RowImage) -> None:
    for events, format_ in groups(name):
        cut = ImageCutter(image).events(events, format_)
        assert ImageCutter(image).events(cut, format_) == cut


@pytest.mark.parametrize("image", LESS)
@pytest.mark.parametrize("name", FULL)
def test_the_reference_and_kernels_cut_alike(name: str, image: RowImage) -> None:
    for events, format_ in groups(name):
        slow, fast = (ImageCutter(image, uses_kernels=each) for each in (False, True))
        assert slow.events(events, format_) == fast.events(events, format_)
        assert slow.uncut == fast.uncut


def test_what_is_not_known_stays_full_and_is_counted() -> None:
    cutter, count = ImageCutter(RowImage.MINIMAL), 0
    for events, format_ in groups("md1011_rowimage_full"):
        assert cutter.events(events, format_) == events
        found = rows(events, format_)
        count += sum(not isinstance(body, WriteRowsEvent) for body, _ in found)
    assert cutter.uncut == {Uncut.NO_METADATA: count}


def test_pairs_of_images_that_are_damaged_stay() -> None:
    for events, format_ in groups("my97_metadata_full"):
        for body, table in rows(events, format_):
            if not isinstance(body, UpdateRowsEvent):
                continue
            broken = replace(body, images=body.images[:-1])
            header = events[0].header
            given = (Event(header, table), Event(header, broken))
            cutter = ImageCutter(RowImage.MINIMAL)
            assert cutter.events(given, format_) == given
            assert cutter.uncut == {Uncut.DAMAGED: 1}
            return


def test_compressed_rows_are_cut_and_compressed_again() -> None:
    checked = 0
    for events, format_ in groups("md1011_metadata_full"):
        packed = tuple(
            replace(event, body=compressed_rows(event.body))
            if isinstance(event.body, RowsEvent)
            else event
            for event in events
        )
        plain = rows(ImageCutter(RowImage.MINIMAL).events(events, format_), format_)
        for (ours, _), (expected, _) in zip(
            rows(ImageCutter(RowImage.MINIMAL).events(packed, format_), format_), plain, strict=True
        ):
            assert ours.is_compressed
            assert uncompressed(ours) == expected
            checked += 1
    assert checked


def test_rows_inside_of_a_payload_are_cut() -> None:
    checked = 0
    for events, format_ in groups("my97_metadata_full"):
        data = place_group(events, 4, format_)
        packed = bytes(compressed(data, 4, format_))
        if packed == data:
            continue
        plain = rows(ImageCutter(RowImage.NOBLOB).events(events, format_), format_)
        found = bytes(ImageCutter(RowImage.NOBLOB).placed(packed, 4, format_))
        cut = decoded(found, format_)
        assert rows(cut, format_) == plain
        assert isinstance(cut[0].body, MysqlGtidEvent)
        assert cut[0].body.transaction_length in {None, len(found)}
        checked += 1
    assert checked


def decoded(data: bytes, format_: Format) -> tuple[Event, ...]:
    found, at = [], 0
    while at < len(data):
        length = EventHeader.decode(data[at:]).length
        found.append(decode_event(data[at : at + length], format_))
        at += length
    return tuple(found)
