"""State that a session shares between its binlogs, and the beginning and end of its transactions.

Handlers of statements (`dml`, `ddl`, `settings` …) work on it; `session` chooses the handler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Final

from binlane.log.codec.client_text import text_of_name
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.policy.engines import engine_traits, traits
from binlane.statements.policy.refusals import Refusal
from binlane.statements.policy.resolution import Opening
from binlane.statements.policy.server import Characteristics, Server
from binlane.statements.policy.server_errors import Identity
from binlane.statements.programs.host import Host, ProgramState
from binlane.statements.session.caches import BinlogCaches, WriteContext
from binlane.statements.session.log_events import SOURCE_LOG, STANDALONE, Body, query
from binlane.statements.session.safety import ScopeSafety
from binlane.statements.session.statement_state import (
    Execution,
    OpenTemporaryTables,
    SequenceValues,
    SessionStatement,
    TemporaryChange,
    TemporaryUse,
)
from binlane.statements.session.table_locks import LockedTables
from binlane.statements.session.transaction import EngineChanges, PreparedXa, Transaction
from binlane.statements.session.variables import Variables
from binlane.statements.sql.accounts import ROOT, AccountName, Situation, named
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.keywords import needs_quotes
from binlane.statements.sql.schema import Routine, Table, Trigger
from binlane.statements.sql.servers import LoggingFormat, LoggingMode
from binlane.statements.sql.statement_kinds import DDL_KINDS, VIEW_KINDS, StatementKind
from binlane.statements.sql.tree.account_statements import NamedAccount

_NO_NAME: Final = "\U0010ffff"
"""Stands for a name that has none in a client's character set; none of those that differ has this."""


