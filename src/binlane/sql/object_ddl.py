"""What statements on databases, views, programs, accounts and settings do to a catalog's objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.sql.clauses import skip_set_statement
from binlane.sql.cursor import Cursor, split
from binlane.sql.effects import StatementKind
from binlane.sql.object_definitions import (
    NewTrigger,
    create_routine,
    create_trigger,
    create_view,
)
from binlane.sql.object_store import CatalogStatement, ObjectStore, small
from binlane.sql.schema import Trigger
from binlane.sql.table_ddl import Handler
from binlane.sql.table_definitions import named_charset
from binlane.sql.tokens import Token, TokenKind, tokenise

_GLOBAL_SCOPES: Final = ("GLOBAL", "PERSIST", "PERSIST_ONLY")


def _create_database(store: ObjectStore, statement: CatalogStatement) -> None:
    (database,) = statement.effects.databases
    if statement.effects.if_exists and database in store.databases:
        return
    charset = named_charset(_tokens(statement)) or statement.server_charset
    store.databases[database] = charset


def _alter_database(store: ObjectStore, statement: CatalogStatement) -> None:
    (database,) = statement.effects.databases
    charset = named_charset(_tokens(statement))
    if charset is not None:
        store.databases[database] = charset


def _drop_database(store: ObjectStore, statement: CatalogStatement) -> None:
    for database in statement.effects.databases:
        store.drop_database(database)


DATABASE_HANDLERS: Final[Mapping[StatementKind, Handler]] = MappingProxyType(
    {
        StatementKind.CREATE_DATABASE: _create_database,
        StatementKind.ALTER_DATABASE: _alter_database,
        StatementKind.DROP_DATABASE: _drop_database,
    }
)


def _create_view(store: ObjectStore, statement: CatalogStatement) -> None:
    name = statement.effects.objects[0]
    if statement.effects.if_exists and (name in store.views or name in store.tables):
        return
    store.views[name] = create_view(
        statement.text, database=statement.database, quoting=statement.quoting
    )
    store.databases.setdefault(name.database, None)


def _drop_views(store: ObjectStore, statement: CatalogStatement) -> None:
    for name in statement.effects.objects:
        store.views.pop(name, None)


def _create_trigger(store: ObjectStore, statement: CatalogStatement) -> None:
    new = create_trigger(statement.text, database=statement.database, quoting=statement.quoting)
    name = new.trigger.name
    if statement.effects.if_exists and _table_of_trigger(store, name) is not None:
        return
    _remove_trigger(store, name)
    table = new.trigger.table
    store.triggers[table] = _placed(store.triggers.get(table, ()), new)


def _placed(triggers: Sequence[Trigger], new: NewTrigger) -> tuple[Trigger, ...]:
    beside = new.follows or new.precedes
    index = next(
        (i for i, each in enumerate(triggers) if beside is not None and each.name.table == beside),
        None,
    )
    if index is None:
        return (*triggers, new.trigger)
    index += new.follows is not None
    return (*triggers[:index], new.trigger, *triggers[index:])


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


def _create_routine(store: ObjectStore, statement: CatalogStatement) -> None:
    made = create_routine(statement.text, database=statement.database, quoting=statement.quoting)
    if isinstance(made, str):
        store.loadable.add(made.lower())
        return
    key = made.is_function, small(made.name)
    if not (statement.effects.if_exists and key in store.routines):
        charset = store.databases.get(made.name.database) or statement.server_charset
        store.routines[key] = replace(made, charset=charset)
        store.databases.setdefault(made.name.database, None)


def _alter_routine(store: ObjectStore, statement: CatalogStatement) -> None:
    words = [token.word for token in _tokens(statement)]
    for name in statement.effects.objects:
        key = _is_function(statement), small(name)
        routine = store.routines.get(key)
        if routine is None:
            continue
        for access in ("CONTAINS SQL", "NO SQL", "READS SQL DATA", "MODIFIES SQL DATA"):
            if access in " ".join(words):
                store.routines[key] = replace(routine, data_access=access)


def _drop_routine(store: ObjectStore, statement: CatalogStatement) -> None:
    is_function = _is_function(statement)
    for name in statement.effects.objects:
        found = store.routines.pop((is_function, small(name)), None)
        if is_function and found is None:
            store.loadable.discard(name.table.lower())


def _is_function(statement: CatalogStatement) -> bool:
    cursor = Cursor(_tokens(statement))
    cursor.until(("FUNCTION", "PROCEDURE"))
    return cursor.word == "FUNCTION"


def _create_event(store: ObjectStore, statement: CatalogStatement) -> None:
    store.events.add(small(statement.effects.objects[0]))


def _alter_event(store: ObjectStore, statement: CatalogStatement) -> None:
    names = [small(name) for name in statement.effects.objects]
    if len(names) > 1 and names[0] in store.events:
        store.events.discard(names[0])
        store.events.add(names[1])


def _drop_event(store: ObjectStore, statement: CatalogStatement) -> None:
    store.events.difference_update(small(name) for name in statement.effects.objects)


def _change_accounts(store: ObjectStore, statement: CatalogStatement) -> None:
    """CREATE, DROP and RENAME of users and roles; what they may do is not asked."""
    cursor = Cursor(_tokens(statement))
    verb = cursor.accept_any(("CREATE", "DROP", "RENAME"))
    cursor.accept("OR", "REPLACE")
    if not verb or not cursor.accept_any(("USER", "ROLE")):
        return
    if not cursor.accept("IF", "NOT", "EXISTS"):
        cursor.accept("IF", "EXISTS")
    for part in split(cursor.rest()):
        accounts = _accounts(Cursor(part))
        if verb == "CREATE":
            store.accounts.update(accounts[:1])
        elif verb == "DROP":
            store.accounts.difference_update(accounts[:1])
        elif accounts[:1] and accounts[0] in store.accounts and accounts[-1] not in store.accounts:
            store.accounts.discard(accounts[0])
            store.accounts.update(accounts[1:2])


def _accounts(cursor: Cursor) -> list[str]:
    """The account at the beginning of a part; of a RENAME also the new name."""
    found = []
    while cursor.token.kind in _ACCOUNT_KINDS:
        user, host = cursor.advance().value, "%"
        if cursor.token.kind is TokenKind.USER_VARIABLE:
            host = cursor.advance().value.lstrip("@").strip("`'\"")
        elif cursor.accept_operator("@"):
            host = cursor.advance().value
        found.append(f"{user}@{host}")
        if not cursor.accept("TO"):
            break
    return found


_ACCOUNT_KINDS: Final = frozenset(
    {TokenKind.NAME, TokenKind.QUOTED_NAME, TokenKind.MEMBER_NAME, TokenKind.STRING}
)


def _set(store: ObjectStore, statement: CatalogStatement) -> None:
    """SET GLOBAL; values of one session are no objects."""
    cursor = Cursor(_tokens(statement))
    skip_set_statement(cursor)
    cursor.expect("SET")
    for part in split(cursor.rest()):
        name, value = _global_assignment(Cursor(part))
        if name:
            store.settings[name] = value


def _global_assignment(cursor: Cursor) -> tuple[str, str]:
    """Name and value of a global variable; an empty name for anything else."""
    name = ""
    if cursor.token.kind is TokenKind.SYSTEM_VARIABLE:
        scope, _, variable = cursor.advance().value[2:].partition(".")
        if scope.upper() in _GLOBAL_SCOPES:
            name = variable
    elif cursor.accept_any(_GLOBAL_SCOPES):
        name = cursor.identifier()
    if not name or not (cursor.accept_operator("=") or cursor.accept_operator(":=")):
        return "", ""
    value = "".join(token.value for token in cursor.rest() if token.text != ";")
    return name.replace("`", "").lower(), value


OBJECT_HANDLERS: Final[Mapping[StatementKind, Handler]] = MappingProxyType(
    {
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


def _tokens(statement: CatalogStatement) -> list[Token]:
    return list(tokenise(statement.text, **statement.quoting))
