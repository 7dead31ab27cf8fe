"""Row images and TABLE_MAPs made of a server's results are those of its own log, byte for byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pymysql
import pytest

from binlane.client.rows.logged_table import LoggedTable, read_logged_table
from binlane.client.rows.settled_places import set_up, settled_place
from binlane.client.rows.table_rows import BatchMaker, TableRows
from binlane.client.session import ServerSession
from binlane.client.settings import ServerUrl
from binlane.errors import UnsupportedError
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.columns import decode_rows
from binlane.log.codec.event import Event
from binlane.log.codec.row_cutting import keyed_images
from binlane.log.codec.rows import (
    DeleteRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)
from binlane.log.codec.table_map_making import has_lost_members
from binlane.log.codec.types import ColumnType
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.statements.sql.script import statements
from tests.build import rows
from tests.fixture_sets import fixture_set
from tests.servers import connect, execute

_KINDS = ("numeric", "string", "temporal", "enum_set", "geometry", "flavour")
_MARIADB = (*(f"md1011_types_{kind}" for kind in _KINDS), "md1011_types_json_mariadb")
_MYSQL = tuple(f"my97_types_{kind}" for kind in (*_KINDS, "json"))
_OWN = """
CREATE TABLE floats (id INT PRIMARY KEY, f FLOAT, f2 FLOAT(7,2), d DOUBLE, d2 DOUBLE(20,3),
    z DECIMAL(40,2) ZEROFILL, y DECIMAL(10,2) ZEROFILL, i INT(8) ZEROFILL, b BIT(64));
