"""Carrying out CREATE … SELECT, which makes a table and fills it.

In row format the definition and the rows are logged as one transaction. Functions of the query may write to
other tables: their rows are logged with the new table's, in MariaDB those of tables without transactions
before the definition. MySQL does not allow such functions.

Source: seed 004, R-log-create-select-statement-format and R-log-create-select-row-format; MariaDB 10.11
sql/sql_insert.cc `select_create`.
"""

from __future__ import annotations

from typing import Final

from binlane.names import TableName
from binlane.statements.policy import refusals
from binlane.statements.policy.engines import traits
from binlane.statements.programs.trace import Trace
from binlane.statements.session import log_events
from binlane.statements.session.caches import BinlogCaches, WriteContext
from binlane.statements.session.context_events import context_events
from binlane.statements.session.creates import Creation, begin_creation
from binlane.statements.session.decision import Decided, decide, give_notes
from binlane.statements.session.lock_refusals import refusal_beyond_locks
from binlane.statements.session.log_events import Body
from binlane.statements.session.object_consequences import apply
from binlane.statements.session.rows import LoggedRows, logged_rows, trace_of, with_null_ids
from binlane.statements.session.state import SessionState, write_directly
from binlane.statements.session.statement_state import SessionStatement, TemporaryChange
from binlane.statements.session.transaction import (
    EngineChanges,
    engine_changes_of,
    note_tries,
)
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import LoggingFormat, LoggingMode
from binlane.statements.sql.table_changes import has_invisible_key
from binlane.statements.sql.table_definitions import TableDefinition

_DEFINITION_ERRORS: Final = frozenset(
    (1005, 1060, 1061, 1063, 1067, 1068, 1070, 1071, 1072, 1073, 1074, 1075, 1113, 1166, 1506)
)
"""Errors of the new table's definition, before its query runs."""


