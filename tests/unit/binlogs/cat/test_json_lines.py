from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlogs.cat.event_json_lines import JsonLines
from binlane.binlogs.cat.json_bodies import body_fields
from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.json_text import json_text
from binlane.log.codec.query import RowsQueryEvent
from binlane.log.codec.registry import BODIES
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from tests.build import event, format_description
from tests.fixture_sets import fixture_set
from tests.strategies import bodies


def printed(name: str, *, with_rows: bool = True) -> list[dict[str, Any]]:
    renderer = JsonLines(with_rows=with_rows)
    return [
        json.loads(line)
        for file, data in fixture_set(name).binlogs
        for event in expanded_all(walk([data], file=file), file=file)
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


@pytest.mark.parametrize(
    "name",
    [
        "md1011_metadata_full",
        "md1011_txn",
        "md118_txn",
        "md1011_fk",
        "my97_compressed",
        "my97_types_json",
        "my97_json_partial",
    ],
)
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


def test_events_of_mysql_have_its_gtids_and_stand_with_their_carrier() -> None:
    lines = printed("my97_compressed")
    carrier = next(line for line in lines if line["type"] == "TRANSACTION_PAYLOAD")
    inside = [line for line in lines if "inner" in line and line["position"] == carrier["position"]]
    assert [line["inner"] for line in inside if "row" not in line] == [1, 2, 3, 4, 5]
    assert {line["gtid"] for line in inside} == {carrier["gtid"]}
    assert {line["next_position"] for line in inside if "row" not in line} == {
        carrier["next_position"]
    }
    (row,) = (line for line in inside if "row" in line)
    assert (row["inner"], row["row"], row["after"]["@2"]) == (4, 0, "tiny")
    (source,) = {line["gtid"].rpartition(":")[0] for line in lines if line["gtid"]}
    tagged = {line["gtid"] for line in printed("my97_gtid_tagged") if line["gtid"]}
    assert f"{source}:mxekx_1:1" in tagged
    assert {line["gtid"] for line in printed("my97_gtid_off")} == {None}


def test_json_of_mysql_is_the_value_itself() -> None:
    values = {
        json.dumps(row["after"]["@2"])
        for row in printed("my97_types_json")
        if row["type"] == "insert"
    }
    assert {"null", "true", "18446744073709551615", "[]", '""'} <= values
    lines = JsonLines(with_rows=True)
    ((file, data),) = fixture_set("my97_types_json").binlogs
    text = "\n".join(
        line for event in walk([data], file=file) for line in lines.lines(event, file=file)
    )
    # An opaque DECIMAL keeps its digits as a number.
    assert '"@2": -99999999999999999999.999999, ' in text


def test_a_partial_update_is_the_new_document_or_its_diffs() -> None:
    updates = [line for line in printed("my97_json_partial") if line["type"] == "update"]
    assert updates[0]["before"]["@2"]["a"].startswith("xxx")
    assert updates[0]["after"]["@2"] == updates[0]["before"]["@2"] | {"a": "repFULL"}
    minimal = [line for line in updates if line["before"].keys() == {"@1"}]
    diffs = [
        line["after"]["@2"]["json_diff"]
        for line in minimal
        if isinstance(line["after"].get("@2"), dict) and "json_diff" in line["after"]["@2"]
    ]
    assert diffs[0] == [{"op": "replace", "path": "$.a", "value": "repMINIMAL"}]
    assert [{"op": "remove", "path": "$.b[0]"}] in diffs
    assert [{"op": "insert", "path": "$[12]", "value": "app"}] in diffs
    assert [] in diffs


@pytest.mark.parametrize("kind", sorted(set(BODIES.values()), key=str))
@given(data=st.data())
def test_no_field_takes_the_place_of_another(kind: type, data: st.DataObject) -> None:
    own = {
        "file",
        "position",
        "next_position",
        "timestamp",
        "server_id",
        "type",
        "type_code",
        "gtid",
    }
    body = format_description() if kind is FormatDescriptionEvent else data.draw(bodies(kind))
    with suppress(CodecError):
        found = body_fields(event(body))
        assert not found.keys() & (own | {"inner"})
        json.loads(json_text(found))


def test_bytes_that_are_no_text_are_printed_in_base64() -> None:
    body = RowsQueryEvent(query=b"caf\xe9", length_byte=4)
    assert json.loads(json_text(body_fields(event(body)))) == {"query": {"base64": "Y2Fm6Q=="}}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("i", {"value_type": "INT", "value": -42, "flags": 0}),
        ("s", {"value_type": "STRING", "value": "str 'q' \\ é", "flags": None}),
        ("d", {"value_type": "DECIMAL", "value": "123.456", "flags": None}),
    ],
)
def test_user_variables_have_their_values(name: str, expected: dict[str, object]) -> None:
    lines = printed("my97_format_statement", with_rows=False)
    line = next(line for line in lines if line["type"] == "USER_VAR" and line["name"] == name)
    assert line["type_code"] == 14
    assert {key: line[key] for key in expected} == expected
