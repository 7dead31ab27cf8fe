"""Which statement is read by whom, as far as it may stand in a body too.

The statements without objects (transactions, locks, maintenance) are read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.sql import assignments, ddl, dml
from binlane.sql.clauses import name_table
from binlane.sql.cursor import Cursor
from binlane.sql.ddl import Reader
from binlane.sql.draft import Draft
from binlane.sql.effects import StatementKind
from binlane.sql.queries import read_expression
from binlane.sql.tokens import TokenKind


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
        return _read_session(cursor, draft)
    reader = (SIMPLE if readers is None else readers).get(cursor.word)
    if reader is None:
        raise cursor.stop("a statement")
    return reader(cursor, draft)


def _read_session(cursor: Cursor, draft: Draft) -> None:
    """What changes nothing that is logged; of USE the name is noted."""
    draft.kind = StatementKind.SESSION
    words = [cursor.advance().word]
    while words[0] in TWO_WORDS and cursor.word not in NO_VERB_WORDS and len(words) < 3:
        words.append(cursor.advance().word)
    draft.verb = " ".join(words)
    if draft.verb == "USE":
        draft.name = cursor.identifier()
        return
    cursor.rest()


# Transactions ---------------------------------------------------------------------------------


def read_begin(cursor: Cursor, draft: Draft) -> None:
    """BEGIN, START TRANSACTION, and START of replication."""
    if cursor.accept("BEGIN"):
        draft.kind, draft.verb = StatementKind.BEGIN, "BEGIN"
        cursor.accept("WORK")
        return
    cursor.expect("START")
    if cursor.word in REPLICATION_WORDS:
        draft.kind, draft.verb = StatementKind.SESSION, f"START {cursor.word}"
        cursor.rest()
        return
    cursor.expect("TRANSACTION")
    draft.kind, draft.verb = StatementKind.BEGIN, "START TRANSACTION"
    while option := _transaction_option(cursor):
        draft.options.add(option)
        if not cursor.accept_operator(","):
            break


def _transaction_option(cursor: Cursor) -> str:
    for option in TRANSACTION_OPTIONS:
        if cursor.accept(*option.split()):
            return option
    return ""


def read_commit(cursor: Cursor, draft: Draft) -> None:
    """COMMIT."""
    draft.kind, draft.verb = StatementKind.COMMIT, "COMMIT"
    cursor.expect("COMMIT")
    _read_completion(cursor, draft)


def read_rollback(cursor: Cursor, draft: Draft) -> None:
    """ROLLBACK, whole or to a savepoint."""
    draft.kind, draft.verb = StatementKind.ROLLBACK, "ROLLBACK"
    cursor.expect("ROLLBACK")
    cursor.accept("WORK")
    if cursor.accept("TO"):
        draft.kind, draft.verb = StatementKind.ROLLBACK_TO, "ROLLBACK TO"
        cursor.accept("SAVEPOINT")
        draft.name = cursor.identifier()
    else:
        _read_completion(cursor, draft)


def _read_completion(cursor: Cursor, draft: Draft) -> None:
    cursor.accept("WORK")
    if cursor.accept("AND"):
        if not cursor.accept("NO"):
            draft.options.add("AND CHAIN")
        cursor.expect("CHAIN")
    if cursor.accept("NO", "RELEASE"):
        return
    if cursor.accept("RELEASE"):
        draft.options.add("RELEASE")


def read_savepoint(cursor: Cursor, draft: Draft) -> None:
    """SAVEPOINT and RELEASE SAVEPOINT."""
    draft.kind, draft.verb = StatementKind.SAVEPOINT, "SAVEPOINT"
    if cursor.accept("RELEASE"):
        draft.kind, draft.verb = StatementKind.RELEASE_SAVEPOINT, "RELEASE SAVEPOINT"
    cursor.expect("SAVEPOINT")
    draft.name = cursor.identifier()


def read_xa(cursor: Cursor, draft: Draft) -> None:
    """XA START, END, PREPARE, COMMIT, ROLLBACK, RECOVER."""
    cursor.expect("XA")
    word = cursor.accept_any(("START", "BEGIN", "END", "PREPARE", "COMMIT", "ROLLBACK", "RECOVER"))
    if not word:
        raise cursor.stop("what XA is to do")
    draft.kind = StatementKind.XA
    draft.verb = f"XA {'START' if word == 'BEGIN' else word}"
    if word == "RECOVER":
        cursor.rest()
        return
    draft.xid = draft.slice(cursor.until(XA_OPTION_WORDS))
    if not draft.xid:
        raise cursor.stop("an XID")
    for option in XA_OPTIONS:
        if cursor.accept(*option.split()):
            draft.options.add(option)


# Locks ----------------------------------------------------------------------------------------


def read_lock(cursor: Cursor, draft: Draft) -> None:
    """LOCK TABLES, LOCK INSTANCE, LOCK BINLOG FOR BACKUP, and UNLOCK of each."""
    verb = cursor.advance().word
    draft.kind = StatementKind.LOCK
    word = cursor.word
    draft.verb = f"{verb} {'TABLES' if word in ('TABLE', 'TABLES') else word}"
    if draft.verb != "LOCK TABLES":
        cursor.rest()
        return
    cursor.advance()
    while True:
        start = cursor.index
        name = draft.resolve(cursor.qualified_name())
        tokens = cursor.since(start)
        if cursor.accept("AS") or cursor.word not in LOCKS:
            cursor.identifier()
        lock = [cursor.accept_any(LOCKS)]
        if not lock[0]:
            raise cursor.stop("READ or WRITE")
        if lock[0] in ("LOW_PRIORITY", "WRITE", "READ"):
            lock.append(cursor.accept_any(("WRITE", "LOCAL", "CONCURRENT")))
        draft.name_table(name, tokens, " ".join(filter(None, lock)))
        if not cursor.accept_operator(","):
            break
    cursor.accept_any(("NOWAIT",))
    if cursor.accept("WAIT"):
        cursor.advance()


# Prepared statements --------------------------------------------------------------------------


def read_prepare(cursor: Cursor, draft: Draft) -> None:
    """PREPARE name FROM a string, variable or expression."""
    cursor.expect("PREPARE")
    draft.kind, draft.verb = StatementKind.PREPARE, "PREPARE"
    draft.name = cursor.identifier()
    cursor.expect("FROM")
    _read_prepared(cursor, draft)


def read_execute(cursor: Cursor, draft: Draft) -> None:
    """EXECUTE and EXECUTE IMMEDIATE."""
    cursor.expect("EXECUTE")
    if cursor.accept("IMMEDIATE"):
        draft.kind, draft.verb = StatementKind.EXECUTE_IMMEDIATE, "EXECUTE IMMEDIATE"
        _read_prepared(cursor, draft)
    else:
        draft.kind, draft.verb = StatementKind.EXECUTE, "EXECUTE"
        draft.name = cursor.identifier()
    if not cursor.accept("USING"):
        return
    while True:
        start = cursor.index
        read_expression(cursor, draft)
        draft.using.append(draft.slice(cursor.since(start)))
        if not cursor.accept_operator(","):
            return


def _read_prepared(cursor: Cursor, draft: Draft) -> None:
    start = cursor.index
    read_expression(cursor, draft)
    draft.prepared = draft.slice(cursor.since(start))
    if not draft.prepared:
        raise cursor.stop("a statement's text")


def read_deallocate(cursor: Cursor, draft: Draft) -> None:
    """DEALLOCATE PREPARE; DROP PREPARE is the same."""
    cursor.advance()
    cursor.expect("PREPARE")
    draft.kind, draft.verb = StatementKind.DEALLOCATE, "DEALLOCATE"
    draft.name = cursor.identifier()


def read_drop(cursor: Cursor, draft: Draft) -> None:
    """DROP of what may be dropped in a body."""
    if cursor.ahead(1).word == "PREPARE":
        read_deallocate(cursor, draft)
    else:
        ddl.read_drop(cursor, draft)


def read_binlog(cursor: Cursor, draft: Draft) -> None:
    """BINLOG 'base64': rows events, as mysqlbinlog prints them."""
    cursor.expect("BINLOG")
    draft.kind, draft.verb = StatementKind.BINLOG, "BINLOG"
    if cursor.token.kind not in (TokenKind.STRING, TokenKind.USER_VARIABLE):
        raise cursor.stop("a string")
    cursor.advance()
    if cursor.accept_operator(","):
        cursor.advance()


def read_signal(cursor: Cursor, draft: Draft) -> None:
    """SIGNAL, RESIGNAL and GET DIAGNOSTICS."""
    draft.kind = StatementKind.SIGNAL
    draft.verb = cursor.advance().word
    if draft.verb == "GET":
        cursor.accept_any(("CURRENT", "STACKED"))
        cursor.expect("DIAGNOSTICS")
        draft.verb = "GET DIAGNOSTICS"
    cursor.rest()


# Maintenance ----------------------------------------------------------------------------------


def read_maintenance(cursor: Cursor, draft: Draft) -> None:
    """ANALYZE, OPTIMIZE, REPAIR and CHECK of tables; MariaDB's ANALYZE of a statement runs it."""
    draft.kind = StatementKind.MAINTENANCE
    verb = cursor.advance().word
    draft.is_local = bool(cursor.accept_any(("NO_WRITE_TO_BINLOG", "LOCAL")))
    word = cursor.accept_any(("TABLE", "TABLES", "VIEW"))
    if not word:
        if verb != "ANALYZE":
            raise cursor.stop("TABLE")
        if cursor.accept("FORMAT"):
            cursor.expect_operator("=")
            cursor.identifier()
        draft.options.add("ANALYZE")
        read_simple_statement(cursor, draft)
        return
    draft.verb = f"{verb} {'VIEW' if word == 'VIEW' else 'TABLE'}"
    _write_tables(cursor, draft)
    cursor.rest()


