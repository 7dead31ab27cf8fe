"""Statements on rows: INSERT, REPLACE, UPDATE, DELETE, LOAD, queries, DO, CALL, HANDLER.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from binlane.statements.sql.parser.calls import read_arguments
from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.expressions import read_expression, read_items, read_value
from binlane.statements.sql.parser.literals import (
    read_charset,
    read_column,
    read_literal,
    read_names,
    read_object_name,
)
from binlane.statements.sql.parser.notation import Notation, TokenReader
from binlane.statements.sql.parser.queries import (
    is_at_field,
    is_at_line,
    read_field,
    read_limit,
    read_line,
    read_order_by,
    read_query,
    read_query_behind_with,
    read_rows,
    read_select_items,
    read_variable,
    read_with,
)
from binlane.statements.sql.parser.tables import (
    read_index_hints,
    read_partitions,
    read_point_in_time,
    read_tables,
)
from binlane.statements.sql.tokens import TokenKind
from binlane.statements.sql.tree.expressions import (
    Expression,
    Literal,
    LiteralKind,
    NamedTable,
    ObjectName,
    Query,
    Row,
    SelectItem,
    With,
)
from binlane.statements.sql.tree.statements import (
    Assignment,
    CallProcedure,
    Delete,
    Do,
    HandlerStatement,
    Insert,
    LoadData,
    QueryStatement,
    Update,
)

_PRIORITIES: Final = frozenset(("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED"))
_DELETE_MODIFIERS: Final = frozenset(("LOW_PRIORITY", "QUICK", "IGNORE"))
_QUERY_STARTS: Final = frozenset(("SELECT", "WITH", "TABLE", "VALUES"))


# INSERT and REPLACE ---------------------------------------------------------------------------


def read_insert(c: Cursor) -> Insert:
    """Read INSERT or REPLACE."""
    at = c.start
    verb = c.word
    c.index += 1
    modifiers: set[str] = set()
    priorities = _PRIORITIES if verb == "INSERT" else _PRIORITIES - {"HIGH_PRIORITY"}
    word_at = c.start
    if word := c.accept_any(priorities):
        modifiers.add(word)
    if verb == "INSERT" and c.accept("IGNORE"):
        modifiers.add("IGNORE")
    c.accept("INTO")
    table = _table(c)
    insert = Insert(at, at, verb, frozenset(modifiers), table, None)
    if "DELAYED" in modifiers:
        insert.delayed_at = word_at
    if c.word == "(" and not _is_query_in_parentheses(c):
        insert.columns_at = c.start
        insert.columns = _columns(c)
    _source(c, insert)
    if verb == "INSERT":
        if c.word == "AS" and c.dialect.has_mysql(8, 0, 19) and insert.rows is not None:
            insert.row_alias = _row_alias(c)
        if c.word == "ON":
            insert.on_duplicate_at = c.start
            c.expect("ON", "DUPLICATE", "KEY", "UPDATE")
            before, c.has_new_values = c.has_new_values, True
            insert.on_duplicate = read_assignments(c)
            c.has_new_values = before
    insert.returning = read_returning(c, 10, 5)
    insert.end = c.end
    return insert


def _table(c: Cursor) -> NamedTable:
    name = read_object_name(c)
    table = NamedTable(name.at, name.end, name)
    if c.word == "PARTITION":
        table.partitions = read_partitions(c)
        table.end = c.end
    return table


def _is_query_in_parentheses(c: Cursor) -> bool:
    """True if the parentheses at the cursor hold a query, and no columns."""
    index = c.index
    while c.words[index] == "(":
        index += 1
    return c.words[index] in _QUERY_STARTS


def _columns(c: Cursor) -> tuple[str, ...]:
    """Columns in parentheses, without their tables; none is possible."""
    columns = c.enclosed(lambda c: () if c.word == ")" else c.several(read_column))
    return tuple(column.parts[-1] for column in columns)


def _source(c: Cursor, insert: Insert) -> None:
    word = c.word
    if word in ("VALUES", "VALUE"):
        following = c.words[c.index + 1]
        if not (word == "VALUES" and following == "ROW" and c.dialect.may_be_mysql):
            c.index += 1
            insert.rows = read_rows(c, with_word=False)
            return
        insert.query = read_query(c)
    elif word == "SET" and insert.columns is None:
        c.index += 1
        at = c.start
        assignments = read_assignments(c)
        insert.is_set = True
        insert.columns = tuple(each.column.parts[-1] for each in assignments)
        insert.rows = (Row(at, c.end, tuple(each.value for each in assignments)),)
    elif word in _QUERY_STARTS or word == "(":
        insert.query = read_query(c)
    else:
        raise c.stop("VALUES, SET or a query")


def _row_alias(c: Cursor) -> tuple[str, tuple[str, ...]]:
    """`AS new (a, b)`, by which ON DUPLICATE KEY UPDATE calls the new row."""
    c.index += 1
    return c.identifier(), read_names(c) if c.word == "(" else ()


def read_assignments(c: Cursor) -> tuple[Assignment, ...]:
    """Read `column = value, …`, at least one."""
    return c.several(_assignment)


def _assignment(c: Cursor) -> Assignment:
    column = read_column(c)
    if not c.accept_any(("=", ":=")):
        raise c.stop("=")
    value = read_value(c)
    return Assignment(column.at, c.end, column, value)


def read_returning(c: Cursor, *version: int) -> tuple[SelectItem, ...] | None:
    """Read MariaDB's RETURNING, if it comes next; a statement has it since a version."""
    if c.word != "RETURNING" or not c.dialect.has_mariadb(*version):
        return None
    c.index += 1
    return read_select_items(c)


