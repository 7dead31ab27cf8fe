"""SHOW BINLOG EVENTS over files that real servers wrote and listed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from binlane.binlogs.store.files import BinlogFile
from binlane.errors import StatementError
from binlane.live.answers.binlog_events import show_events
from binlane.log.codec.packets.results import Cell
from binlane.statements.scope.statements import ShowBinlogEvents
from tests.fixture_sets import fixture_set

MARIADB = "md1011_txn"
MYSQL = "my97_compressed"


def stored(directory: Path, name: str, *, size_bytes: int | None = None) -> BinlogFile:
    """The first file of a set, in a directory."""
    file, data = fixture_set(name).binlogs[0]
    (directory / file).write_bytes(data)
    flavor = "mysql" if name.startswith("my") else "mariadb"
    size = len(data) if size_bytes is None else size_bytes
    return BinlogFile(
        directory=directory, name=file, size_bytes=size, begin_gtids="", flavor=flavor
    )


def listed(file: BinlogFile, statement: ShowBinlogEvents) -> list[tuple[Cell, ...]]:
    async def run() -> list[tuple[Cell, ...]]:
        answer = await show_events(file, statement)
        return [tuple(row) async for part in answer.parts for row in part]

    return asyncio.run(run())


def of_the_server(name: str, file: str) -> list[tuple[Cell, ...]]:
    return [
        (row["file"], row["pos"], row["type"], row["server_id"], row["end_log_pos"], row["info"])
        for row in fixture_set(name).events()
        if row["file"] == file
    ]


@pytest.mark.parametrize("name", [MARIADB, MYSQL, "md118_txn", "my97_gtid_tagged"])
def test_the_list_is_that_of_the_server(tmp_path: Path, name: str) -> None:
    file = stored(tmp_path, name)
    ours = listed(file, ShowBinlogEvents())
    theirs = of_the_server(name, file.name)
    assert len(ours) >= len(theirs) > 20
    for our, their in zip(ours, theirs, strict=False):
        assert our[:5] == their[:5]
        assert str(our[5])[:500] == str(their[5])[:500]


@pytest.mark.parametrize("name", [MARIADB, MYSQL])
def test_from_and_limit(tmp_path: Path, name: str) -> None:
    file = stored(tmp_path, name)
    everything = listed(file, ShowBinlogEvents())
    position = int(str(everything[7][1]))
    behind = [row for row in everything if int(str(row[1])) >= position]
    assert listed(file, ShowBinlogEvents(position=position)) == behind
    assert listed(file, ShowBinlogEvents(position=position, rows_max=3)) == behind[:3]
    limited = ShowBinlogEvents(position=position, skipped_rows=2, rows_max=4)
    assert listed(file, limited) == behind[2:6]
    assert listed(file, ShowBinlogEvents(position=1)) == everything
    assert listed(file, ShowBinlogEvents(rows_max=0)) == []
    assert listed(file, ShowBinlogEvents(position=file.size_bytes)) == []


def test_nothing_behind_the_published_end_is_listed(tmp_path: Path) -> None:
    everything = listed(stored(tmp_path, MARIADB), ShowBinlogEvents())
    end = int(str(everything[9][4]))
    assert listed(stored(tmp_path, MARIADB, size_bytes=end), ShowBinlogEvents()) == everything[:10]


def test_mariadb_refuses_a_position_where_no_event_begins(tmp_path: Path) -> None:
    file = stored(tmp_path, MARIADB)
    wrong = "Error when executing command SHOW BINLOG EVENTS: "
    for position, text in (
        (5, "Wrong offset or I/O error"),
        (file.size_bytes - 3, "Wrong offset or I/O error"),
        (
            9_999_999,
            (
                "Invalid pos specified. Requested from pos:9999999 is greater than actual file size:"
                f"{file.size_bytes}"
            ),
        ),
    ):
        with pytest.raises(StatementError) as raised:
            listed(file, ShowBinlogEvents(position=position))
        assert (raised.value.errno, raised.value.sqlstate) == (1220, "HY000")
        assert str(raised.value) == wrong + text


def test_mysql_takes_more_positions(tmp_path: Path) -> None:
    file = stored(tmp_path, MYSQL)
    everything = listed(file, ShowBinlogEvents())
    second = int(str(everything[1][1]))
    assert listed(file, ShowBinlogEvents(position=5)) == everything[1:]
    assert listed(file, ShowBinlogEvents(position=second)) == everything[1:]
    assert listed(file, ShowBinlogEvents(position=9_999_999)) == []
    with pytest.raises(StatementError, match=f"at position {second + 1}: Failed decoding event"):
        listed(file, ShowBinlogEvents(position=second + 1))


def test_damage_ends_the_list_behind_what_could_be_read(tmp_path: Path) -> None:
    file = stored(tmp_path, MARIADB)
    everything = listed(file, ShowBinlogEvents())
    position = int(str(everything[12][1]))
    data = bytearray(file.path.read_bytes())
    data[position + 25] ^= 1
    file.path.write_bytes(data)
    rows: list[tuple[Cell, ...]] = []

    async def run() -> None:
        answer = await show_events(file, ShowBinlogEvents())
        async for part in answer.parts:
            rows.extend(tuple(row) for row in part)

    with pytest.raises(StatementError, match="Wrong offset or I/O error") as raised:
        asyncio.run(run())
    assert rows == everything[:12]
    assert f"{file.name}:{position}" in raised.value.hint
