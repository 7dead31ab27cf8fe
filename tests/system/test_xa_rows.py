"""Rows of XA transactions come at their XA COMMIT, whichever file, range or session that stands in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import binlane
from binlane.errors import UnsupportedError
from binlane.live.provision.private_server import PrivateServer
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.walk import walk
from binlane.log.grouping.xa import finished_by
from binlane.tables.columnar.log_notes import Trouble, TroubleKind
from binlane.tables.columnar.table_schema import ReadOptions, table_of
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.read import read_range
from tests.servers import connect, end_xa, execute

SHOP = "xa_rows"
WANT = ReadOptions(has_statements=True, change_columns=("_op", "_gtid", "_file", "_pos", "_row"))
COMPRESSED = {
    "mysql": "SET SESSION binlog_transaction_compression = ON",
    "mariadb": "SET GLOBAL log_bin_compress = 1",
}


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> PrivateServer:
    found = request.getfixturevalue(f"{request.param}_server")
    assert isinstance(found, PrivateServer)
    return found


def prepare(server: PrivateServer, xid: str, *statements: str, settings: str = "") -> None:
    """Prepare an XA transaction in a session of its own, which ends."""
    connection = connect(server)
    with connection.cursor() as cursor:
        parts = [
            settings,
            f"XA START '{xid}'",
            *statements,
            f"XA END '{xid}'",
            f"XA PREPARE '{xid}'",
        ]
        for statement in filter(None, parts):
            cursor.execute(statement)
    connection.close()


def changes(server: PrivateServer, *, is_compressed: bool) -> None:
    """XA transactions of all fates, over five files."""
    settings = COMPRESSED[server.program.scheme] if is_compressed else ""
    text = "'" + "long enough to be worth it " * 20 + "'"
    prepare(
        server,
        "a",
        f"INSERT INTO {SHOP}.t VALUES (1, {text}), (2, 'b')",
        f"INSERT INTO {SHOP}.u VALUES (1, {text})",
        f"UPDATE {SHOP}.t SET v = 'changed' WHERE id = 1",
        settings=settings,
    )
    execute(server, f"INSERT INTO {SHOP}.t VALUES (3, 'between')", "FLUSH BINARY LOGS")
    prepare(server, "b", f"INSERT INTO {SHOP}.t VALUES (10, {text})", settings=settings)
    execute(server, "FLUSH BINARY LOGS")
    end_xa(server, "XA ROLLBACK 'b'", "XA COMMIT 'a'")
    prepare(
        server,
        "a",
        f"DELETE FROM {SHOP}.t WHERE id = 2",
        f"INSERT INTO {SHOP}.t VALUES (4, {text})",
        settings=settings,
    )
    execute(server, f"INSERT INTO {SHOP}.u VALUES (2, 'between')", "FLUSH BINARY LOGS")
    execute(server, "FLUSH BINARY LOGS")
    end_xa(server, "XA COMMIT 'a'")
    execute(
        server,
        *("XA START 'b'", f"INSERT INTO {SHOP}.t VALUES (11, 'once')", "XA END 'b'"),
        "XA COMMIT 'b' ONE PHASE",
    )
    prepare(server, "c", f"UPDATE {SHOP}.t SET v = {text} WHERE id = 11", settings=settings)
    end_xa(server, "XA COMMIT 'c'")
    prepare(server, "d", f"INSERT INTO {SHOP}.t VALUES (99, 'never')", settings=settings)


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "compressed"])
def log(server: PrivateServer, request: pytest.FixtureRequest) -> Iterator[list[LogRange]]:
    """The files that the changes are in; those of before are none of it."""
    execute(
        server,
        f"DROP DATABASE IF EXISTS {SHOP}",
        f"CREATE DATABASE {SHOP}",
        f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v TEXT)",
        f"CREATE TABLE {SHOP}.u (id INT PRIMARY KEY, v TEXT)",
        "FLUSH BINARY LOGS",
    )
    ((first, *_), *_) = execute(server, "SHOW BINARY LOGS")[-1:]
    changes(server, is_compressed=request.param)
    pieces: list[LogRange] = []
    for name, *_ in execute(server, "SHOW BINARY LOGS"):
        if name < first:
            continue
        path = server.data_directory / name
        pieces.append(
            LogRange(
                uri=str(path),
                name=name,
                number=int(name.rpartition(".")[2]),
                stop=path.stat().st_size,
                earlier=tuple(piece.uri for piece in reversed(pieces)),
            )
        )
    yield pieces
    end_xa(server, "XA ROLLBACK 'd'")
    execute(server, f"DROP DATABASE {SHOP}")
    if server.program.scheme == "mariadb":
        execute(server, "SET GLOBAL log_bin_compress = 0")


def replayed(batches: Iterable[pa.RecordBatch]) -> dict[str, dict[Any, Any]]:
    """What the rows make of empty tables."""
    tables: dict[str, dict[Any, Any]] = {"t": {}, "u": {}}
    for batch in batches:
        table = tables[table_of(batch.schema).table]
        for row in batch.to_pylist():
            key, value = row["id"], row["v"]
            if row["_op"] in {"insert", "update_after"}:
                table[key] = value
            else:
                assert table.pop(key) == value
    return tables


def expected(server: PrivateServer) -> dict[str, dict[Any, Any]]:
    return {table: dict(execute(server, f"SELECT * FROM {SHOP}.{table}")) for table in ("t", "u")}


def cut(pieces: list[LogRange]) -> list[LogRange]:
    """Ranges of one group."""
    found = []
    for piece in pieces:
        data = Path(piece.uri).read_bytes()[: piece.stop]
        groups = group_events(walk([data], file=piece.uri), file=piece.name)
        starts = [4, *(group.position for group in groups if not group.is_control)]
        stops = [*starts[1:], piece.stop]
        found += [
            replace(piece, start=start, stop=stop)
            for start, stop in zip(starts, stops, strict=True)
        ]
    return found


def test_rows_come_at_the_commit(server: PrivateServer, log: list[LogRange]) -> None:
    assert len(log) == 5
    assert expected(server)["t"].keys() == {1, 3, 4, 11}
    paths = [piece.uri for piece in log]
    assert replayed(binlane.scan(paths, tables=SHOP)) == expected(server)
    for pieces in (log, cut(log)):
        for by_kernels in (True, False):
            items = [
                item for piece in pieces for item in read_range(piece, WANT, by_kernels=by_kernels)
            ]
            assert not [item for item in items if isinstance(item, Trouble)]
            batches = [item for item in items if isinstance(item, pa.RecordBatch)]
            assert replayed(batches) == expected(server)


def test_rows_have_the_place_of_the_commit(server: PrivateServer, log: list[LogRange]) -> None:
    del server
    rows = [
        row
        for piece in log
        for item in read_range(piece, WANT, by_kernels=True)
        if isinstance(item, pa.RecordBatch)
        for row in item.to_pylist()
    ]
    first = [row for row in rows if row["_file"] == log[2].name]
    place = min((row["_pos"], row["_gtid"]) for row in first)
    first = [row for row in first if (row["_pos"], row["_gtid"]) == place]
    assert sorted((row["_row"], row["_op"]) for row in first) == [
        (0, "insert"),
        (1, "insert"),
        (2, "insert"),
        (3, "update_after"),
        (3, "update_before"),
    ]
    (piece,) = (
        piece
        for piece in cut(log)
        if piece.name == log[2].name and piece.start < first[0]["_pos"] < (piece.stop or 0)
    )
    (commit,) = (
        event
        for event in walk([Path(piece.uri).read_bytes()], file=piece.uri)
        if event.position == first[0]["_pos"]
    )
    assert finished_by(commit) == "X'61',X'',1"


def test_a_commit_without_its_rows_is_told(server: PrivateServer, log: list[LogRange]) -> None:
    del server
    alone = replace(log[2], earlier=())
    troubles = [item for item in read_range(alone, WANT) if isinstance(item, Trouble)]
    assert [trouble.kind for trouble in troubles] == [TroubleKind.XA_UNKNOWN]
    assert troubles[0].file == log[2].name
    with pytest.raises(UnsupportedError, match="XA PREPARE is not in the log") as caught:
        list(binlane.scan(alone.uri))
    assert caught.value.position == troubles[0].position
    assert caught.value.hint
