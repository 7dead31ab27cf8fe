from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from binlane.cat.json_lines import JsonLines
from binlane.grouping.walk import walk
from tests.fixture_sets import fixture_set


def printed(name: str, *, with_rows: bool = True) -> list[dict[str, Any]]:
    renderer = JsonLines(with_rows=with_rows)
    return [
        json.loads(line)
        for file, data in fixture_set(name).binlogs
        for event in walk([data], file=file)
        for line in renderer.lines(event, file=file)
    ]


@pytest.mark.parametrize(
    "name", ["md1011_metadata_full", "md1011_gtid", "md118_txn", "synth_future"]
)
def test_every_event_is_printed_with_its_place(name: str) -> None:
    lines = printed(name, with_rows=False)
    if "events.tsv" in fixture_set(name):
        # The server listed its events before it stopped.
        expected = fixture_set(name).events()
        assert [(line["file"], line["position"]) for line in lines[: len(expected)]] == [
            (event["file"], event["pos"]) for event in expected
        ]
        assert lines[-1]["type"] == "STOP"
    for line, following in pairwise(lines):
        if line["file"] == following["file"]:
            assert line["next_position"] == following["position"]
    keys = [
        "file",
        "position",
        "next_position",
        "timestamp",
        "server_id",
        "type",
        "type_code",
        "gtid",
    ]
    assert all(list(line)[:8] == keys for line in lines)


@pytest.mark.parametrize("name", ["md1011_metadata_full", "md1011_txn", "md118_txn", "md1011_fk"])
def test_every_row_is_printed(name: str) -> None:
    found: Counter[tuple[str, str]] = Counter()
    for line in printed(name):
        if "row" in line:
            found[f"{line['database']}.{line['table']}", line["type"]] += 1
    expected: Counter[tuple[str, str]] = Counter()
    kinds = {"I": "insert", "U": "update", "D": "delete"}
    for row in fixture_set(name).rows():
        expected[f"{row['db']}.{row['table']}", kinds[row["op"]]] += 1
    assert found == expected


def test_values_are_as_the_contract_says() -> None:
    rows = [line for line in printed("md1011_metadata_full") if line.get("table") == "m1"]
    first = next(line for line in rows if line["type"] == "insert")
    assert "before" not in first
    after = first["after"]
    assert after["id"] == 1
    assert after["sn"] == -1
    assert after["u8"] == 255
    assert after["f"] == 1.5
    assert after["d"] == "9.99"
    assert after["vl"] == "é"
    assert after["vu"] == "😀"
    assert after["vb"] == {"base64": "AA=="}
    assert after["e"] == "ç"
    assert after["s"] == ["x", "z"]
    assert after["y"] == 2024
    assert after["b"] == 5


def test_gtids_stand_on_events_of_a_group_only() -> None:
    lines = printed("md1011_gtid", with_rows=False)
    for line in lines:
        is_control = line["type"] in {
            "FORMAT_DESCRIPTION",
            "GTID_LIST",
            "BINLOG_CHECKPOINT",
            "ROTATE",
            "STOP",
        }
        assert (line["gtid"] is None) == is_control, line


def test_a_rotation_does_not_hide_its_own_place() -> None:
    rotates = [line for line in printed("md1011_rotation") if line["type"] == "ROTATE"]
    assert rotates
    for line in rotates:
        assert line["next_file"] != line["file"]
        assert line["next_file_position"] == 4


def test_what_is_unknown_is_printed_with_its_bytes() -> None:
    unknown = [line for line in printed("synth_future") if line["type"] == "UNKNOWN"]
    assert unknown
    assert all("base64" in line["body"] for line in unknown)
