"""Tables of a statement and its changes to them, through everything that it uses.

The input is a statement's facts and the server's objects; `procedure` decides how it is logged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import is_
from typing import Final, NamedTuple

from binlane.names import TableName
from binlane.statements.policy import refusals
from binlane.statements.policy.lock_list import LockList, Opened, fire_all, opened_by
from binlane.statements.policy.reasons import (
    OWN_TEXT,
    Reason,
    ReasonFound,
    Via,
    command_reasons,
    parsed_reasons,
)
from binlane.statements.policy.refusals import Refusal
from binlane.statements.policy.server import Server
from binlane.statements.policy.unsafe_defaults import has_varying_default, used_defaults
from binlane.statements.policy.used_objects import updated_uses
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import RowChange, Shift, StatementFacts, TableUse
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.schema import (
    DICTIONARY_ACCOUNT_VIEWS,
    DICTIONARY_VIEWS,
    INFORMATION_SCHEMA,
    Key,
    Table,
)
from binlane.statements.sql.servers import Fact
from binlane.statements.sql.statement_kinds import (
    CREATE_TABLE_KINDS,
    READING_KINDS,
    WRITING_KINDS,
    StatementKind,
)
from binlane.statements.sql.table_definitions import TableDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAccess:
    """One table of a statement's lock list.

    Attributes:
        changes: Changes to the table's rows; those of its own trigger or cascade are left to their own
            entries. Empty if the table is only read.
        is_locked_for_write: The table's lock is for writing (also a target whose rows do not change): the
            table counts as written in the decision.
        is_prelocked: A function, trigger or foreign key leads to the table.
        is_foreign_key: A foreign key leads to the table.
        has_unsafe_default: A column's DEFAULT may give another value on a replica.
        is_acl: The table is one of MySQL's tables of accounts and privileges.
        has_several_unique_keys: ON DUPLICATE KEY UPDATE may meet more than one of the table's keys.
        set_columns: Columns to which an UPDATE or ON DUPLICATE KEY UPDATE gives values, in small
            letters; empty if that is not known.
        alias: The table's name in the text that leads to it, in small letters.
        via: Steps from the statement's text to the table; empty if the text names it.
        offset: Position of the table's name, or of the name that leads to it, in characters.
        length: Length of the name at `offset`, in characters.
    """

    table: Table
    changes: frozenset[RowChange] = frozenset()
    is_locked_for_write: bool = False
    is_prelocked: bool = False
    is_foreign_key: bool = False
    has_unsafe_default: bool = False
    is_acl: bool = False
    has_several_unique_keys: bool = False
    set_columns: frozenset[str] = frozenset()
    alias: str = ""
    via: tuple[Via, ...] = ()
    offset: int = 0
    length: int = 0

    def moved(self, shift: Shift) -> TableAccess:
        """Return the same access in a statement that differs only in its literals."""
        offset = shift(self.offset)
        length = shift(self.offset + self.length) - offset
        if offset == self.offset and length == self.length:
            return self
        return replace(self, offset=offset, length=length)

    @property
    def name(self) -> TableName:
        """The table's name."""
        return self.table.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedStatement:
    """A statement's tables, through everything that it uses.

    Attributes:
        accesses: Tables in the order of the servers' lock list: those that the text names, views merged in
            their place, then those that functions, triggers and foreign keys add.
        dictionary: Reads of MySQL's information_schema, as the tables behind its views; no client can lock
            these tables, and they are in no binlog's scope.
        reasons: Unsafe reasons that the text, views, routines, triggers and defaults raise,
            before the decision (those that the decision itself raises are left to it).
        functions: Stored functions that are called, directly or not, in the servers' order.
        unknown_tables: Named tables that do not exist, with their offsets.
        absent: Tables that do not exist and that only functions and triggers name.
        errors: The server's errors for tables and views that it cannot open, in its order.
        has_row_statement: The command can generate row events.
        is_temporary: The statement creates, drops or truncates a temporary table.
        is_on_duplicate: The statement is INSERT of VALUES … ON DUPLICATE KEY UPDATE.
        is_delayed: The statement is MariaDB's INSERT or REPLACE DELAYED, and nothing in it forbids the delay.
        notes: Reasons why the answer is not known, such as a body that is not understood; empty if it is
            known.
        hides_prelocked: MariaDB takes the tables that functions add for named by the text.
    """

    kind: StatementKind = StatementKind.UNKNOWN
    accesses: tuple[TableAccess, ...] = ()
    dictionary: tuple[TableAccess, ...] = ()
    reasons: tuple[ReasonFound, ...] = ()
    functions: tuple[TableName, ...] = ()
    unknown_tables: tuple[tuple[TableName, int], ...] = ()
    absent: tuple[TableName, ...] = ()
    errors: tuple[Refusal, ...] = ()
    has_row_statement: bool = True
    is_temporary: bool = False
    is_on_duplicate: bool = False
    is_delayed: bool = False
    notes: tuple[str, ...] = ()
    hides_prelocked: bool = False

    @property
    def touches_temporary(self) -> bool:
        """True if any of the statement's tables is temporary, or the one that it is about."""
        return self.is_temporary or any(each.table.is_temporary for each in self.accesses)

    def moved(self, shift: Shift) -> ResolvedStatement:
        """Return the same tables for a statement that differs only in its literals."""
        accesses = tuple([access.moved(shift) for access in self.accesses])
        if not (self.reasons or self.unknown_tables or self.errors or self.dictionary):
            stays = all(map(is_, accesses, self.accesses))
            return self if stays else replace(self, accesses=accesses)
        return replace(
            self,
            accesses=accesses,
            dictionary=tuple(access.moved(shift) for access in self.dictionary),
            reasons=tuple(found.moved(shift) for found in self.reasons),
            unknown_tables=tuple((name, shift(offset)) for name, offset in self.unknown_tables),
            errors=tuple(error.moved(shift) for error in self.errors),
        )


