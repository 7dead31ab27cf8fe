"""Carrying out CREATE TABLE and CREATE SEQUENCE.

Where MariaDB's OR REPLACE fails, the old table may be gone already.

Source: MariaDB 10.11 sql/sql_table.cc `mysql_create_table_no_lock`, sql/log.cc `log_drop_table`; MySQL 9.7
sql/sql_class.cc `THD::is_ddl_gtid_compatible`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.log.codec.types import Flavor
from binlane.statements.policy import refusals
from binlane.statements.policy.engines import traits
from binlane.statements.policy.unsafe_defaults import default_sequences
from binlane.statements.session import log_events
from binlane.statements.session.context_events import random_seeds
from binlane.statements.session.decision import recorders_of
from binlane.statements.session.log_events import Body
from binlane.statements.session.object_consequences import apply, preview
from binlane.statements.session.state import SessionState, write_directly
from binlane.statements.session.statement_state import SessionStatement, TemporaryChange
from binlane.statements.session.transaction import (
    EngineChanges,
    EngineUse,
)
from binlane.statements.session.transactions import begins_transaction
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Fact, LoggingFormat, LoggingMode
from binlane.statements.sql.show_create import create_table_text
from binlane.statements.sql.statement_kinds import TABLE_MAKING_KINDS, StatementKind
from binlane.statements.sql.table_changes import has_invisible_key
from binlane.statements.sql.tree.definitions import CreateTable, DefinedColumn

_ENGINE_NAMES: Final = MappingProxyType(
    {"INNODB": "InnoDB", "MYISAM": "MyISAM", "ARIA": "Aria", "MRG_MYISAM": "MRG_MyISAM"}
)
KINDS: Final = TABLE_MAKING_KINDS - {StatementKind.CREATE_TABLE_SELECT}
_EARLY_ERRORS: Final = frozenset((1044, 1049, 1064, 1142, 1146, 1347, 4161))
"""Errors found before a table is replaced: of syntax, privileges and missing objects."""
_EARLY_QUERY_ERRORS: Final = frozenset((1052, 1054, 1143, 1222, 1241, 1305, 1582))
"""Errors of a query, which the server looks at first."""


def execute_create(state: SessionState, statement: SessionStatement) -> None:
    """Carry out a CREATE TABLE or CREATE SEQUENCE without a query."""
    recorders = begin_creation(state, statement)
    if recorders is not None:
        Creation(state, statement, recorders).carry_out()


def begin_creation(state: SessionState, statement: SessionStatement) -> frozenset[str] | None:
    """Commit the open transaction; return the names of the logging binlogs, None if one refuses."""
    effects = statement.facts.effects
    # A sequence gets its first row in a transaction of its own.
    commits = not effects.is_temporary or effects.kind is StatementKind.CREATE_SEQUENCE
    recorders = recorders_of(state, statement, commits=commits)
    if recorders is None:
        return None
    if commits:
        if not begins_transaction(statement.facts):
            state.implicit_commit()
    elif refuses_temporary(state, statement):
        return None
    return recorders


def refuses_temporary(state: SessionState, statement: SessionStatement) -> bool:
    """Refuse CREATE and DROP TEMPORARY TABLE in a transaction that is logged as statements."""
    if not (
        state.is_gtid_enforced
        and statement.facts.effects.is_temporary
        and state.is_in_transaction
        and (
            any(state.mode(name) is LoggingMode.STATEMENT for name in state.binlogs)
            or not state.server.has(Fact.TEMPORARY_IN_TRANSACTION)
        )
    ):
        return False
    state.fail(refusals.TEMPORARY_TABLE_AND_GTID)
    return True


class Creation:
    """A table that is about to be made.

    Attributes:
        statement: The statement that makes the table.
        recorders: Names of the binlogs that log the creation.
        table: The table to be; None if its definition cannot be told.
        exists: A table of this kind and name exists, or a view that IF NOT EXISTS finds.
    """

    def __init__(
        self, state: SessionState, statement: SessionStatement, recorders: frozenset[str]
    ) -> None:
        self.state, self.statement, self.recorders = state, statement, recorders
        self.effects = statement.facts.effects
        name, objects = self.effects.writes[0], state.objects
        is_temporary = self.effects.is_temporary
        known = objects.table(name) if is_temporary else objects.base_table(name)
        self.exists = (known is not None and known.is_temporary == is_temporary) or (
            not is_temporary and self.effects.if_exists and objects.view(name) is not None
        )
        self.table = preview(state, statement, name)

    def carry_out(self) -> None:
        """Make the table, and log its creation."""
        state, statement = self.state, self.statement
        if self.exists and self.effects.if_exists and statement.succeeds:
            self._log_existing()
        elif not statement.succeeds:
            state.fail_as_stated(statement)
            if self.exists and self.table is not None and self.replaces_before_error:
                self._log_failed_replacement(self.table)
        elif self._is_refused_for_sequences():
            state.fail(refusals.statement_mode_and_row_engine())
        else:
            apply(state, statement)
            if self.effects.is_temporary:
                self._log_temporary(exists=False)
            else:
                self._log_base()

    def _is_refused_for_sequences(self) -> bool:
        """True if MariaDB opens a sequence of a DEFAULT to advance it, under mode STATEMENT: a refusal.

        Where the statement is not refused, a temporary table is for rows.
        """
        state = self.state
        if not state.server.is_mariadb:
            return False
        called = {name for name, _ in default_sequences(self.statement.facts)}
        if called and self.effects.is_temporary:
            mixed = (one for one in self.recorders if state.mode(one) is LoggingMode.MIXED)
            state.temporary.row_binlogs.update(mixed)
        return not called <= {"LASTVAL"} and any(
            state.mode(name) is LoggingMode.STATEMENT for name in self.recorders
        )

    def _log_existing(self) -> None:
        """Log CREATE TABLE IF NOT EXISTS of an existing table, as MySQL does."""
        state, statement = self.state, self.statement
        if begins_transaction(statement.facts):
            self._log_in_transaction()
        elif self.effects.is_temporary and self.table is not None:
            self._log_temporary(exists=True)
        elif not state.server.is_mariadb or state.locked_tables is not None:
            query = state.query(statement.text, statement.database)
            write_directly(state, [query], self.recorders)

    def _log_in_transaction(self) -> None:
        """Log CREATE TABLE … START TRANSACTION at the commit of its transaction; a rollback takes it back."""
        state, statement = self.state, self.statement
        transaction = state.transaction
        transaction.is_active = True
        transaction.created = frozenset(() if self.exists else self.effects.writes)
        if not self.exists:
            use = EngineUse(has_two_phases=True, is_changed=True)
            transaction.changes.engines["INNODB"] = use
        for name, binlog in state.each_logging().items():
            if name not in self.recorders:
                continue
            seeds = random_seeds(state, name, statement, [self.table])
            query = state.query(self.text, statement.database)
            binlog.is_registered = True
            binlog.transaction_cache.events.extend((*seeds, query))
            state.execution.log(name, LoggingFormat.STATEMENT)

    def _log_base(self) -> None:
        if begins_transaction(self.statement.facts):
            self._log_in_transaction()
            return
        state, statement, created = self.state, self.statement, self.table
        like = None
        if self.effects.kind is StatementKind.CREATE_TABLE_LIKE and self.effects.reads:
            like = state.objects.table(self.effects.reads[0])
        is_like_temporary = like is not None and like.is_temporary and created is not None
        for name, binlog in state.each_logging().items():
            if name not in self.recorders:
                continue
            text = self.text
            if is_like_temporary and created is not None and self._writes_copy_anew(name):
                text = self.definition_text(_with_engine(created))
            seeds = random_seeds(state, name, statement, [created])
            query = state.query(text, statement.database, is_atomic=self.is_atomic)
            binlog.write_directly([*seeds, query])
            state.execution.log(name, LoggingFormat.STATEMENT)

    def _writes_copy_anew(self, name: str) -> bool:
        """True if a copy of a temporary table that a replica may not know is written anew."""
        if self.state.server.has(Fact.ROWS_OF_TEMPORARY_TABLES):
            return self.state.mode(name) is not LoggingMode.STATEMENT
        return self.state.is_row_now(name)

    @property
    def text(self) -> str:
        """Return the text as it is logged: one with a key that MySQL made is written anew."""
        node, created = self.statement.facts.tree, self.table
        if (
            created is None
            or not isinstance(node, CreateTable)
            or not has_invisible_key(created)
            or node.like is not None  # its key is the other table's
            or any(isinstance(each, DefinedColumn) and each.key for each in node.elements)
        ):
            return self.statement.text
        is_transaction = begins_transaction(self.statement.facts)
        return self.definition_text(created, is_transaction=is_transaction)

    def definition_text(self, created: Table, *, is_transaction: bool = False) -> str:
        """A definition, written anew as SHOW CREATE TABLE prints it."""
        text = create_table_text(
            created,
            flavor=Flavor(self.state.server.flavor),
            is_or_replace=self.replaces,
            sql_modes=frozenset(self.state.variables.text("sql_mode").split(",")),
            if_not_exists=self.effects.if_exists,
            is_transaction=is_transaction,
            quoted=self.state.quote,
        )
        if created.name.database == self.statement.database:
            return text
        own, whole = self.state.quote(created.name.table), self.state.quote(created.name)
        return text.replace(own, whole, 1)

    @property
    def is_atomic(self) -> bool:
        """True if MySQL commits the creation together with its log."""
        created = self.table
        return (
            self.state.server.has_atomic_ddl
            and created is not None
            and not created.is_temporary
            and created.engine.upper() == "INNODB"
        )

    def _log_temporary(self, *, exists: bool) -> None:
        """Log CREATE TEMPORARY TABLE without a query."""
        state, created = self.state, self.table
        engine_changes = EngineChanges(changed_temporary_tables=True)
        if created is not None:
            change = TemporaryChange.NOTHING if exists else TemporaryChange.MADE
            state.uses_temporary(created, change, replaces=self.replaces)
        if created is not None and not exists:
            state.temporary.made(created.name)
        # The servers look at the engine of a table that they make; of one that is there they know none.
        has_engine = not exists
        has_rollback = created is not None and traits(created, state.server).has_rollback
        counts = dict.fromkeys(self.recorders, has_engine and has_rollback)
        logged = self.log_temporary(counts, engine_changes)
        if state.safety is not None and created is not None:
            state.safety.temporary_created(created.name, logged - {log_events.SOURCE_LOG})
        state.end_statement(engine_changes, succeeds=True)

    def log_temporary(
        self,
        recorders: Mapping[str, bool],
        engine_changes: EngineChanges,
        before: Sequence[Body] = (),
    ) -> frozenset[str]:
        """Log a temporary table's creation.

        Args:
            recorders: The binlogs, each with True if it counts the table as transactional.
            engine_changes: The statement's changes in the engines.
            before: Events before the text; the seeds that the text needs, if there are none.

        Returns:
            Names of the binlogs that have the table now.
        """
        state, statement, created = self.state, self.statement, self.table
        logged = set()
        for name, binlog in state.binlogs.items():
            if state.is_in_transaction:
                binlog.keeps_transaction |= state.server.is_mariadb
            is_logging = name in state.each_logging()
            if not is_logging or name not in recorders or not self._is_logged_temporary(name):
                if created is not None and self.replaces:
                    binlog.held_temporary.discard(created.name)
                if created is not None and self._counts_as_logged(name):
                    binlog.held_temporary.add(created.name)
                continue
            seeds = before or random_seeds(state, name, statement, [created])
            events = [*seeds, state.query(self.text, statement.database)]
            if state.is_in_transaction:
                context = state.write_context(name, engine_changes)
                binlog.write_statement(events, context, is_transactional=recorders[name])
            else:
                binlog.write_directly(events)
            state.execution.log(name, LoggingFormat.STATEMENT)
            logged.add(name)
            if created is not None:
                binlog.held_temporary.add(created.name)
        return frozenset(logged)

    def _counts_as_logged(self, name: str) -> bool:
        """True if MariaDB takes a creation with sql_log_bin=0 for one that its own log holds.

        Source: measured on MariaDB 10.11.19; CREATE … LIKE is no such creation.
        """
        state = self.state
        return (
            state.server.is_mariadb
            and state.safety is None
            and not state.is_logging
            and self.effects.kind is not StatementKind.CREATE_TABLE_LIKE
            and self._is_logged_temporary(name)
        )

    def _is_logged_temporary(self, name: str) -> bool:
        """True if the creation of a temporary table is logged in a binlog now.

        MySQL logs the creation under STATEMENT only, MariaDB and MySQL before 8.0.4 also under MIXED, as long
        as no statement had to be logged as rows while other temporary tables are open. CREATE SEQUENCE is
        always logged as its text.
        """
        if self.effects.kind is StatementKind.CREATE_SEQUENCE:
            return True
        if not self.state.server.has(Fact.ROWS_OF_TEMPORARY_TABLES):
            return not self.state.is_row_now(name)
        return self.state.mode(name) is LoggingMode.STATEMENT

    @property
    def replaces(self) -> bool:
        """True if the statement is MariaDB's CREATE OR REPLACE, which sql_if_exists makes a mere CREATE."""
        is_tolerant = self.state.variables.is_on("sql_if_exists", default=False)
        is_or_replace = self.statement.facts.effects.is_or_replace and not is_tolerant
        return self.state.server.is_mariadb and is_or_replace

    @property
    def replaces_before_error(self) -> bool:
        """True if MariaDB has dropped the old table when the statement fails."""
        early = _EARLY_ERRORS
        if self.effects.kind is StatementKind.CREATE_TABLE_SELECT:
            early |= _EARLY_QUERY_ERRORS
        return self.replaces and self.statement.outcome.error not in early

    def drop_old(self, created: Table) -> frozenset[str]:
        """Drop the replaced table; return the binlogs that know it, if it was temporary."""
        state = self.state
        if created.is_temporary:
            state.uses_temporary(created, TemporaryChange.DROPPED)
        temporary = "TEMPORARY " if created.is_temporary else ""
        drop = f"DROP {temporary}TABLE {created.name}"
        state.objects.apply(drop, database=self.statement.database)
        if not created.is_temporary:
            return frozenset()
        state.temporary.gone(created.name)
        held = [name for name, one in state.binlogs.items() if created.name in one.held_temporary]
        for name in held:
            state.binlogs[name].held_temporary.discard(created.name)
        if state.safety is not None:
            state.safety.temporary_dropped(created.name)
        return frozenset(held)

    def _log_failed_replacement(self, created: Table) -> None:
        """Log a failed CREATE OR REPLACE without a query as its text, as it dropped a table."""
        state, names = self.state, self.recorders
        held = self.drop_old(created)
        if created.is_temporary:
            names = frozenset(name for name in names & held if self._is_logged_temporary(name))
        query = state.query(self.statement.text, self.statement.database)
        write_directly(state, [query], names)


def _with_engine(table: Table) -> Table:
    """Return the text of a table's copy, which always names its engine."""
    if "ENGINE" in dict(table.options):
        return table
    name = _ENGINE_NAMES.get(table.engine, table.engine)
    return replace(table, options=(("ENGINE", name), *table.options))
