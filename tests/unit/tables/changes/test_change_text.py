"""Lines of changes: what stands in them, and how they are cut."""

from __future__ import annotations

import re

import pytest

from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.tables.changes.change_text import (
    ASCII_SIGNS,
    ChangeLines,
    LineStyle,
    plain_text,
    shortened,
    width_of,
)
from binlane.tables.changes.logged_changes import Change, ChangedRow, ChangeOperation, ChangeReader
from tests.fixture_sets import fixture_set

RECORDINGS = [
    *("md1011_types_string", "md1011_types_temporal", "md1011_txn", "md1011_compressed"),
    *("md1011_xa", "md1011_stored", "md1011_ddl", "md1011_incident", "md1011_rowimage_minimal"),
    *("md1011_charset_clients", "md118_gtid", "md1011_load_data_statement", "my97_wide"),
    *("my97_compressed", "my97_rows_query", "my97_xa", "my97_types_json", "my97_identifiers"),
    *("my97_charset_clients", "my97_format_statement", "my97_json_partial"),
]


def changes_of(name: str) -> list[Change]:
    reader = ChangeReader()
    found: list[Change] = []
    for file, data in fixture_set(name).binlogs:
        for event in expanded_all(walk([data], file=file), file=file):
            found += reader.feed(event, file=file)
    return found


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", ["md1011_types_string", "my97_types_json", "md1011_ddl"])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    lines = ChangeLines(LineStyle(width=width))
    texts = [plain_text(lines.line(change)) for change in changes_of(name)]
    assert len(texts) > 10
    assert [text for text in texts if width_of(text) > width] == []
    assert any(text.endswith("…") for text in texts)


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_line_of_every_recording_stays_on_its_line(name: str) -> None:
    lines = ChangeLines(LineStyle())
    for change in changes_of(name):
        text = plain_text(lines.line(change))
        assert text.isprintable()
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+ [┌│] ", text)


@pytest.mark.parametrize("name", RECORDINGS)
def test_rows_are_those_of_the_recording(name: str) -> None:
    rows = [change for change in changes_of(name) if isinstance(change, ChangedRow)]
    counts = {kind: sum(row.kind is kind for row in rows) for kind in ChangeOperation}
    expected = [row["op"] for row in fixture_set(name).rows()]
    for kind in (ChangeOperation.INSERT, ChangeOperation.UPDATE, ChangeOperation.DELETE):
        assert counts[kind] == expected.count(kind.value[0].upper())


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("漢字", 4, "漢字"),
        ("漢字漢", 4, "漢…"),
        ("é" * 5, 4, "ééé…"),
        ("e\u0301" * 4, 4, "e\u0301" * 4),
    ],
)
def test_a_text_is_cut_by_columns(text: str, width: int, expected: str) -> None:
    assert shortened(text, width, "…") == expected


def test_ascii_terminals_get_ascii_signs() -> None:
    lines = ChangeLines(LineStyle(width=60, signs=ASCII_SIGNS))
    name = "md1011_annotate_off"
    texts = [plain_text(lines.line(change)) for change in changes_of(name)]
    assert all(re.match(r"\d\d:\d\d:\d\d \S+ [+|] ", text) for text in texts)
