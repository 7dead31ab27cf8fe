"""What statements do to the objects of a catalog: tables, databases, views, programs, accounts.

A fold over their trees. Names without a database get that of the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.sql.accounts import (
    AccountName,
    Situation,
    change,
    give_routine,
    named,
    take_routine,
)
from binlane.sql.facts import StatementKind
from binlane.sql.object_store import CatalogStatement, ObjectStore, small
from binlane.sql.reading import read
from binlane.sql.schema import Parameter, Routine, Table, Trigger, TriggerTime, View
from binlane.sql.table_changes import (
    altered,
    created,
    indexed,
    named_engine,
    unindexed,
    with_invisible_primary_key,
)
from binlane.sql.table_definitions import (
    TableColumn,
    TableDefinition,
    named_charset,
    string_of,
)
from binlane.sql.tree.definitions import (
    Account,
    AccountStatement,
    AlterTable,
    CreateRoutine,
    CreateTrigger,
    CreateView,
    Database,
    ObjectStatement,
)
from binlane.sql.tree.definitions import (
    Sequence as SequenceStatement,
)
from binlane.sql.tree.expressions import Literal, LiteralKind, Name, Node, ObjectName
from binlane.sql.tree.statements import Set, SetItem

Handler = Callable[[ObjectStore, CatalogStatement], None]

_DATA_ACCESS: Final = ("CONTAINS SQL", "NO SQL", "READS SQL DATA", "MODIFIES SQL DATA")
_GLOBAL_SCOPES: Final = ("global", "persist", "persist_only")


def _number(
    name: str, type_name: str = "BIGINT", *, width: str = "21", sign: bool = True
) -> TableColumn:
    return TableColumn(
        name=name,
        type_name=type_name,
        arguments=(width,),
        is_unsigned=not sign,
        is_nullable=False,
    )


_SEQUENCE: Final = TableDefinition(
    columns=(
        *map(
            _number,
            ("next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment"),
        ),
        _number("cache_size", sign=False),
        _number("cycle_option", "TINYINT", width="1", sign=False),
        _number("cycle_count"),
    )
)
"""The columns of every sequence."""


# Tables ---------------------------------------------------------------------------------------


def _create_table(store: ObjectStore, statement: CatalogStatement) -> None:
    name = statement.effects.writes[0]
    if not is_left_alone(store, statement, name):
        table = table_created(store, statement, name)
        if statement.generates_primary_key:
            table = with_invisible_primary_key(table)
        put_table(store, statement, table)


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
    table = replace(
        like,
        name=name,
        is_temporary=statement.effects.is_temporary,
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
    node = statement.node
    assert isinstance(node, SequenceStatement)
    if not is_left_alone(store, statement, name):
        put_table(
            store,
            statement,
            Table(
                name=name,
                definition=_SEQUENCE,
                engine=named_engine(node.options) or statement.default_engine,
                is_sequence=True,
                is_temporary=statement.effects.is_temporary,
                create_statement=statement.text,
            ),
        )


def _create_index(store: ObjectStore, statement: CatalogStatement) -> None:
    for name in statement.effects.writes[:1]:
        if table := _visible(store, statement, name):
            store.put(indexed(table, statement.facts))


def _drop_index(store: ObjectStore, statement: CatalogStatement) -> None:
    for name in statement.effects.writes[:1]:
        if table := _visible(store, statement, name):
            store.put(unindexed(table, statement.facts))


def _alter_table(store: ObjectStore, statement: CatalogStatement) -> None:
    name = statement.effects.writes[0]
    if statement.flavor is None and name in store.temporary:
        return
    table = _visible(store, statement, name)
    if table is not None:
        table = altered(
            table,
            statement.facts,
            engine=statement.default_engine,
            charset=store.databases.get(name.database),
        )
        store.put(table)
        for new in _parted_tables(statement, name.database):
            store.put(replace(table, name=new, is_partitioned=False, partitioning=""))
    for dropped in statement.effects.drops:
        store.drop(dropped)
    if table is not None and table.is_temporary:
        _rename_temporary(store, statement.effects.renames)
    else:
        _rename(store, statement)


def _parted_tables(statement: CatalogStatement, database: str) -> Iterable[TableName]:
    """Tables that ALTER TABLE … CONVERT PARTITION … TO TABLE makes."""
    node = statement.node
    assert isinstance(node, AlterTable)
    for action in node.actions:
        if action.words[:1] == ("CONVERT",) and action.table is not None:
            yield TableName(action.table.database or database, action.table.name)


def _rename_temporary(store: ObjectStore, renames: Iterable[tuple[TableName, TableName]]) -> None:
    for old, new in renames:
        table = store.temporary.pop(old, None)
        if table is not None:
            store.temporary[new] = replace(table, name=new)


def _rename(store: ObjectStore, statement: CatalogStatement) -> None:
    """RENAME TABLE: MariaDB means the temporary table that hides another one, MySQL never does."""
    for old, new in statement.effects.renames:
        if statement.flavor is Flavor.MARIADB and old in store.temporary:
            _rename_temporary(store, [(old, new)])
        else:
            store.rename(old, new)


def _drop_tables(store: ObjectStore, statement: CatalogStatement) -> None:
    for name in statement.effects.drops:
        if statement.effects.is_temporary:
            store.temporary.pop(name, None)
        elif statement.flavor is None or store.temporary.pop(name, None) is None:
            store.drop(name)


def table_created(store: ObjectStore, statement: CatalogStatement, name: TableName) -> Table:
    """The table of a CREATE TABLE, without the columns of a SELECT."""
    charset = store.databases.get(name.database)
    if statement.flavor is not None:
        charset = charset or statement.server_charset
    return created(
        name,
        statement.facts,
        engine=statement.default_engine,
        charset=charset,
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


# Databases ------------------------------------------------------------------------------------


def _create_database(store: ObjectStore, statement: CatalogStatement) -> None:
    (database,) = statement.effects.databases
    if statement.effects.if_exists and database in store.databases:
        return
    store.databases[database] = _charset_of_database(statement) or statement.server_charset


def _alter_database(store: ObjectStore, statement: CatalogStatement) -> None:
    (database,) = statement.effects.databases
    charset = _charset_of_database(statement)
    if charset is not None:
        store.databases[database] = charset


def _charset_of_database(statement: CatalogStatement) -> str | None:
    node = statement.node
    assert isinstance(node, Database)
    return named_charset(node.options)


def _drop_database(store: ObjectStore, statement: CatalogStatement) -> None:
    for database in statement.effects.databases:
        store.drop_database(database)


# Views ----------------------------------------------------------------------------------------


def _create_view(store: ObjectStore, statement: CatalogStatement) -> None:
    name = statement.effects.objects[0]
    if statement.effects.if_exists and (name in store.views or name in store.tables):
        return
    node = statement.node
    assert isinstance(node, CreateView)
    query = statement.facts.text_of(node.query)
    store.views[name] = View(
        name=name,
        query=query,
        facts=read(query, database=statement.database, dialect=statement.facts.dialect),
        definer=_definer(store, statement, node.definer),
        is_invoker=node.security == "INVOKER",
        columns=node.columns,
        database=statement.database,
    )
    store.databases.setdefault(name.database, None)


def _definer(
    store: ObjectStore, statement: CatalogStatement, account: Account | None
) -> AccountName:
    """Whose privileges hold in a view or program."""
    if account is None:
        return statement.account
    return named(account, store.accounts, situation_of(statement))


def _drop_views(store: ObjectStore, statement: CatalogStatement) -> None:
    for name in statement.effects.objects:
        store.views.pop(name, None)


# Triggers -------------------------------------------------------------------------------------


def _create_trigger(store: ObjectStore, statement: CatalogStatement) -> None:
    node = statement.node
    assert isinstance(node, CreateTrigger)
    name = _resolved(node.name, statement.database)
    table = _resolved(node.table, name.database)
    trigger = Trigger(
        dialect=statement.facts.dialect,
        name=TableName(table.database, name.table),
        table=table,
        time=TriggerTime.BEFORE if node.time == "BEFORE" else TriggerTime.AFTER,
        events=frozenset(node.events),
        body=_body_text(statement, node.body_at),
        create_statement=statement.text,
        definer=_definer(store, statement, node.definer),
    )
    if statement.effects.if_exists and _table_of_trigger(store, trigger.name) is not None:
        return
    _remove_trigger(store, trigger.name)
    store.triggers[table] = _placed(store.triggers.get(table, ()), trigger, node.order)


def _resolved(name: ObjectName, database: str) -> TableName:
    return TableName(name.database or database, name.name)


def _body_text(statement: CatalogStatement, at: int) -> str:
    """A body as it stands, without delimiters behind it."""
    return statement.text[statement.facts.place(at) :].rstrip().rstrip(";").rstrip()


def _placed(
    triggers: Sequence[Trigger], new: Trigger, order: tuple[str, str] | None
) -> tuple[Trigger, ...]:
    index = next(
        (i for i, each in enumerate(triggers) if order and each.name.table == order[1]), None
    )
    if index is None or order is None:
        return (*triggers, new)
    index += order[0] == "FOLLOWS"
    return (*triggers[:index], new, *triggers[index:])


def _drop_trigger(store: ObjectStore, statement: CatalogStatement) -> None:
    for name in statement.effects.objects:
        _remove_trigger(store, name)


def _table_of_trigger(store: ObjectStore, name: TableName) -> TableName | None:
    for table, triggers in store.triggers.items():
        if any(each.name == name for each in triggers):
            return table
    return None


def _remove_trigger(store: ObjectStore, name: TableName) -> None:
    table = _table_of_trigger(store, name)
    if table is None:
        return
    kept = tuple(each for each in store.triggers[table] if each.name != name)
    if kept:
        store.triggers[table] = kept
    else:
        del store.triggers[table]


# Routines and events --------------------------------------------------------------------------


def _create_routine(store: ObjectStore, statement: CatalogStatement) -> None:
    node = statement.node
    assert isinstance(node, CreateRoutine)
    if node.soname:
        store.loadable.add(node.name.name.lower())
        return
    name = _resolved(node.name, statement.database)
    key = node.verb.endswith("FUNCTION"), small(name)
    if statement.effects.if_exists and key in store.routines:
        return
    text_of = statement.facts.text_of
    said = [each for each in node.characteristics if each.endswith("DETERMINISTIC")]
    access = [each for each in node.characteristics if each in _DATA_ACCESS]
    store.routines[key] = Routine(
        dialect=statement.facts.dialect,
        name=name,
        is_function=key[0],
        parameters=tuple(
            Parameter(name=each.name, type_text=text_of(each.type), direction=each.direction)
            for each in node.parameters
        ),
        body=_body_text(statement, node.body_at),
        returns="" if node.returns is None else text_of(node.returns),
        is_deterministic=said[-1:] == ["DETERMINISTIC"],
        data_access=access[-1] if access else "CONTAINS SQL",
        create_statement=statement.text,
        charset=store.databases.get(name.database) or statement.server_charset,
        definer=_definer(store, statement, node.definer),
        is_invoker="SQL SECURITY INVOKER" in node.characteristics,
    )
    store.databases.setdefault(name.database, None)
    kind = "FUNCTION" if key[0] else "PROCEDURE"
    give_routine(store.accounts, statement.account, (kind, name.database, name.table.lower()))


def _alter_routine(store: ObjectStore, statement: CatalogStatement) -> None:
    node = statement.node
    assert isinstance(node, ObjectStatement)
    for name in statement.effects.objects:
        key = node.verb.endswith("FUNCTION"), small(name)
        routine = store.routines.get(key)
        for access in _DATA_ACCESS:
            if routine is not None and access in node.words:
                store.routines[key] = replace(routine, data_access=access)
        for security in ("INVOKER", "DEFINER"):
            routine = store.routines.get(key)
            if routine is not None and f"SQL SECURITY {security}" in node.words:
                store.routines[key] = replace(routine, is_invoker=security == "INVOKER")


def _drop_routine(store: ObjectStore, statement: CatalogStatement) -> None:
    node = statement.node
    assert isinstance(node, ObjectStatement)
    is_function = node.verb.endswith("FUNCTION")
    for name in statement.effects.objects:
        found = store.routines.pop((is_function, small(name)), None)
        kind = "FUNCTION" if is_function else "PROCEDURE"
        take_routine(store.accounts, (kind, name.database, name.table.lower()))
        if is_function and found is None:
            store.loadable.discard(name.table.lower())


def _create_event(store: ObjectStore, statement: CatalogStatement) -> None:
    store.events.add(small(statement.effects.objects[0]))


def _alter_event(store: ObjectStore, statement: CatalogStatement) -> None:
    names = [small(name) for name in statement.effects.objects]
    if len(names) > 1 and names[0] in store.events:
        store.events.discard(names[0])
        store.events.add(names[1])


def _drop_event(store: ObjectStore, statement: CatalogStatement) -> None:
    store.events.difference_update(small(name) for name in statement.effects.objects)


# Accounts and settings ------------------------------------------------------------------------


def _change_accounts(store: ObjectStore, statement: CatalogStatement) -> None:
    node = statement.node
    if isinstance(node, AccountStatement):
        store.accounts = change(store.accounts, node, situation_of(statement)).accounts


def situation_of(statement: CatalogStatement) -> Situation:
    """Where a statement on accounts runs."""
    return Situation(
        is_mariadb=statement.flavor is Flavor.MARIADB,
        database=statement.database,
        current=statement.account,
        is_complete=statement.knows_accounts,
    )


def _set(store: ObjectStore, statement: CatalogStatement) -> None:
    """SET GLOBAL; values of one session are no objects."""
    node = statement.node
    if not isinstance(node, Set):
        return
    for item in node.items:
        if item.scope in _GLOBAL_SCOPES:
            store.settings[item.name] = _value(item, statement)


def _value(item: SetItem, statement: CatalogStatement) -> str:
    node: Node | None = item.value
    if node is None:
        return item.words or "DEFAULT"
    if isinstance(node, Literal) and node.kind is LiteralKind.STRING:
        return string_of(node, statement.facts)
    if isinstance(node, Name):
        return ".".join(node.parts)
    return statement.facts.text_of(node)


# By kind --------------------------------------------------------------------------------------

LOG_HANDLERS: Final[Mapping[StatementKind, Handler]] = MappingProxyType(
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
        StatementKind.CREATE_DATABASE: _create_database,
        StatementKind.ALTER_DATABASE: _alter_database,
        StatementKind.DROP_DATABASE: _drop_database,
    }
)
"""Of a log, where tables and their databases count."""

SERVER_HANDLERS: Final[Mapping[StatementKind, Handler]] = MappingProxyType(
    {
        **LOG_HANDLERS,
        StatementKind.CREATE_VIEW: _create_view,
        StatementKind.ALTER_VIEW: _create_view,
        StatementKind.DROP_VIEW: _drop_views,
        StatementKind.CREATE_TRIGGER: _create_trigger,
        StatementKind.DROP_TRIGGER: _drop_trigger,
        StatementKind.CREATE_ROUTINE: _create_routine,
        StatementKind.ALTER_ROUTINE: _alter_routine,
        StatementKind.DROP_ROUTINE: _drop_routine,
        StatementKind.CREATE_EVENT: _create_event,
        StatementKind.ALTER_EVENT: _alter_event,
        StatementKind.DROP_EVENT: _drop_event,
        StatementKind.ACCOUNT: _change_accounts,
        StatementKind.SET: _set,
    }
)