def read_flush(cursor: Cursor, draft: Draft) -> None:
    """FLUSH; tables count as written where it names some, as in REPAIR."""
    draft.kind = StatementKind.FLUSH
    cursor.expect("FLUSH")
    draft.is_local = bool(cursor.accept_any(("NO_WRITE_TO_BINLOG", "LOCAL")))
    words = [cursor.ahead(count).word for count in range(2)]
    if cursor.accept_any(("TABLE", "TABLES")):
        draft.verb = "FLUSH TABLES"
        if not cursor.is_at_end and cursor.word not in ("WITH", "FOR"):
            _write_tables(cursor, draft)
        rest = cursor.rest()
        draft.options.update(
            option
            for option in ("WITH READ LOCK", "FOR EXPORT")
            if " ".join(token.word for token in rest).startswith(option)
        )
        return
    draft.verb = " ".join(["FLUSH", *(word for word in words if word not in NO_VERB_WORDS)])
    cursor.rest()


def _write_tables(cursor: Cursor, draft: Draft) -> None:
    while True:
        draft.write(name_table(cursor, draft))
        if not cursor.accept_operator(","):
            return


REPLICATION_WORDS: Final = ("SLAVE", "REPLICA", "ALL", "GROUP_REPLICATION", "SLAVES", "REPLICAS")
TRANSACTION_OPTIONS: Final = ("WITH CONSISTENT SNAPSHOT", "READ ONLY", "READ WRITE")
XA_OPTIONS: Final = ("ONE PHASE", "JOIN", "RESUME", "SUSPEND FOR MIGRATE", "SUSPEND")
XA_OPTION_WORDS: Final = ("ONE", "JOIN", "RESUME", "SUSPEND")
LOCKS: Final = ("READ", "WRITE", "LOW_PRIORITY")
TWO_WORDS: Final = frozenset(
    (
        *("SHOW", "RESET", "CHANGE", "STOP", "PURGE", "CACHE", "INSTALL", "UNINSTALL", "CHECKSUM"),
        *("IMPORT", "BACKUP", "CLONE"),
    )
)
"""Words that name a command only together with what follows."""
NO_VERB_WORDS: Final = frozenset(
    ("", "FROM", "IN", "LIKE", "WHERE", "FOR", "LIMIT", "TO", "WITH", "BEFORE")
)
SESSION_WORDS: Final = frozenset(
    (
        *("USE", "SHOW", "DESC", "DESCRIBE", "EXPLAIN", "HELP", "CHECKSUM", "INSTALL", "UNINSTALL"),
        *("KILL", "RESET", "CHANGE", "STOP", "PURGE", "CACHE", "SHUTDOWN", "RESTART", "CLONE"),
        *("IMPORT", "BACKUP"),
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
        "DROP": read_drop,
        "TRUNCATE": ddl.read_truncate,
        "GRANT": ddl.read_account,
        "REVOKE": ddl.read_account,
        "SET": assignments.read_set,
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
        "HANDLER": dml.read_handler,
        "PREPARE": read_prepare,
        "EXECUTE": read_execute,
        "DEALLOCATE": read_deallocate,
        "BINLOG": read_binlog,
        "SIGNAL": read_signal,
        "RESIGNAL": read_signal,
        "GET": read_signal,
    }
)
