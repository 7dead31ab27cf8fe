"""Safety over several binlogs, for a session: the binlogs that log a statement, or those that refuse it.

The rules are in `scope`; this module remembers the session's state for them: the writes of its transaction,
and the binlogs that log each of its temporary tables. It is used only where binlogs are defined; a server's
own single log knows no scopes.


The changes and needs of one statement come from its resolved form, in which views, triggers, functions and
foreign keys are followed already: `policy.resolution` lists every table with the steps that lead to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.errors import (
    DefinitionError,
    DependencyError,
    LoadDataError,
    NotLoggableError,
    PartialTransactionError,
    PartialWriteError,
    TriggerError,
    UnsafeStatementError,
)
from binlane.names import TableName, quote
from binlane.statements.policy.engines import traits
from binlane.statements.policy.reasons import Via
from binlane.statements.policy.refusals import Refusal, Why
from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.policy.server import Server
from binlane.statements.scope.changes import (
    NAMED_ONLY,
    SCHEMAS_OF_EVERY_SERVER,
    Changes,
    FiredTrigger,
    ObjectKind,
    UsedObject,
    changed_databases,
    needed_tables,
    written_tables,
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
from binlane.statements.scope.transaction import TransactionWrites, find_partial_transaction
from binlane.statements.sql.facts import RowChange, StatementFacts, TableUse
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import LoggingFormat, LoggingMode
from binlane.statements.sql.statement_kinds import (
    READING_KINDS,
    TABLE_DROPPING_KINDS,
    TABLE_MAKING_KINDS,
    WRITING_KINDS,
    StatementKind,
)

_BY_ROWS: Final = WRITING_KINDS | READING_KINDS | {StatementKind.CALL}
"""Kinds of statements whose changes are those of rows; the text may name a view instead."""


_EVENTS: Final[Mapping[RowChange, tuple[str, ...]]] = MappingProxyType(
    {
        RowChange.INSERT: ("INSERT",),
        RowChange.LOAD: ("INSERT",),
        RowChange.UPDATE: ("UPDATE",),
        RowChange.DELETE: ("DELETE",),
        RowChange.REPLACE: ("INSERT", "DELETE"),
        RowChange.UPSERT: ("INSERT", "UPDATE"),
    }
)
"""Events of triggers by the change of rows."""


def changes_of(
    facts: StatementFacts,
    resolved: ResolvedStatement,
    objects: Objects,
    *,
    server: Server,
    is_in_procedure: bool = False,
) -> Changes:
    """Return a statement's changes and needs, through everything that it uses.

    Args:
        facts: Facts of the statement's text.
        resolved: The statement's tables with its accesses.
        objects: The server's objects before the statement runs.
        server: Server whose engines are meant.
        is_in_procedure: The statement stands in the body of a procedure that CALL runs.
    """
    is_by_rows = facts.effects.kind in _BY_ROWS
    # The first place is the one that is told.
    uses = {} if is_by_rows else {use.name: use for use in reversed(facts.tables)}
    found = _Used(facts, resolved, objects, server, uses)
    stopped = facts.effects.stopped_at
    return Changes(
        kind=facts.effects.kind,
        writes=_once(found.writes()),
        needs=_once(found.needs()),
        triggers=(*found.made_triggers(), *found.fired_triggers()),
        is_in_procedure=is_in_procedure,
        stopped_near="" if stopped is None else stopped.text[:80] or "the end",
    )


def _once(found: Iterable[UsedObject]) -> tuple[UsedObject, ...]:
    """Each object once, as it was found first."""
    first: dict[tuple[object, ...], UsedObject] = {}
    for used in found:
        first.setdefault((used.kind, used.name, used.is_temporary), used)
    return tuple(first.values())


@dataclass(frozen=True, slots=True)
class _Used:
    """Finds the objects that a statement uses."""

    facts: StatementFacts
    resolved: ResolvedStatement
    objects: Objects
    server: Server
    uses: Mapping[TableName, TableUse]

    def writes(self) -> Iterator[UsedObject]:
        effects = self.facts.effects
        if effects.kind is StatementKind.DROP_TRIGGER:
            # A trigger goes where its table goes, also when it is dropped.
            triggers = [self.objects.trigger(name) for name in effects.objects]
            yield from (UsedObject(name=one.table) for one in triggers if one is not None)
            if None in triggers:
                yield from changed_databases(effects)
            return
        if effects.kind not in _BY_ROWS:
            made = self._new_names()
            yield from (self._named(name) for name in written_tables(effects) if name not in made)
            yield from changed_databases(effects)
        for access in self.resolved.accesses:
            if access.changes:
                is_transactional = _has_rollback(access.table, self.server)
                yield replace(_accessed(access), is_transactional=is_transactional)

    def _new_names(self) -> frozenset[TableName]:
        """The new names of temporary tables, which no binlog can know."""
        effects = self.facts.effects
        if effects.kind is StatementKind.RENAME_TABLE and not self.server.is_mariadb:
            return frozenset()  # MySQL renames no temporary tables
        return frozenset(new for old, new in effects.net_renames if self._is_temporary(old))

    def _named(self, name: TableName) -> UsedObject:
        """A table that the text of a DDL statement names."""
        effects = self.facts.effects
        use = self.uses.get(name)
        is_made = effects.kind in TABLE_MAKING_KINDS
        return UsedObject(
            name=name,
            is_temporary=effects.is_temporary or (not is_made and self._is_temporary(name)),
            offset=use.offset if use else 0,
            length=use.length if use else 0,
        )

    def _is_temporary(self, name: TableName) -> bool:
        table = self.objects.table(name)
        return table is not None and table.is_temporary

    def needs(self) -> Iterator[UsedObject]:
        """Give the needs of a replay of the text: tables read, views and functions on the way, and names.

        Tables that a foreign key only looks at are left out: a replica without them has no such foreign key
        either.
        """
        effects = self.facts.effects
        if effects.kind in NAMED_ONLY:
            return
        if effects.kind not in _BY_ROWS:
            yield from map(self._need_named, needed_tables(effects))
            yield from (UsedObject(name=name, kind=ObjectKind.ROUTINE) for name in effects.calls)
        written = set(effects.writes)
        for access in self.resolved.accesses:
            yield from _needs_on_the_way(access)
            is_outside = access.name.database.lower() not in SCHEMAS_OF_EVERY_SERVER
            is_read = not access.changes and not access.is_foreign_key
            if is_read and is_outside and (effects.kind in _BY_ROWS or access.name not in written):
                yield _accessed(access)
        functions = self.resolved.functions
        yield from (UsedObject(name=name, kind=ObjectKind.ROUTINE) for name in functions)

    def _need_named(self, name: TableName) -> UsedObject:
        used = self._named(name)
        is_made = self.facts.effects.kind in TABLE_MAKING_KINDS
        return replace(
            used,
            kind=ObjectKind.TABLE if self.objects.view(name) is None else ObjectKind.VIEW,
            is_temporary=self._is_temporary(name) if is_made else used.is_temporary,
        )

    def made_triggers(self) -> Iterator[FiredTrigger]:
        effects = self.facts.effects
        if effects.kind is StatementKind.CREATE_TRIGGER:
            for name, table in zip(effects.objects, effects.writes, strict=False):
                trigger = UsedObject(name=name, kind=ObjectKind.ROUTINE)
                yield FiredTrigger(trigger=trigger, table=table)

    def fired_triggers(self) -> Iterator[FiredTrigger]:
        """Triggers of the tables whose rows change; cascades of foreign keys fire none."""
        for access in self.resolved.accesses:
            if access.is_foreign_key or access.table.is_temporary or not access.changes:
                continue
            events = {event for change in access.changes for event in _EVENTS.get(change, ())}
            for trigger in self.objects.triggers(access.name):
                if trigger.events & events:
                    used = _on_the_way(access, trigger.name, ObjectKind.ROUTINE, access.via)
                    yield FiredTrigger(trigger=used, table=access.name)


def _accessed(access: TableAccess) -> UsedObject:
    used = _on_the_way(access, access.name, ObjectKind.TABLE, access.via)
    return replace(used, is_temporary=access.table.is_temporary)


def _on_the_way(
    access: TableAccess, name: TableName, kind: ObjectKind, via: Iterable[Via]
) -> UsedObject:
    return UsedObject(
        name=name,
        kind=kind,
        through=tuple(f"{step.kind} {step.name.plain}" for step in via),
        offset=access.offset,
        length=access.length,
    )


def _has_rollback(table: Table, server: Server) -> bool:
    try:
        return traits(table, server).has_rollback
    except NotLoggableError:
        return False


_KINDS: Final = {"view": ObjectKind.VIEW, "function": ObjectKind.ROUTINE}


def _needs_on_the_way(access: TableAccess) -> Iterator[UsedObject]:
    """Views and functions through which the statement comes to a table."""
    for index, via in enumerate(access.via):
        if via.kind in _KINDS:
            yield _on_the_way(access, via.name, _KINDS[via.kind], access.via[:index])


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


class ScopeSafety:
    """A session's memory of its binlogs' scopes.

    Attributes:
        definitions: The binlogs, in the order of their definitions.
        transaction: Writes of the open transaction so far.
        added: Part of these writes since a caller last emptied this field.
        logs_rows_alone: All of the binlogs log rows.
    """

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._define(definitions)
        self.transaction = self.added = TransactionWrites()
        self._savepoints: dict[str, TransactionWrites] = {}
        self._temporary = TemporaryTables()
        self._judgements: dict[tuple[object, ...], _Judgement] = {}
        self._judged_with: tuple[object, object] = (self.definitions, self._temporary)

    @property
    def modes(self) -> Mapping[str, LoggingMode]:
        """The logging modes of the definitions."""
        return self._modes

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
        self._modes = {one.name: one.logging_mode for one in self.definitions}
        self.logs_rows_alone = all(mode is LoggingMode.ROW for mode in self._modes.values())

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
            names = (one.definition.name for one in settings if is_recorded(changes, one))
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
        self.transaction = self.added = TransactionWrites()
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
