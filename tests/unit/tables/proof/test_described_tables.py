"""Event groups in order → digests of tables, and the doubts that make them count no more."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from binlane.log.codec.body import Body
from binlane.log.codec.rows import DeleteRowsV1Event, UpdateRowsV1Event
from binlane.log.codec.types import ColumnType
from binlane.log.grouping.event_group import EventGroup
from binlane.names import TableName
from binlane.positions import Gtid, GtidPosition
from binlane.tables.proof.described_tables import DescribedTables, DigestGap
from binlane.tables.proof.hash_files import without
from binlane.tables.proof.table_digest import TableDigest
from binlane.tables.proof.watched_changes import WatchedChanges, multiset_difference
from tests.build import FORMAT, event, rows, table_map
from tests.groups import query

T: Final = TableName("shop", "t")
CREATE: Final = b"CREATE TABLE shop.t (a INT, b INT)"
MAP: Final = table_map(ColumnType.LONG, ColumnType.LONG)


def image(a: int, b: int) -> bytes:
    return b"\xfc" + a.to_bytes(4, "little") + b.to_bytes(4, "little")


def follow(tables: DescribedTables, *items: bytes | Body) -> None:
    """Follow groups of one statement or rows event each, with growing GTIDs."""
    for number, item in enumerate(items):
        body = (query(item),) if isinstance(item, bytes) else (event(MAP), event(item))
        group = EventGroup(gtid=Gtid(0, 1, 10 + number), events=body, file="b.000001")
        assert tables.follow(group, FORMAT) is None


def of(*images: bytes) -> TableDigest:
    """The digest of a table that has just these rows."""
    tables = DescribedTables()
    follow(tables, CREATE, rows(2, b"".join(images)))
    return tables.tables[T].digest


def test_the_order_of_changes_does_not_count() -> None:
    tables = DescribedTables()
    follow(
        tables,
        CREATE,
        rows(2, image(1, 1) + image(2, 2)),
        rows(2, image(1, 1) + image(1, 5), kind=UpdateRowsV1Event),
        rows(2, image(2, 2), kind=DeleteRowsV1Event),
        rows(2, image(3, 3)),
    )
    table = tables.tables[T]
    assert (table.doubt, table.is_whole, table.since) == (None, True, "0-1-10")
    assert not len(table.digest.differing(of(image(3, 3), image(1, 5))))
    assert len(table.digest.differing(of(image(3, 3), image(1, 6)))) in (1, 2)
    assert table.digest.rows == 2


def test_unused_bits_of_a_bitmap_do_not_count() -> None:
    other = b"\x00" + image(1, 1)[1:]
    assert not len(of(other).differing(of(image(1, 1))))


@pytest.mark.parametrize(
    ("statement", "doubt"),
    [
        (b"ALTER TABLE shop.t ADD COLUMN c INT", DigestGap.ALTERED),
        (b"ALTER TABLE shop.t DROP PARTITION p1", DigestGap.ALTERED),
        (b"ALTER IGNORE TABLE shop.t ADD UNIQUE KEY (a)", DigestGap.ALTERED),
        (b"ALTER TABLE shop.t ADD KEY (a), COMMENT='x'", None),
        (b"CREATE INDEX i ON shop.t (a)", None),
        (b"INSERT INTO shop.t VALUES (1, 2)", DigestGap.STATEMENTS),
        (b"UPDATE shop.other SET a = f(b)", DigestGap.STATEMENTS),
        (b"UPDATE shop.other SET a = ABS(b)", None),
        (b"CALL shop.p()", DigestGap.STATEMENTS),
        (b"GRANT SELECT ON shop.t TO a", None),
        (b"FROBNICATE shop.t", DigestGap.STATEMENTS),
        (b"CREATE TABLE IF NOT EXISTS shop.t (a INT)", None),
        (b"DROP TEMPORARY TABLE shop.t", None),
    ],
)
def test_what_rows_do_not_tell_is_doubted(statement: bytes, doubt: DigestGap | None) -> None:
    tables = DescribedTables()
    follow(tables, CREATE, rows(2, image(1, 1)), statement)
    assert tables.tables[T].doubt is doubt
    follow(tables, b"TRUNCATE TABLE shop.t", rows(2, image(7, 7)))
    assert tables.tables[T].doubt is None
    assert not len(tables.tables[T].digest.differing(of(image(7, 7))))


def test_a_table_without_rows_may_be_altered() -> None:
    tables = DescribedTables()
    follow(tables, CREATE, b"ALTER TABLE shop.t ADD COLUMN c INT", rows(2, image(1, 1)))
    assert tables.tables[T].doubt is None
    follow(tables, b"TRUNCATE TABLE shop.t", b"ALTER TABLE shop.t DROP COLUMN c")
    assert tables.tables[T].doubt is None
    follow(tables, b"ALTER TABLE shop.t EXCHANGE PARTITION p WITH TABLE shop.o")
    assert tables.tables[T].doubt is DigestGap.ALTERED


def test_a_table_that_is_made_with_its_rows_has_them() -> None:
    tables = DescribedTables()
    events = (query(CREATE), event(MAP), event(rows(2, image(1, 1))))
    tables.follow(EventGroup(gtid=Gtid(0, 1, 9), events=events, file="b.000001"), FORMAT)
    assert tables.tables[T].is_whole
    assert not len(tables.tables[T].digest.differing(of(image(1, 1))))


def test_tables_that_go_and_move() -> None:
    tables = DescribedTables()
    new = TableName("shop", "new")
    follow(tables, CREATE, rows(2, image(1, 1)), b"RENAME TABLE shop.t TO shop.new")
    assert tables.tables.keys() == {new}
    assert tables.tables[new].digest.rows == 1
    follow(tables, b"DROP TABLE shop.new")
    assert not tables.tables
    follow(tables, CREATE, b"DROP DATABASE shop")
    assert not tables.tables


def test_images_that_lack_columns_are_doubted() -> None:
    tables = DescribedTables()
    small = image(1, 1)[:5]
    follow(tables, CREATE, rows(2, small, kind=DeleteRowsV1Event, present=1))
    assert tables.tables[T].doubt is DigestGap.ROW_IMAGES


def test_a_table_without_a_beginning_counts_from_a_baseline() -> None:
    tables = DescribedTables()
    follow(tables, rows(2, image(1, 1)))
    table = tables.tables[T]
    assert table.doubt is DigestGap.NO_BEGINNING
    table.digest, table.doubt = of(image(1, 1), image(2, 2)), None
    follow(tables, rows(2, image(2, 2), kind=DeleteRowsV1Event))
    assert not len(table.digest.differing(of(image(1, 1))))


def test_a_watch_knows_what_was_touched() -> None:
    tables = DescribedTables()
    follow(tables, CREATE, rows(2, image(1, 1) + image(2, 2)))
    watch = tables.watches[T] = WatchedChanges(T)
    follow(
        tables,
        rows(2, image(2, 2) + image(2, 3), kind=UpdateRowsV1Event),
        rows(2, image(2, 3) + image(2, 2), kind=UpdateRowsV1Event),
        rows(2, image(4, 4)),
        rows(2, image(4, 4), kind=DeleteRowsV1Event),
    )
    touched, present = watch.finals()
    assert len(touched) == 3
    assert not len(TableDigest.of(present).differing(of(image(2, 2))))
    came, went = watch.net(GtidPosition((Gtid(0, 1, 12),)))
    assert (len(came), len(went)) == (0, 1)
    read = np.concatenate([touched, np.array([5], np.uint64)])
    assert without(read, touched).tolist() == [5]
    follow(tables, b"TRUNCATE shop.t")
    assert watch.interruption


def test_differences_of_multisets() -> None:
    one, other = np.array([5, 5, 7, 9], np.uint64), np.array([5, 9, 9], np.uint64)
    assert multiset_difference(one, other).tolist() == [5, 7]
    assert multiset_difference(other, one).tolist() == [9]
