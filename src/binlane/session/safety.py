"""Safety over several binlogs, for a session: which binlogs log a statement, and who refuses it.

The rules are in `scope`; here is what a session has to remember for them: the writes of its
transaction, and which binlog logs which of its temporary tables. Used only where binlogs are
defined; a server's own single log knows no scopes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from binlane.errors import (
    DefinitionError,
    DependencyError,
    LoadDataError,
    PartialTransactionError,
    PartialWriteError,
    TriggerError,
    UnsafeStatementError,
)
from binlane.names import TableName, quote
from binlane.policy.access import ResolvedStatement
from binlane.policy.server import Server
from binlane.scope.changes import Changes
from binlane.scope.definition import Definition, duplicate_binlog, look_up
from binlane.scope.parser import parse_binlog_statement
from binlane.scope.safety import Cause, Danger, Setting, coverage, find_dangers, is_recorded
from binlane.scope.statements import AlterBinlog, CreateBinlog, DropBinlog, alter, create
from binlane.scope.temporary import TemporaryTables
from binlane.scope.transaction import TransactionWrites, find_partial_transaction
from binlane.session.changes import changes_of
from binlane.session.report import Refusal, Why
from binlane.sql.facts import StatementFacts, StatementKind
from binlane.sql.schema import Objects
from binlane.sql.servers import LoggingFormat, LoggingMode

SYMBOLS: Final[Mapping[type[UnsafeStatementError], str]] = MappingProxyType(
    {
        PartialWriteError: "BINLANE_PARTIAL_WRITE",
        DependencyError: "BINLANE_DEPENDENCY",
        PartialTransactionError: "BINLANE_PARTIAL_TRANSACTION",
        TriggerError: "BINLANE_TABLE_SCOPE_TRIGGER",
        LoadDataError: "BINLANE_LOAD_DATA",
        UnsafeStatementError: "BINLANE_NOT_UNDERSTOOD",
    }
)
"""The symbols of refusals that no server has."""

_DROPS: Final = frozenset((StatementKind.DROP_TABLE, StatementKind.DROP_SEQUENCE))


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What is known of the changes that a statement makes.

    Attributes:
        changes: Which. They are told by their identity, so they must stay.
        dangers: Why the statement must not run.
        recording: Names of the binlogs that would log it.
    """

    changes: Changes
    dangers: tuple[Danger, ...]
    recording: frozenset[str]


_JUDGEMENTS_MAX: Final = 1_024


