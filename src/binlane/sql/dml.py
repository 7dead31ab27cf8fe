"""What INSERT, REPLACE, UPDATE, DELETE, LOAD DATA, SELECT, DO, CALL and HANDLER read and write.

Of an UPDATE of several tables whose SET names a column without its table, every table counts as
written, because which one has the column only the server knows.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from binlane.names import TableName
from binlane.sql.clauses import table_name
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.draft import Draft
from binlane.sql.effects import StatementKind
from binlane.sql.expressions import CommonTables, table_use
from binlane.sql.facts import FunctionUse, RowChange, SetColumn
from binlane.sql.queries import (
    is_at_query,
    read_base_table,
    read_clauses,
    read_common_tables,
    read_expression,
    read_expressions,
    read_query,
    read_references,
)
from binlane.sql.tokens import Token, TokenKind

_INSERT_MODIFIERS: Final = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE")
_UPDATE_MODIFIERS: Final = ("LOW_PRIORITY", "IGNORE")
_DELETE_MODIFIERS: Final = ("LOW_PRIORITY", "QUICK", "IGNORE")
_LOAD_MODIFIERS: Final = ("LOW_PRIORITY", "CONCURRENT")
_INSERTS: Final = {"INSERT": RowChange.INSERT, "REPLACE": RowChange.REPLACE}
_NO_COMMON_TABLES: Final = CommonTables()

Qualifier = tuple[str | None, str]


def read_insert(cursor: Cursor, draft: Draft) -> None:
    """INSERT and REPLACE."""
    word = cursor.accept_any(_INSERTS)
    draft.kind, draft.verb = StatementKind[word], word
    draft.is_replace = word == "REPLACE"
    _read_modifiers(cursor, draft, _INSERT_MODIFIERS)
    cursor.accept("INTO")
    target = len(draft.tables)
    read_table(cursor, draft, frozenset((_INSERTS[word],)))
    if cursor.accept("PARTITION"):
        cursor.group()
    if cursor.token.text == "(" and not is_at_query(cursor):
        draft.columns = _names(cursor)
    if is_at_query(cursor):
        _mark_query(cursor, draft)
        read_query(cursor, draft)
    elif cursor.accept_any(("VALUES", "VALUE")):
        _read_rows(cursor, draft)
    elif cursor.accept("SET"):
        draft.row_count = 1
        read_assignments(cursor, draft)
        draft.columns = [column.name for column in draft.set_columns]
        draft.set_columns.clear()
    else:
        raise cursor.stop("VALUES, SET or a query")
    _read_new_row_alias(cursor)
    offset = cursor.token.offset
    if cursor.accept("ON", "DUPLICATE", "KEY", "UPDATE"):
        draft.on_duplicate_offset = offset
        draft.is_on_duplicate = True
        draft.change(target, RowChange.UPSERT)
        read_assignments(cursor, draft)
    if cursor.accept("RETURNING"):
        draft.has_returning = True
        read_expressions(cursor, draft)


def _mark_query(cursor: Cursor, draft: Draft) -> None:
    draft.has_query = True
    draft.query_offset = cursor.token.offset


def _names(cursor: Cursor) -> list[str]:
    """The columns in parentheses that INSERT or LOAD DATA names, without their tables."""
    inside = Cursor(cursor.group())
    names: list[str] = []
    while not inside.is_at_end:
        if inside.token.kind is TokenKind.USER_VARIABLE:
            names.append(inside.advance().text)
        else:
            name = inside.identifier()
            while inside.accept_operator("."):
                name = inside.identifier()
            names.append(name)
        if not inside.accept_operator(","):
            break
    inside.expect_end()
    return names


def _read_rows(cursor: Cursor, draft: Draft) -> None:
    while True:
        cursor.accept("ROW")
        if cursor.token.kind is TokenKind.ROWS:
            draft.row_count += int(cursor.advance().value)
            continue
        if cursor.token.text != "(":
            raise cursor.stop("a row")
        draft.row_count += 1
        start = cursor.index
        read_expression(cursor, draft)
        if cursor.ahead(-1).text != ")":
            # What stands behind the row is no expression, but an alias of it, or wrong.
            cursor.index = start
            cursor.group()
        if not cursor.accept_operator(","):
            return


def _read_new_row_alias(cursor: Cursor) -> None:
    """`AS new (a, b)` of MySQL, by which ON DUPLICATE KEY UPDATE calls the new row."""
    if cursor.accept("AS"):
        cursor.identifier()
        if cursor.token.text == "(":
            cursor.group()


def read_assignments(
    cursor: Cursor, draft: Draft, common: CommonTables = _NO_COMMON_TABLES
) -> list[tuple[Qualifier | None, Token]]:
    """Read `column = value, …`.

    Returns:
        The table of each column, None if the text does not say it, and where the column stands.
    """
    found: list[tuple[Qualifier | None, Token]] = []
    while True:
        first = cursor.token
        qualifier, name = _column(cursor)
        draft.set_columns.append(SetColumn(qualifier=qualifier and qualifier[1], name=name))
        found.append((qualifier, first))
        if not cursor.accept_operator("=") and not cursor.accept_operator(":="):
            raise cursor.stop("=")
        read_expression(cursor, draft, common)
        if not cursor.accept_operator(","):
            return found


def _column(cursor: Cursor) -> tuple[Qualifier | None, str]:
    """A column that is set, with its table."""
    parts = [cursor.identifier()]
    while cursor.accept_operator("."):
        parts.append(cursor.identifier())
    match parts:
        case [name]:
            return None, name
        case [table, name]:
            return (None, table), name
        case [database, table, name]:
            return (database, table), name
    raise cursor.stop("a column")


def read_update(cursor: Cursor, draft: Draft, common: CommonTables = _NO_COMMON_TABLES) -> None:
    """UPDATE of one or several tables."""
    draft.kind, draft.verb = StatementKind.UPDATE, "UPDATE"
    cursor.expect("UPDATE")
    _read_modifiers(cursor, draft, _UPDATE_MODIFIERS)
    before = len(draft.tables)
    draft.is_multi_table = read_references(cursor, draft, common)
    cursor.expect("SET")
    for qualifier, token in read_assignments(cursor, draft, common):
        _change_targets(qualifier, token, draft, RowChange.UPDATE, before)
    read_clauses(cursor, draft, common)


def read_delete(cursor: Cursor, draft: Draft, common: CommonTables = _NO_COMMON_TABLES) -> None:
    """DELETE of one or several tables, in all three spellings."""
    draft.kind, draft.verb = StatementKind.DELETE, "DELETE"
    cursor.expect("DELETE")
    _read_modifiers(cursor, draft, _DELETE_MODIFIERS)
    if cursor.accept("HISTORY"):
        draft.options.add("HISTORY")
    targets = [] if cursor.word == "FROM" else _targets(cursor)
    cursor.expect("FROM")
    if not targets and (targets := _targets_before_using(cursor)):
        cursor.expect("USING")
    before = len(draft.tables)
    if targets:
        draft.is_multi_table = True
        read_references(cursor, draft, common)
        for qualifier, token in targets:
            _change_targets(qualifier, token, draft, RowChange.DELETE, before)
    else:
        _read_single_target(cursor, draft, common)
    if cursor.accept("BEFORE", "SYSTEM_TIME"):
        cursor.accept_any(("TIMESTAMP", "TRANSACTION"))
        read_expression(cursor, draft, common)
    read_clauses(cursor, draft, common)


def _read_single_target(cursor: Cursor, draft: Draft, common: CommonTables) -> None:
    first = cursor.token
    index = read_base_table(cursor, draft, common)
    if index is None:
        raise Stopped(first, "a table")
    draft.change(index, RowChange.DELETE)


def _targets(cursor: Cursor) -> list[tuple[Qualifier, Token]]:
    """`table`, `database.table`, each with or without `.*`."""
    found: list[tuple[Qualifier, Token]] = []
    while True:
        first = cursor.token
        parts = [cursor.identifier()]
        while cursor.accept_operator(".") and not cursor.accept_operator("*"):
            parts.append(cursor.identifier())
        if len(parts) > 2:
            raise Stopped(first, "a name of at most two parts")
        found.append(((None, parts[0]) if len(parts) == 1 else (parts[0], parts[1]), first))
        if not cursor.accept_operator(","):
            return found


def _targets_before_using(cursor: Cursor) -> list[tuple[Qualifier, Token]]:
    """The targets of DELETE FROM … USING; none, and nothing read, if it is a single table."""
    start = cursor.index
    try:
        targets = _targets(cursor)
    except Stopped:
        targets = []
    if targets and cursor.word == "USING":
        return targets
    cursor.index = start
    return []


def _change_targets(
    qualifier: Qualifier | None, token: Token, draft: Draft, change: RowChange, before: int
) -> None:
    """Note that the tables which a qualifier means change, all if there is none."""
    targets = [
        index
        for index, table in enumerate(draft.tables)
        if index >= before
        and table.is_outermost
        and not table.is_sequence
        and (qualifier is None or _is_called(draft, index, qualifier))
    ]
    if not targets:
        raise Stopped(token, "a table of the statement")
    for index in targets:
        draft.change(index, change)


def _is_called(draft: Draft, index: int, qualifier: Qualifier) -> bool:
    table = draft.tables[index]
    database, name = qualifier
    if database is None:
        return table.alias == name
    return table.alias == table.name.table and table.name == TableName(database, name)


def read_select(cursor: Cursor, draft: Draft, common: CommonTables = _NO_COMMON_TABLES) -> None:
    """SELECT, TABLE, VALUES and what is made of them with UNION and parentheses."""
    draft.kind, draft.verb = StatementKind.SELECT, cursor.word or "SELECT"
    read_query(cursor, draft, common)


def read_with(cursor: Cursor, draft: Draft) -> None:
    """A WITH clause and the statement behind it."""
    common = read_common_tables(cursor, draft)
    if cursor.word == "UPDATE":
        read_update(cursor, draft, common)
    elif cursor.word == "DELETE":
        read_delete(cursor, draft, common)
    elif is_at_query(cursor) or cursor.word == "VALUES":
        read_select(cursor, draft, common)
    else:
        raise cursor.stop("SELECT, UPDATE or DELETE")


def read_load_data(cursor: Cursor, draft: Draft) -> None:
    """LOAD DATA and LOAD XML; LOAD INDEX INTO CACHE."""
    cursor.expect("LOAD")
    if cursor.accept("INDEX"):
        draft.kind, draft.verb = StatementKind.SESSION, "LOAD INDEX"
        cursor.rest()
        return
    draft.kind, draft.verb = StatementKind.LOAD_DATA, f"LOAD {cursor.advance().word}"
    _read_modifiers(cursor, draft, _LOAD_MODIFIERS)
    draft.is_local = cursor.accept("LOCAL")
    cursor.accept("FROM")
    if not cursor.accept_any(("INFILE", "URL", "S3")):
        raise cursor.stop("INFILE")
    if cursor.token.kind is not TokenKind.STRING:
        raise cursor.stop("a string")
    draft.name = cursor.advance().value
    cursor.until(("IGNORE", "REPLACE", "INTO"))  # COUNT 5 IN PRIMARY KEY ORDER
    draft.is_ignore |= cursor.accept("IGNORE")
    draft.is_replace = cursor.accept("REPLACE")
    cursor.expect("INTO", "TABLE")
    read_table(cursor, draft, frozenset((RowChange.LOAD,)))
    while not cursor.is_at_end and cursor.word != "SET" and cursor.token.text != "(":
        if cursor.accept("PARTITION"):
            cursor.group()
        elif cursor.accept("CHARACTER", "SET"):
            cursor.identifier()
        else:
            cursor.advance()
    if cursor.token.text == "(":
        draft.columns = _names(cursor)
    if cursor.accept("SET"):
        read_assignments(cursor, draft)


def read_do(cursor: Cursor, draft: Draft) -> None:
    """DO: expressions without a result."""
    draft.kind, draft.verb = StatementKind.DO, "DO"
    cursor.expect("DO")
    read_expressions(cursor, draft)


def read_call(cursor: Cursor, draft: Draft) -> None:
    """CALL: what the procedure does stands in no text of the caller."""
    draft.kind, draft.verb = StatementKind.CALL, "CALL"
    cursor.expect("CALL")
    start = cursor.index
    database, name = cursor.qualified_name()
    tokens = cursor.since(start)
    draft.calls[draft.resolve((database, name))] = None
    arguments: list[list[Token]] = []
    if cursor.accept_operator("("):
        while cursor.token.text != ")":
            argument = cursor.index
            read_expression(cursor, draft)
            arguments.append(cursor.since(argument))
            if not cursor.accept_operator(","):
                break
        cursor.expect_operator(")")
    draft.functions.append(
        FunctionUse(
            name=name,
            database=database,
            arguments=tuple(draft.slice(argument) for argument in arguments),
            argument_offsets=tuple(argument[0].offset for argument in arguments if argument),
            offset=tokens[0].offset,
            length=cursor.ahead(-1).end - tokens[0].offset,
        )
    )


def read_handler(cursor: Cursor, draft: Draft) -> None:
    """HANDLER … OPEN, READ and CLOSE; `name` is the handler's."""
    cursor.expect("HANDLER")
    draft.kind = StatementKind.HANDLER
    start = cursor.index
    name = cursor.qualified_name()
    tokens = cursor.since(start)
    draft.name = name[1]
    action = cursor.accept_any(("OPEN", "READ", "CLOSE"))
    if not action:
        raise cursor.stop("OPEN, READ or CLOSE")
    draft.verb = f"HANDLER {action}"
    if action == "OPEN":
        if cursor.accept("AS") or not cursor.is_at_end:
            draft.name = cursor.identifier()
        draft.use(table_use(draft.resolve(name), tokens, alias=draft.name))
    elif action == "READ":
        while not cursor.is_at_end and cursor.word not in ("WHERE", "LIMIT"):
            if cursor.token.text == "(":
                read_expression(cursor, draft)
            else:
                cursor.advance()
        read_clauses(cursor, draft)


def read_table(cursor: Cursor, draft: Draft, changes: frozenset[RowChange]) -> None:
    """Read the name of the table whose rows a statement changes."""
    start = cursor.index
    name = draft.resolve(table_name(cursor))
    draft.use(table_use(name, cursor.since(start), changes=changes))


def _read_modifiers(cursor: Cursor, draft: Draft, modifiers: Collection[str]) -> None:
    while word := cursor.accept_any(modifiers):
        draft.is_ignore |= word == "IGNORE"
        draft.is_delayed |= word == "DELAYED"
