"""The servers' lock list: every table that a statement opens, through all that it uses.

Theory: a server opens the tables that a statement names in the order of the text. A view's tables
come directly behind it. A table that is written adds, at the end of the list, the tables of its
triggers and the children of its foreign keys; when the list is through, each stored function
adds its tables at the end, in the order of the calls, and the functions that these call come to
the end of the functions. The server repeats this until nothing is added.

Source: sql_base.cc `open_tables`, `handle_table`, `handle_view`, `handle_routine`, and sp_head.cc,
of MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from binlane.names import TableName
from binlane.statements.policy import refusals
from binlane.statements.policy.reasons import OWN_TEXT, ReasonFound, TextPlace, Via, parsed_reasons
from binlane.statements.policy.unsafe_defaults import default_facts, used_columns
from binlane.statements.policy.used_objects import (
    NO_CHANGES,
    ROW_DELETES,
    ROW_UPDATES,
    body_use,
    cascaded,
    columns_behind,
    identifier,
    in_server_order,
    is_merged,
    roles,
    updated_uses,
)
from binlane.statements.sql.facts import RowChange, SetColumn
from binlane.statements.sql.schema import SYSTEM_DATABASES, ForeignKey, Table, TriggerTime
from binlane.statements.sql.servers import Fact
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_definitions import TableDefinition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from binlane.statements.policy.refusals import Refusal
    from binlane.statements.policy.server import Server
    from binlane.statements.sql.facts import FunctionUse, SetColumn, StatementFacts, TableUse
    from binlane.statements.sql.object_store import Objects
    from binlane.statements.sql.schema import Routine, Trigger, View
from binlane.statements.sql.evaluation.functions import SYS, is_made

TABLES_MAX: Final = 10_000
"""More are not opened: views of views can name any number."""


_EVENTS: Final = ("INSERT", "UPDATE", "DELETE")


# Trigger events by the change of rows that fires them.
_FIRED: Final = {
    RowChange.INSERT: {"INSERT"},
    RowChange.LOAD: {"INSERT"},
    RowChange.UPDATE: {"UPDATE"},
    RowChange.DELETE: {"DELETE"},
    RowChange.REPLACE: {"INSERT", "DELETE"},
    RowChange.UPSERT: {"INSERT", "UPDATE"},
    RowChange.SEQUENCE: set[str](),
}


# Databases whose tables are made when they are asked, and are in no lock list.
_UNLOCKED: Final = frozenset({"information_schema"})


_UPDATED: Final = frozenset({RowChange.UPDATE})


_ALL_CHANGES: Final = frozenset({RowChange.INSERT, RowChange.UPDATE, RowChange.DELETE})


_PERFORMANCE_SCHEMA: Final = "performance_schema"


def is_for_writing(lock: str) -> bool:
    """True if a lock that LOCK TABLES names, as `WRITE CONCURRENT`, is for writing."""
    return "WRITE" in lock.upper().split()


@dataclass(slots=True, kw_only=True)
class Opened:
    """A place in the list.

    Attributes:
        name: Name of a table or view.
        changes: Kinds of changes to the table's rows.
        is_locked_for_write: The table's lock is for writing, also without changes.
        fires: Kinds of changes whose triggers are opened, which may be more than `changes`.
        is_prelocked: The statement's own text does not lead to the table, views aside.
        is_foreign_key: A foreign key leads to the table.
        child_key: The table's own foreign key that leads to it; None where the key leads to a parent.
        is_sequence: The text names it as a sequence: by NEXTVAL and its like.
        set_columns: Columns that an UPDATE of the table, or of what may be the table, sets.
        place: Position in the statement's text that leads to the table, and the way from there.
        use: The naming of the table in the text; None for foreign keys.
        table: Definition of the table; None for views, and for tables that could not be found.
    """

    name: TableName
    changes: frozenset[RowChange] = frozenset()
    is_locked_for_write: bool = False
    fires: frozenset[RowChange] = NO_CHANGES
    is_prelocked: bool = False
    is_foreign_key: bool = False
    child_key: ForeignKey | None = None
    is_sequence: bool = False
    set_columns: tuple[SetColumn, ...] = ()
    place: TextPlace = OWN_TEXT
    use: TableUse | None = None
    table: Table | None = None

    def views(self) -> Iterator[TableName]:
        """Return the names of the views that lead to the table."""
        return (via.name for via in self.place.via if via.kind == "view")


@dataclass(frozen=True, slots=True)
class _Call:
    """A routine to be opened."""

    routine: Routine
    kind: str
    place: TextPlace


@dataclass(slots=True)
class LockList:
    """Opens a statement's tables.

    Attributes:
        objects: Catalog in which names are looked up.
        server: Server whose rules are followed.
        checks_foreign_keys: The session's value of foreign_key_checks.
        assumed_engine: Engine of tables that are not known; None: such tables are an error.
        tables: Opened tables in the order of the lock list.
        reasons: Unsafe reasons that the texts of views, routines and triggers raise.
        functions: Stored functions, in the order in which the server opens them.
        unknown: Tables that are not known, as the statement's text names them.
        absent: Tables that do not exist and that the statement's text does not name.
        errors: Errors for objects that could not be opened, in order.
        notes: Bodies that could not be understood.
        hides_prelocked: MariaDB takes none of the tables for one that the text does not lead to.
    """

    objects: Objects
    server: Server
    checks_foreign_keys: bool = True
    assumed_engine: str | None = None
    tables: list[Opened] = field(default_factory=list)
    reasons: list[ReasonFound] = field(default_factory=list)
    functions: list[TableName] = field(default_factory=list)
    unknown: list[tuple[TableName, int]] = field(default_factory=list)
    absent: list[TableName] = field(default_factory=list)
    errors: list[Refusal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hides_prelocked: bool = False
    _is_prelocking: bool = False
    _is_joined_update: bool = False
    _says_default: bool = False
    _facts: StatementFacts | None = None
    _unknown_functions: list[Refusal] = field(default_factory=list)
    _calls: list[_Call] = field(default_factory=list)
    _known_calls: set[tuple[str, TableName]] = field(default_factory=set)

    def open(self, entries: Iterable[Opened], facts: StatementFacts, database: str) -> None:
        """Open the tables that a statement names, and everything that these lead to."""
        self.tables.extend(entries)
        self._facts = facts
        self._is_joined_update, self._says_default = facts.is_multi_table, facts.defaults
        self._add_calls(facts, database, OWN_TEXT)
        opened = called = 0
        while opened < len(self.tables) or called < len(self._calls):
            while opened < len(self.tables):
                if len(self.tables) > TABLES_MAX:
                    self.notes.append(f"it opens more than {TABLES_MAX:,} tables")
                    return
                self._open(opened)
                opened += 1
            while called < len(self._calls):
                self._open_routine(self._calls[called])
                called += 1
        self.errors.extend(self._unknown_functions)

    def _open(self, index: int) -> None:
        entry = self.tables[index]
        if entry.table is None:
            entry.table = self._table(entry)
        if entry.table is None:
            self._open_view_or_fail(entry, index)
            return
        self._add_merged(entry, entry.table, index)
        if not (entry.is_locked_for_write or entry.fires):
            return
        known = len(self.tables)
        self._add_triggers(entry)
        before = self.tables[: index + 1]
        self._add_children(entry, before)
        self._begin_prelocking(entry, known)
        if self.server.has_server_foreign_keys:
            self._add_parents(entry, entry.table, before)
        if not entry.is_foreign_key:
            self._add_default_sequences(entry)

    def _begin_prelocking(self, entry: Opened, known: int) -> None:
        """Note the first table for which others are locked before the statement runs.

        MariaDB begins with one that foreign keys refer to, also where that adds no table; what
        functions add later then counts as named by the text.

        Args:
            entry: The table that was opened last.
            known: Length of the list before that table was added.
        """
        if self._is_prelocking or not self.server.is_mariadb:
            return
        is_added = len(self.tables) > known
        self._is_prelocking = is_added or bool(self.objects.children(entry.name))
        self.hides_prelocked = self._is_prelocking and not is_added

    def _table(self, entry: Opened) -> Table | None:
        table = self.objects.table(entry.name)
        if table is not None:
            return table
        if entry.name.database.lower() == _PERFORMANCE_SCHEMA:
            return _made_up(entry.name, "PERFORMANCE_SCHEMA")
        if self.assumed_engine is not None and self.objects.view(entry.name) is None:
            return _made_up(entry.name, self.assumed_engine)
        return None

    def _open_view_or_fail(self, entry: Opened, index: int) -> None:
        if entry.name.database.lower() in _UNLOCKED:
            return
        view = self.objects.view(entry.name)
        if view is None:
            self._fail(entry)
        elif view.name in entry.views():
            self.errors.append(refusals.view_recursion(view.name))
        else:
            self._open_view(view, entry, index)

    def _open_view(self, view: View, entry: Opened, index: int) -> None:
        place = _next(entry, Via(kind="view", name=view.name))
        uses = view.facts.tables
        columns = columns_behind(view, entry.set_columns)
        is_join = sum(use.is_outermost for use in uses) > 1
        is_narrowed = entry.changes == _UPDATED and is_join
        if is_narrowed:
            uses = updated_uses(uses, columns, self.objects)
        members = [_member(use, entry, place, columns, is_narrowed=is_narrowed) for use in uses]
        if is_join and RowChange.INSERT in entry.changes and not entry.is_prelocked:
            self._insert_into_one(view, members)
        if not entry.changes and not is_merged(view, self.server):
            for member in members:
                member.is_locked_for_write = False
        if is_narrowed and not (self.server.is_mariadb and self._is_joined_update):
            fire_all(members)
        self.tables[index + 1 : index + 1] = members
        self.reasons.extend(parsed_reasons(view.facts, self.objects, self.server, place))
        self._add_calls(view.facts, view.database or view.name.database, place)

    def _insert_into_one(self, view: View, members: Iterable[Opened]) -> None:
        """Narrow INSERT into a joined view to the table that has the columns; all tables are locked."""
        named = None if self._facts is None else self._facts.columns
        if named is None:
            return
        columns = columns_behind(view, [SetColumn(qualifier=None, name=name) for name in named])
        chosen = updated_uses(view.facts.tables, columns, self.objects)
        for use, member in zip(chosen, members, strict=True):
            if not use.changes:
                member.changes = NO_CHANGES

    def _fail(self, entry: Opened) -> None:
        """Raise the error of a missing table; the server raises none for a table that is only prelocked."""
        self.objects.missed.add(entry.name)
        if entry.is_prelocked or entry.name.database.lower() == SYS:
            return
        views = list(entry.views())
        if views:
            self.errors.append(refusals.invalid_view(views[0]))
            return
        self.unknown.append((entry.name, entry.place.offset))
        has_database = self.objects.has_database(entry.name.database)
        if all(one.is_sequence for one in self.tables):
            failure = refusals.no_such_sequence(entry.name)
        elif self.server.is_mariadb or has_database:
            failure = refusals.no_such_table(entry.name)
        else:
            failure = refusals.no_such_database(entry.name.database)
        self.errors.append(failure)

    def _add_merged(self, entry: Opened, table: Table, index: int) -> None:
        """Add the tables of a MERGE table behind it, with its lock; other tables add none."""
        if table.engine != "MRG_MYISAM":
            return
        self.tables[index + 1 : index + 1] = [
            Opened(
                name=name,
                is_locked_for_write=entry.is_locked_for_write,
                is_prelocked=entry.is_prelocked,
                place=_next(entry, Via(kind="merge table", name=table.name)),
            )
            for name in table.union
        ]

    def _add_triggers(self, entry: Opened) -> None:
        # A foreign key's own changes fire triggers in MySQL alone.
        is_innodb = entry.is_foreign_key and not self.server.has_server_foreign_keys
        self._add_triggers_of(entry, entry.fires if is_innodb else entry.changes | entry.fires)

    def _add_triggers_of(self, entry: Opened, changes: frozenset[RowChange]) -> None:
        fired = _events(changes)
        triggers = self.objects.triggers(entry.name) if fired else ()
        for event in _EVENTS:
            for time in TriggerTime:
                for trigger in triggers:
                    if event in fired & trigger.events and trigger.time is time:
                        self._add_trigger(trigger, entry)

    def _add_trigger(self, trigger: Trigger, entry: Opened) -> None:
        key = ("trigger", trigger.name)
        if key not in self._known_calls:
            self._known_calls.add(key)
            place = _next(entry, Via(kind="trigger", name=trigger.name))
            self._add_body(trigger, trigger.table.database, place)

    def _add_children(self, entry: Opened, before: Iterable[Opened]) -> None:
        """Add the tables that refer to one whose rows go or change.

        Args:
            entry: The parent table of the keys.
            before: The list up to the parent.
        """
        if self.server.is_mariadb:
            self._add_mariadb_children(entry)
            return
        if not self.checks_foreign_keys:
            return
        for key in self.objects.children(entry.name):
            for changes in roles(key, entry.changes | entry.fires):
                if key.table == entry.name and self.server.has_server_foreign_keys:
                    self._add_triggers_of(entry, changes)
                elif changes or self.server.has_server_foreign_keys:
                    self._add_foreign_table(entry, key.table, changes, before, key=key)

    def _add_mariadb_children(self, entry: Opened) -> None:
        """Lock the tables below a parent; the first parent decides all locks below it, and the triggers.

        InnoDB, which keeps the keys by their names, fires none of these.
        """
        happens = entry.fires if entry.is_foreign_key else entry.changes | entry.fires
        if not happens & (ROW_DELETES | ROW_UPDATES):
            return
        for key in sorted(self.objects.children(entry.name), key=identifier):
            changes = cascaded(key, happens)
            if changes:
                self._add_foreign_table(entry, key.table, changes, self.tables, happens)

    def _add_parents(self, entry: Opened, table: Table, before: Iterable[Opened]) -> None:
        """Add the tables that a new or changed row refers to, which are read."""
        events = _events(entry.changes | entry.fires)
        if self.checks_foreign_keys and events & {"INSERT", "UPDATE"}:
            for key in table.foreign_keys:
                self._add_foreign_table(entry, key.parent, NO_CHANGES, before)

    def _add_foreign_table(
        self,
        entry: Opened,
        name: TableName,
        changes: frozenset[RowChange],
        before: Iterable[Opened],
        fires: frozenset[RowChange] = NO_CHANGES,
        key: ForeignKey | None = None,
    ) -> None:
        """Open a table that a foreign key leads to, unless one has led there before.

        MySQL follows each key to its children once, whatever it does there.
        """
        if self.server.is_mariadb:
            is_known = any(
                each.is_foreign_key
                and each.name == name
                and each.is_locked_for_write >= bool(changes)
                for each in before
            )
        else:
            is_known = name == entry.name or any(
                each.is_foreign_key
                and each.name == name
                and (each.changes == changes if key is None else each.child_key == key)
                for each in before
            )
        if not is_known and self.objects.table(name) is not None:
            self.tables.append(
                Opened(
                    name=name,
                    changes=changes,
                    is_locked_for_write=bool(changes),
                    fires=fires,
                    is_prelocked=True,
                    is_foreign_key=True,
                    child_key=key,
                    place=_next(entry, Via(kind="foreign key", name=name)),
                )
            )

    def _add_default_sequences(self, entry: Opened) -> None:
        """Add the sequences that MariaDB opens for DEFAULT (NEXT VALUE FOR …) of a table that gets rows.

        MariaDB opens them also where the text has the word DEFAULT.
        """
        table = entry.table
        says_default = self._says_default and self.server.has(Fact.OPENS_SEQUENCES_FOR_DEFAULT)
        if table is None or not table.definition.has_default_expressions:
            return
        if not (says_default or "INSERT" in _events(entry.changes)):
            return
        place = _next(entry, Via(kind="default of", name=table.name))
        # One that the statement gives a value stands where it is, but is opened.
        columns = table.definition.columns
        if self._facts is not None and not entry.is_prelocked:
            columns = tuple(used_columns(table, self._facts))
        used = {column.name for column in columns}
        for column in table.definition.columns:
            if column.has_default_expression and column.default is not None:
                for use in default_facts(column.default, table.name.database, table.dialect).tables:
                    opened = opened_by(use, place, is_prelocked=entry.is_prelocked)
                    if column.name not in used:
                        opened.changes = NO_CHANGES
                    self.tables.append(opened)

    def _add_calls(self, facts: StatementFacts, database: str, place: TextPlace) -> None:
        is_call = facts.effects.kind is StatementKind.CALL
        for index, use in enumerate(facts.functions):
            # The procedure of CALL comes first; the server unrolls it, and so does not prelock it.
            if is_call and index == 0:
                if place.via:
                    name = self._called(use, facts, database, place)
                    self._add_call("procedure", self.objects.procedure(name), use, place)
                continue
            if use.database is None and self.objects.is_loadable_function(use.name):
                continue
            name = self._called(use, facts, database, place)
            routine = self.objects.function(name)
            if routine is None and is_made(use, facts.dialect):
                self._fail_function(name, place)
            self._add_call("function", routine, use, place)

    def _called(
        self, use: FunctionUse, facts: StatementFacts, database: str, place: TextPlace
    ) -> TableName:
        caller = place.via[-1].name if place.via else None
        return self.objects.called(
            use.database,
            use.name,
            database,
            calls_packages=facts.dialect.calls_packages,
            caller=caller,
        )

    def _fail_function(self, name: TableName, place: TextPlace) -> None:
        """Raise the error of a missing function, unless a routine calls it, which raises the error."""
        self.objects.missed.add(name)
        if not place.via:
            error = refusals.no_such_routine("FUNCTION", name)
            if not name.database and not self.server.is_mariadb:
                error = refusals.NO_DATABASE
            self._unknown_functions.append(error)
        elif place.via[-1].kind == "view":
            views = [via.name for via in place.via if via.kind == "view"]
            if len(views) == len(place.via):
                self._unknown_functions.append(refusals.invalid_view(views[0]))

    def _add_call(
        self, kind: str, routine: Routine | None, use: FunctionUse, place: TextPlace
    ) -> None:
        if routine is None or (kind, routine.name) in self._known_calls:
            return
        self._known_calls.add((kind, routine.name))
        via = Via(kind=kind, name=routine.name)
        self._calls.append(_Call(routine, kind, place.then(via, use.offset, use.length)))

    def _open_routine(self, call: _Call) -> None:
        if call.routine.is_function:
            self.functions.append(call.routine.name)
        self._add_body(call.routine, call.routine.name.database, call.place)

    def _add_body(self, program: Routine | Trigger, database: str, place: TextPlace) -> None:
        used = body_use(program.body, database, program.dialect)
        if not used.is_understood:
            last = place.via[-1]
            self.notes.append(f"the body of {last.kind} {last.name.plain} is not understood")
        for use in in_server_order(used.tables, self.server):
            if self.objects.table(use.name) or self.objects.view(use.name):
                self.tables.append(opened_by(use, place, is_prelocked=True))
            elif self._is_absent(use):
                self.absent.append(use.name)
        for facts in used.facts:
            self.reasons.extend(parsed_reasons(facts, self.objects, self.server, place))
            self._add_calls(facts, database, place)

    def _is_absent(self, use: TableUse) -> bool:
        """True if the name in a body is that of a table that certainly does not exist."""
        is_system = use.name.database.lower() in SYSTEM_DATABASES
        if is_system or self.assumed_engine is not None or self.objects.is_unknown(use.name):
            return False
        return self.server.is_mariadb or not use.is_sequence


def _events(changes: Iterable[RowChange]) -> set[str]:
    """The events of triggers that changes fire."""
    return {event for change in changes for event in _FIRED[change]}


def opened_by(
    use: TableUse, place: TextPlace, set_columns: tuple[SetColumn, ...] = (), *, is_prelocked: bool
) -> Opened:
    """Return the list's entry for a table that a text names; LOCK TABLES is for every change."""
    is_locked = is_for_writing(use.lock)
    return Opened(
        name=use.name,
        changes=use.changes,
        is_locked_for_write=bool(use.changes) or use.is_locked_for_update or is_locked,
        fires=_ALL_CHANGES if is_locked else NO_CHANGES,
        set_columns=_set_columns(use, set_columns),
        is_prelocked=is_prelocked,
        is_sequence=use.is_sequence,
        place=place if place.via else TextPlace((), use.offset, use.length),
        use=use,
    )


