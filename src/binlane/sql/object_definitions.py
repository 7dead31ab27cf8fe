"""Views, triggers and routines as CREATE makes them: heads read, bodies kept as text.

Names without a database get that of the statement.
"""

from __future__ import annotations

from dataclasses import dataclass

from binlane.names import TableName
from binlane.sql.analysis import read
from binlane.sql.clauses import skip_account, skip_set_statement
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.ddl import CHECK_OPTIONS
from binlane.sql.programs import skip_type
from binlane.sql.schema import Parameter, Routine, Trigger, TriggerTime, View
from binlane.sql.sql_mode import Quoting
from binlane.sql.tokens import SqlSyntaxError, Token, TokenKind, tokenise

DEFAULT_DEFINER = "root@localhost"
_EVENTS = ("INSERT", "UPDATE", "DELETE")
_DATA_ACCESS = (
    ("CONTAINS", "SQL"),
    ("NO", "SQL"),
    ("READS", "SQL", "DATA"),
    ("MODIFIES", "SQL", "DATA"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTrigger:
    """A trigger and its place among those of its table.

    Attributes:
        trigger: Itself.
        follows: Of the trigger that it runs directly behind; None without.
        precedes: Of the trigger that it runs directly before; None without.
    """

    trigger: Trigger
    follows: str | None = None
    precedes: str | None = None


def create_view(statement: str, *, database: str, quoting: Quoting) -> View:
    """Read CREATE VIEW or ALTER VIEW.

    Raises:
        SqlSyntaxError: If its head cannot be understood.
    """
    cursor = _cursor(statement, quoting)
    try:
        definer = _skip_head(cursor)
        cursor.expect("VIEW")
        cursor.accept("IF", "NOT", "EXISTS")
        name = _name(cursor, database)
        columns: tuple[str, ...] = ()
        if cursor.token.text == "(":
            columns = tuple(Cursor(part).identifier() for part in split(cursor.group()))
        cursor.expect("AS")
    except Stopped as stopped:
        raise _error(statement, stopped) from None
    tokens = _without_check_option(cursor.rest())
    query = _text(statement, tokens)
    return View(
        name=name,
        query=query,
        facts=read(query, database=database, **quoting),
        definer=definer,
        columns=columns,
        database=database,
    )


def create_trigger(statement: str, *, database: str, quoting: Quoting) -> NewTrigger:
    """Read CREATE TRIGGER.

    Raises:
        SqlSyntaxError: If its head cannot be understood.
    """
    cursor = _cursor(statement, quoting)
    try:
        _skip_head(cursor)
        cursor.expect("TRIGGER")
        cursor.accept("IF", "NOT", "EXISTS")
        name = _name(cursor, database)
        time = TriggerTime.BEFORE if cursor.accept("BEFORE") else TriggerTime.AFTER
        if time is TriggerTime.AFTER:
            cursor.expect("AFTER")
        events = {cursor.advance().word}
        while cursor.word != "ON" and not cursor.is_at_end:  # MariaDB 12: OR …, UPDATE OF …
            word = cursor.advance().word
            events |= {word} & set(_EVENTS)
        cursor.expect("ON")
        table = _name(cursor, name.database)
        cursor.expect("FOR", "EACH", "ROW")
        follows = cursor.identifier() if cursor.accept("FOLLOWS") else None
        precedes = cursor.identifier() if cursor.accept("PRECEDES") else None
    except Stopped as stopped:
        raise _error(statement, stopped) from None
    trigger = Trigger(
        name=TableName(table.database, name.table),
        table=table,
        time=time,
        events=frozenset(events),
        body=_body(statement, cursor),
        create_statement=statement,
    )
    return NewTrigger(trigger=trigger, follows=follows, precedes=precedes)


def create_routine(statement: str, *, database: str, quoting: Quoting) -> Routine | str:
    """Read CREATE PROCEDURE or CREATE FUNCTION.

    Returns:
        The routine, or the name of a loadable function.

    Raises:
        SqlSyntaxError: If its head cannot be understood.
    """
    cursor = _cursor(statement, quoting)
    try:
        _skip_head(cursor)
        is_function = cursor.accept("FUNCTION")
        if not is_function:
            cursor.expect("PROCEDURE")
        cursor.accept("IF", "NOT", "EXISTS")
        name = _name(cursor, database)
        if is_function and cursor.token.text != "(":
            return name.table
        parameters = tuple(
            _parameter(statement, Cursor(part)) for part in split(cursor.group()) if part
        )
        returns = ""
        if is_function:
            cursor.expect("RETURNS")
            returns = _type(statement, cursor)
        is_deterministic, data_access = _characteristics(cursor)
    except Stopped as stopped:
        raise _error(statement, stopped) from None
    return Routine(
        name=name,
        is_function=is_function,
        parameters=parameters,
        body=_body(statement, cursor),
        returns=returns,
        is_deterministic=is_deterministic,
        data_access=data_access,
        create_statement=statement,
    )


def _cursor(statement: str, quoting: Quoting) -> Cursor:
    cursor = Cursor(list(tokenise(statement, **quoting)))
    skip_set_statement(cursor)
    return cursor


def _error(statement: str, stopped: Stopped) -> SqlSyntaxError:
    return SqlSyntaxError(statement, stopped.token.offset, stopped.expected)


def _skip_head(cursor: Cursor) -> str:
    """Go from CREATE or ALTER to the kind of object, and tell the definer."""
    if not cursor.accept("CREATE"):
        cursor.expect("ALTER")
    definer = DEFAULT_DEFINER
    while True:
        if cursor.accept("DEFINER"):
            cursor.expect_operator("=")
            start = cursor.index
            skip_account(cursor)
            definer = "".join(token.value for token in cursor.since(start)).replace("`", "")
        elif cursor.accept("ALGORITHM"):
            cursor.expect_operator("=")
            cursor.advance()
        elif cursor.accept("SQL", "SECURITY"):
            cursor.advance()
        elif not (cursor.accept("OR", "REPLACE") or cursor.accept("AGGREGATE")):
            return definer


def _name(cursor: Cursor, database: str) -> TableName:
    own, name = cursor.qualified_name()
    return TableName(own or database, name)


def _text(statement: str, tokens: list[Token]) -> str:
    return statement[tokens[0].offset : tokens[-1].end] if tokens else ""


def _body(statement: str, cursor: Cursor) -> str:
    tokens = cursor.rest()
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    return _text(statement, tokens)


def _without_check_option(tokens: list[Token]) -> list[Token]:
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    words = [token.word for token in tokens]
    for option in CHECK_OPTIONS:
        if words[-len(option) :] == option:
            return tokens[: -len(option)]
    return tokens


def _parameter(statement: str, cursor: Cursor) -> Parameter:
    direction = "IN"
    if cursor.word in {"IN", "OUT", "INOUT"} and cursor.ahead(1).kind is not TokenKind.END:
        direction = cursor.advance().word
    name = cursor.identifier()
    rest = cursor.rest()
    return Parameter(name=name, type_text=_text(statement, rest), direction=direction)


def _type(statement: str, cursor: Cursor) -> str:
    """The type that RETURNS names, as far as it goes."""
    start = cursor.index
    skip_type(cursor)
    return _text(statement, cursor.since(start))


def _characteristics(cursor: Cursor) -> tuple[bool, str]:
    """Whether the routine is DETERMINISTIC, and what data it says to use."""
    is_deterministic, data_access = False, "CONTAINS SQL"
    while True:
        if (
            cursor.accept("COMMENT")
            or cursor.accept("SQL", "SECURITY")
            or cursor.accept("LANGUAGE")
        ):
            cursor.advance()
        elif cursor.accept("NOT", "DETERMINISTIC"):
            is_deterministic = False
        elif cursor.accept("DETERMINISTIC"):
            is_deterministic = True
        else:
            words = next((words for words in _DATA_ACCESS if cursor.accept(*words)), None)
            if words is None:
                cursor.accept_any(("IS", "AS")) if cursor.ahead(1).word == "BEGIN" else None
                return is_deterministic, data_access
            data_access = " ".join(words)
