"""The objects of a server, as far as the logging of a statement depends on them.

Values, and the Protocol that the rest of the package reads a server's objects through:
`catalog.SchemaCatalog` makes them from SQL text, a live server's may come later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from binlane.names import TableName
from binlane.sql.dialect import ANY, Dialect
from binlane.sql.facts import StatementFacts
from binlane.sql.table_definitions import TableDefinition
from binlane.sql.versions import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A primary, unique, fulltext, spatial or plain key.

    Attributes:
        name: `PRIMARY`, or as given or made up by the server.
        columns: In order; the empty text for an expression.
        is_unique: PRIMARY or UNIQUE.
        parser: Of a FULLTEXT key WITH PARSER; None without.
        parts: The columns as the server prints them: with a length or DESC.
        algorithm: Of USING, in capitals; empty without.
        is_spatial: SPATIAL.
    """

    name: str
    columns: tuple[str, ...]
    is_unique: bool = False
    is_fulltext: bool = False
    parser: str | None = None
    parts: tuple[str, ...] = ()
    algorithm: str = ""
    is_spatial: bool = False

    @property
    def is_primary(self) -> bool:
        """Whether this is the primary key."""
        return self.name == "PRIMARY"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A reference of `table` to `parent`.

    Attributes:
        table: That has the key.
        columns: Its own.
        parent: That the key refers to.
        on_delete: What happens to its rows when the parent's are deleted, in capitals.
        on_update: The same for changes.
        name: As given; empty if the server makes it up.
        parent_columns: Of the parent.
    """

    table: TableName
    columns: tuple[str, ...]
    parent: TableName
    on_delete: str = "RESTRICT"
    on_update: str = "RESTRICT"
    name: str = ""
    parent_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A base table or a sequence.

    Attributes:
        name: Its own.
        definition: Its columns.
        engine: In capitals, as `policy.engines` has it; a sequence's is that of its table.
        is_sequence: CREATE SEQUENCE made it.
        is_temporary: Of this session only.
        is_partitioned: PARTITION BY.
        is_transactional_option: Aria's TRANSACTIONAL=1 (its default), else False.
        keys: All, the primary key first.
        auto_increment: Its column; None without.
        foreign_keys: Those of this table.
        union: Children of a MERGE table.
        create_statement: As the user wrote it; empty where nothing is known.
        is_complete: Its columns, keys and foreign keys are all known. Not so of the servers' own
            tables, and behind a CREATE … SELECT whose columns the text does not tell.
        options: Options of CREATE TABLE as the server prints them, such as `ENGINE` and `InnoDB`.
        checks: CONSTRAINT … CHECK of the table, as the server prints them.
        partitioning: PARTITION BY to its end, as the user wrote it.
    """

    name: TableName
    definition: TableDefinition
    engine: str
    is_sequence: bool = False
    is_temporary: bool = False
    is_partitioned: bool = False
    is_transactional_option: bool = True
    keys: tuple[Key, ...] = ()
    auto_increment: str | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()
    union: tuple[TableName, ...] = ()
    create_statement: str = ""
    is_complete: bool = True
    options: tuple[tuple[str, str], ...] = ()
    checks: tuple[str, ...] = ()
    partitioning: str = ""

    @property
    def unique_keys(self) -> tuple[Key, ...]:
        """Primary and unique keys."""
        return tuple(key for key in self.keys if key.is_unique)

    @property
    def is_auto_increment_first(self) -> bool:
        """Whether some key begins with the auto-increment column."""
        column = self.auto_increment
        return column is None or any(key.columns[:1] == (column,) for key in self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view.

    Attributes:
        name: Its own.
        query: Its SELECT, as the user wrote it.
        facts: Of its query, names resolved in the database of its creation.
        definer: Its account.
        columns: Their names, if CREATE VIEW gives them.
        database: The default database of its creation.
    """

    name: TableName
    query: str
    facts: StatementFacts
    definer: str = "root@localhost"
    columns: tuple[str, ...] = ()
    database: str = ""


class TriggerTime(Enum):
    """When a trigger runs."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A trigger; `events` of INSERT, UPDATE, DELETE (MariaDB 12 allows several).

    Its body is read as the session that made it read its statements.
    """

    name: TableName
    table: TableName
    time: TriggerTime
    events: frozenset[str]
    body: str
    create_statement: str = ""
    dialect: Dialect = ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a routine; `direction` is IN, OUT or INOUT."""

    name: str
    type_text: str
    direction: str = "IN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine:
    """A stored procedure or function.

    Attributes:
        name: Its own.
        is_function: CREATE FUNCTION made it.
        parameters: In order.
        body: Its text.
        returns: The type's text of a function.
        is_deterministic: It says DETERMINISTIC.
        data_access: `CONTAINS SQL`, `NO SQL`, `READS SQL DATA` or `MODIFIES SQL DATA`.
        create_statement: As the user wrote it.
        charset: Of text that names none: its database's when it was made; None if not known.
        dialect: Of the session that made it, as which its body is read.
    """

    name: TableName
    is_function: bool
    parameters: tuple[Parameter, ...]
    body: str
    returns: str = ""
    is_deterministic: bool = False
    data_access: str = "CONTAINS SQL"
    create_statement: str = ""
    charset: str | None = None
    dialect: Dialect = ANY


class Objects(Protocol):
    """What can be asked of a server's objects. Names are looked up as they are.

    Temporary tables of the session hide others of the same name.
    """

    @property
    def server_version(self) -> Version | None:
        """Of the server; None for the one that is assumed where none is named."""

    def has_database(self, database: str) -> bool:
        """Whether there is such a database."""

    def table(self, name: TableName) -> Table | None:
        """A base table or sequence; None if there is none, or it is a view."""

    def view(self, name: TableName) -> View | None:
        """A view."""

    def triggers(self, table: TableName) -> Sequence[Trigger]:
        """A table's triggers in the order in which they run."""

    def trigger(self, name: TableName) -> Trigger | None:
        """A trigger by its name."""

    def procedure(self, name: TableName) -> Routine | None:
        """A stored procedure; its name without regard to case."""

    def function(self, name: TableName) -> Routine | None:
        """A stored function."""

    def is_loadable_function(self, name: str) -> bool:
        """Whether CREATE FUNCTION … SONAME made it (a UDF)."""

    def children(self, parent: TableName) -> Sequence[ForeignKey]:
        """Foreign keys that refer to a table."""

    def event(self, name: TableName) -> bool:
        """Whether there is such an event."""

    def settings(self) -> dict[str, str]:
        """What `SET GLOBAL` of the schema's script said, names in lower case."""