ROW_KINDS: Final = (
    WRITING_KINDS
    | READING_KINDS
    | CREATE_TABLE_KINDS
    | {StatementKind.CALL, StatementKind.COMPOUND}
)
"""Commands that can generate row events."""
_OPENING_KINDS: Final = ROW_KINDS - {StatementKind.CREATE_TABLE, StatementKind.COMPOUND}
_LOCK_VERB: Final = "LOCK TABLES"
# Words of row-changing texts that have no kind of their own.
_ROW_VERBS: Final = frozenset({"EXECUTE", "EXECUTE IMMEDIATE", "BINLOG"})
_TEMPORARY_KINDS: Final = frozenset(
    {
        *(StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_LIKE),
        *(StatementKind.CREATE_TABLE_SELECT, StatementKind.DROP_TABLE),
    }
)
_MADE_UP: Final = "INFORMATION_SCHEMA"
# MySQL's tables of accounts and privileges, which are read without locks.
_ACL_TABLES: Final = frozenset(
    TableName("mysql", name)
    for name in (
        *("user", "db", "tables_priv", "columns_priv", "procs_priv", "proxies_priv"),
        *("role_edges", "default_roles", "global_grants", "password_history"),
    )
)


class Opening(NamedTuple):
    """A session's view of the server when it opens tables.

    Attributes:
        objects: The server's, temporary tables of the session among them.
        server: Server whose rules are followed.
        database: Default database of names without one.
        created: The table that CREATE … SELECT is about to make; None: a table with the engine that the
            statement names, else the default one, and with columns that are not known.
        assume_engine: Engine of tables that do not exist; None: such tables are errors.
        checks_foreign_keys: The session's value of foreign_key_checks.
    """

    objects: SchemaCatalog
    server: Server
    database: str
    created: Table | None = None
    assume_engine: str | None = None
    checks_foreign_keys: bool = True


