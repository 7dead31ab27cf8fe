"""The fixtures are the bytes that their servers wrote, and read as their helper says."""

from __future__ import annotations

from hashlib import sha256

import pytest

from tests.fixture_sets import fixture_names, fixture_set, server_sets


@pytest.mark.parametrize("name", server_sets())
def test_binlogs_are_those_of_the_server(name: str) -> None:
    fixture = fixture_set(name)
    stated = {entry["file"]: entry["sha256"] for entry in fixture.meta["files"]}
    assert {file: sha256(data).hexdigest() for file, data in fixture.binlogs} == stated


@pytest.mark.parametrize(
    "name", [name for name in server_sets() if "events.tsv" in fixture_set(name)]
)
def test_every_set_lists_its_events(name: str) -> None:
    fixture = fixture_set(name)
    assert {event["file"] for event in fixture.events()} <= {file for file, _ in fixture.binlogs}
    assert all(event["pos"] >= 4 for event in fixture.events())


def test_constructed_sets_state_what_is_expected() -> None:
    names = fixture_names("corrupt_") + fixture_names("synth_")
    assert all(fixture_set(name).expected for name in names)
    for name in fixture_names("corrupt_"):
        fixture = fixture_set(name)
        assert set(fixture.expected["files"]) == {file for file, _ in fixture.binlogs}


def test_escapes_of_the_servers_list_are_undone() -> None:
    infos = [event["info"] for event in fixture_set("md1011_load_data_row").events()]
    assert any(r"TERMINATED BY '\r\n'" in info for info in infos)


def test_final_tables_are_found_by_their_name() -> None:
    assert fixture_set("md1011_ddl").final("база-данных.таблица").rows
    assert [column["name"] for column in fixture_set("md1011_txn").final("shop.a").columns] == [
        "id",
        "v",
    ]