class CreationWithRows(Creation):
    """CREATE TABLE … SELECT."""

    decided: Decided
    trace: Trace

    def is_refused(self) -> bool:
        """True if GTID consistency refuses the statement: the engine does not commit DDL with its rows."""
        created = self.table
        return (
            self.state.is_gtid_enforced
            and not self.effects.is_temporary
            and created is not None
            and not self._is_filled_as_created(created)
        )

    def _is_filled_as_created(self, created: Table) -> bool:
        server = self.state.server
        return server.fills_as_it_creates and traits(created, server).has_two_phases

    def carry_out(self) -> None:
        """Make it, and log that and its rows."""
        state, statement = self.state, self.statement
        decided = decide(state, statement, self.table)
        if decided is None:
            self._log_refused_replacement()
            return
        self.decided = decided
        created = self.table
        if statement.succeeds and self._needs_key_in_statement_mode():
            state.fail(refusals.invisible_key_and_statement_mode(state.server))
            return
        if created is None:
            # The table's definition cannot be told, and so neither can its log.
            created = self.table = Table(
                name=self.effects.writes[0],
                definition=TableDefinition(columns=()),
                engine=statement.facts.engine or "INNODB",
                is_temporary=self.effects.is_temporary,
            )
        trace = trace_of(state, statement, decided)
        self.trace = with_null_ids(state, statement, decided.resolved, trace)
        if trace.error is not None and statement.succeeds:
            self.statement = statement = statement.failing(trace.error)
        if not statement.succeeds:
            if state.server.is_mariadb:
                self._log_failed_rows()
            self._fail(created)
            return
        apply(state, statement)
        if created.is_temporary:
            self._log_temporary_with_rows(created)
        else:
            self._log_base_with_rows(created)

    def _needs_key_in_statement_mode(self) -> bool:
        """True if MySQL would make a key whose values depend on the order of rows.

        MySQL does not ask whether the session logs.
        """
        created, state = self.table, self.state
        if created is None or not has_invisible_key(created):
            return False
        names = self.recorders if state.is_logging else state.binlogs
        return any(state.mode(name) is LoggingMode.STATEMENT for name in names)

    def _log_base_with_rows(self, created: Table) -> None:
        state, statement, decided = self.state, self.statement, self.decided
        logged = set()
        for name, binlog in state.each_logging().items():
            if name not in decided.verdicts or decided.is_filtered(name):
                continue
            if decided.verdicts[name].logging_format is LoggingFormat.ROW:
                self._log_created_rows(binlog, created)
                state.execution.log(name, LoggingFormat.ROW)
                if state.objects.temporary_tables():
                    state.temporary.row_binlogs.add(name)
            else:
                query = state.query(statement.text, statement.database, is_atomic=self.is_atomic)
                binlog.write_directly([*self._context_events(created), query])
                state.execution.log(name, LoggingFormat.STATEMENT)
            logged.add(name)
        give_notes(state, decided, frozenset(logged))
        if state.server.is_mariadb:
            # MariaDB decides twice where rows are logged although the mode is STATEMENT.
            rows = (name for name in logged if decided.formats[name] is LoggingFormat.ROW)
            give_notes(state, decided, frozenset(rows))
        state.reset_characteristics()

    def _context_events(self, created: Table) -> list[Body]:
        return context_events(self.state, self.statement, self.decided, self.trace, created=created)

    def _log_temporary_with_rows(self, created: Table) -> None:
        state, decided = self.state, self.decided
        engine_changes = engine_changes_of(state.server, decided.resolved, self.trace.runs)
        engine_changes.changed_temporary_tables = True
        recorders = {
            name: verdict.is_mixed_unsafe or traits(created, state.server).has_rollback
            for name, verdict in decided.verdicts.items()
            if verdict.logging_format is LoggingFormat.STATEMENT
        }
        # MariaDB notes under STATEMENT what it leaves out because it is in row format for a time.
        forced = frozenset(decided.verdicts) & state.temporary.row_binlogs
        before = self._context_events(created)
        rows = logged_rows(state, decided.resolved, self.trace)
        for name in decided.verdicts:
            if name in recorders:
                continue
            if state.server.is_mariadb:
                state.temporary.row_binlogs.add(name)
            context = state.write_context(name, engine_changes, LoggingFormat.ROW)
            if rows is not None:
                rows.write(state.binlogs[name], context)
                state.execution.log(name, LoggingFormat.ROW)
        state.temporary.made(created.name)
        state.uses_temporary(created, TemporaryChange.FILLED, replaces=self.replaces)
        logged = self.log_temporary(recorders, engine_changes, before)
        give_notes(state, decided, logged | forced)
        if state.safety is not None:
            state.safety.temporary_created(created.name, logged - {log_events.SOURCE_LOG})
        state.end_statement(engine_changes, succeeds=True, formats=decided.formats)

    def _log_created_rows(self, binlog: BinlogCaches, created: Table) -> None:
        """Log a table's definition with its rows."""
        state, resolved = self.state, self.decided.resolved
        is_filled = self._is_filled_as_created(created)
        text = self.definition_text(created, is_transaction=is_filled)
        definition = state.query(text, self.statement.database)
        engine_changes = engine_changes_of(state.server, resolved, self.trace.runs)
        if not state.server.is_mariadb:
            note_tries(state.server, resolved, engine_changes)
        context = self._own_context(binlog, engine_changes)
        binlog.start(context)
        if state.server.is_mariadb or is_filled:
            binlog.transaction_cache.events.append(definition)
        else:
            binlog.write_directly([definition])
        rows = self._rows_with_definition()
        if rows is not None:
            rows.write(binlog, context)
        binlog.end_statement(context)

    def _log_failed_rows(self) -> None:
        """Log the changes for good that functions of a query made before it failed."""
        state, decided = self.state, self.decided
        engine_changes = engine_changes_of(state.server, decided.resolved, self.trace.runs)
        for name, logging_format in decided.formats.items():
            binlog = state.binlogs[name]
            if logging_format is not LoggingFormat.ROW:
                continue
            if state.objects.temporary_tables():
                state.temporary.row_binlogs.add(name)
            context = self._own_context(binlog, engine_changes)
            rows = self._rows_with_definition()
            if rows is not None:
                rows.write(binlog, context)
                binlog.transaction_cache.truncate(binlog.transaction_cache.before_statement or 0)
                binlog.end_statement(context)

    def _rows_with_definition(self) -> LoggedRows | None:
        """Return the rows; MariaDB logs those of the tables that the text names with the definition."""
        resolved = self.decided.resolved
        named: frozenset[TableName] = frozenset()
        if self.state.server.is_mariadb:
            named = frozenset(one.name for one in resolved.accesses if not one.is_prelocked)
        return logged_rows(self.state, resolved, self.trace, definition=named)

    def _own_context(self, binlog: BinlogCaches, engine_changes: EngineChanges) -> WriteContext:
        """Return the context of the rows: a transaction by itself, whatever autocommit says."""
        context = self.state.write_context(binlog.name, engine_changes, LoggingFormat.ROW)
        return context._replace(is_in_transaction=False)

    def _fail(self, created: Table) -> None:
        """Fail as stated; nothing is left, except that OR REPLACE dropped the old table."""
        state, statement, verdicts = self.state, self.statement, self.decided.verdicts
        state.fail_as_stated(statement)
        if not self.exists or not self.replaces_before_error:
            return
        held = self.drop_old(created)
        event = self._drop_event(created)
        is_run = statement.outcome.error not in _DEFINITION_ERRORS
        has_two_phases = traits(created, state.server).has_two_phases
        for name, binlog in state.each_logging().items():
            if name not in verdicts or (created.is_temporary and name not in held):
                continue
            if verdicts[name].logging_format is LoggingFormat.ROW:
                if state.variables.settings.is_autocommit:
                    # Else it waits for the end of a transaction, and is undone with the statement.
                    binlog.write_group([event], log_events.ROLLBACK)
                continue
            if is_run and not created.is_temporary and has_two_phases:
                binlog.write_directly([state.query(statement.text, statement.database)])
            binlog.write_directly([event])

    def _drop_event(self, created: Table) -> Body:
        temporary = "TEMPORARY " if created.is_temporary else ""
        text = (
            f"DROP {temporary}TABLE IF EXISTS {self.state.quote(created.name)}"
            "/* Generated to handle failed CREATE OR REPLACE */"
        )
        return self.state.query(text, "" if created.is_temporary else self.statement.database)

    def _log_refused_replacement(self) -> None:
        """Log that the old table is gone where MariaDB refuses the statement only then."""
        state, created, error = self.state, self.table, self.state.execution.error
        is_of_log = error is not None and error.symbol.startswith("ER_BINLOG_")
        if created is None or created.is_temporary or not self.replaces or not is_of_log:
            return
        drop = f"DROP TABLE IF EXISTS {created.name}"
        state.objects.apply(drop, database=self.statement.database)
        write_directly(state, [self._drop_event(created)])


def execute_create_select(state: SessionState, statement: SessionStatement) -> None:
    """Carry out a CREATE TABLE … SELECT."""
    recorders = begin_creation(state, statement)
    if recorders is None:
        return
    new = CreationWithRows(state, statement, recorders)
    if new.is_refused():
        state.fail(refusals.CREATE_SELECT_AND_GTID)
    elif not (new.exists and new.effects.if_exists and statement.succeeds):
        new.carry_out()
        if state.objects.filled is not None and statement.outcome.rows != 0:
            state.objects.filled.add(new.effects.writes[0])
    elif state.locked_tables is not None or state.is_read_locked:
        resolved = state.host.resolved(statement.facts, statement.database)
        error = refusal_beyond_locks(state, statement.facts, resolved)
        if error is not None:
            state.fail(error)