@dataclass(slots=True)
class SessionState:
    """The state of one client's session.

    Attributes:
        server: Server whose rules are followed.
        objects: The server's objects, with this session's temporary tables.
        database: The default database; empty if there is none.
        variables: System variables of the session.
        binlogs: Caches of the binlogs by name, in the order of their definitions.
        host: The session, as its programs see it.
        safety: The rules of several binlogs; None where there is only the server's own log.
        assume_engine: Engine of tables that nothing is known of; None refuses them.
        transaction: The open transaction, or the one that the next statement begins.
        prepared_xa: XA transactions of the session that are prepared.
        temporary: Memory of the temporary tables.
        locked_tables: Tables that LOCK TABLES locks; None without locks.
        is_read_locked: FLUSH TABLES WITH READ LOCK keeps all sessions from writing, this one too.
        sequence_values: Present values of the sequences that were used.
        programs: User variables, prepared statements and other memory of programs.
        execution: The current statement of the client.
        handlers: The tables that HANDLER … OPEN opened, by the names that it gave them, in small letters;
            never changed in place.
        empty_tables: Tables that the session made or emptied, and did not fill since, whose engine tells so
            to the optimizer of servers that ask it.
        ready_tables: MySQL's opened tables with a DEFAULT that calls RAND(), each with the number of its
            changes by then, and the number of times that it was open at once.
        null_is_insert_id: An AUTO_INCREMENT value was chosen that `IS NULL` may look for.
        unknown_programs: Routines and other programs that a statement that was not analysed may have made,
            altered or dropped.
        knows_accounts: The schema has accounts: there are no others.
        identity: Account whose privileges hold: the session's, or that of a program's definer.
        account_name: Account to which the session belongs.
        number: Number of the statement that ran last, from 1; statements of programs count, too.
    """

    server: Server
    objects: SchemaCatalog
    database: str
    variables: Variables
    binlogs: dict[str, BinlogCaches]
    host: Host
    safety: ScopeSafety | None = None
    assume_engine: str | None = None
    transaction: Transaction = field(default_factory=Transaction)
    prepared_xa: PreparedXa = field(default_factory=PreparedXa)
    temporary: OpenTemporaryTables = field(default_factory=OpenTemporaryTables)
    locked_tables: LockedTables | None = None
    is_read_locked: bool = False
    sequence_values: dict[TableName, SequenceValues] = field(default_factory=dict)
    programs: ProgramState = field(default_factory=ProgramState)
    execution: Execution = field(default_factory=Execution)
    handlers: Mapping[str, TableName] = field(default_factory=dict)
    empty_tables: set[TableName] = field(default_factory=set)
    ready_tables: dict[TableName | None, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    null_is_insert_id: bool = False
    unknown_programs: frozenset[TableName] = frozenset()
    knows_accounts: bool = False
    identity: Identity = field(default_factory=lambda: Identity(ROOT))
    account_name: AccountName = ROOT
    number: int = 0

    def snapshot(self) -> SessionState:
        """Copy the present state; later events do not change the copy."""
        found = SessionState(*_ALL_OF(self))
        found.objects = self.objects.copy()
        found.variables = self.variables.copy()
        found.binlogs = {name: binlog.copy() for name, binlog in self.binlogs.items()}
        found.safety = None if self.safety is None else self.safety.copy()
        found.transaction = self.transaction.copy()
        found.prepared_xa = self.prepared_xa.copy()
        found.temporary = self.temporary.copy()
        sequences = self.sequence_values.items()
        found.sequence_values = {name: replace(one) for name, one in sequences}
        found.programs = self.programs.copy()
        found.execution = self.execution.copy()
        found.empty_tables = self.empty_tables.copy()
        found.ready_tables = self.ready_tables.copy()
        return found

    def restore(self, snapshot: SessionState) -> None:
        """Return to the state of a snapshot, which can be restored more than once."""
        self.become(snapshot.snapshot())

    def become(self, kept: SessionState) -> None:
        """Return to the state of a snapshot, which must not be used any longer."""
        objects = self.objects
        for name in _FIELDS:
            setattr(self, name, getattr(kept, name))
        self.objects = objects
        objects.restore(kept.objects)

    def abandon(self, facts: StatementFacts, before: SessionState | None, reason: str) -> None:
        """Return to the state before a statement that was not analysed to its end; its effects are unknown.

        Args:
            facts: Facts of the text, as far as it was understood.
            before: The session before the statement; None if only its binlogs can have changed.
            reason: Explanation of the part that was not analysed.
        """
        if before is None:
            for binlog in self.binlogs.values():
                binlog.abandon_statement(is_in_transaction=self.is_in_transaction)
        else:
            prepared = self.programs.prepared
            self.restore(before)
            self.programs.prepared = prepared
        effects = facts.effects
        if effects.kind in DDL_KINDS:
            views = effects.objects if effects.kind in VIEW_KINDS else ()
            renamed = (new for _, new in effects.renames)
            self.objects.forget(*effects.writes, *views, *renamed)
            self.unknown_programs |= {*effects.objects}.difference(views)
        if self.is_in_transaction and effects.kind not in _WITHOUT_CHANGES:
            self.transaction.unknown = reason

    def account_situation(self, database: str = "", *, is_complete: bool = False) -> Situation:
        """Return the situation of an account statement; `is_complete`: no other accounts exist at all."""
        return Situation(
            is_mariadb=self.server.is_mariadb,
            database=database,
            current=self.identity.account,
            is_complete=self.knows_accounts or is_complete,
        )

    def account(self, account: NamedAccount) -> AccountName:
        """The account that a statement names."""
        return named(account, self.objects.accounts, self.account_situation())

    @contextmanager
    def acting_for(self, program: Routine | Trigger) -> Iterator[Refusal | None]:
        """Run a program as it was made to run: `Host.acting_for`."""
        before, definer = self.identity, program.definer
        is_invoker = isinstance(program, Routine) and program.is_invoker
        grantee = self.objects.accounts.get(definer)
        error = None
        if not is_invoker and definer != before.account:
            roles = frozenset() if grantee is None else grantee.default_roles
            self.identity = Identity(definer, frozenset() if self.server.is_mariadb else roles)
            error = self.host.errors.wrong_definer(
                program, self.opening(""), self.identity, knows_accounts=self.knows_accounts
            )
        try:
            with self.variables.running(program.context):
                yield error
        finally:
            self.identity = before

    @property
    def is_in_transaction(self) -> bool:
        """True in a transaction of several statements: BEGIN or autocommit=0."""
        return self.transaction.is_begun or not self.variables.settings.is_autocommit

    @property
    def is_gtid_enforced(self) -> bool:
        """True if MySQL's enforce_gtid_consistency refuses statements."""
        is_on = self.variables.settings.gtid_consistency == "ON"
        return is_on and self.is_logging and not self.server.is_mariadb

    @property
    def is_logging(self) -> bool:
        """True if anything of the session is logged."""
        return self.variables.settings.is_logged

    @property
    def compresses(self) -> bool:
        """True if MySQL compresses the transactions of its own log; binlogs have a setting of their own."""
        is_on = self.variables.settings.compresses
        return is_on and self.safety is None and not self.server.is_mariadb

    @property
    def characteristics(self) -> Characteristics:
        """Return the characteristics of the current or next transaction."""
        return self.transaction.coming or self.transaction.own

    def opening(self, database: str, created: Table | None = None) -> Opening:
        """Return a session's view for opening tables, from a default database; `created` as in `Opening`."""
        return Opening(
            objects=self.objects,
            server=self.server,
            database=database,
            created=created,
            assume_engine=self.assume_engine,
            checks_foreign_keys=self.variables.settings.checks_foreign_keys,
        )

    @property
    def logs_source(self) -> bool:
        """True if the session keeps the log of the source that it runs on."""
        return SOURCE_LOG in self.binlogs

    def modes(self) -> dict[str, LoggingMode]:
        """The logging modes that rule this session, by binlog; the source's own log left out."""
        return {name: self.mode(name) for name in self.binlogs if name != SOURCE_LOG}

    def held_temporary(self) -> dict[str, set[TableName]]:
        """By log, the temporary tables whose creation it holds."""
        return {name: binlog.held_temporary for name, binlog in self.binlogs.items()}

    def mode(self, name: str) -> LoggingMode:
        """The logging mode that rules this session in a binlog."""
        if name == SOURCE_LOG:
            return LoggingMode.ROW
        if self.safety is None or self.variables.is_format_set:
            return self.variables.settings.logging_mode
        return self.safety.modes[name]

    def delayed_mode(self, name: str) -> LoggingMode:
        """Return the logging mode of the threads that insert the rows of INSERT DELAYED."""
        if self.logs_source:
            return LoggingMode.ROW
        return (
            self.variables.settings.global_logging_mode
            if self.safety is None
            else self.safety.modes[name]
        )

    def is_row_now(self, name: str) -> bool:
        """True if a binlog has this session's statements in row format at their beginning.

        MariaDB: a statement that was logged as rows while temporary tables are open leaves the session in row
        format until these tables are gone.
        """
        if not self.objects.temporary_tables():
            self.temporary.row_binlogs.discard(name)
        return self.mode(name) is LoggingMode.ROW or name in self.temporary.row_binlogs

    def write_context(
        self,
        name: str,
        engine_changes: EngineChanges,
        logging_format: LoggingFormat = LoggingFormat.STATEMENT,
    ) -> WriteContext:
        """Return the circumstances in which a statement writes to a binlog."""
        return WriteContext(
            mode=self.mode(name),
            logging_format=logging_format,
            is_in_transaction=self.is_in_transaction,
            is_direct=self.variables.settings.is_direct and name != SOURCE_LOG,
            engine_changes=engine_changes,
            transaction=self.transaction.changes,
        )

    def query(self, text: str, database: str = "", *, is_atomic: bool = False) -> QueryEvent:
        """Return the event of a statement.

        Args:
            text: The statement's text as it is logged.
            database: The default database that the text needs; none if that is empty.
            is_atomic: MySQL commits the statement, which is DDL, together with its log.
        """
        return query(text, database, self.variables.status_vars(is_atomic=is_atomic))

    def quote(self, name: str | TableName, *, always: bool = False) -> str:
        """Return a name as the servers write it anew: with double quotes where sql_mode has them so.

        The result is in the client's character set; the text of a name that has none there cannot be written.

        Args:
            name: One name, or two with a point between them.
            always: Use quotes whatever sql_quote_show_create says.
        """
        if isinstance(name, TableName):
            return f"{self.quote(name.database)}.{self.quote(name.table)}"
        dialect = self.variables.settings.dialect
        is_quoted = always or self.variables.is_on("sql_quote_show_create", default=True)
        if not is_quoted and not needs_quotes(name, Flavor(self.server.flavor)):
            return name
        mark = '"' if dialect.ansi_quotes else "`"
        return text_of_name(name, dialect.charset, mark) or _NO_NAME

    def begin(self) -> None:
        """Begin a transaction as START TRANSACTION does: commit the open one, unlock tables."""
        kept = None
        if self.is_in_transaction or self.transaction.is_active:
            # MySQL keeps the characteristics of a transaction that BEGIN ends.
            if not self.server.is_mariadb:
                kept = self.characteristics
            self.commit()
        if kept is not None:
            self.transaction.own = kept
        self.locked_tables = None
        self.transaction.is_begun = True
        self.transaction.is_active = True

    def implicit_commit(self) -> None:
        """Commit the open transaction, as most DDL does first; SET TRANSACTION ends with it in any case."""
        if self.is_in_transaction or self.transaction.is_active:
            self.commit()
        else:
            self.reset_characteristics()

    def commit(self) -> None:
        """Commit the transaction."""
        for binlog in self.binlogs.values():
            binlog.commit(self.transaction.changes)
        self.end_transaction()

    def roll_back(self, *, is_xa: bool = False) -> None:
        """Roll back the transaction."""
        nothing = EngineChanges()
        for name, binlog in self.binlogs.items():
            context = self.write_context(name, nothing)
            if is_xa:
                binlog.keep_unsafe(context)
            binlog.roll_back(context)
        for table in self.transaction.created or ():
            self.objects.apply(f"DROP TABLE {table}", database=table.database)
        self.end_transaction()

    def end_transaction(self) -> None:
        """Forget the transaction that ended."""
        ended = self.transaction
        self.transaction = Transaction(
            own=self.variables.settings.characteristics, xid=ended.xid, xa_phase=ended.xa_phase
        )
        if self.safety is not None:
            self.safety.transaction_ended()

    def reset_characteristics(self) -> None:
        """Give the next transaction the characteristics of the session again."""
        self.transaction.coming = None
        self.transaction.own = self.variables.settings.characteristics

    def end_statement(
        self,
        engine_changes: EngineChanges,
        *,
        succeeds: bool,
        formats: Mapping[str, LoggingFormat] | None = None,
        keeps_rows_open: bool = False,
    ) -> None:
        """End a statement in all binlogs, and its own transaction where there is no other."""
        context, written = None, None
        for name, binlog in self.binlogs.items():
            logging_format = (formats or {}).get(name, LoggingFormat.STATEMENT)
            mode = self.mode(name)
            found = (mode, logging_format, name == SOURCE_LOG)
            if context is None or found != written:
                written = found
                context = self.write_context(name, engine_changes, logging_format)
            if succeeds:
                binlog.end_statement(context, keeps_rows_open=keeps_rows_open)
            else:
                binlog.roll_back_statement(context)
        if self.is_in_transaction:
            # MySQL begins with temporary tables that come and go, too, and with those not there.
            is_begun = engine_changes.changed_temporary_tables and not self.server.is_mariadb
            # A server with a log of its own regards that log alone: it knows nothing of others.
            own = self.binlogs.get(SOURCE_LOG)
            logs = self.binlogs.values() if own is None else (own,)
            is_begun |= any(binlog.is_registered for binlog in logs)
            self.transaction.is_active |= bool(engine_changes.engines) or is_begun
            if succeeds:
                self.transaction.changes.merge(engine_changes)
            else:
                self._merge_failed(engine_changes)
        elif engine_changes.engines:
            self.reset_characteristics()

    def opened(self, tables: Iterable[Table]) -> None:
        """Note tables that are read or locked: the transaction of their engines then begins.

        With autocommit that transaction ends at once, and with it the one that SET TRANSACTION was for.
        """
        engines = (engine_traits(table.engine, self.server.flavor) for table in tables)
        if not any(engine.is_transactional for engine in engines):
            return
        if self.is_in_transaction:
            self.transaction.is_active = True
        else:
            self.reset_characteristics()

    def get_ready(self, tables: Sequence[TableName]) -> bool:
        """Open tables, some of them more than once; True if MySQL gets one ready for that.

        MySQL keeps a table ready for as long as the table stays as it is. Tables that other sessions have
        opened are not known. A log of a source tells its own seeds.
        """
        if self.server.is_mariadb or self.logs_source:
            return False
        is_new = False
        for name in set(tables):
            changes, count = self.programs.changes_of((name,)), tables.count(name)
            known, ready = self.ready_tables.get(name, (changes, 0))
            ready = ready if known == changes else 0
            is_new |= count > ready
            self.ready_tables[name] = (changes, max(count, ready))
        return is_new

    def _merge_failed(self, engine_changes: EngineChanges) -> None:
        for name, use in engine_changes.engines.items():
            self.transaction.changes.uses(name, has_two_phases=use.has_two_phases)
        self.transaction.changes.merge_flags(engine_changes)

    def fail(self, refusal: Refusal) -> None:
        """End the current statement with an error; the first one counts."""
        if self.execution.error is None:
            self.execution.error = refusal

    def fail_as_stated(self, statement: SessionStatement) -> None:
        """Report the error that the script states, or that is known without it."""
        if statement.failure is not None:
            self.fail(statement.failure)
            return
        errno = statement.outcome.error
        assert errno is not None
        message = f"the script states that the server fails with error {errno}"
        self.fail(Refusal(errno, "HY000", "", message, is_stated=True))

    def each_logging(self) -> Mapping[str, BinlogCaches]:
        """The binlogs that are written now; the source's own log always is."""
        if self.is_logging:
            return self.binlogs
        return {SOURCE_LOG: self.binlogs[SOURCE_LOG]} if self.logs_source else {}

    def uses_temporary(
        self,
        table: Table,
        change: TemporaryChange,
        *,
        replaces: bool = False,
        new_name: TableName | None = None,
    ) -> None:
        """Note a use of a temporary table by the running statement; see `TemporaryUse`."""
        if not self.logs_source:
            return
        use = TemporaryUse(change, traits(table, self.server).has_rollback, replaces, new_name)
        used = self.execution.temporary.setdefault(self.execution.number, {})
        known = used.get(table.name)
        if known is None or known.change <= change:
            used[table.name] = use

    @contextmanager
    def numbered(self) -> Iterator[None]:
        """Run a statement of a program under a number of its own, which its events get."""
        execution, outer = self.execution, self.execution.number
        self.mark(outer)
        self.number += 1
        own = execution.number = self.number
        yield
        self.mark(own)
        execution.number = outer

    def mark(self, number: int) -> None:
        """Note that the events logged since the last mark are of a statement."""
        if self.logs_source:
            for binlog in self.binlogs.values():
                binlog.mark(number)


_FIELDS: Final = tuple(one.name for one in fields(SessionState))
_ALL_OF: Final = attrgetter(*_FIELDS)

_WITHOUT_CHANGES: Final = frozenset(
    (StatementKind.EMPTY, StatementKind.SESSION, StatementKind.SET, StatementKind.LOCK)
)
"""Statements that leave a transaction as it was, whatever else they do."""

Handler = Callable[[SessionState, SessionStatement], None]
"""Carries out statements of one kind."""


def write_directly(
    state: SessionState,
    events: list[Body],
    names: frozenset[str] | None = None,
    opening: GtidEvent = STANDALONE,
) -> None:
    """Write a statement that is a group by itself to all binlogs, or some.

    Args:
        state: The state of the session.
        events: The statement, with the values that belong to it.
        names: Names of the binlogs; None for all.
        opening: Event with which MariaDB begins the statement's group.
    """
    for name, binlog in state.each_logging().items():
        if names is None or name in names:
            binlog.write_directly(events, opening)
            state.execution.log(name, LoggingFormat.STATEMENT)
