"""What CREATE, ALTER, RENAME, DROP and TRUNCATE do to tables, views, databases and accounts.

Exact on the texts that servers write to their binlogs: verbatim ones of clients and those that the
server makes itself. What has a body (routines, triggers, events) is read in `programs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from binlane.names import ACCOUNT_DATABASE, TableName
from binlane.sql.clauses import (
    accept_if_exists,
    name_table,
    read_definition,
    skip_create_options,
    skip_wait,
)
from binlane.sql.cursor import Cursor, split
from binlane.sql.draft import Draft
from binlane.sql.effects import StatementKind
from binlane.sql.facts import RowChange
from binlane.sql.keywords import ALTER_ACTIONS
from binlane.sql.queries import read_query
from binlane.sql.tokens import NAME_KINDS, TokenKind

Reader = Callable[[Cursor, Draft], None]

SPELLINGS: Final = MappingProxyType({"SCHEMA": "DATABASE", "TABLES": "TABLE"})
"""Words that mean the same kind of object as others."""

CHECK_OPTIONS: Final = (
    ["WITH", "CHECK", "OPTION"],
    ["WITH", "CASCADED", "CHECK", "OPTION"],
    ["WITH", "LOCAL", "CHECK", "OPTION"],
)


def read_account(cursor: Cursor, draft: Draft) -> None:
    """GRANT, REVOKE and statements on users and roles; objects that they name do not change."""
    draft.kind = StatementKind.ACCOUNT
    draft.verb = draft.verb or cursor.word  # GRANT, REVOKE
    draft.databases[ACCOUNT_DATABASE] = None
    cursor.rest()


def read_server(cursor: Cursor, draft: Draft) -> None:
    """CREATE, ALTER and DROP SERVER: rows of a table in database `mysql`."""
    draft.kind = StatementKind.SERVER
    draft.databases[ACCOUNT_DATABASE] = None
    cursor.rest()


def read_tablespace(cursor: Cursor, draft: Draft) -> None:
    """CREATE, ALTER and DROP TABLESPACE and LOGFILE GROUP: of no database at all."""
    draft.kind = StatementKind.TABLESPACE
    cursor.rest()


def read_unlogged(cursor: Cursor, draft: Draft) -> None:
    """ALTER INSTANCE and statements on resource groups, which no binlog holds."""
    draft.kind = StatementKind.SESSION
    cursor.rest()


def read_reference_system(cursor: Cursor, draft: Draft) -> None:
    """CREATE and DROP SPATIAL REFERENCE SYSTEM: rows of a table in database `mysql`."""
    cursor.expect("REFERENCE", "SYSTEM")
    is_new = draft.verb.startswith("CREATE")
    draft.verb += " REFERENCE SYSTEM"
    draft.kind = (
        StatementKind.CREATE_REFERENCE_SYSTEM if is_new else StatementKind.DROP_REFERENCE_SYSTEM
    )
    accept_if_exists(cursor, draft)
    draft.databases[ACCOUNT_DATABASE] = None
    cursor.rest()


# CREATE ---------------------------------------------------------------------------------------


def read_create_table(cursor: Cursor, draft: Draft) -> None:
    """CREATE TABLE, also LIKE and SELECT."""
    draft.kind = StatementKind.CREATE_TABLE
    accept_if_exists(cursor, draft)
    target = len(draft.tables)
    draft.write(name_table(cursor, draft))
    if cursor.accept("LIKE"):
        return _read_like(cursor, draft)
    if cursor.token.text == "(" and cursor.ahead(1).word == "LIKE":
        like = Cursor(cursor.group())
        like.expect("LIKE")
        return _read_like(like, draft)
    start = cursor.index
    while not cursor.is_at_end and not _is_at_query(cursor):
        if cursor.token.text == "(":
            cursor.group()
        else:
            _read_table_option(cursor, draft)
    read_definition(cursor.since(start), draft)
    if cursor.is_at_end:
        draft.is_ignore = draft.is_replace = False  # they are about the rows of a query
        return None
    draft.kind = StatementKind.CREATE_TABLE_SELECT
    cursor.accept("AS")
    draft.has_query = True
    draft.query_offset = cursor.token.offset
    draft.change(target, RowChange.REPLACE if draft.is_replace else RowChange.INSERT)
    return read_query(cursor, draft)


def _read_table_option(cursor: Cursor, draft: Draft) -> None:
    """Go on by one word of what stands between a table's columns and the query that fills it."""
    word = cursor.advance().word
    if word == "ENGINE":
        _read_engine(cursor, draft)
    elif word == "IGNORE":
        draft.is_ignore = True
    elif word == "REPLACE":
        draft.is_replace = True


