"""Names in the text of row changes: ANNOTATE_ROWS and ROWS_QUERY, read once for each shape.

Such a text is there for people, and shows the statement that made the rows behind it. A scoped
binlog keeps it only if all that it names is in scope. Literals name nothing, so texts that differ
only in their literals are one shape, and the names of a shape are found out once.

The session's sql_mode and character set are not known here: where they matter, every reading of the
text must be clean.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final

from binlane.log.codec.client_text import AS_IT_IS, SWE7
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.statement_text import statement_charset
from binlane.names import TableName
from binlane.statements.scope.scope import Scope

TEXT_MAX: Final = 64 << 10
"""Bytes; a longer text is left out: reading it costs more than it is worth (1 s a megabyte)."""
SHAPES_MAX: Final = 4096
"""Shapes that are kept."""

_OTHER_IN_SWE7: Final = re.compile(r"[][{}^~\\]|`[^`]*[@|]")
# The analysis does not tell the names in comments.
_COMMENT_SIGNS: Final = (b"/*", b"--", b"#")
_LETTER: Final = rb"[0-9A-Za-z_$.@\x80-\xff]"
# A backslash before a quote ends a string in one sql_mode and not in the other.
_STRING: Final = rb"'(?:[^'\\]|''|\\[^'])*'(?!')"
_LITERAL: Final = re.compile(
    rb"(?P<number>[0-9]+(?:\.[0-9]+)?)(?!%b)|(?P<kept>`[^`]*`|%b+)|(?P<string>%b)|(?P<unclear>[\"\\'`])"
    % (_LETTER, _LETTER, _STRING),
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TextNames:
    """The tables that texts of a shape name.

    The session's default database is not known, and a table of the same name may be in several. So
    a name without one is known only if the statement changes that table and no other has a map:
    then it is the table of the map.

    Attributes:
        is_known: True if the names could be found out; else the text must stay out of every scope.
        tables: Tables that are named with a database.
        unqualified: Tables that it changes in the default database.
    """

    is_known: bool
    tables: frozenset[TableName] = frozenset()
    unqualified: frozenset[str] = frozenset()

    def is_inside(self, scope: Scope, changed: Collection[str]) -> bool:
        """True if a binlog may hold the text.

        Args:
            scope: Scope of the binlog to route to.
            changed: Names of the tables whose TABLE_MAPs its statement has there, if all of them
                are in scope; else nothing.
        """
        return (
            self.is_known
            and all(name in changed for name in self.unqualified)
            and all(map(scope.includes, self.tables))
        )


UNKNOWN_NAMES: Final = TextNames(is_known=False)


def shape_of(text: bytes) -> bytes:
    """The text with its literals emptied; as it is where quotes could be read in two ways.

    A string becomes `''` and a number of digits alone `0`. Whatever could be part of a name stays.
    """
    parts: list[bytes] = []
    end = 0
    for match in _LITERAL.finditer(text):
        if match["unclear"] is not None:
            return text
        if match["kept"] is None:
            parts += (text[end : match.start()], b"0" if match["string"] is None else b"''")
            end = match.end()
    return b"".join((*parts, text[end:]))


def is_plain_shape(shape: bytes) -> bool:
    """True if nothing in a shape may begin a comment, in which quotes mean nothing."""
    return not any(sign in shape for sign in _COMMENT_SIGNS)


def names_in(text: bytes) -> TextNames:
    """Find the tables that a text names.

    Args:
        text: Text as an event holds it, in the session's character set.
    """
    return UNKNOWN_NAMES if len(text) > TEXT_MAX else names_in_shape(shape_of(text))


def _names_in_statement(statement: QueryEvent) -> TextNames:
    """Find the tables in a statement of known character set: its names must be in UTF-8."""
    text = statement.query
    if len(text) > TEXT_MAX:
        return UNKNOWN_NAMES
    shape = shape_of(text)
    if not shape.isascii() and statement_charset(statement) not in AS_IT_IS:
        return UNKNOWN_NAMES
    return names_in_shape(shape)


def is_named_inside(statement: QueryEvent, scope: Scope) -> bool:
    """True if it is known which tables a statement names, and all of them and its database are in a scope.

    Args:
        statement: A logged statement that changes rows.
        scope: Scope of the binlog in which it would stand.
    """
    database = statement.database.decode("utf-8", "surrogateescape")
    names = _names_in_statement(statement)
    return (
        names.is_known
        and scope.touches_database(database)
        and all(map(scope.includes, names.tables))
        and all(scope.includes(TableName(database, name)) for name in names.unqualified)
    )


@lru_cache(maxsize=SHAPES_MAX)
def names_in_shape(shape: bytes) -> TextNames:
    """Find the tables that all texts of a shape name."""
    if not is_plain_shape(shape):
        return UNKNOWN_NAMES
    try:
        text = shape.decode()
    except UnicodeDecodeError:
        return UNKNOWN_NAMES  # in the Far East, a second byte may look like a quote
    both, one = (False, True), (False,)
    readings = [
        _reading(text, ansi_quotes=ansi, no_backslash_escapes=no_backslash, charset=charset)
        for ansi, no_backslash, charset in product(
            both if '"' in text else one,
            both if "\\" in text else one,
            ("", SWE7) if _OTHER_IN_SWE7.search(text) else ("",),
        )
    ]
    if not all(reading.is_known for reading in readings):
        return UNKNOWN_NAMES
    return TextNames(
        is_known=True,
        tables=frozenset().union(*(reading.tables for reading in readings)),
        unqualified=frozenset().union(*(reading.unqualified for reading in readings)),
    )


def _reading(
    text: str, *, ansi_quotes: bool, no_backslash_escapes: bool, charset: str
) -> TextNames:
    from binlane.statements.sql.evaluation.functions import is_built_in  # noqa: PLC0415  # as above
    from binlane.statements.sql.reading import read  # noqa: PLC0415  # where all is logged, no text is read
    from binlane.statements.sql.servers import Dialect  # noqa: PLC0415  # as above
    from binlane.statements.sql.statement_kinds import StatementKind  # noqa: PLC0415  # as above

    facts = read(
        text,
        database="",
        dialect=Dialect(
            ansi_quotes=ansi_quotes,
            no_backslash_escapes=no_backslash_escapes,
            charset=charset,
        ),
    )
    effects = facts.effects
    if effects.stopped_at is not None or effects.kind is StatementKind.UNKNOWN or effects.calls:
        return UNKNOWN_NAMES
    if any(use.is_quoted or not is_built_in(use.name) for use in facts.functions):
        return UNKNOWN_NAMES
    if not all(table.database for table in effects.reads):
        return UNKNOWN_NAMES
    named = (*effects.writes, *effects.reads)
    return TextNames(
        is_known=True,
        tables=frozenset(table for table in named if table.database),
        unqualified=frozenset(table.table for table in named if not table.database),
    )