# UPDATE and DELETE ----------------------------------------------------------------------------


def read_update(c: Cursor, with_: With | None = None, at: int = -1) -> Update:
    """Read UPDATE; behind a WITH, if one was read at `at`."""
    at = c.start if at < 0 else at
    c.expect("UPDATE")
    modifiers = frozenset(
        filter(None, (c.accept_any(("LOW_PRIORITY",)), c.accept_any(("IGNORE",))))
    )
    tables = list(read_tables(c))
    if c.word == "FOR" and c.dialect.has_mariadb(10, 4):
        first = tables[0]
        if len(tables) != 1 or not isinstance(first, NamedTable) or first.alias is not None:
            raise c.stop("SET")
        _portion(c, first)
    c.expect("SET")
    update = Update(at, at, modifiers, tuple(tables), read_assignments(c), with_)
    if c.accept("WHERE"):
        update.where = read_expression(c)
    _order_and_limit(c, update)
    update.returning = read_returning(c, 13, 0)
    update.end = c.end
    return update


def _order_and_limit(c: Cursor, statement: Update | Delete) -> None:
    if c.word == "ORDER":
        statement.order_by = read_order_by(c)
    if c.word == "LIMIT":
        statement.limit = read_limit(c)
        limit = statement.limit
        if limit.rows_examined is not None or limit.offset is not None:
            raise c.stop("a LIMIT of one number")


def _portion(c: Cursor, table: NamedTable) -> None:
    """FOR PORTION OF period FROM value TO value."""
    c.expect("FOR", "PORTION", "OF")
    name = c.identifier()
    c.expect("FROM")
    first = read_point_in_time(c)
    c.expect("TO")
    last = read_point_in_time(c)
    table.portion = (name, first, last)
    table.end = c.end


def read_delete(c: Cursor, with_: With | None = None, at: int = -1) -> Delete:
    """Read DELETE in all its forms; behind a WITH, if one was read at `at`."""
    at = c.start if at < 0 else at
    c.expect("DELETE")
    modifiers = _modifiers(c, _DELETE_MODIFIERS)
    delete = Delete(at, at, modifiers, None, (), with_)
    if c.word == "HISTORY" and c.dialect.has_mariadb(10, 3) and c.word_ahead(1) == "FROM":
        return _delete_history(c, delete)
    if c.word != "FROM":
        delete.targets = _targets(c)
        c.expect("FROM")
        delete.tables = read_tables(c)
        is_single = False
    else:
        c.index += 1
        is_single = not _is_using_next(c)
        if is_single:
            delete.tables = (_single_table(c),)
        else:
            delete.targets = _targets(c)
            c.expect("USING")
            delete.tables = read_tables(c)
    if c.accept("WHERE"):
        delete.where = read_expression(c)
    if is_single or c.dialect.has_mariadb(11, 8):
        _order_and_limit(c, delete)
    if is_single:
        delete.returning = read_returning(c)
    delete.end = c.end
    return delete


