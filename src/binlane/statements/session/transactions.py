"""Carrying out BEGIN, COMMIT, ROLLBACK, savepoints and LOCK TABLES."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.engines import traits
from binlane.statements.policy.lock_list import is_for_writing
from binlane.statements.policy.refusals import (
    NONTRANSACTIONAL_AND_GTID,
    TEMPORARY_IN_XA,
    Refusal,
    refusal,
)
from binlane.statements.policy.resolution import TableAccess
from binlane.statements.policy.server import Characteristics
from binlane.statements.policy.unsafe_defaults import has_random_default
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.session.table_locks import LockedTables
from binlane.statements.session.transaction import EngineChanges, EngineUse, Savepoint, XaPhase
from binlane.statements.session.xa_statements import refusal_in_xa
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Fact
from binlane.statements.sql.statement_kinds import (
    DDL_KINDS,
    READING_KINDS,
    TABLE_MAKING_KINDS,
    WRITING_KINDS,
    StatementKind,
)
from binlane.statements.sql.table_changes import engine_name, named_engine
from binlane.statements.sql.tree.definitions import CreateTable
from binlane.statements.sql.tree.statements import Transaction as TransactionNode


def begin(state: SessionState, statement: SessionStatement) -> None:
    """Carry out START TRANSACTION and BEGIN."""
    state.begin()
    options = statement.facts.options
    if not options.isdisjoint(("READ ONLY", "READ WRITE")):
        is_read_only = "READ ONLY" in options
        own = state.characteristics._replace(is_read_only=is_read_only)
        state.transaction.own, state.transaction.coming = own, None
    if "WITH CONSISTENT SNAPSHOT" in options:
        state.transaction.changes.engines["INNODB"] = EngineUse(has_two_phases=True)
        if state.server.is_mariadb:
            for binlog in state.each_logging().values():
                binlog.is_registered = True


def begins_transaction(facts: StatementFacts) -> bool:
    """True if a statement is MySQL's CREATE TABLE … START TRANSACTION."""
    tree = facts.tree
    return isinstance(tree, CreateTable) and any(
        option.name == "START TRANSACTION" for option in tree.options
    )


