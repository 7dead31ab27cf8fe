"""A session as others read it: its default database, its modes, its variables, results of statements."""

from __future__ import annotations

from collections.abc import Sequence

from binlane.names import TableName
from binlane.statements.policy.server import Isolation, Server
from binlane.statements.programs.host import ProgramState
from binlane.statements.scope.definition import Definition
from binlane.statements.session.report import BinlogResult, StatementResult, Unanalysed
from binlane.statements.session.settings import system_value
from binlane.statements.session.state import SessionState
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.evaluation.values import Value
from binlane.statements.sql.servers import Dialect, LoggingMode, RowImage


class SessionView:
    """A session as others read it.

    Attributes:
        state: The whole state of the session, for callers that follow it.
    """

    state: SessionState

    @property
    def definitions(self) -> Sequence[Definition] | None:
        """The binlogs as they are now; None for one of the server's own."""
        safety = self.state.safety
        return None if safety is None else safety.definitions

    @property
    def dialect(self) -> Dialect:
        """Return the dialect in which the session's texts are read."""
        return self.state.variables.settings.dialect

    @property
    def server(self) -> Server:
        """Return the server whose rules are followed."""
        return self.state.server

    @property
    def objects(self) -> SchemaCatalog:
        """The server's objects."""
        return self.state.objects

    @property
    def database(self) -> str:
        """The default database."""
        return self.state.database

    @property
    def collation(self) -> str:
        """collation_connection."""
        if self.state.variables.connection is not None:
            return self.state.variables.connection[1]
        return self.server.default_collation("utf8mb4")

    @property
    def programs(self) -> ProgramState:
        """Return the session's memory for its programs."""
        return self.state.programs

    @property
    def is_in_transaction(self) -> bool:
        """True in a transaction of several statements: BEGIN or autocommit=0."""
        return self.state.is_in_transaction

    @property
    def is_transaction_active(self) -> bool:
        """True if a transaction has begun to work: the servers' SERVER_STATUS_IN_TRANS."""
        return self.state.transaction.is_active

    @property
    def logs_rows_alone(self) -> bool:
        """True if every binlog has the session's changes as rows; sql_log_bin is not regarded."""
        state = self.state
        if state.safety is None or state.variables.is_format_set:
            return state.variables.settings.logging_mode is LoggingMode.ROW
        return state.safety.logs_rows_alone

    @property
    def row_image(self) -> RowImage:
        """The columns of rows that binlogs are to have: binlog_row_image."""
        return self.state.variables.settings.row_image

    @property
    def may_log_rows(self) -> bool:
        """True if every binlog may have the session's changes as rows: none has statements alone."""
        state = self.state
        if state.safety is None or state.variables.is_format_set:
            return state.variables.settings.logging_mode is not LoggingMode.STATEMENT
        modes = {one.logging_mode for one in state.safety.definitions}
        return LoggingMode.STATEMENT not in modes

    @property
    def has_row_binlogs(self) -> bool:
        """True if some binlog has all changes of the session as rows, or there is no binlog."""
        state = self.state
        if state.safety is None or state.variables.is_format_set:
            return state.variables.settings.logging_mode is LoggingMode.ROW
        modes = {one.logging_mode for one in state.safety.definitions}
        return not modes or LoggingMode.ROW in modes

    @property
    def locks_reads(self) -> bool:
        """True if the transaction's isolation level protects rows that a change only reads."""
        return self.state.characteristics.isolation >= Isolation.REPEATABLE_READ

    @property
    def has_scopes(self) -> bool:
        """True if some binlog does not log everything."""
        safety = self.state.safety
        return safety is not None and any(not one.scope.is_unscoped for one in safety.definitions)

    def system_variable(self, name: str) -> Value:
        """Return the value of `@@name` as far as it is known."""
        return system_value(self.state.variables, name)

    def binlog_variable(self, name: str, *, is_global: bool = False) -> str:
        """Return the value of a variable of the binlogs; empty where nobody has set it.

        Args:
            name: Name of the variable, in lower case.
            is_global: Return the value that sessions begin with.

        Returns:
            The value in capitals, such as `ROW` or `1`. A binlog_format that nobody set is that of all
            binlogs, MIXED where they differ, and the source's own without any: ROW.
        """
        variables = self.state.variables
        values = variables.global_values if is_global else variables.values
        if name != "binlog_format" or (variables.is_format_set and not is_global):
            return values.get(name, "")
        safety = self.state.safety
        modes = set() if safety is None else {mode.value for mode in safety.modes.values()}
        modes = modes or {LoggingMode.ROW.value}
        return values.get(name, "") or (modes.pop() if len(modes) == 1 else "MIXED")

    def quote(self, name: TableName) -> str:
        """Return a name as texts that the server writes have it."""
        return self.state.quote(name)

    def has_sql_mode(self, mode: str) -> bool:
        """True if a mode, in capitals, is one of sql_mode."""
        return mode in self.state.variables.text("sql_mode").split(",")

    def _unfollowed(self, reason: str) -> StatementResult:
        """Return the result of a statement that was not followed to its end: without events."""
        return StatementResult(
            binlogs={name: BinlogResult() for name in self.state.binlogs},
            unanalysed=Unanalysed(reason=reason, offset=0, length=0),
        )

    def _result(self, unanalysed: Unanalysed | None = None) -> StatementResult:
        pending = self.state.execution
        binlogs: dict[str, BinlogResult] = {}
        for name, binlog in self.state.binlogs.items():
            bodies, runs = binlog.take_written()
            binlogs[name] = BinlogResult(
                logged_as=pending.logged_as(name),
                bodies=bodies,
                server=self.state.server,
                steps=tuple(pending.steps.get(name, ())),
                unsafe=tuple(dict.fromkeys(pending.unsafe.get(name, ()))),
                runs=runs,
            )
        notes = tuple(pending.notes)
        return StatementResult(
            error=pending.error, notes=notes, binlogs=binlogs, unanalysed=unanalysed
        )