INSERT INTO floats VALUES (1, 0.1, 12.345, 1/3e0, 1/3e0, 5.5, 5.5, 5, -1),
    (2, -1e0 * 0, 1e5/3e0, -1e0 * 0, 1e15/3e0, 0, 0, 0, 0),
    (3, 3.4028234e38, 0, 1.7976931348623157e308, 0, 1, 2, 3, b'101'),
    (4, 1.17549435e-38, NULL, 4.9e-324, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE promoted (n INT, u VARCHAR(9) CHARACTER SET latin1 NOT NULL, a INT NOT NULL,
    UNIQUE KEY nullable (n), UNIQUE KEY parts (u(3)), UNIQUE KEY second (u, a));
INSERT INTO promoted VALUES (1, 'ä', 1), (NULL, 'b', 2);
CREATE TABLE keyless (n INT, t TEXT);
INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (NULL, NULL);
CREATE TABLE `od``d "na'me` (`a``b` INT, `c'd` VARCHAR(300), PRIMARY KEY (`c'd`, `a``b`));
INSERT INTO `od``d "na'me` VALUES (1, 'A '), (2, 'A '), (-3, ''), (4, REPEAT('x', 300));
CREATE TABLE empty_one (a INT PRIMARY KEY, b TEXT);
INSERT INTO empty_one VALUES (1, 'x');
DELETE FROM empty_one;
CREATE TABLE big (id INT PRIMARY KEY, b LONGBLOB);
INSERT INTO big VALUES (1, REPEAT('ab', 10 * 1024 * 1024)), (2, REPEAT('c', 16777211)),
    (3, REPEAT('d', 16777205)), (4, '');
CREATE TABLE sets (s SET('a','b','c','d','e','f','g','h','i','j','k','l','m','n','o','p','q','r',
    's','t','u','v','w','x','y','z','0','1','2','3','4','5','6','7','8','9','aa','bb','cc','dd',
    'ee','ff','gg','hh','ii','jj','kk','ll','mm','nn','oo','pp','qq','rr','ss','tt','uu','vv','ww',
    'xx','yy','zz','00','11') NOT NULL PRIMARY KEY, e ENUM('x','y'));
INSERT INTO sets VALUES ('a,11', 'x'), ('11', 'y'), ('', NULL), ('b,00,11', 'x');
"""


@pytest.mark.parametrize("name", [*_MARIADB, "own"])
def test_images_of_mariadb_are_those_of_its_log(mariadb_server: PrivateServer, name: str) -> None:
    _check(mariadb_server, name)


@pytest.mark.parametrize("name", [*_MYSQL, "own"])
def test_images_of_mysql_are_those_of_its_log(mysql_server: PrivateServer, name: str) -> None:
    _check(mysql_server, name)


def _check(server: PrivateServer, name: str) -> None:
    database = f"logged_{name}"
    execute(server, "SET GLOBAL max_allowed_packet = 1073741824")
    with ServerSession(ServerUrl.parse(server.url), "") as session:
        start = settled_place(session)
        _run(server, name, database)
        stop = settled_place(session)
        assert start.file == stop.file
        data = (server.data_directory / start.file).read_bytes()[: stop.position]
        set_up(session)
        tables, checked = _tables(session, database), 0
        events = [
            event
            for event in walk(iter([data]), file=start.file)
            if event.position >= start.position
        ]
        for table in tables:
            logged, table_map = _logged(events, table)
            if table_map is None:
                continue
            own = table.table_map(table_map.table_id)
            if any(map(has_lost_members, table.columns)):
                # A member that SHOW CREATE TABLE prints as `?`.
                table_map = replace(table_map, optional_metadata=own.optional_metadata)
            assert replace(own, flags=table_map.flags) == table_map, table.name
            found: Counter[bytes] = Counter()
            keys: set[bytes] = set()
            for batch in TableRows(session, table).read():
                for key, image in batch:
                    found[image] += 1
                    keys.add(key)
            if any(column.type is ColumnType.JSON for column in table.columns):
                # Nothing tells the zeros before a DECIMAL in JSON, and what was a TIMESTAMP.
                assert sum((found & logged).values()) > 0.9 * sum(found.values())
                assert _values(found, table) == _values(logged, table), table.name
            else:
                assert found == logged, table.name
            assert found == _by_reference(session, table)
            reader = TableRows(session, table)
            in_ranges = Counter(
                image
                for low, high in reader.ranges(2)
                for batch in reader.read(low, high)
                for _, image in batch
            )
            assert in_ranges == found
            assert not table.source.key or len(keys) == sum(found.values())
            checked += 1
        assert checked


def _by_reference(session: ServerSession, table: LoggedTable) -> Counter[bytes]:
    """The images, none of which a kernel made."""
    images: Counter[bytes] = Counter()
    for heads, frames in session.stream_binary(table.select):
        images.update(image for _, image in BatchMaker(table, heads, is_fast=False).make(frames))
    return images


def _values(images: Counter[bytes], table: LoggedTable) -> Counter[str]:
    event = rows(len(table.columns), b"".join(images.elements()), kind=WriteRowsEvent)
    return Counter(repr(after) for _, after in decode_rows(event, table.columns))


def _logged(events: list[Event], table: LoggedTable) -> tuple[Counter[bytes], TableMapEvent | None]:
    """The rows that a table has at the end of a log, by their images; its last TABLE_MAP."""
    images: Counter[bytes] = Counter()
    last: TableMapEvent | None = None
    ids: set[int] = set()
    for event in events:
        body = event.body
        if isinstance(body, TableMapEvent):
            if body.name == table.name:
                ids.add(body.table_id)
                last = body
            else:
                ids.discard(body.table_id)
        elif isinstance(body, RowsEvent) and body.table_id in ids:
            for number, (_, image) in enumerate(keyed_images(body.plain_images, table.widths, ())):
                is_before = isinstance(body, DeleteRowsEvent) or (
                    isinstance(body, UpdateRowsEvent) and number % 2 == 0
                )
                images[image] += -1 if is_before else 1
    assert all(count >= 0 for count in images.values())
    return +images, last


def _tables(session: ServerSession, database: str) -> list[LoggedTable]:
    return list(_readable(session, database))


def _readable(session: ServerSession, database: str) -> Iterator[LoggedTable]:
    for (name,) in session.ask(
        f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}'"
    ):
        try:
            yield read_logged_table(session, TableName(database, name or ""))
        except UnsupportedError as error:
            if "hidden" not in str(error):
                raise


def _run(server: PrivateServer, name: str, database: str) -> None:
    execute(server, f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    script = _OWN if name == "own" else fixture_set(name).text("script.sql")
    with connect(server, database=database, charset="utf8mb4") as connection:
        for statement in statements(script):
            if "`crm`" in statement or statement.startswith(("CREATE DATABASE", "USE")):
                continue
            with connection.cursor() as cursor:
                try:
                    cursor.execute(statement)
                except pymysql.Error:
                    if statement.startswith("INSERT"):
                        raise
