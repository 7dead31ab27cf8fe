"""The texts that real servers wrote to their binlogs, and what the rows behind them say."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from binlane.statements.sql.statement_kinds import StatementKind
from tests.fixture_sets import EventRow, fixture_names, fixture_set
from tests.reading import analyse

TEXTS = ("Query", "Query_compressed", "Annotate_rows", "Rows_query", "Execute_load_query")
USE = re.compile(r"use `((?:[^`]|``)+)`; ")
FILE_ID = re.compile(r" ;file_id=\d+\Z")  # SHOW BINLOG EVENTS adds it to LOAD DATA
SETTINGS = re.compile(r"set [a-z_]+=\d(?:, [a-z_]+=\d)*; ")
CUT = re.compile(r"\.\.\.\[\d+\]$")
"""events.tsv shortens long texts, and `#`s bytes that the connection could not show."""
TABLE_MAP = re.compile(r"table_id: (\d+) \((.*?)(\)?)$")
ROWS = re.compile(r"table_id: (\d+)")
SETS = [name for name in fixture_names("m") if "events.tsv" in fixture_set(name)]
# Triggers, stored functions and sequences in defaults write more than the text says.
HIDDEN_WRITES = re.compile(r"\bTRIGGER\b|\bFUNCTION\b|default nextval", re.IGNORECASE)
SETS_OF_PLAIN_TEXTS = [
    name
    for name in SETS
    if name.startswith("md") and not HIDDEN_WRITES.search(fixture_set(name).text("script.sql"))
]


def _statement(event: EventRow) -> tuple[str, str]:
    """Text and default database."""
    text = event["info"]
    database = ""
    if found := USE.match(text):
        database = found[1].replace("``", "`")
        text = text[found.end() :]
    if found := SETTINGS.match(text):
        text = text[found.end() :]
    return FILE_ID.sub("", text.removeprefix("# ")), database


def _is_whole(text: str, name: str) -> bool:
    # A client's Shift-JIS has bytes that are a backslash in any other character set.
    return not CUT.search(text) and not ("charset_clients" in name and text.endswith("\\')"))


@pytest.mark.parametrize("name", SETS)
def test_every_text_is_understood(name: str) -> None:
    for event in fixture_set(name).events():
        text, database = _statement(event)
        if event["type"] not in TEXTS or not _is_whole(text, name):
            continue
        effects = analyse(text, database=database, ansi_quotes='"ansi' in text or '"ai2"' in text)
        assert effects.stopped_at is None, text
        assert effects.kind not in (StatementKind.UNKNOWN, StatementKind.EMPTY), text


def _rows(name: str) -> Iterator[tuple[str, set[str]]]:
    """Each annotated text with the `database.table`s whose rows follow."""
    text, tables = "", set[str]()
    names: dict[str, str] = {}
    for event in fixture_set(name).events():
        if event["type"] == "Table_map" and (found := TABLE_MAP.match(event["info"])):
            names[found[1]] = found[2] if found[3] else ""  # too long for SHOW
        elif "_rows_" in event["type"] and (found := ROWS.match(event["info"])):
            tables.add(names[found[1]])
        elif event["type"] not in ("Table_map", "Intvar"):
            if text:
                yield text, tables
            text = _statement(event)[0] if event["type"] == "Annotate_rows" else ""
            tables = set()


@pytest.mark.parametrize("name", SETS_OF_PLAIN_TEXTS)
def test_rows_are_of_tables_that_the_text_writes(name: str) -> None:
    for text, tables in _rows(name):
        if _is_whole(text, name):
            effects = analyse(text, database="", ansi_quotes='"ansi' in text)
            written = tuple(f".{table.table}" for table in effects.writes)
            assert [table for table in tables if table and not table.endswith(written)] == [], text
