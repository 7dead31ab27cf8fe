"""Check that every binlog can replicate a statement: the refusals of seed 000.

The module is pure. All writes of a statement must fall wholly inside or wholly outside of each
scope; a statement that a binlog logs as text must need only objects that the binlog logs too; and
binlogs scoped by tables that log statements stand neither triggers nor LOAD DATA. Refusals that
concern transactions are in `transaction`, those that concern temporary tables in `temporary`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from binlane.errors import (
    DependencyError,
    LoadDataError,
    PartialWriteError,
    TriggerError,
    UnsafeStatementError,
)
from binlane.names import TableName
from binlane.statements.scope.changes import Changes, ObjectKind, UsedObject
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.repair import statement_to_log
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.servers import LoggingFormat, LoggingMode
from binlane.statements.sql.statement_kinds import (
    DDL_KINDS,
    TABLE_DROPPING_KINDS,
    TABLE_MAKING_KINDS,
    StatementKind,
)

NOT_UNDERSTOOD_HINT = "write it in another way, or use binlogs that log everything"
SPLIT_HINT = "let each binlog log all of it or nothing of it, or change less in one statement"
TEMPORARY_HINT = (
    "a temporary table is logged only in statement format, from its creation on: write to it in "
    "a statement of its own"
)
ROW_HINT = "SET SESSION binlog_format = 'ROW'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One binlog with the logging mode and format that hold for a statement.

    Attributes:
        mode: Logging mode of the binlog in this session.
        logging_format: Format decided for the statement; DDL is logged as a statement with either
            value.
        temporary_tables: Open temporary tables that the binlog has logged whole up to now.
    """

    definition: Definition
    mode: LoggingMode
    logging_format: LoggingFormat
    temporary_tables: frozenset[TableName] = frozenset()

    def logs(self, used: UsedObject, changes: Changes) -> bool:
        """True if the binlog logs the statement's effect on an object."""
        if not used.is_temporary:
            return used.is_in(self.definition.scope)
        is_made = changes.kind in TABLE_MAKING_KINDS
        return (
            self.mode is not LoggingMode.ROW
            and (self.logging_format is LoggingFormat.STATEMENT or (changes.kind in DDL_KINDS))
            and used.is_in(self.definition.scope)
            and (is_made or used.name in self.temporary_tables)
        )

    def is_text(self, changes: Changes) -> bool:
        """True if the statement would go into the binlog as its text."""
        return (changes.kind in DDL_KINDS) or self.logging_format is LoggingFormat.STATEMENT

    def needs_temporary_tables(self, changes: Changes) -> bool:
        """True if a replay of the statement needs the temporary tables that it reads.

        The servers rewrite the text of DDL in the other modes. Under mode STATEMENT a session that
        leaves the format to the server would go on in rows, which seed 000 does not allow.
        """
        if self.mode is LoggingMode.STATEMENT:
            return True
        return self.logging_format is LoggingFormat.STATEMENT and changes.kind not in DDL_KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An object that leads to a refusal, and what would make it none (empty: see the others)."""

    used: UsedObject
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """Reason why a statement must not run.

    Attributes:
        error: Error that the client gets.
        binlogs: Names of the binlogs that cannot log the statement, sorted.
        causes: Objects that lead to the error, in the order of the message.
    """

    error: UnsafeStatementError
    binlogs: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """Share of a statement's changes that a binlog logs: each change, and whether it is logged."""

    changes: tuple[tuple[UsedObject, bool], ...]

    @property
    def is_empty(self) -> bool:
        """True if no change is logged."""
        return True not in [is_logged for _, is_logged in self.changes]

    @property
    def is_whole(self) -> bool:
        """True if there are changes and all of them are logged."""
        return bool(self.changes) and False not in [is_logged for _, is_logged in self.changes]

    @property
    def is_partial(self) -> bool:
        """True if some changes are logged and some are not."""
        return not self.is_empty and not self.is_whole


def coverage(changes: Changes, scope: Scope) -> Coverage:
    """Compare what a statement changes, temporary tables left out, with a scope.

    Shadows beside their tables do not count, if all that the statement names of them are outside.
    """
    written = changes.permanent_writes
    shadows = [used for used in written if used.shadowed is not None]
    if shadows and all(used.is_shadow_beside(scope) for used in shadows):
        written = tuple(used for used in written if used.shadowed is None)
    if changes.drops_databases:
        written = (*written, *_split_tables(changes, scope))
    return Coverage(tuple([(used, used.is_in(scope)) for used in written]))