def begin_with_table(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Begin the transaction of CREATE TABLE … START TRANSACTION, also of one that fails.

    In an XA transaction the statement is forbidden and begins no transaction.

    Returns:
        The refusal to make the table: 3979, before anything else is looked at; None if it is allowed.

    Source: measured on MySQL 9.7.4.
    """
    if state.transaction.xa_phase is not None:
        return None
    state.implicit_commit()
    state.begin()
    state.transaction.is_active = False  # as long as there is no table
    tree = statement.facts.tree
    assert isinstance(tree, CreateTable)
    if tree.query is not None:
        return refusal(3979, "with CREATE TABLE ... AS SELECT statement")
    if statement.facts.effects.is_temporary:
        return refusal(3979, "to create temporary tables")
    default = state.variables.text("default_storage_engine") or "InnoDB"
    engine = named_engine(tree.options) or engine_name(default)
    if engine in _WITHOUT_ATOMIC_DDL:
        return refusal(3979, "with engine that does not support atomic DDL")
    return None


_WITHOUT_ATOMIC_DDL: Final = frozenset(
    ("MYISAM", "MEMORY", "CSV", "ARCHIVE", "BLACKHOLE", "MRG_MYISAM", "FEDERATED")
)


def refusal_behind_table(state: SessionState, facts: StatementFacts) -> Refusal | None:
    """Error 3977: behind CREATE TABLE … START TRANSACTION next to nothing is allowed."""
    if state.transaction.created is None or facts.verb == "BINLOG":
        return None
    is_end = facts.effects.kind in (StatementKind.COMMIT, StatementKind.ROLLBACK)
    return None if is_end else refusal(3977)


def commit(state: SessionState, statement: SessionStatement) -> None:
    """Carry out COMMIT."""
    characteristics = state.characteristics
    state.commit()
    _chain(state, statement, characteristics)


def roll_back(state: SessionState, statement: SessionStatement) -> None:
    """Carry out ROLLBACK."""
    characteristics = state.characteristics
    state.roll_back()
    _chain(state, statement, characteristics)


def _chain(
    state: SessionState, statement: SessionStatement, characteristics: Characteristics
) -> None:
    tree = statement.facts.tree
    options = tree.options if isinstance(tree, TransactionNode) else frozenset()
    is_usual = state.variables.text("completion_type") in ("1", "CHAIN")
    if "AND CHAIN" in options or (is_usual and "AND NO CHAIN" not in options):
        state.begin()
        state.transaction.own = characteristics


def set_savepoint(state: SessionState, statement: SessionStatement) -> None:
    """Carry out SAVEPOINT; outside a transaction it means nothing."""
    if not state.is_in_transaction:
        return
    name, savepoints = statement.facts.name, state.transaction.savepoints
    # A new savepoint takes the place of one of the same name.
    at = _index(savepoints, name)
    if at is not None:
        _forget(state, at, at + 1)
    savepoints.append(Savepoint(name, frozenset(state.transaction.changes.engines)))
    event = state.query(f"SAVEPOINT {state.quote(name)}")
    for binlog in state.each_logging().values():
        binlog.set_savepoint(name, event)
    if state.safety is not None:
        state.safety.savepoint(name)


def roll_back_to(state: SessionState, statement: SessionStatement) -> None:
    """Carry out ROLLBACK TO SAVEPOINT."""
    name, savepoints = statement.facts.name, state.transaction.savepoints
    at = _index(savepoints, name)
    if at is None:
        state.fail(_no_savepoint(name))
        return
    _forget(state, at + 1)
    nothing = EngineChanges()
    event = state.query(f"ROLLBACK TO {state.quote(name)}")
    for binlog in state.binlogs.values():
        binlog.roll_back_to(name, event, state.write_context(binlog.name, nothing))
    state.transaction.changes.keep_only(savepoints[at].engines)
    if state.safety is not None:
        state.safety.rolled_back_to(savepoints[at].name)


def release_savepoint(state: SessionState, statement: SessionStatement) -> None:
    """Carry out RELEASE SAVEPOINT: it and all later ones are gone; nothing is logged."""
    at = _index(state.transaction.savepoints, statement.facts.name)
    if at is None:
        state.fail(_no_savepoint(statement.facts.name))
    else:
        _forget(state, at)


def _index(savepoints: Sequence[Savepoint], name: str) -> int | None:
    found = (at for at, one in enumerate(savepoints) if one.name.lower() == name.lower())
    return next(found, None)


def _forget(state: SessionState, start: int, end: int | None = None) -> None:
    for gone in state.transaction.savepoints[start:end]:
        for binlog in state.binlogs.values():
            binlog.forget_savepoint(gone.name)
    del state.transaction.savepoints[start:end]


def _no_savepoint(name: str) -> Refusal:
    return Refusal(1305, "42000", "ER_SP_DOES_NOT_EXIST", f"SAVEPOINT {name} does not exist")


_ALWAYS: Final = frozenset(
    (
        *(StatementKind.XA, StatementKind.PREPARE, StatementKind.DEALLOCATE),
        *(StatementKind.EXECUTE, StatementKind.EXECUTE_IMMEDIATE, StatementKind.BINLOG),
        *(StatementKind.SIGNAL, StatementKind.EMPTY),
    )
)
_WITHOUT_TABLES: Final = (
    WRITING_KINDS | READING_KINDS | {StatementKind.SET, StatementKind.CALL, StatementKind.COMPOUND}
)
"""Statements allowed also in a transaction that has ended, if they open no table."""
_WHILE_ACTIVE: Final = (
    _ALWAYS
    | _WITHOUT_TABLES
    | {
        *(StatementKind.SAVEPOINT, StatementKind.ROLLBACK_TO, StatementKind.RELEASE_SAVEPOINT),
        StatementKind.HANDLER,
    }
)
_LOOKS: Final = ("CHECKSUM", "UNLOCK", "LOCK INSTANCE", "HANDLER CLOSE")
"""Statements that are allowed in any phase."""
KEY_CACHE: Final = ("CACHE INDEX", "LOAD INDEX")
_COMMITTING: Final = {
    True: ("INSTALL", "UNINSTALL", "RESET", "BACKUP"),
    False: (
        *("INSTALL", "UNINSTALL", "RESET", "CLONE", "ALTER INSTANCE", "IMPORT TABLE"),
        *("CREATE RESOURCE", "ALTER RESOURCE", "DROP RESOURCE", "CHANGE REPLICATION"),
        *("CHANGE MASTER", "START REPLICA", "STOP REPLICA", "START SLAVE", "STOP SLAVE"),
        *KEY_CACHE,
    ),
}
"""Commands that commit the open transaction, by True if the server is MariaDB.

Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
"""
_WITHOUT_COMMIT: Final = "RESET PERSIST"
_ALONE: Final = {
    True: ("STOP SLAVE", "STOP REPLICA", "STOP ALL"),
    False: ("START GROUP_REPLICATION", "STOP GROUP_REPLICATION"),
}
"""Commands that are refused in transactions and under LOCK TABLES."""
_PLUGINS: Final = ("INSTALL", "UNINSTALL")


def command_commits(state: SessionState, verb: str) -> bool:
    """True if a command that is no definition commits the open transaction."""
    is_committing = verb.startswith(_COMMITTING[state.server.is_mariadb])
    return is_committing and not verb.startswith(_WITHOUT_COMMIT)


def refusal_of_command(state: SessionState, verb: str) -> Refusal | None:
    """Return the refusal of a command in a transaction or under LOCK TABLES."""
    is_locked = state.locked_tables is not None
    if is_locked and verb.startswith(_PLUGINS):
        return refusal(1100, "plugin")
    is_alone = verb.startswith(_ALONE[state.server.is_mariadb])
    return refusal(1192) if is_alone and (is_locked or state.transaction.is_active) else None


def is_forbidden(state: SessionState, statement: SessionStatement) -> bool:
    """True if the state of the XA transaction forbids a statement, which is then refused.

    Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
    """
    if state.transaction.xa_phase is None:
        return False
    facts = statement.facts
    kind = facts.effects.kind
    if facts.verb.startswith(_LOOKS):
        return False
    if kind in _NAMING_SAVEPOINTS and _lacks_savepoint(state, facts.name):
        state.fail(_no_savepoint(facts.name))
        return True
    if kind is StatementKind.SESSION:
        is_allowed = not command_commits(state, facts.verb)
    elif state.transaction.xa_phase is XaPhase.ACTIVE:
        is_allowed = kind in _WHILE_ACTIVE or facts.effects.is_temporary
    else:
        is_allowed = kind in _ALWAYS or (kind in _WITHOUT_TABLES and not facts.tables)
        is_allowed |= kind is StatementKind.RELEASE_SAVEPOINT and state.server.is_mariadb
    if is_allowed and not _uses_temporary(state, facts):
        return False
    state.fail(TEMPORARY_IN_XA if is_allowed else refusal_in_xa(state))
    return True


_NAMING_SAVEPOINTS: Final = frozenset((StatementKind.ROLLBACK_TO, StatementKind.RELEASE_SAVEPOINT))


def _lacks_savepoint(state: SessionState, name: str) -> bool:
    """True if a savepoint does not exist; a prepared transaction has none."""
    transaction = state.transaction
    is_prepared = transaction.xa_phase is XaPhase.PREPARED
    return is_prepared or _index(transaction.savepoints, name) is None


def _uses_temporary(state: SessionState, facts: StatementFacts) -> bool:
    """True if a statement uses temporary tables that the session that ends its XA transaction may lack.

    Source: measured on MySQL 9.7.4.
    """
    is_detached = state.server.has(Fact.XA_DETACHES)
    if not state.variables.is_on("xa_detach_on_prepare", default=is_detached):
        return False
    effects = facts.effects
    names = [*(use.name for use in facts.tables), *effects.drops]
    tables = map(state.objects.table, names)
    return any(table is not None and table.is_temporary for table in tables) or (
        effects.is_temporary and effects.kind in TABLE_MAKING_KINDS
    )


_UNTOUCHED_KINDS: Final = frozenset(
    (
        *(StatementKind.MAINTENANCE, StatementKind.FLUSH, StatementKind.SERVER),
        StatementKind.TABLESPACE,
    )
)
"""Statements that read-only transactions allow, as far as it is not measured otherwise."""


def fails_read_only(state: SessionState, statement: SessionStatement) -> bool:
    """Fail a statement that a read-only transaction forbids; DDL commits the open transaction first.

    Servers raise this error before they look for the tables.

    Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
    """
    now, later = state.characteristics, state.variables.settings.characteristics
    if not (now.is_read_only or later.is_read_only):
        return False
    effects = statement.facts.effects
    commits = effects.kind is StatementKind.LOCK or (
        effects.kind in DDL_KINDS and not effects.is_temporary
    )
    if state.transaction.xa_phase is not None and _is_no_part_of_xa(
        state, effects.kind, commits=commits
    ):
        return False
    in_force = later if commits else now
    if not in_force.is_read_only or not _changes_tables(state, statement):
        return False
    if commits:
        state.implicit_commit()
    if statement.outcome.error in _BEFORE_TRANSACTIONS:
        state.fail_as_stated(statement)
    else:
        state.fail(refusal(1792, server=state.server))
    return True


def _is_no_part_of_xa(state: SessionState, kind: StatementKind, *, commits: bool) -> bool:
    """True if an XA transaction forbids a statement before the check for read-only transactions."""
    is_active = state.transaction.xa_phase is XaPhase.ACTIVE
    return commits or (kind in WRITING_KINDS and state.server.is_mariadb and not is_active)


_BEFORE_TRANSACTIONS: Final = frozenset((1064, 1193, 1231, 1238, 1792))
"""Errors of the text, and of SET STATEMENT, which come before the transaction is looked at."""


def _changes_tables(state: SessionState, statement: SessionStatement) -> bool:
    """True if a statement is one that read-only transactions refuse."""
    facts, kind = statement.facts, statement.facts.effects.kind
    if kind in DDL_KINDS:
        is_rebuild = facts.verb.startswith(("OPTIMIZE", "REPAIR"))
        return is_rebuild or kind not in _UNTOUCHED_KINDS
    if kind is StatementKind.LOCK:
        return any(is_for_writing(use.lock) for use in facts.tables)
    if kind not in WRITING_KINDS | READING_KINDS:
        return False
    tables = {use.name for use in facts.tables if use.changes or use.is_locked_for_update}
    if any(
        (table := state.objects.table(name)) is None or not table.is_temporary for name in tables
    ):
        return True
    opened = state.host.resolved(facts, statement.database).accesses
    return any(one.is_locked_for_write and not one.table.is_temporary for one in opened)


def execute_lock(state: SessionState, statement: SessionStatement) -> None:
    """Lock or unlock tables: LOCK TABLES commits, UNLOCK TABLES only if tables were locked.

    LOCK INSTANCE and UNLOCK INSTANCE do not commit.
    """
    if statement.facts.verb == "LOCK TABLES":
        if (refused := _refusal_to_lock(state, statement.facts)) is not None:
            state.fail(refused)
            return
        state.implicit_commit()
        state.locked_tables = None
        if statement.succeeds:
            opened = state.host.resolved(statement.facts, statement.database).accesses
            written = [one.table for one in opened if one.is_locked_for_write]
            if _mixes_engines(state, written):
                state.fail(NONTRANSACTIONAL_AND_GTID)
            else:
                state.locked_tables = LockedTables(
                    tuple(table.name for table in written),
                    _locks(state, statement, opened),
                    frozenset(one.name for one in opened)
                    - {use.name for use in statement.facts.tables if is_for_writing(use.lock)},
                    state.characteristics.isolation,
                )
                state.opened(one.table for one in opened)
                state.get_ready([one.name for one in opened if has_random_default(one.table)])
    elif statement.facts.verb == "UNLOCK TABLES":
        if state.locked_tables is not None:
            state.implicit_commit()
        state.locked_tables = None
        state.is_read_locked = False
    if not statement.succeeds:
        state.fail_as_stated(statement)


def _refusal_to_lock(state: SessionState, facts: StatementFacts) -> Refusal | None:
    """Return the error with which LOCK TABLES fails before it unlocks the locked tables."""
    named: set[tuple[str, str]] = set()
    for use in facts.tables:
        name = use.name.database, use.alias.lower()
        if name in named:
            return refusal(1066, use.alias)
        named.add(name)
    is_written = any(is_for_writing(use.lock) for use in facts.tables)
    return refusal(1223) if state.is_read_locked and is_written else None


def _locks(
    state: SessionState, statement: SessionStatement, opened: Iterable[TableAccess]
) -> tuple[tuple[TableName, str, bool], ...]:
    """Return the tables and views that LOCK TABLES locks."""
    views = [use for use in statement.facts.tables if state.objects.view(use.name) is not None]
    return (
        *((use.name, use.alias.lower(), is_for_writing(use.lock)) for use in views),
        *((one.name, one.alias, one.is_locked_for_write) for one in opened),
    )


def _mixes_engines(state: SessionState, written: Iterable[Table]) -> bool:
    """True if MySQL's GTID consistency forbids to write some tables under the same locks."""
    kinds = {traits(table, state.server).is_transactional for table in written}
    return len(kinds) > 1 and state.is_gtid_enforced