def resolve(facts: StatementFacts, opening: Opening) -> ResolvedStatement:
    """Find the tables that a statement opens, and the reasons that its texts raise."""
    kind, objects, server = facts.effects.kind, opening.objects, opening.server
    # LOCK TABLES locks what foreign keys may lead to, whether they are checked or not.
    checks = opening.checks_foreign_keys or facts.verb == _LOCK_VERB
    list_ = LockList(objects, server, checks, opening.assume_engine)
    reasons: list[ReasonFound] = []
    if kind in _OPENING_KINDS or facts.verb == _LOCK_VERB:
        list_.open(_named(facts, opening), facts, opening.database)
        reasons += (*parsed_reasons(facts, objects, server), *list_.reasons)
    reasons.extend(command_reasons(facts))
    if kind is StatementKind.CREATE_TABLE_SELECT and not server.is_mariadb:
        list_.errors.extend(_written_while_created(list_))
    made = opening.created
    if kind is StatementKind.CREATE_TABLE_SELECT and made is not None and made.auto_increment:
        what = "CREATE … SELECT of an AUTO_INCREMENT column"
        reasons.append(ReasonFound(reason=Reason.CREATE_SELECT_AUTOINC, what=what))
    accesses, dictionary = _accesses(list_, facts, server)
    for entry in list_.tables:
        table = entry.table
        if table is None or not table.definition.has_default_expressions:
            continue
        if entry.changes and not entry.is_prelocked:
            place = entry.place if entry.place.via else OWN_TEXT
            reasons.extend(used_defaults(table, facts, server, place))
    return ResolvedStatement(
        kind=kind,
        accesses=tuple(accesses),
        dictionary=tuple(dictionary),
        reasons=_in_order(reasons),
        functions=tuple(list_.functions),
        unknown_tables=tuple(list_.unknown),
        absent=tuple(list_.absent),
        errors=tuple(list_.errors),
        has_row_statement=kind in ROW_KINDS or facts.verb in _ROW_VERBS,
        is_temporary=_is_temporary(facts, objects),
        is_on_duplicate=(
            kind is StatementKind.INSERT and facts.is_on_duplicate and not facts.has_query
        ),
        is_delayed=_is_delayed(facts, list_, server),
        notes=tuple(list_.notes),
        hides_prelocked=list_.hides_prelocked,
    )


def _named(facts: StatementFacts, opening: Opening) -> Iterator[Opened]:
    """Give the tables that the statement's own text names, in its order."""
    uses, is_mariadb = facts.tables, opening.server.is_mariadb
    is_joined_update = facts.effects.kind is StatementKind.UPDATE and facts.is_multi_table
    if is_joined_update:
        uses = updated_uses(uses, facts.set_columns, opening.objects)
    if facts.effects.kind is StatementKind.CREATE_TABLE_SELECT:
        made = facts.effects.writes[0]
        yield _created(made, facts, opening)
        uses = tuple(use for use in uses if not _is_made(use, made, facts))
    entries = [
        opened_by(use, OWN_TEXT, facts.set_columns, is_prelocked=False)
        for use in uses
        if not use.is_sequence or is_mariadb
    ]
    if is_joined_update and not is_mariadb:
        fire_all(entries)
    yield from entries


def _is_made(use: TableUse, made: TableName, facts: StatementFacts) -> bool:
    """True if a name in CREATE … SELECT is that of the table that the statement makes."""
    return use.name == made and (
        bool(use.changes) or facts.query_offset is None or use.offset < facts.query_offset
    )


def _created(name: TableName, facts: StatementFacts, opening: Opening) -> Opened:
    created = opening.created
    if created is None:
        engine = facts.engine or opening.objects.settings().get("default_storage_engine", "InnoDB")
        created = Table(
            name=name,
            definition=TableDefinition(columns=()),
            engine=engine.upper(),
            is_temporary=facts.effects.is_temporary,
        )
    changes = frozenset({RowChange.REPLACE if facts.is_replace else RowChange.INSERT})
    return Opened(name=name, changes=changes, is_locked_for_write=True, table=created)


def _written_while_created(list_: LockList) -> Iterator[Refusal]:
    """Give MySQL's error for a query that locks for writing: by FOR UPDATE, or in a function."""
    for entry in list_.tables[1:]:
        if entry.is_locked_for_write:
            yield refusals.written_while_created(entry.name, list_.tables[0].name)
            return


def _accesses(
    list_: LockList, facts: StatementFacts, server: Server
) -> tuple[list[TableAccess], list[TableAccess]]:
    """Return the tables that are opened, and those behind views of MySQL's information_schema."""
    accesses: list[TableAccess] = []
    dictionary: list[TableAccess] = []
    for entry in list_.tables:
        if entry.table is None:
            continue
        # A table that is made up when it is read stands in no lock list.
        if entry.table.engine != _MADE_UP:
            accesses.append(_access(entry, entry.table, facts, server))
        elif _is_of_dictionary(entry.table, server):
            dictionary.append(_access(entry, replace(entry.table, engine="INNODB"), facts, server))
    return accesses, dictionary


