"""Statements → what they do to the tables of a target, as steps that can each be done again.

The log has no rows for what DDL does to existing rows, so a copy must do it too: drop, empty,
rename, give a new column its default, and convert the values of one that changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import pyarrow as pa

from binlane.log.codec.types import Flavor
from binlane.statements.sql.column_charsets import named_charset
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.logged_columns import logged_column
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.statements.sql.statement_kinds import (
    TABLE_DROPPING_KINDS,
    TABLE_MAKING_KINDS,
    WRITING_KINDS,
    StatementKind,
)
from binlane.statements.sql.table_definitions import TableColumn
from binlane.statements.sql.tree.definitions import (
    AlterAction,
    AlterTable,
    CreateTable,
    DefinedColumn,
    KeyDefinition,
)
from binlane.tables.columnar.arrow_types import arrow_type
from binlane.tables.columnar.log_notes import Statement, Trouble
from binlane.tables.landing.column_changes import (
    AddColumn,
    ChangeRows,
    ColumnChange,
    DropColumn,
    ModifyColumn,
    RenameColumn,
    column_changes,
    created_columns,
    value_in_old_rows,
)
from binlane.tables.landing.column_conversions import Conversion
from binlane.tables.landing.column_families import CHARACTERS, is_alike, keeps_values
from binlane.tables.landing.column_values import UnknownValuesError
from binlane.tables.landing.generated_columns import dependent, flavor_of, is_computed, left_out
from binlane.tables.landing.landed_log import LandedLog
from binlane.tables.landing.steps import (
    Abandon,
    AbandonAll,
    Add,
    ColumnStep,
    Create,
    CreateLike,
    DropDatabase,
    DropTable,
    Modify,
    Relink,
    Remove,
    Rename,
    RenameTo,
    Reshape,
    Step,
    Truncate,
)

_CREATES: Final = TABLE_MAKING_KINDS - {StatementKind.CREATE_TABLE_SELECT}
# In row format CREATE TABLE … SELECT is logged as CREATE TABLE and rows.
_CHANGES_ROWS: Final = WRITING_KINDS | {
    *(StatementKind.CREATE_TABLE_SELECT, StatementKind.CALL, StatementKind.DO),
    StatementKind.SELECT,
}
_OF_TABLES: Final = frozenset(
    {
        *_CREATES,
        *TABLE_DROPPING_KINDS,
        *_CHANGES_ROWS,
        StatementKind.ALTER_TABLE,
        StatementKind.RENAME_TABLE,
        StatementKind.TRUNCATE_TABLE,
        StatementKind.DROP_DATABASE,
        StatementKind.COMPOUND,
        StatementKind.UNKNOWN,
    }
)
"""Kinds of statements that may do something to tables or their rows."""
_AS_TEXT: Final = frozenset({"UUID", "INET4", "INET6"})
"""Types whose rows are bytes in the log, and text for who knows the definition."""
_MAY_REMOVE_DUPLICATES: Final = frozenset({"MODIFY COLUMN", "CHANGE COLUMN", "CONVERT"})
_UNIQUE: Final = frozenset({"UNIQUE", "PRIMARY"})
_LINKS: Final = frozenset({"DROP FOREIGN KEY", "DROP CONSTRAINT"})
_IS_VERSIONED: Final = "it is system-versioned: the log has rows of its history among the others"
_IGNORED: Final = (
    "ALTER IGNORE may have removed rows that a key does not allow, and the log does not tell which"
)
_STRICT: Final = 1 << 21 | 1 << 22
_TIME_TRUNCATE_FRACTIONAL: Final = 1 << 32
_TIME_ROUND_FRACTIONAL: Final = 1 << 34


def may_have_steps(statement: Statement) -> bool:
    """True if a statement may do anything to tables, whatever definitions and scopes `steps` has.

    A task knows neither definitions nor scopes, and ends its rows before such a statement.
    """
    effects = statement.effects()
    if effects.kind not in _OF_TABLES and not effects.dropped_databases:
        return False
    is_understood = effects.stopped_at is None
    return not (is_understood and effects.is_temporary) or effects.kind in _CHANGES_ROWS


def steps(statement: Statement, before: LandedLog, after: LandedLog) -> tuple[Step, ...]:
    """Return the steps by which a statement changes tables, in order.

    Args:
        statement: A statement of the log.
        before: The log before the statement; what a rename takes out of its tables or into them
            follows.
        after: The log behind the statement.
    """
    effects = statement.effects()
    if effects.stopped_at is not None:
        found = _not_understood(statement, effects)
    elif effects.kind in _CHANGES_ROWS:
        found = _rows_changed(statement, effects, before.objects)
    elif effects.is_temporary:
        return ()
    else:
        found = _steps(statement, before, after)
    place = f"{statement.file}:{statement.position}"
    return _in_scope((_placed(step, place) for step in found), before, after)


def steps_of_trouble(trouble: Trouble, log: LandedLog) -> tuple[Step, ...]:
    """Return the steps of a group that cannot be followed: the tables that it concerns are given up."""
    reason = f"{trouble.what} ({trouble.file}:{trouble.position})"
    if trouble.hint:
        reason += f"; {trouble.hint}"
    if not trouble.tables:
        return (AbandonAll(reason, None),)
    tables = log.objects.with_children(trouble.tables)
    return _in_scope((Abandon(table, reason) for table in tables), log)


def _placed(step: Step, place: str) -> Step:
    """A step whose reason says where in the log the statement stands."""
    if isinstance(step, Abandon | AbandonAll):
        return replace(step, reason=f"{step.reason} ({place})")
    return step


def _in_scope(found: Iterable[Step], *logs: LandedLog) -> tuple[Step, ...]:
    """Steps without those that give up tables which are not landed."""
    return tuple(
        step
        for step in found
        if not isinstance(step, Abandon) or any(log.includes(step.table) for log in logs)
    )


def _not_understood(statement: Statement, effects: StatementEffects) -> Iterator[Step]:
    """Nothing is known of the tables that it may be about: those of the databases that it names."""
    is_of_tables = effects.kind in _OF_TABLES or bool(effects.dropped_databases)
    if not is_of_tables or effects.stopped_at is None:
        return
    reason = (
        "a statement that may have changed it is not understood, at "
        f"{effects.stopped_at.text[:20]!r}: {_shortened(statement.text)}"
    )
    named = {table.database for table in effects.changed_tables}
    databases = {statement.database, *effects.databases, *named}
    for database in sorted(databases):
        yield AbandonAll(reason, database or None)


def _rows_changed(
    statement: Statement, effects: StatementEffects, definitions: LoggedObjects
) -> Iterator[Step]:
    """Rows that a statement changes are in no log but one in row format."""
    reason = (
        "rows are changed by a statement, of which the log has no row images: "
        f"{_shortened(statement.text)}"
    )
    tables = [table for table in effects.writes if not definitions.is_temporary(table)]
    # Nobody knows which tables a view, a trigger or a routine writes.
    is_known = effects.writes and not effects.calls and not statement.calls_stored_functions()
    if is_known and all(definitions.is_plain(table) for table in tables):
        yield from (Abandon(table, reason) for table in definitions.with_children(tables))
    else:
        yield AbandonAll(reason, None)


def _steps(statement: Statement, before: LandedLog, after: LandedLog) -> Iterator[Step]:
    effects = statement.effects()
    kind = effects.kind
    if kind in _CREATES:
        yield from _create_steps(statement, effects, after)
    elif kind in TABLE_DROPPING_KINDS:
        yield from map(DropTable, effects.drops)
    elif kind is StatementKind.TRUNCATE_TABLE:
        yield from map(Truncate, effects.writes)
    elif kind is StatementKind.ALTER_TABLE:
        yield from _alter_steps(statement, before.objects, after.objects)
    yield from map(DropDatabase, effects.dropped_databases)
    yield from (Rename(old, new) for old, new in effects.renames)
    for first, last in effects.net_renames:
        if after.includes(last) and not before.includes(first):
            yield Abandon(last, f"it was renamed from {first.plain}, whose rows are not landed")
        elif not after.includes(last):
            yield DropTable(last)


def _create_steps(
    statement: Statement, effects: StatementEffects, after: LandedLog
) -> Iterator[Step]:
    table = effects.writes[0]
    if not effects.if_exists:
        yield DropTable(table)  # either it did not exist, or OR REPLACE dropped it
    if not after.includes(table):
        return
    facts = statement.facts()
    node = facts.tree
    if isinstance(node, CreateTable) and _is_versioned_by(node):
        yield Abandon(table, _IS_VERSIONED)
    elif effects.kind is StatementKind.CREATE_SEQUENCE:
        yield Abandon(table, "it is a sequence, no table with rows of its own")
    elif effects.kind is StatementKind.CREATE_TABLE_LIKE:
        yield from (CreateLike(table, like) for like in effects.reads[:1])
    else:
        columns = {each.name.lower(): each for each in created_columns(facts)}
        schema = pa.schema([(each.name, _arrow_type(each)) for each in columns.values()])
        left = left_out(columns, schema, flavor_of(statement.gtid))
        yield Create(table, pa.schema([each for each in schema if each.name not in left]))


def _alter_steps(
    statement: Statement, before: LoggedObjects, after: LoggedObjects
) -> Iterator[Step]:
    effects = statement.effects()
    table = effects.writes[0]
    facts = statement.facts()
    node = facts.tree
    assert isinstance(node, AlterTable)
    if _becomes_versioned(node):
        yield Abandon(table, _IS_VERSIONED)
        return
    if _may_remove_duplicates(node):
        yield Abandon(table, f"{_IGNORED}: {_shortened(statement.text)}")
        return
    changes = column_changes(facts)
    try:
        reshape = _reshape(statement, changes, before, after)
    except UnknownValuesError as error:
        yield Abandon(table, str(error))
        return
    if _may_link(node):
        yield Relink(table)
    lost = [change for change in changes if isinstance(change, ChangeRows)]
    if lost and all(change.is_all for change in lost):
        yield Truncate(table)
    elif lost:
        reason = f"the log does not tell which rows {lost[0].action} changes"
        yield from (Abandon(each, reason) for each in effects.writes)
    elif reshape is not None:
        yield reshape


def _is_versioned_by(node: CreateTable) -> bool:
    """True if a CREATE TABLE says WITH SYSTEM VERSIONING, of the table or a column."""
    words = "WITH SYSTEM VERSIONING"
    return any(option.name == words for option in node.options) or any(
        isinstance(each, DefinedColumn) and words in each.words for each in node.elements
    )


def _becomes_versioned(node: AlterTable) -> bool:
    return any(
        action.kind == "ADD SYSTEM VERSIONING"
        or (action.option is not None and action.option.name == "WITH SYSTEM VERSIONING")
        or any("WITH SYSTEM VERSIONING" in column.words for column in action.columns)
        for action in node.actions
    )


def _may_link(node: AlterTable) -> bool:
    """True if a statement may be about a foreign key."""
    return any(
        action.kind in _LINKS
        or any(key.kind == "FOREIGN" for key in _keys(action))
        or any(column.references is not None for column in action.columns)
        for action in node.actions
    )


def _keys(action: AlterAction) -> tuple[KeyDefinition, ...]:
    return action.keys if action.key is None else (*action.keys, action.key)


def _may_remove_duplicates(node: AlterTable) -> bool:
    """MariaDB's ALTER IGNORE TABLE keeps one of the rows that a new key does not allow."""
    return "IGNORE" in node.modifiers and any(
        action.kind in _MAY_REMOVE_DUPLICATES
        or any(key.kind in _UNIQUE for key in _keys(action))
        or any(column.key for column in action.columns)
        for action in node.actions
    )


