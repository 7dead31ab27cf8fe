"""Recognition of statements that ask tables of `system`, and errors if they ask others beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from binlane.live.answers.system_tables.system_columns import TABLES
from binlane.names import TableName
from binlane.statements.scope.scope import SYSTEM_DATABASE
from binlane.statements.sql.parser import Stopped, cursor_over
from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import SqlSyntaxError, Token, tokenise

_GAP: Final = r"(?:\s|/\*.*?\*/|--[ \t][^\n]*\n|\#[^\n]*\n|(?!))*+"
_NAMES: Final = re.compile(
    rf"""(?xi)
    \b{SYSTEM_DATABASE}\b[`"]?{_GAP}\.{_GAP}[`"]?(?:{"|".join(TABLES)})\b
    | \bSHOW\b.{{,200}}?\b(?:FROM|IN)\b{_GAP}[`"]?{SYSTEM_DATABASE}\b
    """,
    re.DOTALL,
)
_SELECTS: Final = ("SELECT", "WITH", "TABLE", "VALUES")
HINT: Final = (
    "system tables are answered by binlane, all others by the source: ask for each in a statement "
    "of its own"
)


@dataclass(frozen=True, slots=True)
class SystemSelect:
    """A query over tables of `system`, as its tokens."""

    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE or SHOW COLUMNS of a table of `system`."""

    table: str
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCreate:
    """SHOW CREATE TABLE of a table of `system`."""

    table: str


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES FROM system."""

    pattern: str | None = None


TEXT_MAX: Final = 1 << 16
"""Characters of the longest statement that is looked at; longer ones go to the source."""
Question = SystemSelect | Describe | ShowCreate | ShowTables


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSession:
    """The facts of a client's session that bear on how its statements are read.

    Attributes:
        database: The default database, empty if there is none.
        modes: The words of the session's sql_mode.
    """

    database: str = ""
    modes: frozenset[str] = frozenset()

    @property
    def dialect(self) -> Dialect:
        """The dialect that says how the session's statements are quoted."""
        return Dialect(
            ansi_quotes="ANSI_QUOTES" in self.modes,
            no_backslash_escapes="NO_BACKSLASH_ESCAPES" in self.modes,
        )


def may_ask(statement: str) -> bool:
    """True if a statement is worth a closer look, for which the session is needed."""
    return len(statement) <= TEXT_MAX and _NAMES.search(statement) is not None


def question_of(statement: str, session: QuestionSession) -> Question | None:
    """Return a statement's question; None if it does not ask tables of `system`.

    Raises:
        SqlSyntaxError: If it asks tables of the source as well, or is several statements.
    """
    try:
        tokens = list(tokenise(statement, session.dialect))
    except SqlSyntaxError:
        return None  # the source says what is wrong
    end = len(statement)
    if len(tokens) > 1 and tokens[-2].text == ";":
        end = tokens.pop(-2).offset
    first = next((token for token in tokens if token.text != "("), tokens[0])
    if first.word in _SELECTS:
        return _select(statement, tokens, session)
    try:
        return _shown(cursor_over(statement[:end], session.dialect))
    except (Stopped, SqlSyntaxError):
        return None


def _select(
    statement: str, tokens: Sequence[Token], session: QuestionSession
) -> SystemSelect | None:
    effects = read(statement, database=session.database, dialect=session.dialect).effects
    names = (*effects.reads, *effects.writes)
    ours = [name for name in names if _is_ours(name)]
    if effects.stopped_at is not None and not ours:
        ours = _named(tokens)
    if not ours:
        return None
    end = next((token for token in tokens if token.text == ";"), None)
    if end is not None:
        raise SqlSyntaxError(statement, end.offset, "one statement over system tables", hint=HINT)
    others = [name for name in names if not _is_ours(name)]
    if others:
        expected = f"tables of system alone: {others[0]} is none beside {ours[0]}"
        raise SqlSyntaxError(statement, _place(tokens, others[0]), expected, hint=HINT)
    return SystemSelect(tuple(tokens))


def _is_ours(name: TableName) -> bool:
    return name.database.lower() == SYSTEM_DATABASE and name.table.lower() in TABLES


def _named(tokens: Sequence[Token]) -> list[TableName]:
    """Return the names that stand as `system.table` in a text that was not understood."""
    found = []
    for database, dot, table in zip(tokens, tokens[1:], tokens[2:], strict=False):
        name = TableName(database.value, table.value)
        if dot.text == "." and _is_ours(name):
            found.append(name)
    return found


def _place(tokens: Sequence[Token], name: TableName) -> int:
    """Return the offset where a table is named; 0 if it is not."""
    return next((token.offset for token in tokens if token.value == name.table), 0)


def _shown(cursor: Cursor) -> Question | None:
    """Read SHOW TABLES, SHOW COLUMNS, SHOW CREATE TABLE and DESCRIBE."""
    if cursor.accept_any(("DESCRIBE", "DESC", "EXPLAIN")):
        table = _table(cursor)
        return Describe(table) if table and cursor.is_at_end else None
    cursor.expect("SHOW")
    if cursor.accept("CREATE", "TABLE"):
        table = _table(cursor)
        return ShowCreate(table) if table and cursor.is_at_end else None
    cursor.accept("EXTENDED")
    cursor.accept("FULL")
    if cursor.accept_any(("COLUMNS", "FIELDS")):
        cursor.accept_any(("FROM", "IN"))
        table = _table(cursor)
        return Describe(table, _pattern(cursor)) if table else None
    cursor.expect("TABLES")
    if not cursor.accept_any(("FROM", "IN")) or cursor.any_name().lower() != SYSTEM_DATABASE:
        return None
    return ShowTables(_pattern(cursor))


def _table(cursor: Cursor) -> str:
    """Read the name of one of our tables; empty if it is none."""
    database, table = cursor.qualified_name()
    if database is None and cursor.accept_any(("FROM", "IN")):
        database = cursor.any_name()
    name = TableName(database or "", table)
    return table.lower() if _is_ours(name) else ""


def _pattern(cursor: Cursor) -> str | None:
    pattern = cursor.advance().value if cursor.accept("LIKE") else None
    cursor.expect_end()
    return pattern
