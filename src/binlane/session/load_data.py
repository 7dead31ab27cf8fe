"""LOAD DATA as the servers write it anew for a log in statement format.

Source: MariaDB 10.11 sql/sql_load.cc `write_execute_load_query_log_event`, MySQL 9.7 alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.names import TableName, quote
from binlane.session.state import Command, SessionState
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.tokens import Token, TokenKind, tokenise

_ESCAPES: Final = str.maketrans(
    {"\n": "\\n", "\r": "\\r", "\\": "\\\\", "\b": "\\b", "\t": "\\t", "'": "\\'", "\0": "\\0"}
)
_FIELDS: Final = ("FIELDS", "COLUMNS")


@dataclass(slots=True)
class _Load:
    """What LOAD DATA says, with the servers' defaults."""

    fname: str = ""
    is_concurrent: bool = False
    duplicates: str = ""
    database: str | None = None
    table: str = ""
    charset: str = ""
    separator: str = "\t"
    enclosed: str = ""
    is_optionally: bool = False
    escaped: str = "\\"
    line_end: str = "\n"
    line_start: str = ""
    skipped: str = ""
    columns: str = ""
    assignments: str = ""


def load_text(state: SessionState, command: Command) -> str:
    """The statement as `Execute_load_query` prints it."""
    tokens = list(tokenise(command.text, **state.variables.quoting))
    try:
        load = _read(Cursor(tokens), command.text)
    except Stopped:
        # The analysis understood it, this smaller grammar does not: its own text is the best.
        return command.text
    name = TableName(load.database or command.database, load.table)
    if not load.columns:
        table = state.objects.table(name)
        columns = () if table is None else table.definition.columns
        load.columns = ", ".join(quote(column.name) for column in columns if not column.generated)
    return _text(load, command.database)


def _read(cursor: Cursor, text: str) -> _Load:
    load = _Load()
    cursor.expect("LOAD")
    cursor.accept_any(("DATA", "XML"))
    load.is_concurrent = cursor.accept_any(("LOW_PRIORITY", "CONCURRENT")) == "CONCURRENT"
    is_local = cursor.accept("LOCAL")
    cursor.expect("INFILE")
    load.fname = cursor.advance().value
    load.duplicates = cursor.accept_any(("REPLACE", "IGNORE")) or ("IGNORE" if is_local else "")
    cursor.expect("INTO", "TABLE")
    load.database, load.table = cursor.qualified_name()
    if cursor.accept("PARTITION"):
        cursor.group()
    if cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
        load.charset = cursor.advance().value
    if cursor.accept_any(_FIELDS):
        _read_fields(cursor, load)
    if cursor.accept("LINES"):
        _read_lines(cursor, load)
    if cursor.accept("IGNORE"):
        load.skipped = cursor.advance().text
        cursor.accept_any(("LINES", "ROWS"))
    if cursor.token.text == "(":
        load.columns = ", ".join(_column(part) for part in split(cursor.group()))
    if cursor.accept("SET"):
        load.assignments = _assignments(cursor.rest(), text)
    return load


def _read_fields(cursor: Cursor, load: _Load) -> None:
    while True:
        if cursor.accept("TERMINATED", "BY"):
            load.separator = cursor.advance().value
        elif cursor.accept("OPTIONALLY", "ENCLOSED", "BY"):
            load.is_optionally = True
            load.enclosed = cursor.advance().value
        elif cursor.accept("ENCLOSED", "BY"):
            load.enclosed = cursor.advance().value
        elif cursor.accept("ESCAPED", "BY"):
            load.escaped = cursor.advance().value
        else:
            return


def _read_lines(cursor: Cursor, load: _Load) -> None:
    while True:
        if cursor.accept("TERMINATED", "BY"):
            load.line_end = cursor.advance().value
        elif cursor.accept("STARTING", "BY"):
            load.line_start = cursor.advance().value
        else:
            return


def _column(tokens: list[Token]) -> str:
    token = tokens[0]
    if token.kind is TokenKind.USER_VARIABLE:
        return f"@{quote(token.text[1:].strip('`'))}"
    return quote(tokens[-1].value)


def _assignments(tokens: list[Token], text: str) -> str:
    shown = []
    for part in split(tokens):
        equals = next(token for token in part if token.text in ("=", ":="))
        name = next(token for token in reversed(part[: part.index(equals)]) if token.text != ".")
        end = max(token.end for token in part)
        shown.append(f"{quote(name.value)}={text[equals.end : end]}")
    return ", ".join(shown)


def _text(load: _Load, database: str) -> str:
    name = quote(load.table)
    if load.database is not None and load.database != database:
        name = f"{quote(load.database)}.{name}"
    parts = [
        "LOAD DATA ",
        "CONCURRENT " if load.is_concurrent else "",
        f"INFILE {_shown(load.fname)} ",
        f"{load.duplicates} " if load.duplicates else "",
        f"INTO TABLE {name}",
        f" CHARACTER SET {load.charset}" if load.charset else "",
        f" FIELDS TERMINATED BY {_shown(load.separator)}",
        " OPTIONALLY " if load.is_optionally else "",
        f" ENCLOSED BY {_shown(load.enclosed)} ESCAPED BY {_shown(load.escaped)}",
        f" LINES TERMINATED BY {_shown(load.line_end)}",
        f" STARTING BY {_shown(load.line_start)}" if load.line_start else "",
        f" IGNORE {load.skipped} LINES " if load.skipped not in ("", "0") else "",
        f" ({load.columns})",
        f" SET {load.assignments}" if load.assignments else "",
    ]
    return "".join(parts)


def _shown(text: str) -> str:
    return f"'{text.translate(_ESCAPES)}'"