def _reshape(
    statement: Statement,
    changes: Sequence[ColumnChange],
    objects: LoggedObjects,
    objects_after: LoggedObjects,
) -> Reshape | None:
    """Return the step that gives a table the columns of an ALTER TABLE; None if no column changes.

    Raises:
        NotToldError: If the log does not tell the columns or their values.
    """
    effects = statement.effects()
    table = effects.writes[0]
    before = objects.defined_columns(table)
    last = next((new for old, new in effects.net_renames if old == table), table)
    after = objects_after.defined_columns(last) if before else {}
    session = _Session.of(statement)
    found: list[ColumnStep] = []
    changed: set[str] = set()
    computed: set[str] = set()
    for change in changes:
        if isinstance(change, AddColumn):
            new = after.get(change.name.lower()) or change.column
            conversion = session.conversion(None, new, _arrow_type(change.column))
            found.append(_add_step(statement, change, conversion, is_known=bool(after)))
            if is_computed(new):
                computed.add(change.name.lower())
        elif isinstance(change, DropColumn):
            found.append(Remove(change.name))
        elif isinstance(change, RenameColumn):
            found.append(RenameTo(change.old, change.new))
        elif isinstance(change, ModifyColumn):
            new = after.get(change.name.lower()) or change.column
            old = before.get(change.old_name.lower())
            data_type = _arrow_type(change.column)
            found.append(Modify(change, session.conversion(old, new, data_type)))
            if old is None or not keeps_values(old, new):
                changed.add(change.name.lower())
            if is_computed(new) and not (old and _is_same_column(old, new)):
                computed.add(change.name.lower())
    others = list(_other_charsets(statement, session, before, after, found))
    changed |= {each.column.name.lower() for each in others}
    found += others
    if not found:
        return None
    return Reshape(
        table=table,
        changes=tuple(found),
        names=tuple(column.name for column in before.values()),
        place=f"{statement.file}:{statement.position}",
        columns=tuple(after.values()),
        computed=frozenset(computed | dependent(after, changed | computed)),
        flavor=session.flavor,
    )