def _split_tables(changes: Changes, scope: Scope) -> Iterable[UsedObject]:
    """Give the tables that the scope names in a dropped database that it splits.

    DROP DATABASE then changes some tables inside of the scope, and some outside.
    """
    for dropped in changes.permanent_writes:
        if dropped.kind is ObjectKind.DATABASE and scope.splits_database(dropped.database):
            for table in sorted(scope.tables_named()):
                if scope.is_same(table.database, dropped.database):
                    yield UsedObject(name=table, offset=dropped.offset, length=dropped.length)


def find_dangers(changes: Changes, settings: Sequence[Setting]) -> Iterator[Danger]:
    """Find out whether some binlog could not replicate a statement safely.

    Args:
        changes: Changes and needs of the statement.
        settings: All binlogs with their modes and formats.

    Yields:
        The reasons against the statement: first its writes on both sides of a scope's edge, then
        its needs.
    """
    if changes.stopped_near:
        yield from _not_understood(changes, settings)
        return
    covered = [(one, _coverage(changes, one)) for one in settings]
    yield from _partial_writes(covered)
    yield from _fired_triggers(changes, settings)
    yield from _load_data(changes, settings)
    yield from _dependencies(changes, covered)


def _not_understood(changes: Changes, settings: Sequence[Setting]) -> Iterator[Danger]:
    names = tuple(
        sorted(one.definition.name for one in settings if not one.definition.scope.is_unscoped)
    )
    if not names:
        return
    error = UnsafeStatementError(
        f"what it reads and writes could not be found out near '{changes.stopped_near}'",
        hint=NOT_UNDERSTOOD_HINT,
    )
    yield Danger(error=error, binlogs=names)


def _coverage(changes: Changes, setting: Setting) -> Coverage:
    """Give the share of the changes that one binlog would log, temporary tables among them."""
    found = coverage(changes, setting.definition.scope).changes
    temporary = changes.temporary_writes
    if changes.kind in TABLE_DROPPING_KINDS and not found:
        # Each is dropped where it was made.
        return Coverage(())
    return Coverage((*found, *[(table, setting.logs(table, changes)) for table in temporary]))


def _partial_writes(covered: Sequence[tuple[Setting, Coverage]]) -> Iterator[Danger]:
    """Find pairs of writes that binlogs split, each with all that split it; a binlog has one."""
    if not any([one.is_partial for _, one in covered]):  # noqa: C419 - it is faster
        return
    found = [(setting, dict(one.changes)) for setting, one in covered]
    told: set[str] = set()
    for first, logged in found:
        if first.definition.name in told or len(set(logged.values())) < 2:
            continue
        one, *others = logged
        other = next(used for used in others if logged[used] != logged[one])
        splitting = [
            setting.definition
            for setting, writes in found
            if one in writes and other in writes and writes[one] != writes[other]
        ]
        told.update(definition.name for definition in splitting)
        yield Danger(
            error=PartialWriteError(
                f"binlogs {braced(splitting)} do not log both {one} and {other}", hint=SPLIT_HINT
            ),
            binlogs=_names(splitting),
            causes=tuple(_write_cause(used, splitting) for used in (one, other)),
        )


def _write_cause(used: UsedObject, definitions: Iterable[Definition]) -> Cause:
    """Say how the binlogs that do not log a write could."""
    if used.is_temporary:
        return Cause(used=used, hint=TEMPORARY_HINT)
    hint = "; ".join(filter(None, (statement_to_log(one, used) for one in definitions)))
    return Cause(used=used, hint=hint)


def _fired_triggers(changes: Changes, settings: Sequence[Setting]) -> Iterator[Danger]:
    """Refuse triggers where a binlog logs their table by its name, in statement format."""
    for setting in settings:
        definition = setting.definition
        is_statement = (
            setting.mode is LoggingMode.STATEMENT
            if (changes.kind in DDL_KINDS)
            else setting.logging_format is LoggingFormat.STATEMENT
        )
        if not is_statement:
            continue
        for fired in changes.triggers:
            if (
                definition.scope.includes(fired.table)
                and is_by_table(definition.scope, fired.table.database)
                and not fired.is_left_out(definition.scope)
            ):
                text = (
                    f"binlog {definition.name} logs {fired.table} by its name and in statement "
                    f"format, with which triggers such as {fired.trigger} are not supported"
                )
                database = UsedObject(name=fired.table.database, kind=ObjectKind.DATABASE)
                wider = statement_to_log(definition, database)
                hint = "; ".join(filter(None, (wider, ROW_HINT)))
                yield Danger(
                    error=TriggerError(text, hint=hint),
                    binlogs=(definition.name,),
                    causes=(Cause(used=fired.trigger, hint=hint),),
                )
                break