class ScopeSafety:
    """What a session remembers of its binlogs' scopes.

    Attributes:
        definitions: The binlogs, in the order of their definitions.
    """

    def __init__(self, definitions: Sequence[Definition], server: Server) -> None:
        self.definitions = tuple(definitions)
        self._modes = {one.name: one.logging_mode for one in self.definitions}
        self._server = server
        self.transaction = TransactionWrites()
        self._savepoints: dict[str, TransactionWrites] = {}
        self._temporary = TemporaryTables()
        self._judgements: dict[tuple[object, ...], _Judgement] = {}
        self._judged_with: tuple[object, object] = (self.definitions, self._temporary)

    @property
    def modes(self) -> Mapping[str, LoggingMode]:
        """The logging modes of the definitions."""
        return self._modes

    def state(self) -> object:
        """All that a judgement can hang on."""
        return self.definitions, self.transaction, self._savepoints, self._temporary

    def copy(self) -> ScopeSafety:
        """As it is now."""
        return copy(self)  # what it has is replaced, never changed in place

    def define(
        self,
        statement: str,
        objects: Objects,
        *,
        ansi_quotes: bool = False,
        ignores_case: bool = False,
    ) -> bool:
        """Carry out CREATE, ALTER or DROP BINLOG; False if the statement is none of these.

        Args:
            statement: Any statement.
            objects: The server's objects.
            ansi_quotes: sql_mode ANSI_QUOTES.
            ignores_case: The server keeps names in lower case.

        Raises:
            StatementError: If it is malformed, the binlog exists or does not, or a list names a
                view.
        """
        read = parse_binlog_statement(statement, ansi_quotes=ansi_quotes)
        known = {definition.name: definition for definition in self.definitions}
        match read:
            case CreateBinlog():
                if read.name not in known:
                    log_id = max((one.log_id for one in self.definitions), default=0) + 1
                    known[read.name] = create(read, log_id, ignores_case=ignores_case)
                elif not read.if_not_exists:
                    raise duplicate_binlog(read.name)
            case AlterBinlog():
                known[read.name] = alter(look_up(read.name, known), read)
            case DropBinlog():
                if read.name in known or not read.if_exists:
                    del known[look_up(read.name, known).name]
            case _:
                return False
        for definition in known.values():
            refuse_views(definition, objects)
        self.definitions = tuple(known.values())
        self._modes = {one.name: one.logging_mode for one in self.definitions}
        self._temporary = self._temporary.scoped(self.definitions)
        return True

    def changes(
        self,
        facts: StatementFacts,
        resolved: ResolvedStatement,
        objects: Objects,
        *,
        is_in_procedure: bool = False,
    ) -> Changes:
        """What a statement changes and needs, through everything that it uses."""
        return changes_of(
            facts, resolved, objects, server=self._server, is_in_procedure=is_in_procedure
        )

    def candidates(self, changes: Changes) -> frozenset[str]:
        """Names of the binlogs that may log a statement, so that its format must be decided."""
        known = self._known()
        found = known.get((id(changes),))
        if found is None:
            found = known[(id(changes),)] = _Judgement(
                changes=changes,
                dangers=(),
                recording=frozenset(
                    definition.name
                    for definition in self.definitions
                    if self._is_candidate(changes, definition)
                ),
            )
        return found.recording

    def _is_candidate(self, changes: Changes, definition: Definition) -> bool:
        if not changes.writes:
            return is_recorded(changes, self._setting(definition, {}, {}))
        if not coverage(changes, definition.scope).is_empty:
            return True
        begun = self._temporary.begun.get(definition.name, frozenset())
        is_drop = changes.kind in _DROPS
        return any(
            used.is_in(definition.scope) or (is_drop and used.name in begun)
            for used in changes.temporary_writes
        )

    def _setting(
        self,
        definition: Definition,
        modes: Mapping[str, LoggingMode],
        formats: Mapping[str, LoggingFormat],
    ) -> Setting:
        name = definition.name
        return Setting(
            definition=definition,
            mode=modes.get(name, definition.logging_mode),
            logging_format=formats.get(name, LoggingFormat.ROW),
            temporary_tables=self._temporary.whole.get(name, frozenset()),
        )

    def check(
        self,
        changes: Changes,
        *,
        modes: Mapping[str, LoggingMode],
        formats: Mapping[str, LoggingFormat],
        is_in_transaction: bool,
    ) -> Refusal | None:
        """Find out whether some binlog refuses a statement.

        Args:
            changes: What the statement does.
            modes: Logging mode of each binlog in this session.
            formats: The statement's format in those binlogs that may log it.
            is_in_transaction: It joins the open transaction; False if it commits that first.
        """
        judgement = self._judge(changes, modes, formats)
        dangers = judgement.dangers
        if not dangers and is_in_transaction:
            danger = find_partial_transaction(
                self.transaction, changes.writes, judgement.recording, self.definitions
            )
            dangers = () if danger is None else (danger,)
        if not dangers:
            return None
        first, *others = map(_refusal, dangers)
        return replace(first, others=tuple(others))

    def _judge(
        self,
        changes: Changes,
        modes: Mapping[str, LoggingMode],
        formats: Mapping[str, LoggingFormat],
    ) -> _Judgement:
        """What the binlogs do with a statement; kept as long as they and its tables are as now."""
        known = self._known()
        key = (id(changes), *modes.values(), *formats.items())
        found = known.get(key)
        if found is None:
            settings = [self._setting(one, modes, formats) for one in self.definitions]
            found = known[key] = _Judgement(
                changes=changes,
                dangers=tuple(find_dangers(changes, settings)),
                recording=frozenset(
                    setting.definition.name for setting in settings if is_recorded(changes, setting)
                ),
            )
        return found

    def _known(self) -> dict[tuple[object, ...], _Judgement]:
        """The judgements that still hold."""
        definitions, temporary = self._judged_with
        if definitions is not self.definitions or temporary is not self._temporary:
            self._judgements = {}
            self._judged_with = (self.definitions, self._temporary)
        elif len(self._judgements) >= _JUDGEMENTS_MAX:
            self._judgements.clear()
        return self._judgements

    def recorders(
        self,
        changes: Changes,
        *,
        modes: Mapping[str, LoggingMode],
        formats: Mapping[str, LoggingFormat],
    ) -> frozenset[str]:
        """Names of the binlogs that log a statement which none refuses."""
        candidates = self.candidates(changes)
        if changes.kind in _DROPS and changes.temporary_writes:
            return candidates
        return candidates & self._judge(changes, modes, formats).recording

    def executed(
        self,
        changes: Changes,
        recorders: frozenset[str],
        *,
        is_in_transaction: bool,
    ) -> None:
        """Remember what a statement has written.

        Args:
            changes: What it did.
            recorders: Names of the binlogs that log it.
            is_in_transaction: A transaction is open after it.
        """
        if is_in_transaction:
            self.transaction = self.transaction.added(changes.writes, recorders)
        names = [one.name for one in changes.temporary_writes]
        if changes.kind in _DROPS or not names:
            return
        for definition in self.definitions:
            if definition.name not in recorders:
                self._temporary = self._temporary.stopped(
                    definition.name, [name for name in names if isinstance(name, TableName)]
                )

    def transaction_ended(self) -> None:
        """Forget the writes of the transaction that was committed or rolled back."""
        self.transaction = TransactionWrites()
        self._savepoints = {}

    def savepoint(self, name: str) -> None:
        """Remember where the transaction stands."""
        self._savepoints = {**self._savepoints, name.lower(): self.transaction}

    def rolled_back_to(self, name: str) -> None:
        """Forget the writes that a rollback to a savepoint has undone."""
        state = self._savepoints.get(name.lower())
        if state is not None:
            self.transaction = self.transaction.rolled_back_to(state)

    def temporary_created(self, name: TableName, binlogs: frozenset[str]) -> None:
        """Remember a temporary table and the binlogs that have logged its creation."""
        self._temporary = self._temporary.created(name, binlogs)

    def temporary_dropped(self, name: TableName) -> None:
        """Forget a temporary table."""
        self._temporary = self._temporary.dropped(name)

    def mode_changed(self, modes: Mapping[str, LoggingMode]) -> None:
        """Stop the logging of temporary tables in binlogs that log rows from now on."""
        self._temporary = self._temporary.switched(modes)

    def stopped_temporary(self, binlog: str) -> frozenset[TableName]:
        """Temporary tables whose creation a binlog has logged, but not every later change."""
        return self._temporary.partial(binlog)


def refuse_views(definition: Definition, objects: Objects) -> None:
    """Refuse a definition whose lists name views: they belong to their databases.

    Raises:
        DefinitionError: If they do.
    """
    for name in sorted(definition.scope.tables_named()):
        if objects.view(name) is not None:
            raise DefinitionError(
                f"{name} is a view, and views cannot be in the lists of binlog '{definition.name}'",
                hint=f"statements on views go where the changes of their tables go; their "
                f"definitions go to binlogs that log the database {quote(name.database)}",
            )


def _refusal(danger: Danger) -> Refusal:
    error = danger.error
    return Refusal(
        errno=error.errno,
        sqlstate=error.sqlstate,
        symbol=SYMBOLS[type(error)],
        message=str(error),
        binlogs=danger.binlogs,
        why=tuple(_why(cause, error.hint) for cause in danger.causes) or (Why(hint=error.hint),),
    )


def _why(cause: Cause, hint: str) -> Why:
    used = cause.used
    return Why(
        what=used.plain,
        through=used.through,
        offset=used.offset,
        length=used.length,
        hint=cause.hint or hint,
    )
