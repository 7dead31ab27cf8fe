"""A statement's text → its facts: the one entry to this package's readers.

The text alone: that a view hides a table, that a trigger writes another one, or what a procedure
does, is known to the server only.

Statements that differ only in their literals are read once. A statement is cut into literals and
what stands between them by one regular expression, instead of into all its tokens. The facts of the
first statement of a shape serve the others, with their places moved by what the literals before
them differ in length.

A log may hold statements of newer servers than this package knows. Which kind they are, and which
object they make, change or drop, often stands before what is new in them: that much is told of a
statement that is not understood to its end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final, TypeVar

from binlane.names import ACCOUNT_DATABASE, TableName
from binlane.statements.sql.fact_finder import facts_of
from binlane.statements.sql.facts import Shape, StatementEffects, StatementFacts
from binlane.statements.sql.lexis import BEHIND_DASHES, lexed_by
from binlane.statements.sql.parser import (
    TOO_DEEP,
    NotAnalysed,
    TooMuch,
    cursor_over,
    parse,
    parse_expression,
)
from binlane.statements.sql.parser.cursor import Cursor, Stopped
from binlane.statements.sql.parser.literals import read_object_name
from binlane.statements.sql.parser.programs import is_at_compound
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_finder import Untold
from binlane.statements.sql.statement_kinds import StatementKind, kind_of
from binlane.statements.sql.tokens import LONG, NAME_KINDS, WORD, SqlSyntaxError, Token, TokenKind
from binlane.statements.sql.tree.expressions import Literal, children

_DEFINITIONS: Final = ("CREATE", "ALTER", "DROP")
_OBJECTS: Final = frozenset(
    (
        *("TABLE", "TABLES", "SEQUENCE", "INDEX", "VIEW", "DATABASE", "SCHEMA", "TRIGGER", "EVENT"),
        *("PROCEDURE", "FUNCTION", "PACKAGE", "LIBRARY"),
        *("USER", "ROLE", "SERVER", "TABLESPACE"),
    )
)
_SYNONYMS: Final = {"TABLES": "TABLE", "SCHEMA": "DATABASE"}
_NAMELESS: Final = ("USER", "ROLE", "SERVER", "TABLESPACE")
"""Objects that belong to no database."""
_TABLE_KINDS: Final = ("TABLE", "SEQUENCE")
_WORDS_MAX: Final = 24
"""Tokens in which the word for a kind of object stands, behind options such as DEFINER."""


def head(
    text: str, stopped_at: Token, database: str, dialect: Dialect
) -> tuple[str, StatementEffects]:
    """The verb of a statement, and what is known of what it does."""
    try:
        cursor = cursor_over(text, dialect)
    except (SqlSyntaxError, Stopped):  # it has no end, or too many tokens
        return "", StatementEffects(kind=StatementKind.UNKNOWN, stopped_at=stopped_at)
    first = cursor.word
    if dialect.has_mariadb(10, 1) and is_at_compound(cursor):
        effects = StatementEffects(kind=StatementKind.COMPOUND, stopped_at=stopped_at)
        return "BEGIN NOT ATOMIC", effects
    try:
        if first in _DEFINITIONS:
            return _definition(cursor, stopped_at, database)
    except Stopped:
        return "", StatementEffects(kind=StatementKind.UNKNOWN, stopped_at=stopped_at)
    kind = kind_of(first)
    verb = "" if kind is StatementKind.UNKNOWN else first
    return verb, StatementEffects(kind=kind, stopped_at=stopped_at)


def _definition(cursor: Cursor, stopped_at: Token, database: str) -> tuple[str, StatementEffects]:
    """CREATE, ALTER and DROP: the kind of object, and its name."""
    first = cursor.advance().word
    words = []
    for _ in range(_WORDS_MAX):
        if cursor.word in _OBJECTS or cursor.is_at_end:
            break
        words.append(cursor.advance().word)
    name = _SYNONYMS.get(cursor.word, cursor.word)
    verb = f"{first} {name}"
    kind = kind_of(verb)
    if name not in _OBJECTS or name in _NAMELESS:
        databases = (ACCOUNT_DATABASE,) if kind is StatementKind.ACCOUNT else ()
        return verb, StatementEffects(kind=kind, databases=databases, stopped_at=stopped_at)
    cursor.advance()
    if name == "PACKAGE" and cursor.accept("BODY"):
        verb += " BODY"
    if_exists = cursor.accept("IF", "EXISTS") or cursor.accept("IF", "NOT", "EXISTS")
    found = StatementEffects(
        kind=kind,
        is_temporary="TEMPORARY" in words,
        is_or_replace=words[:2] == ["OR", "REPLACE"],
        if_exists=if_exists,
        stopped_at=stopped_at,
    )
    if cursor.token.kind not in NAME_KINDS or name == "INDEX":
        return verb, found
    given = read_object_name(cursor)
    if name == "DATABASE":
        return verb, replace(found, databases=(given.name,))
    table = TableName(given.database if given.database is not None else database, given.name)
    if name == "TRIGGER" and first == "CREATE":
        own = _trigger_table(cursor, table.database)
        return verb, replace(found, objects=(table,), writes=own, databases=(table.database,))
    if name in _TABLE_KINDS:
        drops = (table,) if first == "DROP" else ()
        return verb, replace(found, writes=(table,), drops=drops)
    return verb, replace(found, objects=(table,), databases=(table.database,))


def _trigger_table(cursor: Cursor, database: str) -> tuple[TableName, ...]:
    """The table of a trigger: behind the first ON."""
    for _ in range(_WORDS_MAX):
        if cursor.is_at_end:
            return ()
        if cursor.accept("ON"):
            given = read_object_name(cursor)
            own = given.database if given.database is not None else database
            return (TableName(own, given.name),)
        cursor.advance()
    return ()


_SHAPED: Final = frozenset(
    (
        StatementKind.INSERT,
        StatementKind.REPLACE,
        StatementKind.UPDATE,
        StatementKind.DELETE,
        StatementKind.SELECT,
        StatementKind.BEGIN,
        StatementKind.COMMIT,
        StatementKind.ROLLBACK,
    )
)
"""Statements of which many differ in literals alone, and whose decision no literal changes."""
Key = tuple[str | None, ...]
"""Text of a statement beside its literals, and the kind of each literal."""


def key_of(statement: str, dialect: Dialect) -> Key:
    """Give the common parts of a statement and those that differ from it in literals alone."""
    return tuple(pattern(dialect).split(statement))


def ends_of(statement: str, dialect: Dialect) -> tuple[int, ...]:
    """Give the places where the literals end that are not part of `key_of`."""
    found = pattern(dialect).finditer(statement)
    return tuple([each.end() for each in found if each[_KEPT] is None])


def pattern(dialect: Dialect) -> re.Pattern[str]:
    """A literal, or what may hold something that looks like one; as `tokens` reads them.

    Whatever does not match stays part of the key, and so does what the last group holds: names in
    quotes, comments, and all from where this expression does not know how to go on.
    """
    return _pattern(
        dialect.ansi_quotes, dialect.no_backslash_escapes, dialect.charset, dialect.flavor
    )


_KEPT: Final = 3


@cache
def _pattern(
    ansi_quotes: bool,  # noqa: FBT001
    no_backslash_escapes: bool,  # noqa: FBT001
    charset: str,
    flavor: str,
) -> re.Pattern[str]:
    # The pattern begins with a set of characters, which Python looks for first. LIMIT 0 is
    # told from others, so a 0 alone matches nothing; integers are told from other numbers, from
    # hexadecimal literals and bits by the first group, strings from each other by the second.
    single = _content("'", backslash_escapes=not no_backslash_escapes)
    double = _content('"', backslash_escapes=not (ansi_quotes or no_backslash_escapes))
    found = rf"""
        ['"`\#/0-9-]
        (?: (?<=[0-9]) (?<!{WORD}[0-9]) (?<![.`"@][0-9]) (?=[0-9]*+([xb.eE]?+))
            (?: (?<=0) (?: x[0-9A-Fa-f]++ | b[01]++ ) (?!{WORD})
              | (?:(?<!0)|(?=\.[0-9])) [0-9]*+
                (?: \.[0-9]*+(?:[eE][+-]?+[0-9]++|(?!))?+ | [eE][+-]?+[0-9]++ | (?!{WORD}) ) )
          | (?<=(['"`\#/-]))
            (?: (?<=') (?: (?<![xXbBnN@]'){single}
                  | (?<!{WORD}.') (?<![.`"@].')
                    (?: (?<=[nN]'){single} | (?<=[xX]')(?:[0-9A-Fa-f]{{2}}|(?!))*+'
                    | (?<=[bB]')[01]*+' ) )
              | {r"(?!)" if ansi_quotes else rf'(?<=")(?<!@"){double}'}
              | ( (?<=`)[^`]*+` | (?<='){single} | (?<="){double}
                | (?<=\#)[^\n]*+ | (?<=-)-(?=[{BEHIND_DASHES}]|\Z)[^\n]*+
                | (?<=/)\*(?!M?!).*?\*/
                | (?<=/)\*.*+ | (?<=['"`]).*+ ) ) )
        """
    return re.compile(lexed_by(found, charset, flavor), re.VERBOSE | re.DOTALL)


def _content(quote: str, *, backslash_escapes: bool) -> str:
    """The pattern of a string behind its opening quote."""
    plain, pair = f"[^{quote}]*+", quote + quote
    if backslash_escapes:
        plain, pair = f"[^{quote}\\\\]*+", rf"(?:\\.|{pair})"
    return f"{plain}(?:{pair}{plain}|(?!))*+{quote}"


def has_shape(facts: StatementFacts, ends: Sequence[int]) -> bool:
    """True if all literals of a statement are literals of its tree.

    Other literals, such as the length in a type, or a string as an alias, are part of the
    statement's meaning.
    """
    effects = facts.effects
    if effects.stopped_at is not None or effects.kind not in _SHAPED:
        return False
    if facts.statement_assignments:
        return False
    spans: list[tuple[int, int]] = []
    waiting = [facts.tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Literal):
            spans.append((node.at, node.end))
        waiting += children(node)
    spans.sort()
    place = 0
    for end in ends:
        while place < len(spans) and spans[place][1] < end:
            place += 1
        if place == len(spans) or spans[place][0] >= end:
            return False
    return True


KEPT_MAX: Final = 4_096
"""Texts and shapes whose facts are kept for a session's circumstances."""
_CONTEXTS_MAX: Final = 64
_Known = TypeVar("_Known", str, Key)
_Kept = TypeVar("_Kept", Shape, StatementFacts)


class _Context:
    """Facts on statements that are read in the same circumstances."""

    __slots__ = ("database", "dialect", "expressions", "held", "shapes", "texts")

    def __init__(self, database: str, dialect: Dialect) -> None:
        self.database = database
        self.dialect = dialect
        self.texts: dict[str, StatementFacts] = {}
        self.expressions: dict[str, StatementFacts] = {}
        self.shapes: dict[Key, Shape] = {}
        self.held: dict[str, StatementFacts] = {}


_contexts: Final[dict[tuple[str, Dialect], _Context]] = {}
_latest: list[_Context] = [_Context("", Dialect())]


def _context(database: str, dialect: Dialect) -> _Context:
    latest = _latest[0]
    if latest.dialect is dialect and latest.database == database:
        return latest
    context = _contexts.get((database, dialect))
    if context is None:
        if len(_contexts) >= _CONTEXTS_MAX:
            _contexts.clear()
        context = _contexts[database, dialect] = _Context(database, dialect)
    if context.dialect is dialect:
        _latest[0] = context
    return context


def read(text: str, *, database: str, dialect: Dialect) -> StatementFacts:
    """Find out all that a statement's text says about how it is logged.

    Args:
        text: Text of one statement, as a client sends it or as a binlog holds it.
        database: The default database; empty if there is none.
        dialect: Dialect of the server and its session.

    Returns:
        The statement's facts. A text that is not understood raises nothing: `effects.stopped_at`
        says where the analysis stopped, and the statement must then not be taken for safe; `error`
        is set where no server that the dialect stands for takes the text.
    """
    if len(text) > LONG:  # its facts are not kept, unless somebody holds them
        context = _contexts.get((database, dialect))
        facts = context.held.get(text) if context is not None and context.held else None
        if facts is not None:
            return facts
        try:
            return _read(text, database, dialect)
        except RecursionError as error:
            return _stopped(text, database, dialect, error)
    context = _context(database, dialect)
    facts = context.texts.get(text)
    if facts is not None:
        return facts
    key = key_of(text, dialect)
    shape = context.shapes.get(key)
    if shape is not None:
        return shape.facts_of(text)
    try:
        facts = _read(text, database, dialect)
    except RecursionError as error:
        # Whoever calls with more of the stack left may read it: that is not kept.
        return _stopped(text, database, dialect, error)
    if has_shape(facts, ends := ends_of(text, dialect)):
        shape = Shape(facts, ends, partial(ends_of, dialect=dialect))
        _keep(context.shapes, key, shape)
        return shape.facts
    _keep(context.texts, text, facts)
    return facts


def hold(facts: StatementFacts, database: str) -> None:
    """Have `read` give the facts of a long text without reading it, until `let_go`."""
    _context(database, facts.dialect).held[facts.text] = facts


def let_go(facts: StatementFacts, database: str) -> None:
    """Forget what `hold` said."""
    context = _contexts.get((database, facts.dialect))
    if context is not None and context.held.get(facts.text) is facts:
        del context.held[facts.text]


def _keep(known: dict[_Known, _Kept], key: _Known, value: _Kept) -> None:
    if len(known) >= KEPT_MAX:
        known.clear()
    known[key] = value


def read_expression(text: str, *, database: str, dialect: Dialect) -> StatementFacts:
    """Find out what an expression calls and reads: the facts of a DO, places within `text`."""
    known = _context(database, dialect).expressions
    facts = known.get(text)
    if facts is not None:
        return facts
    try:
        facts = facts_of(parse_expression(text, dialect), text, database, dialect)
    except RecursionError as error:
        return _stopped(text, database, dialect, error)
    except (SqlSyntaxError, Stopped, Untold) as error:
        facts = _stopped(text, database, dialect, error)
    if len(text) <= LONG:
        _keep(known, text, facts)
    return facts


def _read(text: str, database: str, dialect: Dialect) -> StatementFacts:
    try:
        return facts_of(parse(text, dialect), text, database, dialect)
    except (SqlSyntaxError, Stopped, Untold) as error:
        return _stopped(text, database, dialect, error)


def _stopped(text: str, database: str, dialect: Dialect, error: Exception) -> StatementFacts:
    """Give the facts on a statement that is not understood to its end."""
    offset = error.offset if isinstance(error, SqlSyntaxError) else 0
    if isinstance(error, Stopped):
        token = error.token
    elif isinstance(error, Untold):
        name = text[error.node.at : error.node.end]
        token = Token(TokenKind.NAME, name, error.node.at, name)
    else:
        rest = text[offset:]
        token = Token(TokenKind.INVALID, rest, offset, rest)
    verb, effects = head(text, token, database, dialect)
    too_much = error.reason if isinstance(error, TooMuch) else ""
    if isinstance(error, RecursionError):
        too_much = TOO_DEEP
    refused: SqlSyntaxError | None = None
    if isinstance(error, SqlSyntaxError):
        refused = error
    elif isinstance(error, Stopped) and not isinstance(error, NotAnalysed):
        refused = SqlSyntaxError(text, error.token.offset, error.expected)
    return StatementFacts(
        effects=effects,
        text=text,
        dialect=dialect,
        verb=verb,
        error=refused,
        too_much=too_much,
    )
