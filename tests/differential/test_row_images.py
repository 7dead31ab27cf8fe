"""Full row images of a server, cut, and those that it writes itself of the same statements.

Equal column by column and byte by byte, but for what a full image cannot say: to which columns a
statement gave a value that they had, or their default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from binlane.binlogs.routing.row_images import ImageCutter
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.row_count import value_widths
from binlane.log.codec.row_cutting import changed_columns
from binlane.log.codec.rows import DeleteRowsEvent, RowsEvent, TableMapEvent, UpdateRowsEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.walk import walk
from binlane.statements.sql.servers import RowImage
from tests.row_image_load import statements, tables
from tests.servers import connect

Rows = list[tuple[RowsEvent, TableMapEvent]]


def _logged(server: PrivateServer, flavor: Flavor, image: RowImage) -> str:
    """Run the statements with a row image; the database that they were run in."""
    database = f"images_{image.value.lower()}"
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"USE {database}")
        for text in tables(flavor):
            cursor.execute(text)
        cursor.execute(f"SET SESSION binlog_row_image = {image.value}")
        for number, text in enumerate(statements(flavor)):
            cursor.execute(f"SET timestamp = {1_700_000_000 + number}")
            cursor.execute(text)
    return database


def _read(server: PrivateServer, database: str, image: RowImage | None = None) -> Rows:
    """The rows of a database in the server's log; cut if an image is given."""
    found: Rows = []
    for name in (server.data_directory / "binlog.index").read_text().split():
        data = (server.data_directory / name).read_bytes()
        cutter = None if image is None else ImageCutter(image)
        for group in group_events(walk([data], file=name), file=name):
            first = group.events[0].body
            if isinstance(first, FormatDescriptionEvent):
                format_ = first.format
                continue
            events = group.events if cutter is None else cutter.events(group.events, format_)
            rows = rows_with_tables(events, file=name, format_=format_)
            found += [(body, table) for _, body, table in rows if table.database == database]
        assert cutter is None or not cutter.uncut
    return found


def _names(bits: bytes | None, table: TableMapEvent, flavor: Flavor) -> frozenset[str]:
    columns = table_columns(table, flavor=flavor)
    there = int.from_bytes(bits or b"", "little")
    return frozenset(each.name or "" for each in columns if there >> each.index & 1)


def _changed(rows: RowsEvent, table: TableMapEvent, flavor: Flavor) -> frozenset[str]:
    widths = value_widths(table_columns(table, flavor=flavor))
    assert widths is not None
    before, after = (
        int.from_bytes(bits or b"", "little") & ((1 << len(widths)) - 1)
        for bits in (rows.columns_present, rows.columns_present_after)
    )
    bits = changed_columns(rows.images, widths, before, after)
    return _names(bits.to_bytes(8, "little"), table, flavor)


def compared(server: PrivateServer, flavor: Flavor, images: Sequence[RowImage]) -> Counter[str]:
    """How many events are equal, and how many hold less than the server's."""
    full = _logged(server, flavor, RowImage.FULL)
    found: Counter[str] = Counter()
    for image in images:
        theirs = _read(server, _logged(server, flavor, image))
        ours, whole = _read(server, full, image), _read(server, full)
        assert len(ours) == len(theirs) > 100
        for (our, table), (their, other), (rows, _) in zip(ours, theirs, whole, strict=True):
            assert (table.table, type(our)) == (other.table, type(their))
            if not isinstance(our, UpdateRowsEvent | DeleteRowsEvent):
                assert our == replaced(rows, our)
                continue
            context = f"{image.value} {table.table} {type(our).__name__}"
            present = _names(our.columns_present, table, flavor)
            assert present == _names(their.columns_present, other, flavor), context
            if isinstance(our, DeleteRowsEvent):
                assert our.images == their.images, context
                found["equal"] += 1
                continue
            after = _names(our.columns_present_after, table, flavor)
            expected = _names(their.columns_present_after, other, flavor)
            changed = _changed(rows, table, flavor)
            # MariaDB leaves virtual columns out of some.
            assert changed <= after, context
            assert after - {"v"} <= expected, context
            if after == expected:
                assert our.images == their.images, context
            found["equal" if after == expected else "less"] += 1
    return found


def replaced(rows: RowsEvent, ours: RowsEvent) -> RowsEvent:
    """The rows of the full log, which inserts stay."""
    assert rows == ours
    return rows


@pytest.mark.rule("004:image-update-minimal")
@pytest.mark.rule("004:image-update-noblob")
@pytest.mark.rule("004:image-delete-minimal")
@pytest.mark.rule("004:image-delete-noblob")
def test_mariadb(mariadb_server: PrivateServer) -> None:
    found = compared(mariadb_server, Flavor.MARIADB, [RowImage.MINIMAL, RowImage.NOBLOB])
    assert found["equal"] > found["less"]


@pytest.mark.rule("004:PKE-unique")
@pytest.mark.rule("004:PKE-all")
def test_mysql(mysql_server: PrivateServer) -> None:
    found = compared(mysql_server, Flavor.MYSQL, [RowImage.MINIMAL, RowImage.NOBLOB])
    assert found["equal"] > found["less"]
