"""SQL made from a binlog, run by a real client: forwards it makes the tables, backwards it unmakes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from binlane.binlogs.cat.sql.flashback import Flashback
from binlane.binlogs.cat.sql.sql_lines import SqlLines
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.event import Event
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.statements.sql.logged_objects import LoggedObjects
from tests.fixture_sets import fixture_set
from tests.replay import checksums, drop_databases, run_text
from tests.servers import ServerFactory, execute

SETS = (
    "md1011_metadata_full",
    "md1011_types_numeric",
    "md1011_types_string",
    "md1011_types_temporal",
    "md1011_types_enum_set",
    "md1011_types_flavour",
    "md1011_types_geometry",
    "md1011_rowimage_minimal",
    "md1011_rowimage_noblob",
    "md1011_charset_clients",
    "md1011_format_statement",
    "md1011_load_data_statement",
    "md1011_ddl",
    "md1011_alter_two_phase",
    "md1011_xa",
    "md118_compressed",
)
TAILS = (
    "md1011_types_numeric",
    "md1011_types_string",
    "md1011_types_temporal",
    "md1011_types_geometry",
    "md1011_types_enum_set",
    "md1011_wide",
    "md118_txn",
)
# Every kind of column, with and without a key, and rows that differ in case or blanks only.
TABLES = (
    "CREATE DATABASE shop",
    """CREATE TABLE shop.kinds (
        id INT UNSIGNED PRIMARY KEY, b BIT(5), f FLOAT, d DOUBLE,
        n DECIMAL(20, 5), t VARCHAR(40) CHARACTER SET latin1, u TEXT, j JSON, e ENUM('a', 'b'),
        s SET('x', 'y'), x VARBINARY(20), p POINT, y YEAR, m TIME(3), w DATETIME(6),
        z TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
        g INT AS (id * 2) STORED, i INET6)""",
    "CREATE TABLE shop.keyless (t VARCHAR(20), f FLOAT, u VARCHAR(20) CHARACTER SET latin1)",
    "CREATE TABLE shop.parent (id INT PRIMARY KEY)",
    "CREATE TABLE shop.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES shop.parent (id))",
)
ROWS = (
    """INSERT INTO shop.kinds (id, b, f, d, n, t, u, j, e, s, x, p, y, m, w, i) VALUES
        (1, b'101', 0.1, 1e-300, -12.5, 'Müller', 'it''s \\\\ "€"\\n', '{"a": 1}', 'a', 'x,y',
         x'00ff', POINT(1, 2), 2024, '-12:34:56.789', '2024-02-29 12:00:00.123456', '::1'),
        (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', '', NULL, 0, NULL, '0000-00-00', NULL)
    """,
    "INSERT INTO shop.keyless VALUES ('a', 0.1, 'é'), ('A', 0.1, 'É'), ('a ', 0.3, NULL), (NULL, 1, '')",
    "INSERT INTO shop.parent VALUES (1), (2)",
    "INSERT INTO shop.child VALUES (1, 1), (2, 2)",
)
CHANGES = (
    "UPDATE shop.kinds SET u = REPEAT('ю', 1000), f = f * 3, e = 'b', z = z WHERE id = 1",
    "INSERT INTO shop.kinds (id, t, g) VALUES (3, 'new', DEFAULT)",
    "DELETE FROM shop.kinds WHERE id = 2",
    "DELETE FROM shop.keyless WHERE BINARY t = 'A'",
    "UPDATE shop.keyless SET f = 0.7 WHERE t IS NULL OR BINARY t = 'a '",
    "DELETE FROM shop.child",
    "DELETE FROM shop.parent",
    "INSERT INTO shop.parent VALUES (3)",
    "INSERT INTO shop.child VALUES (9, 3)",
    "UPDATE shop.kinds SET id = id + 10",
)


@pytest.fixture(scope="module")
def empty_server(server_directory: Path) -> Iterator[PrivateServer]:
    options = ("--server-id=9", "--log-bin-trust-function-creators=1")
    with PrivateServer.start(server_directory, name="sql", options=options) as server:
        yield server


def encoded(lines: Iterator[str] | list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def forward(name: str) -> bytes:
    renderer = SqlLines(catalog=LoggedObjects())
    lines = list(renderer.head())
    for file, data in fixture_set(name).binlogs:
        for event in expanded_all(walk([data], file=file), file=file):
            lines += renderer.lines(event, file=file)
    return encoded([*lines, *renderer.finish()])


def backward(events: Iterable[Event], file: str, catalog: LoggedObjects | None = None) -> bytes:
    renderer = Flashback(catalog=catalog)
    for event in events:
        assert list(renderer.lines(event, file=file)) == []
    return encoded(renderer.finish())


def official(server: PrivateServer, path: Path, *options: str) -> list[str]:
    """Run what mariadb-binlog prints."""
    command = ("mariadb-binlog", "--no-defaults", *options, str(path))
    return run_text(server, subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.mark.parametrize("name", SETS)
def test_forward_sql_makes_the_same_tables(
    name: str, empty_server: PrivateServer, tmp_path: Path
) -> None:
    paths = []
    for file, data in fixture_set(name).binlogs:
        (tmp_path / file).write_bytes(data)
        paths.append(str(tmp_path / file))
    printed = ("mariadb-binlog", "--no-defaults", *paths)
    drop_databases(empty_server)
    errors = run_text(empty_server, subprocess.run(printed, capture_output=True, check=True).stdout)
    expected = checksums(empty_server)
    drop_databases(empty_server)
    assert len(run_text(empty_server, forward(name))) == len(errors)
    assert checksums(empty_server) == expected
    assert expected


@pytest.mark.parametrize("name", TAILS)
def test_flashback_of_the_rows_behind_the_last_definition(
    name: str, empty_server: PrivateServer, tmp_path: Path
) -> None:
    ((file, data),) = fixture_set(name).binlogs
    path = tmp_path / file
    path.write_bytes(data)
    catalog, events, start = LoggedObjects(), list(walk([data], file=file)), 0
    for number, event in enumerate(events):
        if catalog.feed(event):
            start = number + 1
    rest, position = [events[0], *events[start:]], events[start].position
    drop_databases(empty_server)
    assert official(empty_server, path, f"--stop-position={position}") == []
    before = checksums(empty_server)
    assert official(empty_server, path, f"--start-position={position}") == []
    assert checksums(empty_server) != before
    assert run_text(empty_server, backward(rest, file, catalog)) == []
    assert checksums(empty_server) == before


def test_flashback_gives_the_former_tables(servers: ServerFactory) -> None:
    options = (
        *("--server-id=1", "--log-bin=binlog", "--binlog-format=ROW", "--sql-mode="),
        "--binlog-row-metadata=FULL",
    )
    server = servers.start("flashback", options)
    execute(server, *TABLES, "SET NAMES utf8mb4", *ROWS)
    before = checksums(server)
    execute(server, "FLUSH BINARY LOGS", "BEGIN", *CHANGES, "COMMIT", "FLUSH BINARY LOGS")
    assert checksums(server) != before
    log = server.data_directory / "binlog.000002"
    script = backward(walk([log.read_bytes()], file=log.name), log.name)
    assert run_text(server, script) == []
    assert checksums(server) == before