def _set_columns(use: TableUse, columns: Iterable[SetColumn]) -> tuple[SetColumn, ...]:
    """The columns that may be those of a table."""
    return tuple(
        column
        for column in columns
        if column.qualifier is None or column.qualifier.lower() == use.alias.lower()
    )


def fire_all(entries: Iterable[Opened]) -> None:
    """Open the triggers of all tables that an UPDATE joins, before its targets are known.

    MySQL does so always, MariaDB where the text names but a view.
    """
    for entry in entries:
        if entry.use is not None and entry.use.is_outermost:
            entry.fires = _UPDATED


def _member(
    use: TableUse,
    entry: Opened,
    place: TextPlace,
    columns: Iterable[SetColumn],
    *,
    is_narrowed: bool,
) -> Opened:
    """Return a table of a view: the tables of the view's own SELECT get the changes of the view."""
    changes = entry.changes if use.is_outermost else frozenset()
    is_written = entry.is_locked_for_write and use.is_outermost
    if is_narrowed:
        changes = use.changes
        is_written = bool(changes)
    return Opened(
        name=use.name,
        changes=changes,
        is_locked_for_write=is_written,
        fires=entry.fires if use.is_outermost else frozenset(),
        is_prelocked=entry.is_prelocked,
        is_sequence=use.is_sequence,
        set_columns=_set_columns(use, columns) if changes else (),
        place=place,
        use=use,
    )


def _next(entry: Opened, via: Via) -> TextPlace:
    """Return the place of a table to which an entry leads."""
    return TextPlace((*entry.place.via, via), entry.place.offset, entry.place.length)


def _made_up(name: TableName, engine: str) -> Table:
    return Table(name=name, definition=TableDefinition(columns=()), engine=engine)
