"""Which statement is read by whom, as far as it may stand in a body too.

The statements without objects (transactions, SET, maintenance) are read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.sql import ddl, dml
from binlane.sql.cursor import Cursor
from binlane.sql.ddl import Reader
from binlane.sql.effects import Draft, StatementKind


def read_simple_statement(
    cursor: Cursor, draft: Draft, readers: Mapping[str, Reader] | None = None
) -> None:
    """Read one statement that is no compound one.

    Args:
        cursor: At its first token.
        draft: Takes what it does.
        readers: By first word; `SIMPLE` if None.

    Raises:
        Stopped: Where the text is not understood.
    """
    if cursor.token.text == "(":
        return dml.read_select(cursor, draft)
    if cursor.word in SESSION_WORDS:
        draft.kind = StatementKind.SESSION
        cursor.rest()
        return None
    reader = (SIMPLE if readers is None else readers).get(cursor.word)
    if reader is None:
        raise cursor.stop("a statement")
    return reader(cursor, draft)


def skip_set_statement(cursor: Cursor) -> None:
    """Go behind `SET STATEMENT variable = value, … FOR`."""
    while cursor.accept("SET", "STATEMENT"):
        cursor.until(("FOR",))
        cursor.expect("FOR")


def read_set(cursor: Cursor, draft: Draft) -> None:
    """SET of variables, passwords and default roles."""
    cursor.expect("SET")
    if cursor.word == "PASSWORD" or (cursor.word == "DEFAULT" and cursor.ahead(1).word == "ROLE"):
        ddl.read_account(cursor, draft)
        return
    draft.kind = StatementKind.SET
    dml.read_expressions(cursor.rest(), draft)


def read_begin(cursor: Cursor, draft: Draft) -> None:
    """BEGIN and START TRANSACTION."""
    draft.kind = StatementKind.BEGIN
    if cursor.accept("BEGIN"):
        cursor.accept("WORK")
    else:
        cursor.expect("START", "TRANSACTION")
        cursor.rest()


def read_commit(cursor: Cursor, draft: Draft) -> None:
    """COMMIT."""
    draft.kind = StatementKind.COMMIT
    cursor.expect("COMMIT")
    _skip_completion(cursor)


def read_rollback(cursor: Cursor, draft: Draft) -> None:
    """ROLLBACK, whole or to a savepoint."""
    draft.kind = StatementKind.ROLLBACK
    cursor.expect("ROLLBACK")
    cursor.accept("WORK")
    if cursor.accept("TO"):
        draft.kind = StatementKind.ROLLBACK_TO
        cursor.accept("SAVEPOINT")
        cursor.identifier()
    else:
        _skip_completion(cursor)


def _skip_completion(cursor: Cursor) -> None:
    cursor.accept("WORK")
    if cursor.accept("AND"):
        cursor.accept("NO")
        cursor.expect("CHAIN")
    if cursor.accept("NO", "RELEASE"):
        return
    cursor.accept("RELEASE")


def read_savepoint(cursor: Cursor, draft: Draft) -> None:
    """SAVEPOINT and RELEASE SAVEPOINT."""
    draft.kind = StatementKind.SAVEPOINT
    if cursor.accept("RELEASE"):
        draft.kind = StatementKind.RELEASE_SAVEPOINT
    cursor.expect("SAVEPOINT")
    cursor.identifier()


def read_xa(cursor: Cursor, draft: Draft) -> None:
    """XA START, END, PREPARE, COMMIT, ROLLBACK, RECOVER."""
    draft.kind = StatementKind.XA
    cursor.rest()


def read_lock(cursor: Cursor, draft: Draft) -> None:
    """LOCK and UNLOCK TABLES."""
    draft.kind = StatementKind.LOCK
    cursor.rest()


def read_maintenance(cursor: Cursor, draft: Draft) -> None:
    """ANALYZE, OPTIMIZE, REPAIR and CHECK of tables; MariaDB's ANALYZE of a statement runs it."""
    draft.kind = StatementKind.MAINTENANCE
    verb = cursor.advance().word
    cursor.accept_any(("NO_WRITE_TO_BINLOG", "LOCAL"))
    if not cursor.accept_any(("TABLE", "TABLES", "VIEW")):
        if verb != "ANALYZE":
            raise cursor.stop("TABLE")
        if cursor.accept("FORMAT"):
            cursor.expect_operator("=")
            cursor.identifier()
        read_simple_statement(cursor, draft)
        return
    _write_tables(cursor, draft)
    cursor.rest()


def read_flush(cursor: Cursor, draft: Draft) -> None:
    """FLUSH; tables count as written where it names some, as in REPAIR."""
    draft.kind = StatementKind.FLUSH
    cursor.expect("FLUSH")
    cursor.accept_any(("NO_WRITE_TO_BINLOG", "LOCAL"))
    named = cursor.accept_any(("TABLE", "TABLES"))
    if named and not cursor.is_at_end and cursor.word not in ("WITH", "FOR"):
        _write_tables(cursor, draft)
    cursor.rest()


def _write_tables(cursor: Cursor, draft: Draft) -> None:
    while True:
        draft.write(draft.resolve(cursor.qualified_name()))
        if not cursor.accept_operator(","):
            return


SESSION_WORDS: Final = frozenset(
    (
        *("USE", "SHOW", "DESC", "DESCRIBE", "EXPLAIN", "HELP", "CHECKSUM"),
        *("PREPARE", "DEALLOCATE", "KILL", "RESET", "CHANGE", "STOP", "PURGE", "CACHE", "SHUTDOWN"),
    )
)
SIMPLE: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "INSERT": dml.read_insert,
        "REPLACE": dml.read_insert,
        "UPDATE": dml.read_update,
        "DELETE": dml.read_delete,
        "SELECT": dml.read_select,
        "TABLE": dml.read_select,
        "VALUES": dml.read_select,
        "WITH": dml.read_with,
        "LOAD": dml.read_load_data,
        "DO": dml.read_do,
        "CALL": dml.read_call,
        "CREATE": ddl.read_create,
        "ALTER": ddl.read_alter,
        "RENAME": ddl.read_rename,
        "DROP": ddl.read_drop,
        "TRUNCATE": ddl.read_truncate,
        "GRANT": ddl.read_account,
        "REVOKE": ddl.read_account,
        "SET": read_set,
        "BEGIN": read_begin,
        "START": read_begin,
        "COMMIT": read_commit,
        "ROLLBACK": read_rollback,
        "SAVEPOINT": read_savepoint,
        "RELEASE": read_savepoint,
        "XA": read_xa,
        "LOCK": read_lock,
        "UNLOCK": read_lock,
        "ANALYZE": read_maintenance,
        "OPTIMIZE": read_maintenance,
        "REPAIR": read_maintenance,
        "CHECK": read_maintenance,
        "FLUSH": read_flush,
    }
)
