"""Queries of real servers' logs agree with `binlane.scan`, with the servers' tools and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import binlane
from binlane.errors import UnsupportedError
from binlane.tables.query.log_connection import LogConnection, connect_log, quoted, shown_names
from binlane.tables.query.log_tables import LogTables
from tests.fixture_sets import FixtureSet, fixture_set, server_sets

Change = dict[str, Any]

# The rows of these cannot be decoded by anybody.
_UNREADABLE = frozenset({"md1011_types_temporal_hires53"})
_ENCRYPTED = frozenset({"md1011_encrypted", "my97_encrypted"})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def files_of(name: str, folder: Path) -> list[Path]:
    paths = []
    for file, data in fixture_set(name).binlogs:
        paths.append(folder / file)
        paths[-1].write_bytes(data)
    return paths


def connected_to(paths: list[Path]) -> LogConnection:
    return connect_log(LogTables([str(path) for path in paths]))


def scanned(paths: list[Path]) -> Iterator[tuple[str, Change]]:
    """The changes as `binlane.scan` has them, each with its table's name."""
    held: dict[str, Change] = {}
    for batch in binlane.scan(paths):
        table = batch.schema.metadata[b"table"].decode()
        for image in batch.to_pylist():
            op = image.pop("_op")
            if op == "update_before":
                held[table] = image
                continue
            before = held.pop(table) if op == "update_after" else None
            yield table, {"op": op.partition("_")[0], "before": before, "row": image}


def plain(rows: pa.Table) -> list[Change]:
    found: list[Change] = rows.to_pylist()
    return found


@pytest.mark.parametrize("name", sorted({*server_sets()} - _UNREADABLE - _ENCRYPTED))
def test_changes_are_those_of_scan(name: str, tmp_path: Path) -> None:
    paths = files_of(name, tmp_path)
    try:
        wanted: dict[str, list[Change]] = {}
        for name_of_table, change in scanned(paths):
            wanted.setdefault(name_of_table, []).append(change)
    except UnsupportedError as error:
        pytest.skip(str(error))
    connected = connected_to(paths)
    shown = shown_names(connected.log.tables)
    assert {each.plain for each in shown} == set(wanted)
    for table, (schema, view) in shown.items():
        rows = connected.connection.sql(f"FROM {quoted(schema)}.{quoted(view)}")
        found = plain(rows.to_arrow_table())
        known = connected.log.tables[table]
        assert len(found) == len(wanted[table.plain])
        for ours, theirs in zip(found, wanted[table.plain], strict=True):
            theirs_row = theirs["row"]
            assert ours["_op"] == theirs["op"]
            for here, there in (
                ("_timestamp", "_timestamp"),
                ("_gtid", "_gtid"),
                ("_file", "_file"),
                ("_pos", "_position"),
                ("_row", "_row"),
            ):
                assert ours[here] == theirs_row[there]
            assert (ours["_before"] is None) == (ours["_op"] == "insert")
            before = theirs["before"] if theirs["op"] == "update" else theirs_row
            for own, shown_name in zip(known.own.names, known.shown, strict=True):
                assert_same(ours[shown_name], theirs_row, own)
                if ours["_op"] != "insert":
                    assert_same(ours["_before"][shown_name], before, own)


def assert_same(ours: object, theirs: Change, column: str) -> None:
    """See that a value is that of `scan`, which knows neither names nor types from statements."""
    if column in theirs and isinstance(theirs[column], type(ours)):
        assert str(ours) == str(theirs[column])