def _read_engine(cursor: Cursor, draft: Draft) -> None:
    cursor.accept_operator("=")
    if cursor.token.kind in (*NAME_KINDS, TokenKind.STRING):
        draft.engine = cursor.advance().value.upper()


def _read_like(cursor: Cursor, draft: Draft) -> None:
    draft.kind = StatementKind.CREATE_TABLE_LIKE
    draft.read(name_table(cursor, draft))
    cursor.expect_end()


def _is_at_query(cursor: Cursor) -> bool:
    """Whether the query of CREATE TABLE … SELECT begins here, and not a definition or option."""
    if cursor.word in ("SELECT", "AS", "TABLE"):
        return True
    if cursor.word == "WITH":  # not WITH SYSTEM VERSIONING
        return cursor.ahead(2).word == "AS" or "(" in (cursor.ahead(2).text, cursor.ahead(3).text)
    if cursor.word == "VALUES":
        return cursor.ahead(1).text == "(" or cursor.ahead(1).word == "ROW"
    count = 0
    while cursor.ahead(count).text == "(":
        count += 1
    return count > 0 and cursor.ahead(count).word in ("SELECT", "WITH", "TABLE", "VALUES")


def read_create_sequence(cursor: Cursor, draft: Draft) -> None:
    """CREATE SEQUENCE."""
    draft.kind = StatementKind.CREATE_SEQUENCE
    accept_if_exists(cursor, draft)
    draft.write(name_table(cursor, draft))
    cursor.rest()


def read_create_index(cursor: Cursor, draft: Draft) -> None:
    """CREATE INDEX."""
    draft.kind = StatementKind.CREATE_INDEX
    accept_if_exists(cursor, draft)
    cursor.identifier()
    cursor.until(("ON",))
    cursor.expect("ON")
    draft.write(name_table(cursor, draft))
    cursor.rest()


def read_create_view(cursor: Cursor, draft: Draft) -> None:
    """CREATE VIEW and ALTER VIEW, behind the word VIEW."""
    draft.kind = StatementKind.CREATE_VIEW
    accept_if_exists(cursor, draft)
    draft.change_object(draft.resolve(cursor.qualified_name()))
    if cursor.token.text == "(":
        cursor.group()
    cursor.expect("AS")
    draft.body_offset = cursor.token.offset
    query = cursor.rest()
    words = [token.word for token in query]
    for option in CHECK_OPTIONS:
        if words[-len(option) :] == option:
            query = query[: -len(option)]
            break
    body = Draft(draft.database, draft.text)
    inside = Cursor(query)
    try:
        read_query(inside, body)
        _expect_end(inside)
    finally:
        draft.refer_to(body)
        draft.tables += body.tables


def _expect_end(cursor: Cursor) -> None:
    while cursor.accept_operator(";"):
        pass
    cursor.expect_end()


def read_create_database(cursor: Cursor, draft: Draft) -> None:
    """CREATE DATABASE and CREATE SCHEMA."""
    draft.kind = StatementKind.CREATE_DATABASE
    accept_if_exists(cursor, draft)
    draft.databases[cursor.identifier()] = None
    cursor.rest()


CREATE: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "TABLE": read_create_table,
        "SEQUENCE": read_create_sequence,
        "INDEX": read_create_index,
        "VIEW": read_create_view,
        "DATABASE": read_create_database,
        "SCHEMA": read_create_database,
        "USER": read_account,
        "ROLE": read_account,
        "SERVER": read_server,
        "TABLESPACE": read_tablespace,
        "UNDO": read_tablespace,
        "LOGFILE": read_tablespace,
        "RESOURCE": read_unlogged,
        "SPATIAL": read_reference_system,
    }
)


def read_create(cursor: Cursor, draft: Draft, readers: Mapping[str, Reader] = CREATE) -> None:
    """CREATE of anything that `readers` knows."""
    cursor.expect("CREATE")
    skip_create_options(cursor, draft)
    _read_object(cursor, draft, "CREATE", readers)


def _read_object(cursor: Cursor, draft: Draft, verb: str, readers: Mapping[str, Reader]) -> None:
    word = cursor.word
    reader = readers.get(word)
    if reader is None:
        raise cursor.stop("a kind of object")
    draft.verb = f"{verb} {SPELLINGS.get(word, word)}"
    cursor.advance()
    reader(cursor, draft)