def _access(entry: Opened, table: Table, facts: StatementFacts, server: Server) -> TableAccess:
    is_written = entry.is_locked_for_write
    return TableAccess(
        table=table,
        changes=entry.changes,
        is_locked_for_write=is_written,
        is_prelocked=entry.is_prelocked,
        is_foreign_key=entry.is_foreign_key,
        has_unsafe_default=is_written
        and table.definition.has_default_expressions
        and has_varying_default(table, server),
        is_acl=not server.is_mariadb and _has_accounts(table.name),
        has_several_unique_keys=is_written and _has_several_keys(entry, table, facts, server),
        set_columns=frozenset(column.name.lower() for column in entry.set_columns),
        alias=(table.name.table if entry.use is None else entry.use.alias).lower(),
        via=entry.place.via,
        offset=entry.place.offset,
        length=entry.place.length,
    )


def _is_of_dictionary(table: Table, server: Server) -> bool:
    """True if a table is a view in information_schema, so that tables are opened for it."""
    is_view = table.engine == _MADE_UP and table.name.table.lower() in DICTIONARY_VIEWS
    return is_view and server.has(Fact.DICTIONARY_TABLES)


def _has_accounts(name: TableName) -> bool:
    """True if a name is one of MySQL's tables of accounts, or a view of them."""
    if name.database.lower() == INFORMATION_SCHEMA:
        return name.table.lower() in DICTIONARY_ACCOUNT_VIEWS
    return name in _ACL_TABLES


def _has_several_keys(entry: Opened, table: Table, facts: StatementFacts, server: Server) -> bool:
    """True if ON DUPLICATE KEY UPDATE may meet several keys.

    MariaDB leaves out a key over a column that stays NULL; MySQL counts them all.
    """
    if server.is_mariadb and not entry.is_prelocked:
        return sum(_may_be_met(key, table, facts) for key in table.unique_keys) > 1
    return len(table.unique_keys) > 1


def _may_be_met(key: Key, table: Table, facts: StatementFacts) -> bool:
    if facts.columns is None:
        return True
    supplied = {name.lower() for name in facts.columns}
    supplied |= {column.name.lower() for column in facts.set_columns}
    columns = {column.name.lower(): column for column in table.definition.columns}
    for name in key.columns:
        column = columns.get(name.lower())
        if (
            column is not None
            and name.lower() not in supplied
            and column.is_nullable
            and not column.is_auto_increment
            and not column.is_generated
            and (column.default is None or column.default.upper() == "NULL")
            and not key.is_primary
        ):
            return False
    return True


def _is_temporary(facts: StatementFacts, objects: Objects) -> bool:
    """True if the statement creates, drops or truncates a temporary table."""
    effects = facts.effects
    if effects.kind in _TEMPORARY_KINDS and effects.is_temporary:
        return True
    if effects.kind not in (StatementKind.DROP_TABLE, StatementKind.TRUNCATE_TABLE):
        return False
    tables = (objects.table(name) for name in effects.writes)
    return any(table is not None and table.is_temporary for table in tables)


def _is_delayed(facts: StatementFacts, list_: LockList, server: Server) -> bool:
    """True if another thread inserts the rows: the statement needs only this one table."""
    return (
        server.is_mariadb
        and facts.is_delayed
        and not facts.has_query
        and not facts.is_on_duplicate
        and not list_.functions
        and not any(entry.is_prelocked for entry in list_.tables)
    )


def _in_order(found: list[ReasonFound]) -> tuple[ReasonFound, ...]:
    """Return each reason once, in the servers' bit order: that of the statement's own text is preferred."""
    first: dict[Reason, ReasonFound] = {}
    for each in found:
        before = first.get(each.reason)
        if before is None or (before.via and not each.via):
            first[each.reason] = each
    return tuple(sorted(first.values(), key=lambda each: each.reason.position))