def _is_same_column(old: TableColumn, new: TableColumn) -> bool:
    """True if a generated column has the same values by its definition before."""
    texts = [(each.generated, each.generated_modes) for each in (old, new)]
    return texts[0] == texts[1] and is_alike(old, new)


def _other_charsets(
    statement: Statement,
    session: _Session,
    before: Mapping[str, TableColumn],
    after: Mapping[str, TableColumn],
    found: Sequence[ColumnStep],
) -> Iterator[Modify]:
    """CONVERT TO CHARACTER SET: without strict mode what it lacks becomes other characters."""
    node = statement.facts().tree
    assert isinstance(node, AlterTable)
    for action in node.actions:
        if action.kind != "CONVERT" or session.is_strict or action.option is None:
            continue
        if not before and named_charset([action.option]) not in CHARACTERS:
            raise UnknownValuesError("its character set changed, and its columns' are not known")
        changed = {each.column.old_name.lower() for each in found if isinstance(each, Modify)}
        for name, old in before.items():
            new = after.get(name)
            if new is None or name in changed or is_computed(new):
                continue
            if new.charset != old.charset:
                column = ModifyColumn(column=new, old_name=old.name)
                conversion = session.conversion(old, new, pa.null())
                yield Modify(column, replace(conversion, takes_bytes=True))