# ALTER ----------------------------------------------------------------------------------------


def read_alter_table(cursor: Cursor, draft: Draft) -> None:
    """ALTER TABLE: its table, new name, and tables that it takes partitions from or refers to."""
    draft.kind = StatementKind.ALTER_TABLE
    accept_if_exists(cursor, draft)
    table = name_table(cursor, draft)
    draft.write(table)
    skip_wait(cursor)
    is_list = False
    for action in split(cursor.rest()):
        parts = Cursor(action)
        is_action = parts.word in ALTER_ACTIONS or parts.ahead(1).text == "="
        if action and not is_action and not is_list:
            raise parts.stop("an action of ALTER TABLE")
        # What follows may be more columns or partitions.
        is_list = is_list or parts.word == "ORDER" or parts.ahead(1).word == "PARTITION"
        if parts.accept("RENAME") and parts.word not in ("COLUMN", "INDEX", "KEY"):
            if not parts.accept_any(("TO", "AS")):
                parts.accept_operator("=")
            new_name = name_table(parts, draft)
            draft.renames = [(table, new_name)]
            draft.write(new_name)
        elif parts.accept("EXCHANGE", "PARTITION") or parts.accept("CONVERT", "PARTITION"):
            parts.until(("TABLE",))
            parts.expect("TABLE")
            draft.write(name_table(parts, draft))
        elif parts.accept("CONVERT", "TABLE"):
            other = name_table(parts, draft)
            draft.write(other)
            draft.drops[other] = None
        else:
            if parts.accept("ENGINE"):
                _read_engine(parts, draft)
            read_definition(action, draft)


def read_alter_sequence(cursor: Cursor, draft: Draft) -> None:
    """ALTER SEQUENCE."""
    read_create_sequence(cursor, draft)
    draft.kind = StatementKind.ALTER_SEQUENCE


def read_alter_view(cursor: Cursor, draft: Draft) -> None:
    """ALTER VIEW."""
    read_create_view(cursor, draft)
    draft.kind = StatementKind.ALTER_VIEW


def read_alter_database(cursor: Cursor, draft: Draft) -> None:
    """ALTER DATABASE; without a name it is the default database."""
    draft.kind = StatementKind.ALTER_DATABASE
    options = ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT", "ENCRYPTION", "READ")
    if cursor.word in options:
        draft.uses_default_database = True
        draft.databases[draft.database] = None
    else:
        draft.databases[cursor.identifier()] = None
    cursor.rest()


def read_event_changes(cursor: Cursor, draft: Draft) -> None:
    """ALTER EVENT up to DO, which no other program may hold."""
    draft.kind = StatementKind.ALTER_EVENT
    _read_program_name(cursor, draft)
    cursor.until(("RENAME", "DO"))
    if cursor.accept("RENAME", "TO"):
        draft.change_object(draft.resolve(cursor.qualified_name()))
        cursor.until(("DO",))


def _read_program_name(cursor: Cursor, draft: Draft) -> None:
    accept_if_exists(cursor, draft)
    draft.change_object(draft.resolve(cursor.qualified_name()))


ALTER: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "EVENT": read_event_changes,
        "TABLE": read_alter_table,
        "SEQUENCE": read_alter_sequence,
        "VIEW": read_alter_view,
        "DATABASE": read_alter_database,
        "SCHEMA": read_alter_database,
        "USER": read_account,
        "ROLE": read_account,
        "SERVER": read_server,
        "TABLESPACE": read_tablespace,
        "UNDO": read_tablespace,
        "LOGFILE": read_tablespace,
        "RESOURCE": read_unlogged,
        "INSTANCE": read_unlogged,
    }
)


def read_alter(cursor: Cursor, draft: Draft, readers: Mapping[str, Reader] = ALTER) -> None:
    """ALTER of anything that `readers` knows."""
    cursor.expect("ALTER")
    skip_create_options(cursor, draft)
    draft.is_ignore = cursor.accept("IGNORE")
    _read_object(cursor, draft, "ALTER", readers)


# RENAME, DROP, TRUNCATE -----------------------------------------------------------------------


