"""What statements on tables, sequences and indexes do to the objects of a catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.sql.column_changes import alter_actions
from binlane.sql.cursor import Cursor
from binlane.sql.effects import StatementKind
from binlane.sql.object_store import CatalogStatement, ObjectStore
from binlane.sql.schema import Table
from binlane.sql.table_alterations import altered
from binlane.sql.table_changes import created, indexed, unindexed
from binlane.sql.table_definitions import TableColumn, TableDefinition
from binlane.sql.table_options import engine_name
from binlane.sql.tokens import tokenise

Handler = Callable[[ObjectStore, CatalogStatement], None]

SEQUENCE: Final = TableDefinition(
    columns=(
        *(
            TableColumn(name=name, type_name="BIGINT", arguments=("21",), is_nullable=False)
            for name in (
                *("next_not_cached_value", "minimum_value", "maximum_value"),
                *("start_value", "increment"),
            )
        ),
        TableColumn(
            name="cache_size",
            type_name="BIGINT",
            arguments=("21",),
            is_unsigned=True,
            is_nullable=False,
        ),
        TableColumn(
            name="cycle_option",
            type_name="TINYINT",
            arguments=("1",),
            is_unsigned=True,
            is_nullable=False,
        ),
        TableColumn(name="cycle_count", type_name="BIGINT", arguments=("21",), is_nullable=False),
    )
)


def _create_table(store: ObjectStore, statement: CatalogStatement) -> None:
    name = statement.effects.writes[0]
    if not is_left_alone(store, statement, name):
        put_table(store, statement, table_created(store, statement, name))


def _create_like(store: ObjectStore, statement: CatalogStatement) -> None:
    name = statement.effects.writes[0]
    if is_left_alone(store, statement, name):
        return
    # A table may be like itself in another case, or like one that was found to be written.
    source = next(iter(statement.effects.reads), name)
    like = store.temporary.get(source) or store.tables.get(source)
    if like is None or not like.engine:
        store.forget(name)
        return
    is_temporary = statement.effects.is_temporary
    table = replace(
        like,
        name=name,
        is_temporary=is_temporary,
        foreign_keys=(),
        union=(),
        create_statement=statement.text,
    )
    put_table(store, statement, table)


def _create_select(store: ObjectStore, statement: CatalogStatement) -> None:
    """In a log, where what the query reads is not known; a server's catalog does it itself."""
    name = statement.effects.writes[0]
    if not is_left_alone(store, statement, name):
        store.forget(name)


def _create_sequence(store: ObjectStore, statement: CatalogStatement) -> None:
    name = statement.effects.writes[0]
    if not is_left_alone(store, statement, name):
        put_table(
            store,
            statement,
            Table(
                name=name,
                definition=SEQUENCE,
                engine=_named_engine(statement) or _default_engine(statement),
                is_sequence=True,
                is_temporary=statement.effects.is_temporary,
                create_statement=statement.text,
            ),
        )


def _create_index(store: ObjectStore, statement: CatalogStatement) -> None:
    for name in statement.effects.writes[:1]:
        if table := _visible(store, statement, name):
            store.put(indexed(table, statement.text, quoting=statement.quoting))


def _drop_index(store: ObjectStore, statement: CatalogStatement) -> None:
    for name in statement.effects.writes[:1]:
        if table := _visible(store, statement, name):
            store.put(unindexed(table, statement.text, quoting=statement.quoting))


def _alter_table(store: ObjectStore, statement: CatalogStatement) -> None:
    name = statement.effects.writes[0]
    if statement.flavor is None and name in store.temporary:
        return
    table = _visible(store, statement, name)
    if table is not None:
        table = altered(
            table,
            statement.text,
            engine=_default_engine(statement),
            charset=store.databases.get(name.database),
            quoting=statement.quoting,
        )
        store.put(table)
        for new in _parted_tables(statement):
            own = TableName(new.database or name.database, new.table)
            store.put(replace(table, name=own, is_partitioned=False, partitioning=""))
    for dropped in statement.effects.drops:
        store.drop(dropped)
    if table is not None and table.is_temporary:
        _rename_temporary(store, statement)
    else:
        _rename(store, statement)


