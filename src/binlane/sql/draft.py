"""Effects and facts of a statement while its text is being read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from binlane.names import TableName
from binlane.sql.effects import StatementEffects, StatementKind
from binlane.sql.facts import (
    Assignment,
    FunctionUse,
    Limit,
    RowChange,
    SetColumn,
    StatementFacts,
    SystemVariableUse,
    TableUse,
    UserVariableUse,
)
from binlane.sql.tokens import Token

ARGUMENT_LENGTH_MIN: Final = 65_536
"""Characters of arguments that any statement may have."""


@dataclass(slots=True)
class Draft:
    """What has been found so far. Attributes as in the values; dict keys keep their order.

    Attributes:
        database: The default database.
        text: The whole statement.
        is_oracle: sql_mode ORACLE: `s.NEXTVAL` is the next value of a sequence.
    """

    database: str
    text: str = ""
    is_oracle: bool = False
    kind: StatementKind = StatementKind.UNKNOWN
    writes: dict[TableName, None] = field(default_factory=dict)
    reads: dict[TableName, None] = field(default_factory=dict)
    databases: dict[str, None] = field(default_factory=dict)
    objects: dict[TableName, None] = field(default_factory=dict)
    calls: dict[TableName, None] = field(default_factory=dict)
    renames: list[tuple[TableName, TableName]] = field(default_factory=list)
    drops: dict[TableName, None] = field(default_factory=dict)
    is_temporary: bool = False
    if_exists: bool = False
    uses_default_database: bool = False

    verb: str = ""
    tables: list[TableUse] = field(default_factory=list)
    functions: list[FunctionUse] = field(default_factory=list)
    body_functions: list[FunctionUse] = field(default_factory=list)
    system_variables: list[SystemVariableUse] = field(default_factory=list)
    user_variables: list[UserVariableUse] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    skip_locked: int | None = None
    nowait: int | None = None
    is_locking_read: bool = False
    is_ignore: bool = False
    is_replace: bool = False
    is_or_replace: bool = False
    is_delayed: bool = False
    is_on_duplicate: bool = False
    on_duplicate_offset: int | None = None
    has_query: bool = False
    is_multi_table: bool = False
    has_where: bool = False
    has_returning: bool = False
    has_into: bool = False
    is_local: bool = False
    columns: list[str] | None = None
    row_count: int = 0
    defaults: bool = False
    set_columns: list[SetColumn] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    statement_assignments: list[Assignment] = field(default_factory=list)
    name: str = ""
    prepared: str = ""
    using: list[str] = field(default_factory=list)
    xid: str = ""
    options: set[str] = field(default_factory=set)
    engine: str | None = None
    query_offset: int | None = None
    body_offset: int | None = None
    _argument_length: int = 0

    def resolve(self, name: tuple[str | None, str]) -> TableName:
        """Give a name its database."""
        database, table = name
        if database is None:
            self.uses_default_database = True
            database = self.database
        return TableName(database, table)

    def write(self, *tables: TableName) -> None:
        """Note tables that change."""
        self.writes.update(dict.fromkeys(tables))

    def read(self, *tables: TableName) -> None:
        """Note tables that are read or named."""
        self.reads.update(dict.fromkeys(tables))

    def change_object(self, name: TableName) -> None:
        """Note a view, trigger, routine or event, and that its database changes."""
        self.objects[name] = None
        self.databases[name.database] = None

    def use(self, table: TableUse) -> None:
        """Note a place where a table is named, and that it is changed or read."""
        self.tables.append(table)
        if table.changes:
            self.write(table.name)
        else:
            self.read(table.name)

    def set_alias(self, index: int, alias: str) -> None:
        """Note by what the statement calls a table noted before."""
        self.tables[index] = replace(self.tables[index], alias=alias)

    def lock_for_update(self, indices: Iterable[int], aliases: Collection[str]) -> None:
        """Note that FOR UPDATE locks tables noted before: those called so, or all."""
        for index in indices:
            table = self.tables[index]
            if not aliases or table.alias in aliases:
                self.tables[index] = replace(table, is_locked_for_update=True)

    def change(self, index: int, change: RowChange) -> None:
        """Note that the rows of a table noted before change."""
        table = self.tables[index]
        self.tables[index] = replace(table, changes=table.changes | {change})
        self.write(table.name)

    def call(self, function: FunctionUse) -> None:
        """Note a call."""
        self.functions.append(function)
        if function.database is not None:
            self.calls[TableName(function.database, function.name)] = None

    def arguments(self, places: Sequence[tuple[int, int]]) -> tuple[str, ...]:
        """The texts at some places, from and to, unless the statement has had too many already."""
        if not places:
            return ()
        self._argument_length += places[-1][1] - places[0][0]
        if self._argument_length > 4 * len(self.text) + ARGUMENT_LENGTH_MIN:
            return ()
        return tuple(self.text[start:end] for start, end in places)

    def name_table(self, name: TableName, tokens: Sequence[Token], lock: str = "") -> None:
        """Note a place where a table is named whose rows are neither read nor changed."""
        self.tables.append(
            TableUse(
                name=name,
                alias=name.table,
                offset=tokens[0].offset,
                length=tokens[-1].end - tokens[0].offset,
                lock=lock,
            )
        )

    def slice(self, tokens: Sequence[Token]) -> str:
        """The text from the first to the last of some tokens."""
        return self.text[tokens[0].offset : tokens[-1].end] if tokens else ""

    def absorb(self, other: Draft) -> None:
        """Note all that a statement of a compound one names and does."""
        self.writes.update(other.writes)
        self.reads.update(other.reads)
        self.databases.update(other.databases)
        self.objects.update(other.objects)
        self.calls.update(other.calls)
        self.renames += other.renames
        self.drops.update(other.drops)
        self.uses_default_database |= other.uses_default_database
        self.tables += other.tables
        self.functions += other.functions
        self.system_variables += other.system_variables
        self.user_variables += other.user_variables
        self.limits += other.limits

    def refer_to(self, body: Draft) -> None:
        """Note everything that the body of a view, routine, trigger or event names."""
        self.read(*body.writes, *body.reads)
        self.calls.update(body.calls)
        self.body_functions += body.functions
        self.uses_default_database |= body.uses_default_database

    def effects(self, stopped_at: Token | None = None) -> StatementEffects:
        """What has been found; a table both written and read counts as written."""
        return StatementEffects(
            kind=self.kind,
            writes=tuple(self.writes),
            reads=_without(self.reads, self.writes),
            databases=tuple(self.databases),
            objects=tuple(self.objects),
            calls=tuple(self.calls),
            renames=tuple(self.renames),
            drops=tuple(self.drops),
            is_temporary=self.is_temporary,
            if_exists=self.if_exists,
            uses_default_database=self.uses_default_database,
            stopped_at=stopped_at,
        )

    def facts(self, stopped_at: Token | None = None) -> StatementFacts:
        """What has been found."""
        return StatementFacts(
            effects=self.effects(stopped_at),
            verb=self.verb,
            tables=tuple(self.tables),
            # A call is noted at its closing parenthesis.
            functions=tuple(sorted(self.functions, key=_offset)),
            body_functions=tuple(self.body_functions),
            system_variables=tuple(self.system_variables),
            user_variables=tuple(self.user_variables),
            limits=tuple(self.limits),
            skip_locked=self.skip_locked,
            nowait=self.nowait,
            is_locking_read=self.is_locking_read,
            is_ignore=self.is_ignore,
            is_replace=self.is_replace,
            is_or_replace=self.is_or_replace,
            is_delayed=self.is_delayed,
            is_on_duplicate=self.is_on_duplicate,
            on_duplicate_offset=self.on_duplicate_offset,
            has_query=self.has_query,
            is_multi_table=self.is_multi_table,
            has_where=self.has_where,
            has_returning=self.has_returning,
            has_into=self.has_into,
            is_local=self.is_local,
            columns=None if self.columns is None else tuple(self.columns),
            row_count=self.row_count,
            defaults=self.defaults,
            set_columns=tuple(self.set_columns),
            assignments=tuple(self.assignments),
            statement_assignments=tuple(self.statement_assignments),
            name=self.name,
            prepared=self.prepared,
            using=tuple(self.using),
            xid=self.xid,
            options=frozenset(self.options),
            engine=self.engine,
            query_offset=self.query_offset,
            body_offset=self.body_offset,
        )


def _offset(function: FunctionUse) -> int:
    return function.offset


def _without(tables: Iterable[TableName], others: dict[TableName, None]) -> tuple[TableName, ...]:
    return tuple(table for table in tables if table not in others)