@dataclass(frozen=True, slots=True)
class _Session:
    """Facts of a statement's session that decide about values that do not fit."""

    is_strict: bool
    rounds: bool | None
    flavor: Flavor | None

    @classmethod
    def of(cls, statement: Statement) -> Self:
        mode = statement.sql_mode
        node = statement.facts().tree
        is_ignored = isinstance(node, AlterTable) and "IGNORE" in node.modifiers
        flavor = flavor_of(statement.gtid)
        rounds = {
            Flavor.MARIADB: bool(mode & _TIME_ROUND_FRACTIONAL),
            Flavor.MYSQL: not mode & _TIME_TRUNCATE_FRACTIONAL,
            None: None,
        }[flavor]
        return cls(bool(mode & _STRICT) and not is_ignored, rounds, flavor)

    def conversion(
        self, old: TableColumn | None, new: TableColumn, data_type: pa.DataType
    ) -> Conversion:
        return Conversion(
            old=old,
            new=new,
            type=data_type,
            is_strict=self.is_strict,
            rounds=self.rounds,
            flavor=self.flavor,
        )


def _add_step(
    statement: Statement, change: AddColumn, conversion: Conversion, *, is_known: bool
) -> Add:
    if is_computed(change.column) and is_known:
        return Add(change, conversion.type, None)
    if change.is_numbered or change.column.is_generated:
        raise UnknownValuesError(
            f"the log does not tell the values of the new column {change.name}"
        )
    try:
        value = value_in_old_rows(change, conversion, statement.timestamp)
    except UnknownValuesError as error:
        raise UnknownValuesError(f"the default of the new column {change.name}: {error}") from None
    return Add(change, conversion.type, value)


def _arrow_type(definition: TableColumn) -> pa.DataType:
    if definition.type_name in _AS_TEXT:
        return pa.string()
    column = logged_column(definition)
    return pa.binary() if column is None else arrow_type(column)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
