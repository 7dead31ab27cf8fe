"""The names that a table has along a log, and the statements about it.

A log is followed by its DDL alone. A table that is renamed stays the same table; one that is dropped
and made again is another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from binlane.binlogs.filters.terms import name_parts
from binlane.errors import ConfigError
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.names import TableName
from binlane.positions import file_number
from binlane.statements.sql.logged_statements import followed_statement
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_definitions import renamed_columns
from binlane.statements.sql.tree.definitions import AlterTable

if TYPE_CHECKING:
    from binlane.statements.sql.facts import StatementEffects
    from binlane.statements.sql.logged_statements import LoggedStatement

Place = tuple[int, int]
"""Number of a file of the log, and a position in it: they order the places of a log."""


def place_of(file: str, position: int) -> Place:
    """The place of an event."""
    return file_number(file), position


@dataclass(slots=True)
class _Table:
    """One table along the log.

    Attributes:
        names: Names of the table, each with the place from which on it holds.
        end: Place at which the table is dropped; None if it is there at the end.
    """

    names: list[tuple[Place, TableName]]
    end: Place | None = None


@dataclass(frozen=True, slots=True)
class TableStatement:
    """A statement about a table.

    Attributes:
        place: Place of the statement's event.
        file: Base name of the file.
        table: Number of the table among all of the log.
        empties: True if no row of the table is left behind the statement.
    """

    place: Place
    file: str
    table: int
    empties: bool


@dataclass(slots=True)
class TableNames:
    """The tables that have one name anywhere in a log, under all names that they have.

    Attributes:
        asked: The name that the user gave.
        statements: Statements about the tables, in log order.
        columns: Names that columns got by ALTER TABLE: pairs of old and new, in small letters.
    """

    asked: TableName
    statements: list[TableStatement] = field(default_factory=list)
    columns: list[tuple[str, str]] = field(default_factory=list)
    _tables: list[_Table] = field(default_factory=list)
    _current: dict[TableName, int] = field(default_factory=dict)
    _all_statements: list[TableStatement] = field(default_factory=list)
    _all_columns: list[tuple[int, str, str]] = field(default_factory=list)

    def follow(self, event: Event, file: str) -> None:
        """Follow the log by its next statement.

        Raises:
            CodecError: If the context of the statement is damaged.
        """
        assert isinstance(event.body, QueryEvent), "DDL is a QUERY event"
        statement = followed_statement(event.body)
        effects = statement.effects()
        if effects.is_temporary:
            return
        place = place_of(file, event.position)
        for name in self._touched(effects):
            self._note(name, place, file, empties=self._empties(effects, name))
        if effects.kind is StatementKind.ALTER_TABLE and effects.writes:
            self._note_columns(statement, effects.writes[0])
        for name in self._dropped(effects):
            number = self._current.pop(name, None)
            if number is not None:
                self._tables[number].end = place
        moved = [(self._current.pop(old, None), old, new) for old, new in effects.net_renames]
        for number, old, new in moved:
            found = self._known(old, (0, 0)) if number is None else number
            self._current.pop(old, None)
            self._current[new] = found
            self._tables[found].names.append((place, new))
        made = effects.made
        if made is not None and not (effects.if_exists and made in self._current):
            self._tables.append(_Table([(place, made)]))
            self._current[made] = len(self._tables) - 1

    def finish(self) -> None:
        """Choose the tables of the asked name, with the log at its end."""
        self._known(self.asked, (0, 0))
        wanted = {number for number, _ in self.chosen()}
        self.statements = [each for each in self._all_statements if each.table in wanted]
        self.columns = [(old, new) for number, old, new in self._all_columns if number in wanted]

    def chosen(self) -> Iterator[tuple[int, _Table]]:
        """The tables that had the asked name at any place, with their numbers."""
        for number, table in enumerate(self._tables):
            if any(name == self.asked for _, name in table.names):
                yield number, table

    @property
    def names(self) -> frozenset[TableName]:
        """All names that the tables have anywhere."""
        return frozenset(name for _, table in self.chosen() for _, name in table.names)

    @property
    def is_there(self) -> bool:
        """True if a table has the asked name at the log's end."""
        return self.asked in self._current

    def number_at(self, name: TableName, place: Place) -> int | None:
        """Number of the chosen table that has a name at a place; None if another table has it."""
        for number, table in self.chosen():
            if table.end is not None and place > table.end:
                continue
            held = [each for since, each in table.names if since <= place]
            if held and held[-1] == name:
                return number
        return None

    def name_at_end(self, number: int) -> TableName:
        """The last name of a table."""
        return self._tables[number].names[-1][1]

    def aliases(self, column: str) -> frozenset[str]:
        """All names, in small letters, that a column has anywhere in the log."""
        found = {column.lower()}
        for _ in self.columns:
            for pair in self.columns:
                if not found.isdisjoint(pair):
                    found.update(pair)
        return frozenset(found)

    # Statements -----------------------------------------------------------------------------------

    def _known(self, name: TableName, since: Place) -> int:
        """Number of the table that has a name now; one that the log did not make is new."""
        if name not in self._current:
            self._tables.append(_Table([(since, name)]))
            self._current[name] = len(self._tables) - 1
        return self._current[name]

    def _touched(self, effects: StatementEffects) -> list[TableName]:
        dropped = self._dropped(effects)
        old = [name for name, _ in effects.net_renames]
        made = {effects.made} | {new for _, new in effects.net_renames}
        writes = [name for name in effects.writes if name not in made]
        return list(dict.fromkeys([*dropped, *old, *writes]))

    def _dropped(self, effects: StatementEffects) -> list[TableName]:
        found = list(effects.drops)
        if effects.made is not None and effects.is_or_replace:
            found.append(effects.made)
        found += [name for name in self._current if name.database in effects.dropped_databases]
        return found

    def _empties(self, effects: StatementEffects, name: TableName) -> bool:
        return effects.kind is StatementKind.TRUNCATE_TABLE or name in self._dropped(effects)

    def _note(self, name: TableName, place: Place, file: str, *, empties: bool) -> None:
        number = self._known(name, (0, 0))
        self._all_statements.append(TableStatement(place, file, number, empties))

    def _note_columns(self, statement: LoggedStatement, name: TableName) -> None:
        facts = statement.facts()
        if isinstance(facts.tree, AlterTable) and facts.effects.stopped_at is None:
            number = self._current[name]
            for old, new in renamed_columns(facts.tree.actions).items():
                if old != new.lower():
                    self._all_columns.append((number, old, new.lower()))


def table_name(text: str) -> TableName:
    """Read `shop.orders`, with backticks where names need them.

    Raises:
        ConfigError: If it is no table with its database.
    """
    parts = name_parts(text)
    if parts is None or len(parts) != 2:
        raise ConfigError(
            f"{text!r} is no DATABASE.TABLE",
            key="table",
            hint="write shop.orders; put backticks around a name with a dot in it",
        )
    return TableName(*parts)
