"""Safety over several binlogs, for a session: the binlogs that log a statement, or those that refuse it.

The rules are in `scope`; this module remembers the session's state for them: the writes of its transaction,
and the binlogs that log each of its temporary tables. It is used only where binlogs are defined; a server's
own single log knows no scopes. The changes and needs of one statement are found by `statement_changes`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

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
from binlane.statements.policy.refusals import Refusal, Why
from binlane.statements.scope.changes import (
    Changes,
)
from binlane.statements.scope.definition import Definition, duplicate_binlog, look_up
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.safety import (
    Cause,
    Danger,
    Setting,
    coverage,
    find_dangers,
    is_recorded,
)
from binlane.statements.scope.statements import AlterBinlog, CreateBinlog, DropBinlog, alter, create
from binlane.statements.scope.temporary import TemporaryTables
from binlane.statements.scope.transaction import (
    NO_WRITES,
    TransactionWrites,
    find_partial_transaction,
)
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.servers import LoggingFormat, LoggingMode
from binlane.statements.sql.statement_kinds import (
    TABLE_DROPPING_KINDS,
)

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


class _Judgement(NamedTuple):
    """The known judgement of a statement's changes.

    Attributes:
        changes: The statement's changes. They are compared by identity, so they must stay alive.
        dangers: Reasons why the statement must not run.
        recording: Names of the binlogs that would log it.
    """

    changes: Changes
    dangers: tuple[Danger, ...]
    recording: frozenset[str]


_JUDGEMENTS_MAX: Final = 1_024


@lru_cache
def _token(definitions: tuple[Definition, ...]) -> object:
    """Return an object that stands for definitions, since to compare these takes long."""
    del definitions
    return object()


class ScopeSafety:
    """A session's memory of its binlogs' scopes.

    Attributes:
        definitions: The binlogs, in the order of their definitions.
        transaction: Writes of the open transaction so far.
        added: Part of these writes since a caller last emptied this field.
        logs_rows_alone: All of the binlogs log rows.
        modes: Logging modes of the definitions.
        token: Stands for the definitions: the same object as long as they are equal.
    """

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._define(definitions)
        self.transaction = self.added = NO_WRITES
        self._savepoints: dict[str, TransactionWrites] = {}
        self._temporary = TemporaryTables()
        self._judgements: dict[tuple[object, ...], _Judgement] = {}
        self._judged_with: tuple[object, object] = (self.definitions, self._temporary)

    def state(self) -> object:
        """Return the state that a judgement can depend on."""
        return self.definitions, self.transaction, self._savepoints, self._temporary

    def copy(self) -> ScopeSafety:
        """Copy the present state."""
        return copy(self)  # what it has is replaced, never changed in place

    def define(
        self,
        statement: str,
        objects: Objects,
        *,
        ansi_quotes: bool = False,
        ignores_case: bool = False,
    ) -> bool:
        """Carry out CREATE, ALTER or DROP BINLOG; False for any other statement.

        Args:
            statement: Text of any statement, also of others.
            objects: The server's tables, views and other objects.
            ansi_quotes: The session's sql_mode has ANSI_QUOTES.
            ignores_case: The server keeps names in lower case.

        Raises:
            StatementError: If the statement is malformed, the binlog exists or does not, or a list names a
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
        self.have(known.values())
        return True

    def have(self, definitions: Iterable[Definition]) -> None:
        """Take over other binlogs from here on."""
        self._define(definitions)
        self._temporary = self._temporary.scoped(self.definitions)

    def _define(self, definitions: Iterable[Definition]) -> None:
        self.definitions = tuple(definitions)
        self.token = _token(self.definitions)
        self.modes = {one.name: one.logging_mode for one in self.definitions}
        self.logs_rows_alone = all(mode is LoggingMode.ROW for mode in self.modes.values())

    def candidates(self, changes: Changes) -> frozenset[str]:
        """Names of the binlogs that may log a statement, so that its format must be decided."""
        known = self._known()
        found = known.get((id(changes),))
        if found is None:
            names = (one.name for one in self.definitions if self._is_candidate(changes, one))
            found = known[(id(changes),)] = _Judgement(changes, (), frozenset(names))
        return found.recording

    def _is_candidate(self, changes: Changes, definition: Definition) -> bool:
        if not changes.writes:
            return is_recorded(changes, self._setting(definition, {}, {}))
        if not coverage(changes, definition.scope).is_empty:
            return True
        begun = self._temporary.begun.get(definition.name, frozenset())
        is_drop = changes.kind in TABLE_DROPPING_KINDS
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

    def admit(
        self,
        changes: Changes,
        *,
        modes: Mapping[str, LoggingMode],
        formats: Mapping[str, LoggingFormat],
        is_in_transaction: bool,
    ) -> Refusal | frozenset[str]:
        """Find the binlogs that log a statement, or the refusal of some binlog.

        Args:
            changes: Changes and needs of the statement.
            modes: Logging mode of each binlog in this session.
            formats: The statement's format in those binlogs that may log it.
            is_in_transaction: The statement joins the open transaction; False if it commits that first.

        Returns:
            The refusal, or the names of the binlogs that log it.
        """
        judgement = self._judge(changes, modes, formats)
        dangers = judgement.dangers
        if not dangers and is_in_transaction:
            danger = find_partial_transaction(
                self.transaction, changes.writes, judgement.recording, self.definitions
            )
            dangers = () if danger is None else (danger,)
        if dangers:
            first, *others = map(_refusal, dangers)
            return replace(first, others=tuple(others))
        candidates = self.candidates(changes)
        if changes.kind in TABLE_DROPPING_KINDS and changes.temporary_writes:
            return candidates
        return candidates & judgement.recording

    def _judge(
        self,
        changes: Changes,
        modes: Mapping[str, LoggingMode],
        formats: Mapping[str, LoggingFormat],
    ) -> _Judgement:
        """Return the binlogs' judgement of a statement; kept as long as they and its tables are as now."""
        known = self._known()
        key = (id(changes), *modes.values(), *formats.items())
        found = known.get(key)
        if found is None:
            settings = [self._setting(one, modes, formats) for one in self.definitions]
            names = [one.definition.name for one in settings if is_recorded(changes, one)]
            dangers = tuple(find_dangers(changes, settings))
            found = known[key] = _Judgement(changes, dangers, frozenset(names))
        return found

    def _known(self) -> dict[tuple[object, ...], _Judgement]:
        """Return the judgements that still hold."""
        definitions, temporary = self._judged_with
        if definitions is not self.definitions or temporary is not self._temporary:
            self._judgements = {}
            self._judged_with = (self.definitions, self._temporary)
        elif len(self._judgements) >= _JUDGEMENTS_MAX:
            self._judgements.clear()
        return self._judgements

    def shadows_left_out(self, changes: Changes) -> Mapping[str, frozenset[TableName]]:
        """Return the shadows that triggers of a statement fill beside scopes, by binlog."""
        found: dict[str, set[TableName]] = {}
        for definition in self.definitions:
            for fired in changes.triggers:
                if fired.shadow is not None and fired.is_left_out(definition.scope):
                    found.setdefault(definition.name, set()).add(fired.shadow)
        return {name: frozenset(shadows) for name, shadows in found.items()}

    def executed(
        self,
        changes: Changes,
        recorders: frozenset[str],
        held: Mapping[str, Collection[TableName]],
        *,
        is_in_transaction: bool,
    ) -> None:
        """Remember the writes of a statement.

        Args:
            changes: Changes that the statement made.
            recorders: Names of the binlogs that log it.
            held: By binlog, the temporary tables whose creation it holds. A statement that reads other
                temporary tables goes as rows; these others are not those that a session has stopped to log.
            is_in_transaction: A transaction is open after it.
        """
        if is_in_transaction:
            self.transaction = self.transaction.added(changes.writes, recorders)
            self.added = self.added.added(changes.writes, recorders)
        names = {one.name for one in changes.temporary_writes}
        if changes.kind in TABLE_DROPPING_KINDS or not names:
            return
        for definition in self.definitions:
            if definition.name not in recorders:
                known = [one for one in held.get(definition.name, ()) if one in names]
                self._temporary = self._temporary.stopped(definition.name, known)

    def transaction_ended(self) -> None:
        """Forget the writes of the transaction that was committed or rolled back."""
        self.transaction = self.added = NO_WRITES
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

    def temporary_renamed(self, old: TableName, new: TableName) -> None:
        """Know a temporary table by its new name."""
        self._temporary = self._temporary.renamed(old, new)

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
        *(error.errno, error.sqlstate, SYMBOLS[type(error)], str(error)),
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