def _single_table(c: Cursor) -> NamedTable:
    table = _table(c)
    dialect = c.dialect
    if c.word == "FOR" and dialect.has_mariadb(10, 4):
        _portion(c, table)
    has_alias = dialect.has_mysql(8, 0, 16) or dialect.has_mariadb(11, 6)
    if has_alias and (c.word == "AS" or c.is_at_alias):
        c.accept("AS")
        table.alias = c.identifier()
    if c.word == "PARTITION" and dialect.may_be_mysql:
        table.partitions = read_partitions(c)
    if c.word in ("USE", "FORCE", "IGNORE") and dialect.has_mariadb(11, 8):
        read_index_hints(c)
    table.end = c.end
    return table


def _is_using_next(c: Cursor) -> bool:
    """True if targets and USING come next."""
    index = c.index
    words = c.words
    while words[index] not in ("WHERE", "ORDER", "LIMIT", "RETURNING", "(", ";", "SET"):
        if words[index] == "USING":
            return True
        if c.kinds[index] is TokenKind.END:
            return False
        index += 1
    return False


def _targets(c: Cursor) -> tuple[ObjectName, ...]:
    return c.several(_target)


def _target(c: Cursor) -> ObjectName:
    """`table`, `database.table`, each with or without `.*`."""
    at = c.start
    parts = [c.identifier()]
    while c.accept(".") and not c.accept("*"):
        parts.append(c.identifier())
    if len(parts) > 2:
        raise c.stop("a name of at most two parts")
    database = parts[0] if len(parts) > 1 else None
    return ObjectName(at, c.end, database, parts[-1])


def _delete_history(c: Cursor, delete: Delete) -> Delete:
    """DELETE HISTORY FROM t [BEFORE SYSTEM_TIME …]."""
    c.expect("HISTORY", "FROM")
    delete.modifiers |= {"HISTORY"}
    delete.tables = (_table(c),)
    if c.accept("BEFORE"):
        c.expect("SYSTEM_TIME")
        delete.before = read_point_in_time(c)
    delete.end = c.end
    return delete


def _modifiers(c: Cursor, words: Collection[str]) -> frozenset[str]:
    found: set[str] = set()
    while word := c.accept_any(words):
        found.add(word)
    return frozenset(found)


# Queries --------------------------------------------------------------------------------------


def read_query_statement(c: Cursor) -> QueryStatement:
    """Read a query as a statement."""
    at = c.start
    index = c.index
    while c.words[index] == "(":
        index += 1
    verb = c.words[index] or "SELECT"
    if verb == "WITH" and index != c.index and not c.dialect.may_be_mysql:
        raise c.stop("SELECT")
    query = read_query(c)
    return QueryStatement(at, c.end, query, verb)


def read_with_statement(c: Cursor) -> QueryStatement | Update | Delete:
    """Read WITH and the query, UPDATE or DELETE behind it."""
    at = c.start
    with_ = read_with(c)
    if c.word in ("UPDATE", "DELETE"):
        if not (c.dialect.has_mysql(8, 0) or c.dialect.has_mariadb(12, 3)):
            raise c.stop("a query")
        return (read_update if c.word == "UPDATE" else read_delete)(c, with_, at)
    query: Query = read_query_behind_with(c, at, with_)
    return QueryStatement(at, c.end, query, "WITH")


# LOAD, DO, CALL, HANDLER ----------------------------------------------------------------------


_FORMS: Final = """
LOAD = LOAD {DATA verb:"LOAD DATA" | XML verb:"LOAD XML"} [modifiers:{LOW_PRIORITY | CONCURRENT}]
  [FROM @mysql>=8.0.33] [modifiers:LOCAL] {INFILE | URL @mysql>=8.0.33 | S3 @mysql>=8.0.33}
  file:string [COUNT literal @mysql>=8.0.33] [IN PRIMARY KEY ORDER @mysql>=8.0.33]
  [modifiers:{IGNORE | REPLACE}] INTO TABLE table:table [COMPRESSION [=] literal @mysql>=8.0.33]
  [{CHARACTER SET | CHARSET} charset:charset] [ROWS IDENTIFIED BY row_tag:literal]
  [{FIELDS | COLUMNS} fields:field ...] [LINES lines:line ...]
  [IGNORE skipped:literal {LINES | ROWS}] [( [columns:variable, ...] )] [load_option ...]
  [SET assignments:assignment, ...] -> LoadData
load_option = {PARALLEL | MEMORY | ALGORITHM} [=] token @mysql>=8.0.33
"""