@pytest.mark.parametrize("name", ["md1011_txn", "md118_partitions", "my97_txn", "my97_ddl"])
def test_numbers_of_changes_are_those_of_the_servers_own_tools(name: str, tmp_path: Path) -> None:
    wanted = Counter(
        (f"{row['db']}.{row['table']}", {"I": "insert", "U": "update", "D": "delete"}[row["op"]])
        for row in fixture_set(name).rows()
    )
    connected = connected_to(files_of(name, tmp_path))
    found: Counter[tuple[str, str]] = Counter()
    for table, (schema, view) in shown_names(connected.log.tables).items():
        counted = connected.connection.execute(
            f"SELECT _op, count(*) FROM {quoted(schema)}.{quoted(view)} GROUP BY _op"
        ).fetchall()
        found.update({(table.plain, op): count for op, count in counted})
    assert found == wanted


def final_rows(found: FixtureSet, table: str) -> list[tuple[str | None, ...]]:
    """A table's rows at the end, by its server's SELECT, as texts."""
    return sorted(
        tuple(
            None if value is None else str(value["s"] if isinstance(value, dict) else value)
            for value in row
        )
        for row in found.final(table).rows
    )


@pytest.mark.parametrize(
    ("name", "table", "key"),
    [("md1011_txn", "shop.a", "id"), ("my97_txn", "shop.a", "id")],
)
def test_the_last_changes_are_the_table_at_the_end(
    name: str, table: str, key: str, tmp_path: Path
) -> None:
    found = fixture_set(name)
    connection = binlane.connect(files_of(name, tmp_path))
    columns = ", ".join(
        f"{quoted(column['name'])}::VARCHAR" for column in found.final(table).columns
    )
    rows = connection.execute(
        f"SELECT {columns} FROM {table} WHERE true "
        f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY _seq DESC, _row DESC) = 1 "
        "AND _op <> 'delete'"
    ).fetchall()
    assert sorted(rows) == final_rows(found, table)


@pytest.mark.parametrize("name", ["md1011_txn", "md1011_rotation", "my97_txn", "my97_ddl"])
def test_events_are_those_that_the_server_lists(name: str, tmp_path: Path) -> None:
    connection = binlane.connect(files_of(name, tmp_path))
    rows = connection.execute("SELECT _file, _pos, next_pos FROM events").fetchall()
    wanted = [(row["file"], row["pos"], row["end_log_pos"]) for row in fixture_set(name).events()]
    # The server stopped behind its list.
    (stop,) = connection.execute("SELECT _file, _pos, next_pos FROM events").fetchall()[
        len(wanted) :
    ]
    assert rows == [*wanted, stop]


@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
def test_groups_add_up_to_the_events_and_changes(name: str, tmp_path: Path) -> None:
    connection = binlane.connect(files_of(name, tmp_path))
    groups = connection.execute(
        "SELECT count(*), sum(events), sum(rows) FROM groups WHERE _gtid IS NOT NULL"
    ).fetchone()
    events = connection.execute(
        "SELECT count(DISTINCT _gtid), count(*) FROM events WHERE _gtid IS NOT NULL"
    ).fetchone()
    assert groups is not None
    assert events == groups[:2]
    assert groups[2] == sum(1 for _ in fixture_set(name).rows())


def test_statements_have_the_texts_beside_rows(tmp_path: Path) -> None:
    connection = binlane.connect(files_of("my97_rows_query", tmp_path))
    texts = connection.execute(
        "SELECT statement FROM statements WHERE is_annotation ORDER BY _pos"
    ).fetchall()
    wanted = [
        row["info"].removeprefix("# ")
        for row in fixture_set("my97_rows_query").events()
        if row["type"] == "Rows_query"
    ]
    assert wanted
    assert [text for (text,) in texts] == wanted


@pytest.mark.parametrize("name", sorted(_ENCRYPTED))
def test_encrypted_logs_open_with_their_keys(name: str, tmp_path: Path) -> None:
    found = fixture_set(name)
    paths = files_of(name, tmp_path)
    keys = tmp_path / "keys"
    keys.write_bytes(found.files["keys.txt" if name.startswith("md") else "keyring"])
    connection = binlane.connect(paths, keys=keys)
    count = connection.execute("SELECT sum(rows) FROM groups").fetchone()
    assert count == (sum(1 for _ in found.rows()),)
