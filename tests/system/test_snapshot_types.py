"""Rows that a snapshot reads are those that the log has: the same types, the same values."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlane.api import scan
from binlane.client.rows.settled_places import open_snapshot, set_up, settled_place
from binlane.client.session import ServerSession
from binlane.client.settings import ServerUrl
from binlane.errors import UnsupportedError
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.format import flavor_of
from binlane.names import TableName
from binlane.statements.sql.script import statements
from binlane.tables.columnar.table_schema import CHANGE_COLUMNS, TABLE, primary_key_of
from binlane.tables.landing.snapshot.cells import cell_converter
from binlane.tables.landing.snapshot.table import SnapshotTable, snapshot_table
from tests.fixture_sets import fixture_set
from tests.servers import connect, execute

_KINDS = ("numeric", "string", "temporal", "enum_set", "geometry", "flavour")
_MARIADB = (*(f"md1011_types_{kind}" for kind in _KINDS), "md1011_types_json_mariadb")
_MYSQL = (*(f"my97_types_{kind}" for kind in _KINDS), "my97_types_json")
_OWN = """
CREATE TABLE floats (id INT PRIMARY KEY, f FLOAT, f2 FLOAT(7,2), d DOUBLE, d2 DOUBLE(20,3),
    z DECIMAL(40,2) ZEROFILL, y DECIMAL(10,2) ZEROFILL, i INT(8) ZEROFILL, b BIT(64));
INSERT INTO floats VALUES (1, 0.1, 12.345, 1/3e0, 1/3e0, 5.5, 5.5, 5, -1),
    (2, -1e0 * 0, 1e5/3e0, -1e0 * 0, 1e15/3e0, 0, 0, 0, 0),
    (3, 3.4028234e38, 0, 1.7976931348623157e308, 0, 1, 2, 3, b'101'),
    (4, 1.17549435e-38, NULL, 4.9e-324, NULL, NULL, NULL, NULL, NULL);
-- Without a primary key, so that a unique one is taken for it.
CREATE TABLE promoted (n INT, u VARCHAR(9) CHARACTER SET latin1 NOT NULL, a INT NOT NULL,
    UNIQUE KEY nullable (n), UNIQUE KEY parts (u(3)), UNIQUE KEY second (u, a));
INSERT INTO promoted VALUES (1, 'ä', 1), (NULL, 'b', 2);
CREATE TABLE keyless (n INT, t TEXT);
INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (NULL, NULL);
"""


@pytest.mark.parametrize("name", [*_MARIADB, "own"])
def test_rows_of_mariadb_are_those_of_its_log(
    mariadb_server: PrivateServer, name: str, tmp_path: Path
) -> None:
    """Every type, charset, generated and invisible columns; floats exact, zero dates NULL."""
    _check(mariadb_server, name, tmp_path)


@pytest.mark.parametrize("name", [*_MYSQL, "own"])
def test_rows_of_mysql_are_those_of_its_log(
    mysql_server: PrivateServer, name: str, tmp_path: Path
) -> None:
    """The same of MySQL."""
    _check(mysql_server, name, tmp_path)


def _check(server: PrivateServer, name: str, tmp_path: Path) -> None:
    database = f"snap_{name}"
    with ServerSession(ServerUrl.parse(server.url), "") as session:
        start = settled_place(session)
        _run(server, name, database)
        stop = settled_place(session)
        set_up(session)
        open_snapshot(session)
        tables = _tables(session, database)
        schema = tmp_path / "schema.sql"
        script = [f"CREATE DATABASE {database}", f"USE {database}"]
        schema.write_text(";\n".join([*script, *(table.create for table in tables), ""]))
        files = sorted(server.data_directory.glob("binlog.0*"))
        logged: dict[str, Counter[Any]] = {}
        schemas: dict[str, Any] = {}
        for batch in scan(
            files, tables=[database], start=str(start), stop=str(stop), schema=schema
        ):
            own = batch.schema.metadata[TABLE].decode().partition(".")[2]
            schemas[own] = batch.schema
            rows = logged.setdefault(own, Counter())
            for row in batch.to_pylist():
                sign = 1 if row["_op"] in {"insert", "update_after"} else -1
                values = [value for key, value in row.items() if key not in CHANGE_COLUMNS.names]
                rows[repr(values)] += sign
        assert len(tables) >= 1
        for table in tables:
            schema_of_log = schemas[table.name.table]
            assert table.schema.names == schema_of_log.names[len(CHANGE_COLUMNS) :]
            assert table.schema.types == schema_of_log.types[len(CHANGE_COLUMNS) :]
            assert list(table.key_names) == primary_key_of(schema_of_log)
            found = _rows(session, table)
            expected = +logged[table.name.table]
            assert found == expected, table.name
            assert sum(found.values())


def _rows(session: ServerSession, table: SnapshotTable) -> Counter[Any]:
    converters = [cell_converter(column) for column in table.columns]
    found: Counter[Any] = Counter()
    for piece in session.stream(table.select):
        arrays = [convert(cells)[0] for convert, cells in zip(converters, piece, strict=True)]
        for array, field in zip(arrays, table.schema, strict=True):
            assert array.type == field.type
        found.update(
            repr(list(row)) for row in zip(*(each.to_pylist() for each in arrays), strict=True)
        )
    return found


def _tables(session: ServerSession, database: str) -> list[SnapshotTable]:
    found = []
    for (name,) in session.ask(
        f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}'"
    ):
        create = session.ask(f"SHOW CREATE TABLE {database}.{name}")[0][1] or ""
        try:
            found.append(
                snapshot_table(
                    TableName(database, name or ""), create, flavor=flavor_of(session.version)
                )
            )
        except UnsupportedError as error:
            if "hidden" not in str(error):
                raise
    return found


def _run(server: PrivateServer, name: str, database: str) -> None:
    execute(server, f"CREATE DATABASE {database}")
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