def read_rename(cursor: Cursor, draft: Draft) -> None:
    """RENAME TABLE, in the order of the text, and RENAME USER."""
    cursor.expect("RENAME")
    if word := cursor.accept_any(("USER", "ROLE")):
        draft.verb = f"RENAME {word}"
        return read_account(cursor, draft)
    draft.kind, draft.verb = StatementKind.RENAME_TABLE, "RENAME TABLE"
    if not cursor.accept_any(("TABLE", "TABLES")):
        raise cursor.stop("TABLE")
    accept_if_exists(cursor, draft)
    while True:
        old = name_table(cursor, draft)
        skip_wait(cursor)
        cursor.expect("TO")
        draft.renames.append((old, name_table(cursor, draft)))
        if not cursor.accept_operator(","):
            break
    renamed = draft.effects()
    draft.write(*renamed.renamed_tables, *(new for _, new in renamed.net_renames))
    return None


def read_drop_tables(cursor: Cursor, draft: Draft) -> None:
    """DROP TABLE of one or more."""
    draft.kind = StatementKind.DROP_TABLE
    for table in _dropped_names(cursor, draft):
        draft.write(table)
        draft.drops[table] = None


def read_drop_sequences(cursor: Cursor, draft: Draft) -> None:
    """DROP SEQUENCE of one or more."""
    read_drop_tables(cursor, draft)
    draft.kind = StatementKind.DROP_SEQUENCE


def read_drop_views(cursor: Cursor, draft: Draft) -> None:
    """DROP VIEW of one or more."""
    draft.kind = StatementKind.DROP_VIEW
    for name in _dropped_names(cursor, draft):
        draft.change_object(name)


def read_drop_index(cursor: Cursor, draft: Draft) -> None:
    """DROP INDEX."""
    read_create_index(cursor, draft)
    draft.kind = StatementKind.DROP_INDEX


def read_drop_database(cursor: Cursor, draft: Draft) -> None:
    """DROP DATABASE and DROP SCHEMA; which tables go with it the text does not say."""
    draft.kind = StatementKind.DROP_DATABASE
    accept_if_exists(cursor, draft)
    draft.databases[cursor.identifier()] = None


def read_drop_trigger(cursor: Cursor, draft: Draft) -> None:
    """DROP TRIGGER; whose trigger it was the text does not say, so its database changes."""
    draft.kind = StatementKind.DROP_TRIGGER
    _read_program_name(cursor, draft)


def read_drop_event(cursor: Cursor, draft: Draft) -> None:
    """DROP EVENT."""
    draft.kind = StatementKind.DROP_EVENT
    _read_program_name(cursor, draft)


DROP: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "TRIGGER": read_drop_trigger,
        "EVENT": read_drop_event,
        "TABLE": read_drop_tables,
        "TABLES": read_drop_tables,
        "SEQUENCE": read_drop_sequences,
        "VIEW": read_drop_views,
        "INDEX": read_drop_index,
        "DATABASE": read_drop_database,
        "SCHEMA": read_drop_database,
        "USER": read_account,
        "ROLE": read_account,
        "SERVER": read_server,
        "TABLESPACE": read_tablespace,
        "UNDO": read_tablespace,
        "LOGFILE": read_tablespace,
        "RESOURCE": read_unlogged,
        "SPATIAL": read_reference_system,
    }
)


def read_drop(cursor: Cursor, draft: Draft, readers: Mapping[str, Reader] = DROP) -> None:
    """DROP of anything that `readers` knows."""
    cursor.expect("DROP")
    draft.is_temporary = cursor.accept("TEMPORARY")
    cursor.accept("ONLINE")
    _read_object(cursor, draft, "DROP", readers)


def read_truncate(cursor: Cursor, draft: Draft) -> None:
    """TRUNCATE TABLE."""
    draft.kind, draft.verb = StatementKind.TRUNCATE_TABLE, "TRUNCATE TABLE"
    cursor.expect("TRUNCATE")
    cursor.accept("TABLE")
    draft.write(name_table(cursor, draft))
    skip_wait(cursor)
    if cursor.accept_any(("DROP", "REUSE")):  # of sql_mode ORACLE
        cursor.expect("STORAGE")


def _dropped_names(cursor: Cursor, draft: Draft) -> list[TableName]:
    accept_if_exists(cursor, draft)
    names = [name_table(cursor, draft)]
    while cursor.accept_operator(","):
        names.append(name_table(cursor, draft))
    skip_wait(cursor)
    if word := cursor.accept_any(("RESTRICT", "CASCADE")):
        draft.options.add(word)
    return names