def _rename_temporary(store: ObjectStore, statement: CatalogStatement) -> None:
    for old, new in statement.effects.renames:
        table = store.temporary.pop(old, None)
        if table is not None:
            store.temporary[new] = replace(table, name=new)


def _rename(store: ObjectStore, statement: CatalogStatement) -> None:
    for old, new in statement.effects.renames:
        is_base = old in store.tables or old in store.views or old in store.unknown
        if statement.flavor is not None and not is_base and old in store.temporary:
            store.temporary[new] = replace(store.temporary.pop(old), name=new)
        else:
            store.rename(old, new)


def _drop_tables(store: ObjectStore, statement: CatalogStatement) -> None:
    for name in statement.effects.drops:
        if statement.effects.is_temporary:
            store.temporary.pop(name, None)
        elif statement.flavor is None or store.temporary.pop(name, None) is None:
            store.drop(name)


TABLE_HANDLERS: Final[Mapping[StatementKind, Handler]] = MappingProxyType(
    {
        StatementKind.CREATE_TABLE: _create_table,
        StatementKind.CREATE_TABLE_LIKE: _create_like,
        StatementKind.CREATE_TABLE_SELECT: _create_select,
        StatementKind.CREATE_SEQUENCE: _create_sequence,
        StatementKind.CREATE_INDEX: _create_index,
        StatementKind.DROP_INDEX: _drop_index,
        StatementKind.ALTER_TABLE: _alter_table,
        StatementKind.RENAME_TABLE: _rename,
        StatementKind.DROP_TABLE: _drop_tables,
        StatementKind.DROP_SEQUENCE: _drop_tables,
    }
)


def table_created(store: ObjectStore, statement: CatalogStatement, name: TableName) -> Table:
    """The table of a CREATE TABLE, without the columns of a SELECT."""
    return created(
        name,
        statement.text,
        engine=_default_engine(statement),
        charset=store.databases.get(name.database) or statement.server_charset
        if statement.flavor is not None
        else store.databases.get(name.database),
        quoting=statement.quoting,
        is_temporary=statement.effects.is_temporary,
    )


def put_table(store: ObjectStore, statement: CatalogStatement, table: Table) -> None:
    """Have a new table."""
    if not table.is_temporary and statement.flavor is not None:
        store.drop(table.name)  # with the triggers of the one that OR REPLACE drops
    store.put(table)


def is_left_alone(store: ObjectStore, statement: CatalogStatement, name: TableName) -> bool:
    """Whether IF NOT EXISTS leaves everything as it is."""
    if not statement.effects.if_exists:
        return False
    if statement.effects.is_temporary:
        return name in store.temporary
    return name in store.tables or name in store.views


def _visible(store: ObjectStore, statement: CatalogStatement, name: TableName) -> Table | None:
    """The table that the session means by a name."""
    if statement.flavor is None:
        return store.tables.get(name)
    return store.temporary.get(name) or store.tables.get(name)


def _default_engine(statement: CatalogStatement) -> str:
    return statement.temporary_engine if statement.effects.is_temporary else statement.engine


def _named_engine(statement: CatalogStatement) -> str | None:
    cursor = Cursor(list(tokenise(statement.text, **statement.quoting)))
    cursor.until(("ENGINE",))
    if not cursor.accept("ENGINE"):
        return None
    cursor.accept_operator("=")
    return engine_name(cursor.advance().value)


def _parted_tables(statement: CatalogStatement) -> Iterable[TableName]:
    """Tables that ALTER TABLE … CONVERT PARTITION … TO TABLE makes; no database: the table's own."""
    for action in alter_actions(statement.text, **statement.quoting):
        cursor = Cursor(action)
        if cursor.accept("CONVERT", "PARTITION"):
            cursor.until(("TABLE",))
            cursor.expect("TABLE")
            database, table = cursor.qualified_name()
            yield TableName(database or "", table)