def read_load(c: Cursor) -> LoadData:
    """Read LOAD DATA or LOAD XML."""
    load: LoadData = _NOTATION.of(c.dialect).rule("LOAD").node(c)
    skipped = load.skipped
    if isinstance(skipped, Literal) and skipped.kind is not LiteralKind.NUMBER:
        raise c.stop("a number of lines")
    return load


def _file(c: Cursor) -> Literal:
    at = c.start
    c.string()
    return Literal(at, c.end, LiteralKind.STRING)


_NOTATION: Final = Notation(
    (_FORMS,),
    {
        "assignment": TokenReader(_assignment, "an assignment"),
        "charset": TokenReader(read_charset, "a character set"),
        "field": TokenReader(read_field, "TERMINATED, ENCLOSED or ESCAPED", is_at_field),
        "line": TokenReader(read_line, "TERMINATED or STARTING", is_at_line),
        "literal": TokenReader(read_literal, "a literal"),
        "string": TokenReader(_file, "a file's name"),
        "table": TokenReader(_table, "a table"),
        "token": TokenReader(Cursor.advance, "a value"),
        "variable": TokenReader(read_variable, "a column", lambda c: c.word != ")"),
    },
    {"LoadData": LoadData},
)


def read_do(c: Cursor) -> Do:
    """Read DO; its expressions may have names, which mean nothing."""
    at = c.start
    c.expect("DO")
    if c.dialect.may_be_mysql:
        values = tuple(item.value for item in read_select_items(c))
    else:
        values = tuple(read_items(c))
    return Do(at, c.end, values)


def read_call(c: Cursor) -> CallProcedure:
    """Read CALL."""
    at = c.start
    c.expect("CALL")
    return read_called(c, at)


def read_called(c: Cursor, at: int) -> CallProcedure:
    """Read what is called: of CALL, or by its name alone, as sql_mode ORACLE has it."""
    start = c.start
    parts = [c.identifier()]
    while c.accept("."):
        parts.append(c.identifier())
    if len(parts) > 2 and not c.dialect.may_be_mariadb:
        raise c.stop("a name of at most two parts")
    name = ObjectName(start, c.end, ".".join(parts[:-1]) or None, parts[-1])
    arguments: tuple[Expression, ...] = ()
    if c.word == "(":
        arguments = read_arguments(c, has_aliases=c.dialect.may_be_mariadb)
    return CallProcedure(at, c.end, name, arguments)


def read_handler(c: Cursor) -> HandlerStatement:
    """Read HANDLER."""
    at = c.start
    c.expect("HANDLER")
    name = read_object_name(c)
    action = c.expect_any(("OPEN", "READ", "CLOSE"))
    handler = HandlerStatement(at, at, f"HANDLER {action}", name)
    if action == "OPEN":
        if c.accept("AS") or c.is_at_alias:
            handler.alias = c.identifier()
    elif action == "READ":
        _read_from_handler(c, handler)
    handler.end = c.end
    return handler


def _read_from_handler(c: Cursor, handler: HandlerStatement) -> None:
    if c.word in ("FIRST", "NEXT") and c.word_ahead(1) in ("", "WHERE", "LIMIT", ";"):
        c.index += 1
    else:
        c.identifier()
        _read_by_key(c, handler)
    if c.accept("WHERE"):
        handler.where = read_expression(c)
    if c.word == "LIMIT":
        handler.limit = read_limit(c)


def _read_by_key(c: Cursor, handler: HandlerStatement) -> None:
    if c.accept_any(("=", "<=", ">=", "<", ">")):
        handler.values = c.enclosed(lambda c: c.several(read_value))
    else:
        c.expect_any(("FIRST", "NEXT", "PREV", "LAST"))