def is_by_table(scope: Scope, database: str) -> bool:
    """True if a scope tells the tables of a database apart by their names."""
    return not scope.includes_database(database) or scope.splits_database(database)


def _load_data(changes: Changes, settings: Sequence[Setting]) -> Iterator[Danger]:
    """Refuse LOAD DATA as a statement in a scoped binlog, where it may be replayed wrongly."""
    if changes.kind is not StatementKind.LOAD_DATA:
        return
    for setting in settings:
        definition = setting.definition
        if (
            setting.is_text(changes)
            and not definition.scope.is_unscoped
            and not coverage(changes, definition.scope).is_empty
        ):
            text = f"binlog {definition.name} is scoped and would log LOAD DATA as a statement"
            yield Danger(
                error=LoadDataError(text, hint=ROW_HINT),
                binlogs=(definition.name,),
                causes=tuple(Cause(used=one, hint=ROW_HINT) for one in changes.writes[:1]),
            )


def _dependencies(
    changes: Changes, covered: Sequence[tuple[Setting, Coverage]]
) -> Iterator[Danger]:
    """Find what a binlog's replay of the text would need and may not have."""
    if not changes.needs:
        return
    for setting, coverage_there in covered:
        if not coverage_there.is_whole:
            continue
        for needed in changes.needs:
            if needed.is_temporary:
                is_missing = setting.needs_temporary_tables(changes) and (
                    needed.name not in setting.temporary_tables
                )
            elif needed.is_shadow_beside(setting.definition.scope):
                is_missing = False  # its trigger is left out
            else:
                is_missing = setting.is_text(changes) and not needed.is_in(setting.definition.scope)
            if is_missing:
                yield _dependency_danger(changes, setting.definition, needed)


def _dependency_danger(changes: Changes, definition: Definition, needed: UsedObject) -> Danger:
    repair = statement_to_log(definition, needed)
    ways = [repair] if repair else []
    if needed.is_temporary:
        ways = [TEMPORARY_HINT]
    elif changes.kind not in DDL_KINDS:
        ways.append(ROW_HINT)
    hint = "; or ".join(ways)
    error = DependencyError(
        f"binlog {definition.name} does not log {needed}, "
        "consequently the statement might not replay correctly",
        hint=hint,
    )
    return Danger(error=error, binlogs=(definition.name,), causes=(Cause(used=needed, hint=hint),))


def is_recorded(changes: Changes, setting: Setting) -> bool:
    """True if a binlog logs a statement that no binlog refuses.

    In statement format a procedure belongs to its database: binlogs that log a table only by its
    name do not get the changes that procedures make to it (seed 000). Triggers that only keep a
    shadow up to date are where their shadow is.
    """
    scope = setting.definition.scope
    if changes.kind in _OF_TRIGGERS and any(one.is_shadow_beside(scope) for one in changes.needs):
        return False
    found = _coverage(changes, setting)
    if not found.changes:
        return changes.kind not in WITHOUT_OBJECTS or setting.definition.scope.is_unscoped
    if found.is_empty:
        return False
    if not (changes.is_in_procedure and setting.is_text(changes)):
        return True
    return all(
        setting.definition.scope.includes_database(used.database)
        for used, is_logged in found.changes
        if is_logged
    )


_OF_TRIGGERS = frozenset((StatementKind.CREATE_TRIGGER, StatementKind.DROP_TRIGGER))

WITHOUT_OBJECTS = frozenset(
    (
        StatementKind.FLUSH,
        StatementKind.SERVER,
        StatementKind.TABLESPACE,
        StatementKind.MAINTENANCE,
        StatementKind.CREATE_REFERENCE_SYSTEM,
        StatementKind.DROP_REFERENCE_SYSTEM,
    )
)
"""Statements whose changes have no name that a scope could hold."""


def braced(definitions: Iterable[Definition]) -> str:
    """Names as the refusals of seed 000 print them."""
    return "{" + ", ".join(_names(definitions)) + "}"


def _names(definitions: Iterable[Definition]) -> tuple[str, ...]:
    return tuple(sorted(definition.name for definition in definitions))
